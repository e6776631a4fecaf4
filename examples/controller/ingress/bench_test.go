package ingress

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile/render"
	"github.com/hapticsdk/haptic/validate"
)

// manyIngresses is a cluster of n Ingresses, each with a Service and an
// endpoint of its own.
func manyIngresses(n int) *world {
	w := newWorld()
	for i := range n {
		name := fmt.Sprintf("svc-%05d", i)
		w.services["ns/"+name] = &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
		}
		w.slices["ns/"+name] = []*discoveryv1.EndpointSlice{slice("http", 8080, fmt.Sprintf("10.%d.%d.1", i/250, i%250))}
		w.ingresses = append(w.ingresses, ingress(name, rule(name+".test", path(prefix, "/", name))))
	}
	return w
}

var benchSettings = Settings{HTTP: ":8080", Socket: "/run/haproxy.sock", MaxConn: 100, HardStopAfter: "30m"}

// BenchmarkBuild is what resources mean: all of them, and after a change.
func BenchmarkBuild(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000} {
		n = brief(n)
		b.Run(fmt.Sprint("whole/", n), func(b *testing.B) {
			w, slots := manyIngresses(n), &Slots{}
			b.ReportAllocs()
			for b.Loop() {
				Build(w.cluster(), slots)
			}
		})
		change := func(name string, change func(w *world, i int) *Changes) {
			b.Run(fmt.Sprint(name, "/", n), func(b *testing.B) {
				w, builder, hosts := manyIngresses(n), &Builder{}, &Hosts{}
				cluster := w.cluster()
				cluster.Hosts = hosts
				for range 2 {
					builder.Build(cluster, nil).Accepted()
				}
				builder.Build(cluster, &Changes{}).Accepted()
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					builder.Build(cluster, change(w, i)).Accepted()
					i++
				}
				require.Equal(b, 2, builder.whole)
			})
		}
		change("endpoint", func(w *world, i int) *Changes {
			was := w.slices["ns/svc-00001"][0]
			is := slice("http", 8080, fmt.Sprintf("192.0.2.%d", 1+i%200))
			is.Labels = map[string]string{discoveryv1.LabelServiceName: "svc-00001"}
			was.Labels = is.Labels
			w.slices["ns/svc-00001"] = []*discoveryv1.EndpointSlice{is}
			return &Changes{Slices: []Change[discoveryv1.EndpointSlice]{{was, is}}}
		})
		fresh := manyIngresses(1) // comes, and goes in the next change
		service, endpoints := fresh.services["ns/svc-00000"], fresh.slices["ns/svc-00000"]
		service.Name = "fresh"
		ing := by("ns", 1, ingress("fresh", rule("m.test", path(prefix, "/", "fresh"))))
		change("new_ingress", func(w *world, i int) *Changes {
			if i%2 == 1 {
				delete(w.services, "ns/fresh")
				delete(w.slices, "ns/fresh")
				w.ingresses = w.ingresses[:n]
				return &Changes{Ingresses: []Change[networkingv1.Ingress]{{ing, nil}}, Services: []Change[corev1.Service]{{service, nil}}}
			}
			w.services["ns/fresh"], w.slices["ns/fresh"] = service, endpoints
			w.ingresses = append(w.ingresses, ing)
			return &Changes{Ingresses: []Change[networkingv1.Ingress]{{nil, ing}}, Services: []Change[corev1.Service]{{nil, service}}}
		})
	}
}

// BenchmarkRender goes from resources to a configuration, as each render does.
func BenchmarkRender(b *testing.B) {
	for _, n := range []int{brief(1000), brief(5000)} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			engine, err := Compile(os.DirFS("../templates"), dataplane.Layout{})
			require.NoError(b, err)
			w, slots := manyIngresses(n), &Slots{}
			renderer := &render.Templates{Engine: engine, Input: func(context.Context) (*render.Input, error) {
				return Build(w.cluster(), slots).Input(benchSettings), nil
			}}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := renderer.Render(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkChange is everything but the network and HAProxy itself: one
// endpoint of many changes, and what follows is rendered, validated and planned.
func BenchmarkChange(b *testing.B) {
	needHAProxy(b)
	for _, n := range []int{brief(1000), brief(5000)} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			engine, err := Compile(os.DirFS("../templates"), dataplane.Layout{})
			require.NoError(b, err)
			w, slots, validator := manyIngresses(n), &Slots{}, &validate.Validator{}
			var last *Routes
			renderer := &render.Templates{Engine: engine, Pure: true, Input: func(context.Context) (*render.Input, error) {
				routes := Build(w.cluster(), slots)
				routes.Keep(last)
				last = routes
				return routes.Input(benchSettings), nil
			}}
			var current *dataplane.Config
			next := func(i int) {
				w.slices["ns/svc-00001"] = []*discoveryv1.EndpointSlice{slice("http", 8080, fmt.Sprintf("192.0.2.%d", 1+i%200))}
				rendered, err := renderer.Render(b.Context())
				require.NoError(b, err)
				_, err = validator.Check(b.Context(), rendered.Config)
				require.NoError(b, err)
				plan, err := dataplane.Diff(current, rendered.Config)
				require.NoError(b, err)
				require.True(b, current == nil || plan.Impact() == dataplane.ImpactRuntime, "%s", plan)
				current = rendered.Config
			}
			next(0)
			b.ReportAllocs()
			for i := 1; b.Loop(); i++ {
				next(i)
			}
		})
	}
}
