package reconcile_test

import (
	"context"
	"fmt"
	"testing/fstest"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile"
)

// HAProxys come and go while a loop runs; one that stays is not disturbed.
func ExampleLoop_SetTargets() {
	loop, err := reconcile.New(reconcile.Options{Renderer: reconcile.RendererFunc(func(context.Context) (*reconcile.Rendered, error) {
		cfg, err := dataplane.NewConfig("global\n")
		return &reconcile.Rendered{Config: cfg}, err
	})})
	if err != nil {
		fmt.Println(err)
		return
	}
	haproxy := &printer{}
	fmt.Println(loop.SetTargets(haproxy))
	fmt.Println(loop.SetTargets(haproxy, &printer{}) != nil) // two of one name: nothing changes
	outcomes, err := loop.Once(context.Background())
	fmt.Println(len(outcomes), outcomes[0].Endpoint, err)
	// Output:
	// <nil>
	// true
	// 1 printer <nil>
}

// What the options leave out has its default, as in New.
func ExampleLoop_SetIntervals() {
	loop, err := reconcile.New(reconcile.Options{Renderer: reconcile.RendererFunc(func(context.Context) (*reconcile.Rendered, error) {
		return nil, nil
	})})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(loop.SetIntervals(reconcile.Options{MinInterval: 10 * time.Second}))
	// Output: <nil>
}

func ExampleResourceOf() {
	ing := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	resource, ok := reconcile.ResourceOf(ing)
	fmt.Println(resource, ok)
	_, ok = reconcile.ResourceOf("shop/web")
	fmt.Println(ok)
	// Output:
	// Ingress shop/web true
	// false
}

func ExampleReadCases() {
	cases, err := reconcile.ReadCases(fstest.MapFS{"hosts.yaml": {Data: []byte(`
name: nothing at all is valid
assertions:
- type: haproxy_valid
`)}})
	fmt.Println(err)
	for _, c := range cases {
		fmt.Println(c.File, c.Name)
	}
	// Output:
	// <nil>
	// hosts.yaml nothing at all is valid
}
