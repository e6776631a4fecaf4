package reconcile_test

import (
	"context"
	"fmt"
	"strings"
	"testing/fstest"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/render"
	"github.com/hapticsdk/haptic/templating"
)

// ingresses is a cluster of two Ingresses, of which haproxy would not take one.
func ingresses() []*networkingv1.Ingress {
	good := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "good", ResourceVersion: "1"}}
	bad := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "bad", ResourceVersion: "2",
		Annotations: map[string]string{"status": "much"}}}
	return []*networkingv1.Ingress{good, bad}
}

// A resource with which the configuration is not valid is served as it was before, or
// left out, and all others are deployed, where the renderer asks Excluding.
func ExampleExcluding() {
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
	renderer := &render.Templates{Engine: engine, Input: func(ctx context.Context) (*render.Input, error) {
		excluded := reconcile.Excluding(ctx)
		var kept []*networkingv1.Ingress
		for _, ing := range ingresses() {
			if ing, ok := reconcile.ToRender(excluded, ing); ok { // as it was, where it worked before
				kept = append(kept, ing)
			}
		}
		return &render.Input{Vars: map[string]any{"ingresses": kept}}, nil
	}}
	// In place of a validate.Validator, which knows the lines that are wrong.
	validator := reconcile.ValidatorFunc(func(_ context.Context, cfg *dataplane.Config) error {
		if n := strings.Index(cfg.Main(), "much"); n >= 0 {
			line := 1 + strings.Count(cfg.Main()[:n], "\n")
			return &dataplane.Error{Stage: "check", File: "haproxy.cfg", Line: line, Output: "not a status", Err: dataplane.ErrInvalid}
		}
		return nil
	})
	loop, err := reconcile.New(reconcile.Options{Renderer: renderer, Validator: validator})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := loop.Once(context.Background()); err != nil {
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
	// Ingress shop/bad is left out: haproxy.cfg:5: check: configuration refused: not a status; rendered as line 4 of haproxy.cfg for Ingress shop/bad
}

// A renderer of one's own leaves out what WithExcluded says, as a test sees.
func ExampleWithExcluded() {
	all := ingresses()
	bad, _ := reconcile.ResourceOf(all[1])
	ctx := reconcile.WithExcluded(context.Background(), bad)
	fmt.Println(reconcile.Excluding(ctx).Has(all[0]), reconcile.Excluding(ctx).Has(all[1]))
	all[1].ResourceVersion = "3" // its author mends it, and the loop will try it
	fmt.Println(reconcile.Excluding(ctx).Has(all[1]))
	// Output:
	// false true
	// true
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
