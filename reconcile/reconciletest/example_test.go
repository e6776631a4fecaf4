package reconciletest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/fstest"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/cases"
	"github.com/hapticsdk/haptic/reconcile/reconciletest"
)

// In a test of your own: each case is a subtest.
func ExampleCases() {
	runner := &cases.Runner{Renderer: func(context.Context, *cases.Input) (reconcile.Renderer, error) {
		return nil, nil // your renderer, over the source of the input
	}}
	_ = func(t *testing.T) {
		reconciletest.Cases(t, runner, fstest.MapFS{})
	}
}

func ExampleNewTarget() {
	target := reconciletest.NewTarget("a")
	for _, address := range []string{"192.0.2.1:80", "192.0.2.2:80"} {
		cfg, err := dataplane.NewConfig("backend web\n    server s1 " + address + "\n")
		if err != nil {
			fmt.Println(err)
			return
		}
		result, err := target.Sync(context.Background(), cfg)
		fmt.Println(result.Plan.Impact(), err)
	}
	fmt.Println(target.Counts())
	// Output:
	// reload <nil>
	// runtime <nil>
	// 2 1
}

// one is a small configuration.
func one() *dataplane.Config {
	cfg, err := dataplane.NewConfig("global\n    maxconn 100\n")
	if err != nil {
		panic(err)
	}
	return cfg
}

// A test of what a controller does while a HAProxy refuses its credentials.
func ExampleTarget_Fail() {
	target := reconciletest.NewTarget("a")
	target.Fail(&dataplane.Error{Endpoint: "a", Stage: "probe", Status: 401, Err: dataplane.ErrUnauthorized})
	_, err := target.Sync(context.Background(), one())
	fmt.Println(errors.Is(err, dataplane.ErrUnauthorized), target.Current() == nil)
	fmt.Println(target.LastError())
	target.Fail(nil)
	_, err = target.Sync(context.Background(), one())
	fmt.Println(err, target.LastError(), target.Current().Hash() == one().Hash())
	// Output:
	// true true
	// a has no configuration, as its last call failed: a: probe: not authorised (status 401)
	// <nil> <nil> true
}

// A call to a HAProxy that hangs ends with its context, and not before.
func ExampleTarget_Hang() {
	target := reconciletest.NewTarget("a")
	target.Hang()
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	_, err := target.Sync(ctx, one())
	fmt.Println(errors.Is(err, context.DeadlineExceeded))
	// Output: true
}

// Somebody changes a HAProxy by hand: the loop finds it and repairs it.
func ExampleTarget_Drift() {
	target := reconciletest.NewTarget("a")
	loop, err := reconcile.New(reconcile.Options{
		Renderer: reconcile.RendererFunc(func(context.Context) (*reconcile.Rendered, error) { return &reconcile.Rendered{Config: one()}, nil }),
		Targets:  []reconcile.Target{target},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		target.Drift(nil)
		outcomes, err := loop.Once(context.Background())
		fmt.Println(outcomes[0].Plan.Summary(), err)
	}
	// Output:
	// 1 to create, 0 to update, 0 to delete; one reload <nil>
	// 1 to create, 0 to update, 0 to delete; one reload <nil>
}
