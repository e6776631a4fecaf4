package validate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/validate"
)

// crowd is what one Service with that many ports makes of 20 endpoints. The last
// address of each backend differs by change.
func crowd(ports, change int) string {
	var b strings.Builder
	b.WriteString(good)
	for i := range ports {
		fmt.Fprintf(&b, "backend shop_web_%d\n  balance roundrobin\n", i)
		for s := range 19 {
			fmt.Fprintf(&b, "  server s%d 10.0.%d.%d:8080 check\n", s, i%250, s+1)
		}
		fmt.Fprintf(&b, "  server s19 10.%d.%d.20:8080 check\n", 1+change, i%250)
	}
	return b.String()
}

// BenchmarkInherit is phase 2 after an endpoint of such a Service was replaced: one
// server of each backend goes, and another comes. The time for one port must not
// grow with the ports.
func BenchmarkInherit(b *testing.B) {
	needHAProxy(b)
	for _, ports := range []int{brief(100), brief(1000), brief(3000)} {
		b.Run(fmt.Sprintf("ports=%d/endpoints=20", ports), func(b *testing.B) {
			v := &validate.Validator{}
			if _, err := v.Semantics(b.Context(), text(b, crowd(ports, 0))); err != nil {
				b.Fatal(err)
			}
			change := 0
			for b.Loop() {
				change++
				cfg := strings.ReplaceAll(crowd(ports, change%200), "server s19 ", fmt.Sprintf("server t%d ", change))
				if r, err := v.Semantics(b.Context(), text(b, cfg)); err != nil || !r.Inherited {
					b.Fatal(r, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(ports), "µs/port")
		})
	}
}

// BenchmarkInheritMap is phase 2 after every entry of a map has changed.
func BenchmarkInheritMap(b *testing.B) {
	needHAProxy(b)
	main := good + "frontend maps\n  bind :8082\n  use_backend %[path,map_str(/etc/haproxy/maps/hosts.map)]\n"
	of := func(lines int, value string) *dataplane.Config {
		var m strings.Builder
		for i := range lines {
			fmt.Fprintf(&m, "host-%d.test %s\n", i, value)
		}
		cfg, err := dataplane.NewConfig(main, dataplane.File{Kind: dataplane.Map, Name: "hosts.map", Content: []byte(m.String())})
		if err != nil {
			b.Fatal(err)
		}
		return cfg
	}
	for _, lines := range []int{brief(10_000), brief(100_000)} {
		b.Run(fmt.Sprintf("lines=%d", lines), func(b *testing.B) {
			v := &validate.Validator{}
			if _, err := v.Semantics(b.Context(), of(lines, "app")); err != nil {
				b.Fatal(err)
			}
			n := 0
			for b.Loop() {
				n++
				if r, err := v.Semantics(b.Context(), of(lines, fmt.Sprint("app-", n))); err != nil || !r.Inherited {
					b.Fatal(r, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(lines), "ns/line")
		})
	}
}

// brief is n, or a part of it with -short: CI runs each benchmark once.
func brief(n int) int {
	if testing.Short() {
		return n / 50
	}
	return n
}
