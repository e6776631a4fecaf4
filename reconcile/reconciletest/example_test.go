package reconciletest_test

import (
	"context"
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/reconciletest"
)

// In a test of your own: each script in testdata is a subtest.
func ExampleRun() {
	_ = func(t *testing.T) {
		reconciletest.Run(t, "testdata/*.txtar", func(s *reconciletest.Scene) (*reconciletest.Controller, error) {
			return &reconciletest.Controller{Options: reconcile.Options{Renderer: nil /* your renderer, over s.Source */}}, nil
		})
	}
}

// In a test of your own: each case is a subtest.
func ExampleCases() {
	runner := &reconcile.CaseRunner{Renderer: func(context.Context, *reconcile.CaseInput) (reconcile.Renderer, error) {
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
