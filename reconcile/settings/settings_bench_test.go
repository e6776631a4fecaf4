package settings

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
	"github.com/hapticsdk/haptic/reconcile"
)

// fiftyTemplates are settings with a main template, 24 snippets and 25 maps, the
// greeting in one of which changes.
func fiftyTemplates(greeting string) []byte {
	var b strings.Builder
	b.WriteString("watchedResources:\n  services: {apiVersion: v1, resources: services}\nreconcile: {debounceInterval: 1ms}\nhaproxyConfig:\n  template: |\n    global\n")
	for i := range 24 {
		fmt.Fprintf(&b, "    {{ render \"part%d.cfg\" }}\n", i)
	}
	b.WriteString("templateSnippets:\n")
	for i := range 24 {
		text := "hi"
		if i == 7 {
			text = greeting
		}
		fmt.Fprintf(&b, `  part%d.cfg:
    template: |
      {%% for svc in resources.services.List() %%}
      backend b%d_{{ svc.Namespace }}_{{ svc.Name }}
          # %s
          {%% for port in svc.Spec.Ports %%}{%% if port.Name != "" %%}
          server {{ port.Name }} {{ svc.Spec.ClusterIP }}:{{ port.Port }} check
          {%% end %%}{%% end %%}
      {%% end %%}
`, i, i, text)
	}
	b.WriteString("maps:\n")
	for i := range 25 {
		fmt.Fprintf(&b, "  m%d.map:\n    template: |\n      {%% for svc in resources.services.List() %%}\n      {{ svc.Name }}.test{{ svc.Namespace }} b%d\n      {%% end %%}\n", i, i)
	}
	return []byte(b.String())
}

func someServices(n int) []runtime.Object {
	objs := make([]runtime.Object, n)
	for i := range objs {
		objs[i] = &corev1.Service{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("web%d", i)},
			Spec: corev1.ServiceSpec{ClusterIP: "192.0.2.1", Ports: []corev1.ServicePort{{Name: "http", Port: 80}, {Name: "admin", Port: 81}}}}
	}
	return objs
}

// BenchmarkSettingsToLive is from new settings, one template of 50 changed, to
// their deployment to a HAProxy that answers at once. ms/render is one render of
// the same; what haproxy takes to validate comes on top of both.
func BenchmarkSettingsToLive(b *testing.B) {
	bus := eventbus.New(nil)
	live, err := NewLive(LiveOptions{Source: k8swatchtest.NewSource(someServices(200)...), Bus: bus})
	if err != nil {
		b.Fatal(err)
	}
	loop, err := live.NewLoop(reconcile.Options{Targets: []reconcile.Target{&fakeTarget{name: "a"}},
		Validator: reconcile.ValidatorFunc(func(context.Context, *dataplane.Config) error { return nil })})
	if err != nil {
		b.Fatal(err)
	}
	deployed := make(chan struct{}, 1000)
	eventbus.Subscribe(bus, func(context.Context, eventbus.Delivery[reconcile.InstanceDeployed]) { deployed <- struct{}{} })
	bus.Start()
	ctx, stop := context.WithCancel(b.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = live.Run(ctx) })
	wg.Go(func() { _ = loop.Run(ctx) })
	defer func() {
		stop()
		wg.Wait()
		_ = bus.Close(context.Background())
	}()
	apply := func(greeting string) {
		if err := live.ApplyYAML(ctx, "s.yaml", fiftyTemplates(greeting)); err != nil {
			b.Fatal(err)
		}
		<-deployed
	}
	apply("first")
	i := 0
	for b.Loop() {
		i++
		apply(fmt.Sprint("greeting ", i))
	}
	start := time.Now()
	if _, err := live.Render(ctx); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(time.Since(start).Microseconds())/1000, "ms/render")
}
