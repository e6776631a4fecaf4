package validate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hapticsdk/haptic/dataplane"
)

// endingContext ends when it has been asked that often.
type endingContext struct {
	context.Context
	left int
}

func (c *endingContext) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// inherits reports whether haproxy takes cfg because it took base.
func inherits(ctx context.Context, base, cfg *dataplane.Config) bool {
	v := &Validator{}
	v.took(context.Background(), base, &verdict{})
	return v.inherits(ctx, cfg) != nil
}

// The comparison with what haproxy accepted ends with its context, section by section
// and file by file.
func TestInheritEndsWithContext(t *testing.T) {
	t.Parallel()
	of := func(address string) *dataplane.Config {
		var b strings.Builder
		b.WriteString("defaults\n  mode http\n")
		for i := range 100 {
			fmt.Fprintf(&b, "backend b%d\n  server s %s:80\n", i, address)
		}
		cfg, err := dataplane.NewConfig(b.String())
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	base, cfg := of("10.0.0.1"), of("10.0.0.2")
	if !inherits(t.Context(), base, cfg) {
		t.Fatal("not inherited")
	}
	ctx := &endingContext{t.Context(), 10}
	if inherits(ctx, base, cfg) || ctx.left < -1 {
		t.Errorf("inherited after the end, or asked %d times after it", -ctx.left-1)
	}
	v := &Validator{}
	v.took(t.Context(), base, &verdict{})
	v.version.number = "2.6"
	if _, err := v.Semantics(&endingContext{t.Context(), 10}, cfg); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// BenchmarkInheritCertificates compares configurations in which every certificate was
// renewed, and every map has other entries.
func BenchmarkInheritCertificates(b *testing.B) {
	pems := [2][]byte{newCertificate(b), newCertificate(b)}
	for _, n := range []int{300, 1000, 3000} {
		b.Run(fmt.Sprintf("certificates=%d", n), func(b *testing.B) {
			var main strings.Builder
			main.WriteString("frontend tls\n  bind 127.0.0.1:9998 ssl crt-list /etc/haproxy/general/t.txt\n")
			var all [2][]dataplane.File
			for i := range n {
				fmt.Fprintf(&main, "  use_backend %%[path,map_str(/etc/haproxy/maps/t%d.map)]\n", i)
				for j := range all {
					all[j] = append(all[j], dataplane.File{Kind: dataplane.Certificate, Name: fmt.Sprintf("t%d.pem", i), Content: pems[j]},
						dataplane.File{Kind: dataplane.Map, Name: fmt.Sprintf("t%d.map", i), Content: fmt.Appendf(nil, "/ b%d\n", j)})
				}
			}
			for i := range n {
				fmt.Fprintf(&main, "backend shop_%d\n%s", i, strings.Repeat("  server s 10.0.0.1:80\n", 20))
			}
			list := dataplane.File{Kind: dataplane.CRTList, Name: "t.txt"}
			for i := range n {
				list.Content = fmt.Appendf(list.Content, "/etc/haproxy/ssl/t%d.pem t%d.test\n", i, i)
			}
			var cfgs [2]*dataplane.Config
			for j := range cfgs {
				var err error
				if cfgs[j], err = dataplane.NewConfig(main.String(), append(all[j], list)...); err != nil {
					b.Fatal(err)
				}
			}
			v := &Validator{}
			v.took(b.Context(), cfgs[0], &verdict{})
			for i := 1; b.Loop(); i++ {
				if v.inherits(b.Context(), cfgs[i%2]) == nil {
					b.Fatal("not inherited")
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(n), "µs/certificate")
		})
	}
}
