package reconciletest

import (
	"github.com/hapticsdk/haptic/internal/viewtest"
	"github.com/hapticsdk/haptic/reconcile"
)

// View is a view without watchers, for [reconcile.Options.View]. Its Reads are the objects that
// a render is to use.
type View = viewtest.View

// NewView returns a view of the objects that a function lists: Kubernetes objects of any type.
func NewView(list func() []any) *View {
	return &View{List: list, KeyOf: func(obj any) (reconcile.ObjectKey, bool) {
		r, ok := reconcile.ResourceOf(obj)
		return r.Key(), ok
	}}
}
