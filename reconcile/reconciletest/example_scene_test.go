package reconciletest_test

import (
	"context"
	"fmt"

	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile/reconciletest"
)

// Changed is OnChange of the watchers of a test. Before the loop starts it does nothing.
func ExampleScene_Changed() {
	scene := &reconciletest.Scene{}
	group := k8swatch.NewGroup(&k8swatch.GroupOptions{OnChange: scene.Changed})
	fmt.Println(len(group.Watchers()), scene.Changed(context.Background(), k8swatch.Changes{}))
	// Output: 0 <nil>
}

// A plan changes nothing.
func ExampleTarget_DryRun() {
	target := reconciletest.NewTarget("a")
	plan, err := target.DryRun(context.Background(), one())
	fmt.Println(plan.Summary(), err, target.Current() == nil)
	// Output: 1 to create, 0 to update, 0 to delete; one reload <nil> true
}
