package ingress

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/k8swatch/derive"
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

// mostLimits have room for all resources in one namespace.
var mostLimits = Limits{PathsPerNamespace: 1 << 20, BackendsPerNamespace: 1 << 20, ServersPerNamespace: 1 << 20, MapBytesPerNamespace: 1 << 30, Memory: 1 << 40}

// newBench is a model with the resources of a world.
func newBench(w *world) *state {
	var s state
	s.g, s.set, s.parts = derive.New(), map[any]any{}, map[part]*discoveryv1.EndpointSlice{}
	s.model = NewModel(s.g, NewInputs(s.g), Options{Limits: mostLimits}, nil)
	s.fill(w.cluster())
	return &s
}

func (s *state) routes(tb testing.TB) *Routes {
	r, err := s.model.Routes(tb.Context())
	require.NoError(tb, err)
	require.NoError(tb, s.model.Accept(r))
	return r
}

// setEndpoint changes the only endpoint of a Service.
func (s *state) setEndpoint(service string, i int) {
	is := slice("http", 8080, fmt.Sprintf("192.0.2.%d", 1+i%200))
	is.Labels = map[string]string{discoveryv1.LabelServiceName: service}
	s.model.Slices.Set(Name{Namespace: "ns", Name: "slice-" + service + "-0"}, is)
}

// BenchmarkBuild is what resources mean: all of them, and after a change.
func BenchmarkBuild(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000, 50_000} {
		n = brief(n)
		b.Run(fmt.Sprint("whole/", n), func(b *testing.B) {
			w := manyIngresses(n)
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				s := newBench(w)
				b.StartTimer()
				s.routes(b)
			}
		})
		b.Run(fmt.Sprint("endpoint/", n), func(b *testing.B) {
			s := newBench(manyIngresses(n))
			s.routes(b)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				s.setEndpoint("svc-00001", i)
				s.routes(b)
			}
		})
		b.Run(fmt.Sprint("new_ingress/", n), func(b *testing.B) {
			s := newBench(manyIngresses(n))
			s.routes(b)
			ing := by("ns", 1, ingress("fresh", rule("m.test", path(prefix, "/", "fresh"))))
			service := manyIngresses(1).services["ns/svc-00000"]
			service.Name = "fresh"
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if i%2 == 1 { // it comes, and goes in the next change
					s.model.Services.Delete(nameOf(service))
					s.model.Ingresses.Delete(nameOf(ing))
				} else {
					s.model.Services.Set(nameOf(service), service)
					s.model.Ingresses.Set(nameOf(ing), ing)
				}
				s.routes(b)
			}
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
				return Build(w.cluster(), slots).input(benchSettings), nil
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
			renderer := &render.Templates{Engine: engine, Pure: true, Input: func(context.Context) (*render.Input, error) {
				return Build(w.cluster(), slots).input(benchSettings), nil
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
