package k8swatch

import (
	"fmt"
	"iter"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hapticsdk/haptic/k8swatch/internal/memapi"
	"github.com/hapticsdk/haptic/k8swatch/internal/store"
)

// Revision counts the changes of one watcher's store since its start. Objects of one
// list share a revision.
type Revision uint64

// Snapshot is the state of a watcher at one instant. It never changes, and it holds its
// objects in one stable order. It is free to take: it shares unchanged nodes with the
// store and with other snapshots. All methods may be called concurrently. The objects
// are shared too and must not be changed. The caller owns the slices.
type Snapshot struct {
	resource schema.GroupVersionResource
	typ      reflect.Type // of the objects
	paths    *compiled
	held     *store.Snapshot
}

// NewSnapshot makes a snapshot of given objects, without a watcher: for tests and for other
// input. IndexBy and IgnoreFields of the options apply. The snapshot owns the objects. They
// need the types that a watcher of the resource would store. If client-go does not know the
// resource, all need the type of the first one. No two may have the same name.
func NewSnapshot(gvr schema.GroupVersionResource, opts *Options, objs ...Object) (*Snapshot, error) {
	if opts == nil {
		opts = &Options{}
	}
	for i, obj := range objs {
		if isNil(obj) {
			return nil, fmt.Errorf("k8swatch: object %d is nil", i)
		}
	}
	kind := memapi.KindFor(gvr)
	if kind.Type == nil && len(objs) > 0 {
		if typ := reflect.TypeOf(objs[0]); typ != goType(nil) {
			kind = memapi.Kind{Type: typ, GVK: objs[0].GetObjectKind().GroupVersionKind()}
		}
	}
	in, err := newIntake(gvr, kind, opts)
	if err != nil {
		return nil, err
	}
	if kind.Type == nil && len(objs) == 0 {
		in.typ = nil // any type will do
	}
	for _, obj := range objs {
		p := in.prepare(obj)
		if p.err == nil && in.store.Get(p.Namespace, p.Name) != nil {
			p.err = fmt.Errorf("there are two of it")
		}
		if p.err != nil {
			return nil, fmt.Errorf("k8swatch: %s: %w", p, p.err)
		}
		in.store.Put(p.entry)
	}
	return in.snapshot(in.store.Snapshot()), nil
}

// Resource returns the resource of the objects.
func (s *Snapshot) Resource() schema.GroupVersionResource { return s.resource }

// Revision is the number of changes in the snapshot. Two snapshots of one watcher with
// the same revision are equal.
func (s *Snapshot) Revision() Revision { return Revision(s.held.Revision()) }

// Len is the number of objects.
func (s *Snapshot) Len() int { return s.held.Len() }

// All iterates over the objects by namespace and name.
func (s *Snapshot) All() iter.Seq[Object] { return Reader[Object]{s: s}.All() }

// List returns all objects by namespace and name.
func (s *Snapshot) List() []Object { return Reader[Object]{s: s}.List() }

// ByName returns one object, or nil. The namespace of cluster-scoped objects is "".
func (s *Snapshot) ByName(namespace, name string) Object {
	if o := s.held.Get(namespace, name); o != nil {
		return o
	}
	return nil
}

// Get returns the objects whose index keys begin with the given ones, sorted by index key,
// namespace and name. Give all keys for an exact look-up, fewer for a prefix, none for
// everything. The index is [Options.IndexBy], or namespace and name. If an object lacks an
// indexed value, its key is "". An object that matches in several ways comes once.
func (s *Snapshot) Get(keys ...string) []Object { return Reader[Object]{s: s}.Get(keys...) }

// GetSingle returns the first object that [Snapshot.Get] would, or nil.
func (s *Snapshot) GetSingle(keys ...string) Object { return Reader[Object]{s: s}.GetSingle(keys...) }

// ChangedSince returns the index keys of the objects that differ between two snapshots of one
// watcher, in either of them. [Snapshot.Get] answers as before with keys that none of these
// begins with. It may have another answer without keys if there are any. ChangedSince returns
// false if it does not know: the snapshots are of two watchers, or more than 1,000 changes lie
// between them. The caller owns the slices.
func (s *Snapshot) ChangedSince(before *Snapshot) (keys [][]string, known bool) {
	if s == nil || before == nil {
		return nil, false
	}
	encoded, known := s.held.ChangedSince(before.held)
	for _, key := range encoded {
		keys = append(keys, store.Parts(key))
	}
	return keys, known
}

// Reader reads a snapshot with the type of its objects. A Reader is a small value,
// immutable, and safe for concurrent use. The zero Reader has no objects.
//
// A Reader can be a variable of templates: pods.Get(ns, name).
type Reader[T Object] struct{ s *Snapshot }

// Read returns a typed reader of a snapshot: [Read][*networkingv1.Ingress](s).
//
// If neither client-go nor the source ([TypedSource]) knows the type of a resource, T is
// *unstructured.Unstructured. T may always be [Object]. Like a type assertion, Read panics if
// T is not the type of the objects: at once, and even if the snapshot is empty.
func Read[T Object](s *Snapshot) Reader[T] {
	if s == nil {
		panic("k8swatch: Read: the snapshot is nil: is the watcher in the group?")
	}
	if want := reflect.TypeFor[T](); want != s.typ && s.typ != nil && want.Kind() != reflect.Interface {
		panic(fmt.Sprintf("k8swatch: the objects of %s are %s, not %s%s", s.resource.Resource, s.typ, want, unregistered(s.resource, s.typ)))
	}
	return Reader[T]{s}
}

// unregistered returns a hint for objects that have no Go type of their own.
func unregistered(gvr schema.GroupVersionResource, typ reflect.Type) string {
	if typ != goType(nil) {
		return ""
	}
	return fmt.Sprintf(": is its kind registered for %s in the scheme of the source, with metav1.ObjectMeta embedded?", gvr.GroupVersion())
}

// goType returns typ, or the type of unstructured objects if typ is nil.
func goType(typ reflect.Type) reflect.Type {
	if typ == nil {
		return reflect.TypeFor[*unstructured.Unstructured]()
	}
	return typ
}

// Len is the number of objects.
func (r Reader[T]) Len() int {
	if r.s == nil {
		return 0
	}
	return r.s.Len()
}

// All iterates over the objects by namespace and name.
func (r Reader[T]) All() iter.Seq[T] {
	return func(yield func(T) bool) {
		if r.s != nil {
			r.s.held.All(r.each(yield))
		}
	}
}

// each returns a function that calls yield with the typed object.
func (r Reader[T]) each(yield func(T) bool) func(store.Object) bool {
	return func(o store.Object) bool { return yield(o.(T)) }
}

// List returns all objects by namespace and name.
func (r Reader[T]) List() []T { return slices.AppendSeq(make([]T, 0, r.Len()), r.All()) }

// Get returns the objects whose index keys begin with the given ones; see
// [Snapshot.Get].
func (r Reader[T]) Get(keys ...string) (objs []T) {
	if r.s != nil {
		r.s.held.Find(keys, r.each(func(o T) bool { objs = append(objs, o); return true }))
	}
	return objs
}

// ByName returns one object, or the zero T. The namespace of cluster-scoped objects is "".
func (r Reader[T]) ByName(namespace, name string) (obj T) {
	if r.s != nil {
		if o := r.s.held.Get(namespace, name); o != nil {
			obj = o.(T)
		}
	}
	return obj
}

// GetSingle returns the first object that Get would, or the zero T.
func (r Reader[T]) GetSingle(keys ...string) (first T) {
	if r.s != nil {
		r.s.held.Find(keys, r.each(func(o T) bool { first = o; return false }))
	}
	return first
}
