package reconcile_test

import (
	"context"
	"fmt"
	"strings"
	"testing/fstest"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/render"
	"github.com/hapticsdk/haptic/templating"
)

// ingresses is a cluster of two Ingresses, of which haproxy would not take one.
func ingresses() k8swatch.Source {
	good := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "good"}}
	bad := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "bad", Annotations: map[string]string{"status": "much"}}}
	return k8swatchtest.NewSource(good, bad)
}

// A resource with which the configuration is not valid is served as it was before, or
// left out. All others are deployed. The renderer reads the View, and notices nothing of that.
func ExampleView() {
	files := fstest.MapFS{"haproxy.cfg": {Data: []byte(`global
{% for ing in ingresses %}
backend {{ ing.Name }}
{% if ing.Annotations["status"] != "" %}
    http-request deny deny_status {{ ing.Annotations["status"] }}
{% end %}
{% end %}
`)}}
	engine, err := templating.Compile(files, &templating.Options{Vars: map[string]any{"ingresses": []*networkingv1.Ingress(nil)}})
	if err != nil {
		fmt.Println(err)
		return
	}
	group := k8swatch.NewGroup(nil)
	all, err := k8swatch.Add[*networkingv1.Ingress](group, ingresses(), networkingv1.SchemeGroupVersion.WithResource("ingresses"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- group.Run(ctx) }()
	defer func() { stop(); <-done }()
	if _, err := group.WaitForSync(ctx); err != nil {
		fmt.Println(err)
		return
	}
	view := k8swatch.NewView(group.Snapshot)
	renderer := &render.Templates{Engine: engine, Input: func(context.Context) (*render.Input, error) {
		return &render.Input{Vars: map[string]any{"ingresses": all.Read(view.Snapshot()).List()}}, nil
	}}
	// In place of a validate.Validator, which knows the lines that are wrong.
	validator := reconcile.ValidatorFunc(func(_ context.Context, cfg *dataplane.Config) error {
		if n := strings.Index(cfg.Main(), "much"); n >= 0 {
			line := 1 + strings.Count(cfg.Main()[:n], "\n")
			return &dataplane.Error{Stage: "check", File: "haproxy.cfg", Line: line, Output: "not a status", Err: dataplane.ErrInvalid}
		}
		return nil
	})
	loop, err := reconcile.New(reconcile.Options{Renderer: renderer, View: view, Validator: validator})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := loop.Once(ctx); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(loop.Validated().Main())
	for _, q := range loop.State().Quarantined {
		fmt.Println(q.Resource, "is left out:", q.Fault)
	}
	// Output:
	// global
	// backend good
	// Ingress shop/bad is left out: haproxy.cfg:5: check: configuration refused: not a status; rendered as line 3 of haproxy.cfg for Ingress shop/bad
}

// With other templates, what was wrong may be right.
func ExampleLoop_Release() {
	loop, err := reconcile.New(reconcile.Options{Renderer: reconcile.RendererFunc(func(context.Context) (*reconcile.Rendered, error) {
		cfg, err := dataplane.NewConfig("global\n")
		return &reconcile.Rendered{Config: cfg}, err
	})})
	if err != nil {
		fmt.Println(err)
		return
	}
	loop.Release()
	fmt.Println(len(loop.State().Quarantined))
	// Output: 0
}
