package diff_test

import (
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/dataplane/internal/diff"
)

// crowd is what one Service with that many ports makes of 20 endpoints.
func crowd(ports int, server, options string) string {
	var b strings.Builder
	b.WriteString("global\n  maxconn 100\ndefaults\n  mode http\n  timeout tunnel 1h\nfrontend web\n  bind :80\n" +
		"  use_backend %[path,map_str(/etc/haproxy/maps/hosts.map)]\n  bind :443 ssl crt-list /etc/haproxy/general/tenants.txt\n")
	for i := range ports {
		fmt.Fprintf(&b, "backend tt_tt_%d\n  balance roundrobin\n", i)
		for s := range 20 {
			fmt.Fprintf(&b, "  server %s%d 10.0.%d.%d:8080 check %s\n", server, s, i%250, s+1, options)
		}
	}
	return b.String()
}

func lines(n int, key, value string) []byte {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, key+" "+value+"\n", i, i)
	}
	return []byte(b.String())
}

func certificates(n int, content string) []config.File {
	files := []config.File{{Kind: config.CRTList, Name: "tenants.txt", Content: lines(n, "/etc/haproxy/ssl/t%d.pem", "t%d.test")}}
	for i := range n {
		files = append(files, config.File{Kind: config.Certificate, Name: fmt.Sprintf("t%d.pem", i), Content: []byte(content)})
	}
	return files
}

// crowds are changes that one tenant can make, by how many ports it has. For one port it
// has 20 endpoints, a certificate, or 33 entries of a map.
var crowds = []struct {
	name string
	make func(n int) (from, to *config.Config)
}{
	{"other endpoints", func(n int) (from, to *config.Config) {
		return newConfig(crowd(n, "old", "")), newConfig(crowd(n, "new", ""))
	}},
	{"other endpoints with a CA", func(n int) (from, to *config.Config) {
		ca := config.File{Kind: config.CA, Name: "ca.pem", Content: []byte("ca")}
		return newConfig(crowd(n, "old", "ssl verify required ca-file /etc/haproxy/general/ca.pem"), ca), newConfig(crowd(n, "new", "ssl verify required ca-file /etc/haproxy/general/ca.pem"), ca)
	}},
	{"new backends with their entries", func(n int) (from, to *config.Config) {
		hosts := func(n int) config.File {
			return config.File{Kind: config.Map, Name: "hosts.map", Content: append([]byte("a b\n"), lines(n, "h%d.test", "tt_tt_%d")...)}
		}
		return newConfig(crowd(1, "s", ""), hosts(0)), newConfig(crowd(n, "s", ""), hosts(n))
	}},
	{"new backends beside entries", func(n int) (from, to *config.Config) {
		hosts := func(value string) config.File {
			return config.File{Kind: config.Map, Name: "hosts.map", Content: lines(33*n, "h%d.test", value)}
		}
		return newConfig(crowd(1, "s", ""), hosts("old%d")), newConfig(crowd(n, "s", ""), hosts("ttt_%d"))
	}},
	{"certificates", func(n int) (from, to *config.Config) {
		return newConfig(crowd(n, "s", ""), certificates(n, "a")...), newConfig(crowd(n, "s", ""), certificates(n, "b")...)
	}},
	{"certificates beside backends", func(n int) (from, to *config.Config) {
		other := strings.ReplaceAll(crowd(n, "s", ""), "roundrobin", "leastconn")
		return newConfig(crowd(n, "s", ""), certificates(n, "a")...), newConfig(other, certificates(n, "b")...)
	}},
	{"other balances", func(n int) (from, to *config.Config) {
		return newConfig(crowd(n, "s", "")), newConfig(strings.ReplaceAll(crowd(n, "s", ""), "roundrobin", "leastconn"))
	}},
	{"backends in another order", func(n int) (from, to *config.Config) {
		text := crowd(n, "s", "")
		head, rest, _ := strings.Cut(text, "backend ")
		first, rest, _ := strings.Cut(rest, "backend ")
		return newConfig(text), newConfig(head + "backend " + rest + "backend " + first)
	}},
	{"entries", func(n int) (from, to *config.Config) {
		hosts := func(value string) config.File {
			return config.File{Kind: config.Map, Name: "hosts.map", Content: lines(33*n, "h%d.test", value)}
		}
		return newConfig(crowd(1, "s", ""), hosts("a%d")), newConfig(crowd(1, "s", ""), hosts("b%d"))
	}},
	{"entries of one key", func(n int) (from, to *config.Config) {
		hosts := func(value string) config.File {
			return config.File{Kind: config.Map, Name: "hosts.map", Content: lines(33*n, "host.test%.0d", value)}
		}
		return newConfig(crowd(1, "s", ""), hosts("a%d")), newConfig(crowd(1, "s", ""), hosts("b%d"))
	}},
	{"one backend with all endpoints", func(n int) (from, to *config.Config) {
		of := func(name string) string {
			return crowd(1, "s", "") + string(lines(20*n, "  server "+name+"%d", "10.0.0.1:%d"))
		}
		return newConfig(strings.ReplaceAll(of("a"), ":0\n", ":1\n")), newConfig(strings.ReplaceAll(of("b"), ":0\n", ":1\n"))
	}},
	{"one frontend with all rules", func(n int) (from, to *config.Config) {
		of := func(name string) string {
			return crowd(0, "s", "") + string(lines(20*n, "  use_backend "+name+"%d", "if { path /%d }"))
		}
		return newConfig(of("a")), newConfig(of("b"))
	}},
}

func newConfig(main string, files ...config.File) *config.Config {
	cfg, err := config.New(main, files...)
	if err != nil {
		panic(err)
	}
	return cfg
}

// processorTime is what this process has used, which other processes do not stretch.
func processorTime(t *testing.T) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano())
}

// TestCostFollowsSize compares what a change costs with what it costs at eight times
// the size. A measurement over the limit is taken again, with more of the small changes: a
// cost that grows with the square of the size is over it each time, a collection of
// garbage in the wrong moment is not.
func TestCostFollowsSize(t *testing.T) {
	const limit = 20
	for _, c := range crowds {
		t.Run(c.name, func(t *testing.T) {
			for _, times := range []int{1, 8, 8} {
				var sum time.Duration
				for range times {
					sum += costOf(t, c.make, 100)
				}
				small, large := sum/time.Duration(times), costOf(t, c.make, 800)
				if large <= limit*small || large <= 500*time.Millisecond {
					return
				}
				t.Logf("100 ports: %v, 800 ports: %v", small, large)
			}
			t.Errorf("800 ports cost more than %d times what 100 cost", limit)
		})
	}
}

// costOf is the processor time of one change, without that of reading its configurations.
func costOf(t *testing.T, makeConfigs func(n int) (from, to *config.Config), ports int) time.Duration {
	from, to := makeConfigs(ports)
	runtime.GC()
	start := processorTime(t)
	steps := diff.Compare(from, to, change.Target{})
	diff.RuntimePart(from, to, steps, change.Target{})
	return processorTime(t) - start
}

// BenchmarkCrowd shows that the time for a port does not grow with the ports.
func BenchmarkCrowd(b *testing.B) {
	for _, c := range crowds {
		for _, ports := range []int{brief(1000), brief(3000)} {
			b.Run(fmt.Sprintf("%s/ports=%d", strings.ReplaceAll(c.name, " ", "_"), ports), func(b *testing.B) {
				for b.Loop() {
					from, to := c.make(ports) // anew, since a Config remembers its sections
					steps := diff.Compare(from, to, change.Target{})
					diff.RuntimePart(from, to, steps, change.Target{})
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(ports), "µs/port")
			})
		}
	}
}

// brief is n, or a part of it with -short: CI runs each benchmark once.
func brief(n int) int {
	if testing.Short() {
		return n / 50
	}
	return n
}
