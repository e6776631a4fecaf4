package settings

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
)

// manyIngresses are n Ingresses with a Service and an EndpointSlice each.
func manyIngresses(n int) []runtime.Object {
	objs := make([]runtime.Object, 0, 3*n)
	for i := range n {
		name := fmt.Sprint("web", i)
		objs = append(objs, &networkingv1.Ingress{TypeMeta: metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "Ingress"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
			Spec:       networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{Host: name + ".test"}}}},
			&corev1.Service{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
				Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}}},
			oneSlice(name, "192.0.2.1"))
	}
	return objs
}

func oneSlice(service string, address string) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{TypeMeta: metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: service, Labels: map[string]string{"kubernetes.io/service-name": service}},
		Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{address}}}}
}

const manyHead = `
watchedResources:
  ingresses: {apiVersion: networking.k8s.io/v1, resources: ingresses}
  services: {apiVersion: v1, resources: services}
  slices: {apiVersion: discovery.k8s.io/v1, resources: endpointslices, indexBy: [metadata.namespace, "metadata.labels['kubernetes.io/service-name']"]}
haproxyConfig: {template: "global\n"}
`

const manyBackend = `
      backend {{ svc.Namespace }}_{{ svc.Name }}
      {% for slice in resources.slices.Get(svc.Namespace, svc.Name) %}{% for e in slice.Endpoints %}{% for a in e.Addresses %}
          server {{ replace(a, ".", "-") }} {{ a }}:80 check
      {% end %}{% end %}{% end %}
`

const manyMap = `{% for r in ing.Spec.Rules %}
      {{ r.Host }} {{ ing.Namespace }}_{{ ing.Name }}
      {% end %}
`

// BenchmarkProgramInstances is a render after the instances of one of 5,000
// Services changed, without its validation: of settings that render every entry
// each time, that render in loops, and that render each object.
func BenchmarkProgramInstances(b *testing.B) {
	loops := manyHead + "haproxySections:\n  backends.cfg:\n    template: |\n      {% for svc in resources.services.List() %}" + manyBackend + "      {% end %}\n" +
		"maps:\n  hosts.map:\n    template: |\n      {% for ing in resources.ingresses.List() %}" + manyMap + "      {% end %}\n"
	each := manyHead + "haproxySections:\n  backends.cfg:\n    each: {resource: services, as: svc}\n    template: |" + manyBackend +
		"maps:\n  hosts.map:\n    each: {resource: ingresses, as: ing}\n    template: |\n      " + manyMap
	for _, c := range []struct {
		name, settings string
		impure         bool
	}{{"full", loops, true}, {"loops", loops, false}, {"each", each, false}} {
		b.Run(c.name, func(b *testing.B) { benchmarkInstances(b, c.settings, c.impure) })
	}
}

func benchmarkInstances(b *testing.B, settings string, impure bool) {
	source := k8swatchtest.NewSource(manyIngresses(5000)...)
	live, err := NewLive(LiveOptions{Source: source, Program: ProgramOptions{Impure: impure}})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = live.Run(ctx) })
	defer func() { stop(); wg.Wait() }()
	if err := live.ApplyYAML(ctx, "s.yaml", []byte(settings)); err != nil {
		b.Fatal(err)
	}
	if _, err := live.Render(ctx); err != nil {
		b.Fatal(err)
	}
	var took time.Duration
	i := 0
	for b.Loop() {
		i++
		before := live.stores()["slices"].Revision
		source.Apply(oneSlice("web77", fmt.Sprintf("192.0.2.%d", i%250+2)))
		for live.stores()["slices"].Revision == before {
			time.Sleep(time.Millisecond)
		}
		start := time.Now()
		if _, err := live.Render(ctx); err != nil {
			b.Fatal(err)
		}
		took += time.Since(start)
	}
	b.ReportMetric(float64(took.Microseconds())/1000/float64(b.N), "ms/render")
}
