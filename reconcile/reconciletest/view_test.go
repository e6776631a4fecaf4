package reconciletest_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/reconciletest"
)

// A loop holds an object back: the renderer reads the view, and does not see it.
func ExampleNewView() {
	web := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	view := reconciletest.NewView(func() []any { return []any{web} })
	r, _ := reconcile.ResourceOf(web)
	fmt.Println(r, len(view.Reads()))
	view.Show(view.Newest().With(map[reconcile.ObjectKey]any{r.Key(): nil}))
	fmt.Println(len(view.Reads()), view.Held())
	// Output:
	// Service shop/web 1
	// 0 map[{v1 Service shop web}:<nil>]
}
