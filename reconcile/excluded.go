package reconcile

import "context"

// Excluded is the set of resources that a render leaves out, because the
// configuration is not valid with them. A nil *Excluded is empty.
type Excluded struct {
	resources []Resource
}

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
	return context.WithValue(ctx, excludedKey{}, &Excluded{resources: resources})
}

// Has reports whether an object is left out: the same object in the same
// version. One that has changed since is not.
func (e *Excluded) Has(obj any) bool {
	if e == nil || len(e.resources) == 0 {
		return false
	}
	r, ok := ResourceOf(obj)
	if !ok {
		return false
	}
	for _, x := range e.resources {
		if x.Same(r) && x.UID == r.UID && x.Version == r.Version {
			return true
		}
	}
	return false
}
