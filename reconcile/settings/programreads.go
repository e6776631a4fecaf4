package settings

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
)

// reads is how the templates of a program read the stores in one render. It
// notes what each entry, and each item of one, asked for and was given, so that
// these are rendered again only when they would be given something else: the
// cost of a render follows the change.
type reads struct {
	stores   Stores
	excluded *reconcile.Excluded
	lookup   func(name string, keys []string) ([]k8swatch.Object, error)

	// pooled says that the entries share values, so that one may show what
	// another one read: then only what nothing at all has changed for is
	// remembered.
	pooled bool

	mu    sync.Mutex
	notes *notes // of what is rendered now; nil: none are taken
}

// notes are what one entry, or an item of one, asked for.
type notes struct {
	mu   sync.Mutex
	asks map[storeQuestion]storeAnswer
	pool map[string]k8swatch.Revision // see reads.pooled
}

// newReads reads the stores for the render of a context, and for whoever asks
// afterwards where a line came from.
func newReads(ctx context.Context, stores Stores, pooled bool) *reads {
	return &reads{stores: stores, excluded: reconcile.Excluding(ctx), pooled: pooled, lookup: func(name string, keys []string) ([]k8swatch.Object, error) {
		if stores[name].Get == nil {
			return nil, nil
		}
		if ctx.Err() == nil {
			return stores[name].Get(ctx, keys)
		}
		later, stop := context.WithTimeout(context.WithoutCancel(ctx), lookupTimeout)
		defer stop()
		return stores[name].Get(later, keys)
	}}
}

// lookupTimeout bounds what is fetched for the origin of a line.
const lookupTimeout = 10 * time.Second

// storeQuestion is one call of List, Get or GetSingle.
type storeQuestion struct{ store, keys string }

// storeAnswer is what it was answered with.
type storeAnswer struct {
	keys     []string
	revision k8swatch.Revision
	objs     []k8swatch.Object    // of Get; List is as good as its revision
	left     []reconcile.Resource // left out of the answer
}

// readingVars are the names of the variables that read stores.
var readingVars = []string{"resources", "controller"}

// Gives implements [reconcile.Reads].
func (r *reads) Gives(name string) bool { return slices.Contains(readingVars, name) }

// Begin implements [reconcile.Reads].
func (r *reads) Begin() any {
	n := &notes{asks: map[storeQuestion]storeAnswer{}, pool: r.pool()}
	r.take(n)
	return n
}

// take says where notes go from here on.
func (r *reads) take(n *notes) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes = n
}

// get answers a question, and notes it.
func (r *reads) get(name string, keys []string) ([]k8swatch.Object, error) {
	if r == nil {
		return nil, nil
	}
	a, err := r.ask(name, keys)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := r.notes; n != nil {
		noted := a
		noted.keys = slices.Clone(keys) // a template may change its own
		if len(keys) == 0 {
			noted.objs = nil
		}
		n.read(storeQuestion{name, strings.Join(keys, "\x00")}, noted)
	}
	return a.objs, nil
}

func (r *reads) ask(name string, keys []string) (storeAnswer, error) {
	objs, err := r.lookup(name, keys)
	a := storeAnswer{revision: r.stores[name].Revision, objs: objs}
	if err != nil || r.excluded.Empty() {
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

// Again implements [reconcile.Reads].
func (r *reads) Again(noted any) bool {
	n := noted.(*notes)
	n.mu.Lock()
	defer n.mu.Unlock()
	if r.pooled {
		return r.untouched(n.pool)
	}
	for q, before := range n.asks {
		if !r.same(q, before) {
			return false
		}
	}
	return true
}

func (r *reads) same(q storeQuestion, before storeAnswer) bool {
	store := r.stores[q.store]
	untouched := store.Revision == before.revision && store.Revision != 0
	if untouched && r.excluded.Empty() && len(before.left) == 0 {
		return true
	}
	if store.Revision == 0 || !untouched && len(before.keys) == 0 {
		return false
	}
	now, err := r.ask(q.store, before.keys)
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

// read notes an answer.
func (n *notes) read(q storeQuestion, a storeAnswer) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asks[q] = a
}

// pool notes the revision of everything; nil: not to be remembered.
func (r *reads) pool() map[string]k8swatch.Revision {
	if !r.pooled || !r.excluded.Empty() {
		return nil
	}
	pool := make(map[string]k8swatch.Revision, len(r.stores))
	for name, store := range r.stores {
		pool[name] = store.Revision
	}
	return pool
}

// untouched reports whether nothing at all has changed.
func (r *reads) untouched(pool map[string]k8swatch.Revision) bool {
	if pool == nil || !r.excluded.Empty() {
		return false
	}
	for name, store := range r.stores {
		if store.Revision == 0 || store.Revision != pool[name] {
			return false
		}
	}
	return true
}
