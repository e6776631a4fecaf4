package dataplane_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hapticsdk/haptic/dataplane"
)

// rendered is what a controller renders for that many Ingresses: a backend and a map
// entry for each, and spare backends.
type rendered struct {
	parts   []string
	entries []string
}

func newRendered(backends int) rendered {
	f := rendered{parts: []string{"global\n    maxconn 1000\n\n", "defaults\n    mode http\n    timeout client 5s\n\n",
		"frontend web\n    bind :8080\n    use_backend %[req.hdr(host),map(/etc/haproxy/maps/hosts.map)]\n\n"}}
	for i := range backends {
		f.parts = append(f.parts, renderedBackend(fmt.Sprintf("default_app-%d_http", i), 1))
		f.entries = append(f.entries, fmt.Sprintf("app-%d.example.com default_app-%d_http\n", i, i))
	}
	for i := range 256 {
		f.parts = append(f.parts, strings.ReplaceAll(renderedBackend(fmt.Sprintf("%s%d", dataplane.SparePrefix, i), 1), "weight 100\n", "weight 100 disabled\n"))
	}
	return f
}

func renderedBackend(name string, address int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "backend %s\n    mode http\n    balance roundrobin\n    option httpchk GET /healthz\n", name)
	b.WriteString("    http-request set-header X-Forwarded-Proto https if { ssl_fc }\n")
	for s := range 3 {
		fmt.Fprintf(&b, "    server pod-%d 10.1.%d.%d:8080 check inter 2s weight 100\n", s, address%250, s+1)
	}
	return b.String()
}

func (f rendered) config(tb testing.TB, last *dataplane.Config) *dataplane.Config {
	cfg, err := dataplane.NewConfigFrom(last, f.parts, dataplane.File{Kind: dataplane.Map, Name: "hosts.map", Content: []byte(strings.Join(f.entries, ""))})
	if err != nil {
		tb.Fatal(err)
	}
	return cfg
}

// What one change of a fleet takes: the configuration, its hash, and the plan.
func BenchmarkChange(b *testing.B) {
	for _, backends := range []int{100, 1000, 10_000} {
		half := backends / 2
		for _, change := range []struct {
			name string
			make func(f rendered, i int) rendered
		}{
			{"server", func(f rendered, i int) rendered {
				f.parts = slices.Clone(f.parts)
				f.parts[half] = renderedBackend(fmt.Sprintf("default_app-%d_http", half-3), 2+i%2)
				return f
			}},
			{"map-entry", func(f rendered, i int) rendered {
				f.entries = slices.Insert(slices.Clone(f.entries), half, fmt.Sprintf("other-%d.example.com default_app-1_http\n", i))
				return f
			}},
			{"backend-and-entry", func(f rendered, i int) rendered {
				name := fmt.Sprintf("default_new-%d_http", i)
				f.parts = slices.Insert(slices.Clone(f.parts), half, renderedBackend(name, 1))
				f.entries = slices.Insert(slices.Clone(f.entries), half, "new.example.com "+name+"\n")
				return f
			}},
			{"100-backends-and-entries", func(f rendered, i int) rendered {
				for n := range 100 {
					name := fmt.Sprintf("default_new-%d-%d_http", i, n)
					f.parts = slices.Insert(slices.Clone(f.parts), half, renderedBackend(name, 1))
					f.entries = slices.Insert(slices.Clone(f.entries), half, fmt.Sprintf("new-%d.example.com %s\n", n, name))
				}
				return f
			}},
		} {
			b.Run(fmt.Sprintf("%s-of-%d", change.name, backends), func(b *testing.B) {
				b.ReportAllocs()
				var took time.Duration // of all threads, whatever else the machine does
				first := newRendered(backends)
				last := first.config(b, nil)
				content := []byte(strings.Join(first.entries, ""))
				last.Hash()
				for i := 0; b.Loop(); i++ {
					b.StopTimer()
					next := change.make(first, i)
					if change.name != "server" {
						content = []byte(strings.Join(next.entries, ""))
					}
					b.StartTimer()
					start := processTime(b)
					cfg, err := dataplane.NewConfigFrom(last, next.parts, dataplane.File{Kind: dataplane.Map, Name: "hosts.map", Content: content})
					if err != nil {
						b.Fatal(err)
					}
					cfg.Hash()
					plan, err := dataplane.Diff(last, cfg)
					if err != nil || len(plan.Ops) == 0 || plan.Impact() != dataplane.ImpactRuntime {
						b.Fatal(plan, err)
					}
					took += processTime(b) - start
				}
				b.ReportMetric(float64(took.Nanoseconds())/float64(b.N), "cpu-ns/op")
			})
		}
	}
}

func processTime(tb testing.TB) time.Duration {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
