package ingress

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"

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
					return Build(w.cluster(), slots).Input(benchSettings), nil
				}}).Render(b.Context())
				require.NoError(b, err)
			}
		})
		b.Run(fmt.Sprint(name, "/endpoint/", n), func(b *testing.B) {
			builder, cluster := &Builder{}, w.cluster()
			cluster.Hosts = &Hosts{}
			var routes *Routes
			r := &render.Templates{Engine: engine, Pure: true, Input: func(context.Context) (*render.Input, error) { return routes.Input(benchSettings), nil }}
			next := func(changes *Changes) {
				routes = builder.Build(cluster, changes)
				_, err := r.Render(b.Context())
				require.NoError(b, err)
				routes.Accepted()
			}
			next(nil)
			next(nil)
			next(&Changes{})
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				was, is := w.slices["ns/svc-00001"][0], slice("http", 8080, fmt.Sprintf("192.0.2.%d", 1+i%200))
				is.Labels = map[string]string{discoveryv1.LabelServiceName: "svc-00001"}
				was.Labels = is.Labels
				w.slices["ns/svc-00001"] = []*discoveryv1.EndpointSlice{is}
				next(&Changes{Slices: []Change[discoveryv1.EndpointSlice]{{was, is}}})
				i++
			}
			require.Equal(b, 2, builder.whole)
		})
		b.Run(fmt.Sprint(name, "/ingress/", n), func(b *testing.B) {
			builder, cluster := &Builder{}, w.cluster()
			cluster.Hosts = &Hosts{}
			var routes *Routes
			r := &render.Templates{Engine: engine, Pure: true, Input: func(context.Context) (*render.Input, error) { return routes.Input(benchSettings), nil }}
			next := func(changes *Changes) {
				routes = builder.Build(cluster, changes)
				_, err := r.Render(b.Context())
				require.NoError(b, err)
				routes.Accepted()
			}
			next(nil)
			next(nil)
			next(&Changes{})
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				was, is := w.ingresses[1], w.ingresses[1].DeepCopy()
				if name == "five" {
					is.Annotations[nginx+"proxy-read-timeout"] = fmt.Sprint(1 + i%200)
				}
				w.ingresses[1] = is
				next(&Changes{Ingresses: []Change[networkingv1.Ingress]{{was, is}}})
				i++
			}
			require.Equal(b, 2, builder.whole)
		})
	}
}
