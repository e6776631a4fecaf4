package reconcile

import (
	"context"
	"sync"
)

// Excluded is the set of quarantined resources, which a render leaves out. A nil
// *Excluded is empty. It is safe for concurrent use.
type Excluded struct {
	resources map[identity]bool

	mu    sync.Mutex
	asked map[identity]Resource // what the render asked about, as it was then
}

// identity is what a verdict sticks to. The version of the API is not part of it,
// since a typed object may not say it.
type identity struct{ kind, namespace, name string }

func (r Resource) identity() identity { return identity{r.Kind, r.Namespace, r.Name} }

type excludedKey struct{}

// Excluding returns what the render of this context leaves out. A [Renderer]
// that asks it lets the loop quarantine a bad resource, so that it harms no other:
//
//	excluded := reconcile.Excluding(ctx)
//	for _, ing := range ingresses {
//		if excluded.Has(ing) {
//			continue
//		}
func Excluding(ctx context.Context) *Excluded {
	e, _ := ctx.Value(excludedKey{}).(*Excluded)
	return e
}

// WithExcluded returns a context whose render leaves these resources out.
func WithExcluded(ctx context.Context, resources ...Resource) context.Context {
	return context.WithValue(ctx, excludedKey{}, newExcluded(resources))
}

func newExcluded(resources []Resource) *Excluded {
	e := &Excluded{resources: make(map[identity]bool, len(resources)), asked: map[identity]Resource{}}
	for _, r := range resources {
		e.resources[r.identity()] = true
	}
	return e
}

// Empty reports whether nothing is left out.
func (e *Excluded) Empty() bool { return e == nil || len(e.resources) == 0 }

// Has reports whether an object is left out, in whatever version.
//
// Ask it of every object that is read, at each render: a quarantined resource that
// the renderer does not ask about counts as deleted.
func (e *Excluded) Has(obj any) bool {
	if e.Empty() {
		return false
	}
	r, ok := ResourceOf(obj)
	if !ok || !e.resources[r.identity()] {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked[r.identity()] = r
	return true
}

// now returns a resource as it was when the render asked about it.
func (e *Excluded) now(id identity) (r Resource, asked bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	r, asked = e.asked[id]
	return r, asked
}
