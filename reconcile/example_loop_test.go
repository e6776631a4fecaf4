package reconcile_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/reconcile"
)

// Instances come and go while a loop runs; one that stays is not disturbed.
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
	fmt.Println(len(outcomes), outcomes[0].Instance, err)
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

func ExampleRefuse() {
	ing := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	fmt.Println(reconcile.Refuse(ing, "spec.rules[0].host", "is empty: name a host"))
	// Output: Ingress shop/web: spec.rules[0].host: is empty: name a host
}

// elected is a reconcile.Leader, as k8swatch.Election is.
type elected struct{ atomic.Bool }

func (e *elected) Leading() bool { return e.Load() }

// Whoever follows the election reports that its outcome changed. In a new term all
// is deployed again: the leader in between may have changed it.
func ExampleLoop_LeadershipChanged() {
	bus := eventbus.New(nil)
	deployed := make(chan string, 10)
	eventbus.Subscribe(bus, func(_ context.Context, d eventbus.Delivery[reconcile.InstanceDeployed]) {
		deployed <- fmt.Sprintf("%s: %s", d.Event.Instance, d.Event.Result.Plan.Summary())
	})
	bus.Start()
	leader := &elected{}
	loop, err := reconcile.New(reconcile.Options{
		Renderer: fixed("global\n    maxconn 100\n"), Targets: []reconcile.Target{&printer{}}, Leader: leader, Bus: bus,
		BeginTerm: func(context.Context) { fmt.Println("all is read again") },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- loop.Run(ctx) }()
	loop.Trigger("start") // rendered and validated, and deployed by nobody yet
	for range 2 {
		leader.Store(true) // in Election.Run's callback
		loop.LeadershipChanged()
		fmt.Println(<-deployed, loop.Term() > 0)
		leader.Store(false)
		loop.LeadershipChanged()
		fmt.Println("term", loop.Term())
	}
	stop()
	fmt.Println(<-ended)
	_ = bus.Close(context.Background())
	// Output:
	// all is read again
	// printer: 1 to create, 0 to update, 0 to delete; one reload true
	// term 0
	// all is read again
	// printer: no changes true
	// term 0
	// <nil>
}

// What is wrong with a configuration is said with its line.
func ExampleRendered_Explain() {
	cfg, err := dataplane.NewConfig("global\n    maxconn many\n")
	if err != nil {
		fmt.Println(err)
		return
	}
	refused := &dataplane.Error{Stage: "check", File: "haproxy.cfg", Line: 2, Err: dataplane.ErrInvalid, Output: "not a number"}
	for _, fault := range (&reconcile.Rendered{Config: cfg}).Explain(context.Background(), "deploy", refused).Faults {
		fmt.Println(fault.Position)
	}
	// Output: haproxy.cfg:2
}

// The table of intervals says what zero means.
func ExampleOptions_Intervals() {
	opts := reconcile.Options{MinInterval: 5 * time.Second}.WithDefaults()
	for _, i := range opts.Intervals()[:2] {
		fmt.Println(i.Name, *i.Value)
	}
	// Output:
	// debounceInterval 500ms
	// minDeploymentInterval 5s
}
