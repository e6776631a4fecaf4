package reconcile_test

import (
	"context"
	"fmt"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/reconcile"
)

// fixed renders the same configuration each time.
func fixed(text string) reconcile.Renderer {
	return reconcile.RendererFunc(func(context.Context) (*reconcile.Rendered, error) {
		cfg, err := dataplane.NewConfig(text)
		return &reconcile.Rendered{Config: cfg}, err
	})
}

func ExampleLoop_Run() {
	bus := eventbus.New(nil)
	ctx, cancel := context.WithCancel(context.Background())
	eventbus.Subscribe(bus, func(_ context.Context, d eventbus.Delivery[reconcile.InstanceDeployed]) {
		fmt.Println(d.Event.Instance, "has configuration", d.Event.ID)
		cancel()
	})
	bus.Start()
	loop, err := reconcile.New(reconcile.Options{
		Renderer: fixed("global\n    maxconn 100\n"),
		Targets:  []reconcile.Target{&printer{}},
		Bus:      bus,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	loop.Trigger("start")
	_ = loop.Run(ctx) // until the context ends
	_ = bus.Close(context.Background())
	fmt.Println("ready:", loop.State().Validated != "")
	// Output:
	// printer has configuration 1
	// ready: true
}

func ExampleLoop_Preview() {
	loop, err := reconcile.New(reconcile.Options{
		Renderer: fixed("global\n    maxconn 100\n"),
		Targets:  []reconcile.Target{&printer{}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	outcomes, err := loop.Preview(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(outcomes[0].Plan)
	// Output:
	// + global (reload: HAProxy reads new sections only at a reload)
	// Plan: 1 to create, 0 to update, 0 to delete; one reload.
}

func ExampleLoop_Once() {
	target := &printer{}
	loop, err := reconcile.New(reconcile.Options{Renderer: fixed("global\n    maxconn 100\n"), Targets: []reconcile.Target{target}})
	if err != nil {
		fmt.Println(err)
		return
	}
	outcomes, err := loop.Once(context.Background())
	fmt.Println(outcomes[0].Instance, outcomes[0].Plan.Summary(), err)
	// Output:
	// printer 1 to create, 0 to update, 0 to delete; one reload <nil>
}
