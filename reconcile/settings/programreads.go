package settings

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/render"
)

// reads is how the templates of a program read the stores in one render. It
// notes every call with the revision of its answer, so that what was rendered from
// it is rendered again only when it would be answered differently: the cost of a
// render follows the change.
//
// The revision is that of the answer to the keys, not of the whole store: if the
// endpoints of one Service change, the backends of the others stay as they are.
type reads struct {
	render.Reads
	stores   Stores
	excluded *reconcile.Excluded
	ctx      context.Context
}

// newReads reads the stores for the render of a context, and for whoever asks
// afterwards where a line came from.
func newReads(ctx context.Context, stores Stores) *reads {
	r := &reads{stores: stores, excluded: reconcile.Excluding(ctx), ctx: ctx}
	r.Vars, r.Same = []string{"resources", "controller"}, r.same
	return r
}

// lookupTimeout bounds what is fetched for the origin of a line.
const lookupTimeout = 10 * time.Second

// call is one call of List, Get or GetSingle.
type call struct{ store, keys string }

// answer is what a call was answered with.
type answer struct {
	keys     []string
	revision k8swatch.Revision    // of the store
	objs     []k8swatch.Object    // of Get; List is as good as the revision of the store
	left     []reconcile.Resource // left out of the answer
}

// get answers a call, and notes it.
func (r *reads) get(name string, keys []string) ([]k8swatch.Object, error) {
	if r == nil {
		return nil, nil
	}
	a, err := r.answer(name, slices.Clone(keys)) // a template may change its own
	if err != nil {
		return nil, err
	}
	objs := a.objs
	if len(keys) == 0 {
		a.objs = nil
	}
	r.Note(call{name, strings.Join(keys, "\x00")}, a)
	return objs, nil
}

func (r *reads) answer(name string, keys []string) (*answer, error) {
	store, ctx := r.stores[name], r.ctx
	if ctx.Err() != nil {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(context.WithoutCancel(ctx), lookupTimeout)
		defer stop()
	}
	a := &answer{keys: keys, revision: store.Revision}
	if store.Get == nil {
		return a, nil
	}
	objs, err := store.Get(ctx, keys)
	if err != nil || r.excluded.Empty() {
		a.objs = objs
		return a, err
	}
	a.objs = make([]k8swatch.Object, 0, len(objs))
	for _, o := range objs {
		if !r.excluded.Has(o) {
			a.objs = append(a.objs, o)
		} else if left, ok := reconcile.ResourceOf(o); ok {
			a.left = append(a.left, left)
		}
	}
	return a, nil
}

// same reports whether a call would be answered as it was.
func (r *reads) same(key, revision any) bool {
	c, before := key.(call), revision.(*answer)
	store := r.stores[c.store]
	untouched := store.Revision == before.revision && store.Revision != 0
	if untouched && r.excluded.Empty() && len(before.left) == 0 {
		return true
	}
	if store.Revision == 0 || !untouched && len(before.keys) == 0 {
		return false
	}
	now, err := r.answer(c.store, before.keys)
	if err != nil || !slices.Equal(now.left, before.left) {
		return false
	}
	return len(before.keys) == 0 || slices.EqualFunc(now.objs, before.objs, sameObject)
}

// sameObject reports whether two reads gave the same object in the same version.
func sameObject(a, b k8swatch.Object) bool {
	return a == b || a.GetResourceVersion() != "" && a.GetResourceVersion() == b.GetResourceVersion() &&
		a.GetUID() == b.GetUID() && a.GetName() == b.GetName() && a.GetNamespace() == b.GetNamespace()
}
