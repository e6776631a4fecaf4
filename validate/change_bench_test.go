package validate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/validate"
)

// shops is a configuration in parts, as a template that renders each backend by
// itself makes it, and its map.
type shops struct{ parts, entries []string }

func newShops(n int) shops {
	s := shops{parts: []string{"global\n  maxconn 100\n", "defaults\n  mode http\n  timeout connect 1s\n  timeout client 1s\n  timeout server 1s\n",
		"frontend web\n  bind 127.0.0.1:9999\n  use_backend %[path,map_str(/etc/haproxy/maps/paths.map)]\n"}}
	for i := range n {
		s.parts = append(s.parts, shop(fmt.Sprintf("shop_%06d", i), 1))
		s.entries = append(s.entries, fmt.Sprintf("/%d shop_%06d\n", i, i))
	}
	return s
}

func shop(name string, address int) string {
	return fmt.Sprintf("backend %s\n  balance roundrobin\n  server s1 10.0.0.%d:8080\n  server s2 10.0.1.1:8080\n  server s3 10.0.0.1:8080 disabled\n", name, address)
}

func (s shops) config(b *testing.B, last *dataplane.Config) *dataplane.Config {
	b.Helper()
	cfg, err := dataplane.NewConfigFrom(last, s.parts,
		dataplane.File{Kind: dataplane.Map, Name: "paths.map", Content: []byte(strings.Join(s.entries, ""))})
	if err != nil {
		b.Fatal(err)
	}
	cfg.Hash() // the loop has asked for it before
	return cfg
}

// with puts one part, or none, in the place of a backend.
func (s shops) with(at, instead int, parts ...string) shops {
	s.parts = append(append(append([]string(nil), s.parts[:at]...), parts...), s.parts[at+instead:]...)
	return s
}

// BenchmarkValidate is both phases after one change, where no haproxy is run.
func BenchmarkValidate(b *testing.B) {
	needHAProxy(b)
	for _, size := range []int{100, 1000, 10_000} {
		n := brief(size)
		first := newShops(n)
		at := 3 + n/2
		entry := func(line string) shops {
			s := first
			s.entries = append([]string(nil), first.entries...)
			s.entries[n/2] = line
			return s
		}
		changes := map[string][2]shops{ // each from one to the other and back
			"server":        {first.with(at, 1, shop(fmt.Sprintf("shop_%06d", n/2), 2)), first.with(at, 1, shop(fmt.Sprintf("shop_%06d", n/2), 3))},
			"map_entry":     {entry("/a shop_000001\n"), entry("/a shop_000002\n")},
			"backend_comes": {first.with(at, 1, shop(fmt.Sprintf("shop_%06d", n/2), 2)), first.with(at, 0, shop("shop_new", 2))},
			"backend_goes":  {first.with(at, 1, shop(fmt.Sprintf("shop_%06d", n/2), 2)), first.with(at, 1)},
		}
		for _, name := range []string{"server", "map_entry", "backend_comes", "backend_goes"} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				v := &validate.Validator{}
				taken := first.config(b, nil)
				before := changes[name][0].config(b, taken)
				after := changes[name][1].config(b, before)
				if err := v.Validate(b.Context(), taken); err != nil {
					b.Fatal(err)
				}
				for b.Loop() {
					b.StopTimer()
					if err := v.Validate(b.Context(), before); err != nil {
						b.Fatal(err)
					}
					b.StartTimer()
					r, err := v.Check(b.Context(), after)
					if err != nil || !r.Inherited {
						b.Fatal(r, err)
					}
				}
			})
		}
	}
}
