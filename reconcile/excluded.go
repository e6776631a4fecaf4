package reconcile

import (
	"context"
	"sync"
)

// Excluded is the set of resources that a render leaves out, because the
// configuration is not valid with them. A nil *Excluded is empty. It is safe
// for concurrent use.
type Excluded struct {
	resources map[identity][]Resource

	mu   sync.Mutex
	left map[Resource]Resource // what Has said yes to, by what excluded it
}

// identity is what stays of a resource when it changes. The version of the API
// is not part of it, since a typed object may not say it.
type identity struct{ kind, namespace, name string }

func (r Resource) identity() identity { return identity{r.Kind, r.Namespace, r.Name} }

type excludedKey struct{}

// Excluding returns what the render of this context leaves out. A [Renderer]
// that asks it lets the loop put a bad resource in quarantine, so that it harms
// nobody else:
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
	e := &Excluded{resources: make(map[identity][]Resource, len(resources)), left: map[Resource]Resource{}}
	for _, r := range resources {
		e.resources[r.identity()] = append(e.resources[r.identity()], r)
	}
	return e
}

// Empty reports whether nothing is left out.
func (e *Excluded) Empty() bool { return e == nil || len(e.resources) == 0 }

// Has reports whether an object is left out: the same object in the same
// version. One that has changed since is not.
//
// Ask it of every object that is read, at each render: of a resource in
// quarantine that was not asked for the loop takes it that it is gone.
func (e *Excluded) Has(obj any) bool {
	if e == nil || len(e.resources) == 0 {
		return false
	}
	r, ok := ResourceOf(obj)
	if !ok {
		return false
	}
	for _, x := range e.resources[r.identity()] {
		if x.Same(r) && (x.Version == anyVersion || x.UID == r.UID && x.Version == r.Version) {
			e.mu.Lock()
			e.left[x] = r
			e.mu.Unlock()
			return true
		}
	}
	return false
}

// leftOut returns what a render asked for, and so left out, because the resource
// is excluded.
func (e *Excluded) leftOut(r Resource) (found Resource, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	found, ok = e.left[r]
	return found, ok
}

// anyVersion is the version of a resource that is left out of one render however
// it changes. No object has it.
const anyVersion = "\x00any"
