package dataplane_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const bigBackends = 5000

// bigText is a configuration of 5,000 backends with three servers each. The
// functions say what differs: name, and what a backend has beyond the rest, and
// the address of its first server.
type bigText struct {
	name, extra, address func(i int) string
}

func (t bigText) String() string {
	var b strings.Builder
	b.WriteString("global\n    maxconn 1000\n\ndefaults\n    mode http\n    timeout client 5s\n\n")
	for i := range bigBackends {
		name, extra, address := fmt.Sprintf("default_app-%d_http", i), "", fmt.Sprintf("10.%d.%d.1", i/250, i%250)
		if t.name != nil {
			name = t.name(i)
		}
		if t.extra != nil {
			extra = t.extra(i)
		}
		if t.address != nil {
			address = t.address(i)
		}
		fmt.Fprintf(&b, "# Ingress default/app-%d\nbackend %s\n    mode http\n    balance roundrobin\n%s", i, name, extra)
		b.WriteString("    option httpchk GET /healthz\n    http-request set-header X-Forwarded-Proto https if { ssl_fc }\n")
		fmt.Fprintf(&b, "    server pod-0 %s:8080 check inter 2s weight 100\n", address)
		for s := 1; s < 3; s++ {
			fmt.Fprintf(&b, "    server pod-%d 10.%d.%d.%d:8080 check inter 2s weight 100\n", s, i/250, i%250, s+1)
		}
	}
	return b.String()
}

// first gives the first n backends another text than the rest.
func first(n int, changed, rest func(i int) string) func(i int) string {
	return func(i int) string {
		if i < n {
			return changed(i)
		}
		return rest(i)
	}
}

func bigAddress(i int) string { return fmt.Sprintf("10.%d.%d.1", i/250, i%250) }

func movedAddress(int) string { return "10.200.0.1" }

func none(int) string { return "" }

// Each text is a string of its own, and each Config is made within the time
// that counts, so that nothing is known from before.
func BenchmarkDiff(b *testing.B) {
	rule := func(i int) string { return fmt.Sprintf("    http-request set-header X-App app-%d\n", i) }
	other := func(i int) string { return fmt.Sprintf("    http-request set-header X-App other-%d\n", i) }
	for _, bm := range []struct {
		name             string
		current, desired bigText
		ops              int
	}{
		{"equal", bigText{}, bigText{}, 0},
		{"one address", bigText{}, bigText{address: first(1, movedAddress, bigAddress)}, 1},
		{"100 addresses", bigText{}, bigText{address: first(100, movedAddress, bigAddress)}, 100},
		{"100 rules", bigText{extra: rule}, bigText{extra: first(100, other, rule)}, 100},
		{"100 balances", bigText{}, bigText{extra: first(100, func(int) string { return "    balance leastconn\n" }, none)}, 100},
		{"other names", bigText{}, bigText{name: func(i int) string { return fmt.Sprintf("other-%d", i) }}, 2 * bigBackends},
		{"every rule", bigText{extra: rule}, bigText{extra: other}, bigBackends},
	} {
		current, desired := bm.current.String(), bm.desired.String()
		b.Run(bm.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				plan := diffOf(b, current, desired)
				if len(plan.Ops) != bm.ops {
					b.Fatal(plan)
				}
			}
		})
	}
}

func TestDiffAllocates(t *testing.T) {
	current, desired := bigText{}.String(), bigText{address: first(1, movedAddress, bigAddress)}.String()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	diffOf(t, current, desired)
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(10<<20))
}
