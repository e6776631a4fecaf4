package reconcile_test

import (
	"context"
	"fmt"
	"testing/fstest"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/render"
	"github.com/hapticsdk/haptic/templating"
)

// printer stands in for a HAProxy.
type printer struct{ current *dataplane.Config }

func (p *printer) Name() string { return "printer" }

func (p *printer) DryRun(_ context.Context, cfg *dataplane.Config) (*dataplane.Plan, error) {
	return dataplane.Diff(p.current, cfg)
}

func (p *printer) Sync(_ context.Context, cfg *dataplane.Config, options ...dataplane.SyncOption) (*dataplane.Result, error) {
	plan, err := dataplane.Diff(p.current, cfg)
	if err != nil {
		return nil, err
	}
	p.current = cfg
	return &dataplane.Result{Plan: plan, Hash: cfg.Hash()}, nil
}

func Example() {
	engine, err := templating.Compile(fstest.MapFS{
		"haproxy.cfg": {Data: []byte("backend web\n{% for i, a := range addresses %}    server s{{ i }} {{ a }}\n{% end %}")},
	}, &templating.Options{Vars: map[string]any{"addresses": []string(nil)}})
	if err != nil {
		fmt.Println(err)
		return
	}
	addresses := []string{"192.0.2.1:80"}
	target := &printer{}
	loop, err := reconcile.New(reconcile.Options{
		Renderer: &render.Templates{Engine: engine, Input: func(context.Context) (*render.Input, error) {
			return &render.Input{Vars: map[string]any{"addresses": addresses}}, nil
		}},
		Targets: []reconcile.Target{target},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	// A long-lived controller calls loop.Run, and loop.Trigger at each change.
	if _, err := loop.Once(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(target.current.Main())

	addresses = []string{"192.0.2.2:80"}
	outcomes, err := loop.Preview(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(outcomes[0].Plan.Impact())
	// Output:
	// backend web
	//     server s0 192.0.2.1:80
	// runtime
}
