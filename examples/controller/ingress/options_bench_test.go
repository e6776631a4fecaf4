package ingress

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile/render"
)

// BenchmarkAnnotations compares Ingresses that have five annotations each with those that
// have none: all of them built and rendered, and one endpoint of them.
func BenchmarkAnnotations(b *testing.B) {
	n := brief(10_000)
	for _, name := range []string{"none", "five"} {
		w := manyIngresses(n)
		for _, ing := range w.ingresses {
			if name == "five" {
				ing.Annotations = map[string]string{nginx + "whitelist-source-range": "10.0.0.0/8", nginx + "proxy-read-timeout": "60", nginx + "proxy-body-size": "8m", nginx + "enable-cors": "true", nginx + "force-ssl-redirect": "true"}
			}
		}
		b.Run(fmt.Sprint(name, "/build/", n), func(b *testing.B) {
			slots := &Slots{}
			b.ReportAllocs()
			for b.Loop() {
				Build(w.cluster(), slots)
			}
		})
		engine, err := Compile(os.DirFS("../templates"), dataplane.Layout{})
		require.NoError(b, err)
		b.Run(fmt.Sprint(name, "/start/", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				slots := &Slots{}
				_, err := (&render.Templates{Engine: engine, Input: func(context.Context) (*render.Input, error) {
					return Build(w.cluster(), slots).input(benchSettings), nil
				}}).Render(b.Context())
				require.NoError(b, err)
			}
		})
		change := func(what string, change func(s *state, i int)) {
			b.Run(fmt.Sprint(name, "/", what, "/", n), func(b *testing.B) {
				s := newBench(w)
				var routes *Routes
				r := &render.Templates{Engine: engine, Pure: true, Input: func(context.Context) (*render.Input, error) { return routes.Input(benchSettings), nil }}
				next := func(i int) {
					change(s, i)
					routes = s.routes(b)
					_, err := r.Render(b.Context())
					require.NoError(b, err)
				}
				next(0)
				b.ReportAllocs()
				for i := 1; b.Loop(); i++ {
					next(i)
				}
			})
		}
		change("endpoint", func(s *state, i int) { s.setEndpoint("svc-00001", i) })
		change("ingress", func(s *state, i int) {
			is := w.ingresses[1].DeepCopy()
			if name == "five" {
				is.Annotations[nginx+"proxy-read-timeout"] = fmt.Sprint(1 + i%200)
			}
			s.model.Ingresses.Set(nameOf(is), is)
		})
	}
}
