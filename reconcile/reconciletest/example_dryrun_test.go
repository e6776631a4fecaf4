package reconciletest_test

import (
	"context"
	"fmt"

	"github.com/hapticsdk/haptic/reconcile/reconciletest"
)

// A plan changes nothing.
func ExampleTarget_DryRun() {
	target := reconciletest.NewTarget("a")
	plan, err := target.DryRun(context.Background(), one())
	fmt.Println(plan.Summary(), err, target.Current() == nil)
	// Output: 1 to create, 0 to update, 0 to delete; one reload <nil> true
}
