package reconcile_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile"
)

// Many resources with one cause are one line.
func ExampleAlikeRefusals() {
	refused := []reconcile.Refusal{
		{Resource: "Ingress shop/web", Reason: `"/a b" holds ' '`},
		{Resource: "Ingress shop/cart", Reason: `"/c d" holds ' '`},
	}
	for i, a := range reconcile.AlikeRefusals(refused) {
		if !a.Told {
			fmt.Println(a.Of(refused[i].Resource))
		}
	}
	// Output: 2 resources, such as Ingress shop/web and Ingress shop/cart
}

func ExampleAlikeQuarantined() {
	fault := reconcile.Fault{Message: "unknown keyword 'x'"}
	quarantined := []reconcile.Quarantined{{Resource: reconcile.Resource{Kind: "Service", Name: "a"}, Fault: fault}}
	fmt.Println(reconcile.AlikeQuarantined(quarantined)[0].Of("Service a"))
	// Output: Service a
}

// The program publishes what a dataplane.Local tells of its HAProxy.
func ExampleHAProxyChanged() {
	e := reconcile.HAProxyChanged{Instance: "local", ProcessEvent: dataplane.ProcessEvent{Kind: dataplane.ProcessEnded, Err: errors.New("HAProxy ended: signal 9")}}
	fmt.Println(e.Report().Name, e.Report().Sentence)
	// Output: haproxy.ended HAProxy ended: signal 9
}

// A renderer and a validator may be functions.
func ExampleRendererFunc() {
	ctx := context.Background()
	renderer := reconcile.RendererFunc(func(context.Context) (*reconcile.Rendered, error) {
		cfg, err := dataplane.NewConfig("global\n    maxconn 5\n")
		return &reconcile.Rendered{Config: cfg}, err
	})
	validator := reconcile.ValidatorFunc(func(_ context.Context, cfg *dataplane.Config) error {
		return fmt.Errorf("%d lines are too many", cfg.LineCount())
	})
	rendered, err := renderer.Render(ctx)
	fmt.Println(err, validator.Validate(ctx, rendered.Config))
	// Output: <nil> 2 lines are too many
}
