package k8swatch

import (
	"fmt"
	"iter"
	"reflect"
	"strings"

	"github.com/google/btree"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Revision counts the changes of one watcher's store since it started. Objects
// that came in one list share a revision.
type Revision uint64

// snapshotMeta is what a store and its snapshots have in common.
type snapshotMeta struct {
	resource schema.GroupVersionResource
	typ      reflect.Type // what the objects are; nil: anything
	indexed  bool
	depth    int // number of parts of an index key
}

// Snapshot is what a watcher knew at one instant. It never changes, holds its
// objects in one stable order, and costs nothing to take: it shares everything
// that did not change with the store and with other snapshots. All methods may
// be called concurrently. The objects are shared too and must not be changed.
type Snapshot struct {
	snapshotMeta
	revision Revision
	primary  *btree.BTreeG[*entry]
	index    *btree.BTreeG[indexed]
	many     int
}

// Resource says what the snapshot is of.
func (s *Snapshot) Resource() schema.GroupVersionResource { return s.resource }

// Revision is the number of changes that the snapshot includes. Two snapshots of
// one watcher with the same revision are the same.
func (s *Snapshot) Revision() Revision { return s.revision }

// Len is the number of objects.
func (s *Snapshot) Len() int { return s.primary.Len() }

// All iterates over the objects by namespace and name.
func (s *Snapshot) All() iter.Seq[Object] {
	return func(yield func(Object) bool) {
		s.primary.Ascend(func(e *entry) bool { return yield(e.obj) })
	}
}

// List returns all objects by namespace and name.
func (s *Snapshot) List() []Object {
	objs := make([]Object, 0, s.Len())
	for o := range s.All() {
		objs = append(objs, o)
	}
	return objs
}

// ByName returns one object, or nil. The namespace of cluster-scoped objects is "".
func (s *Snapshot) ByName(namespace, name string) Object {
	e, ok := s.primary.Get(&entry{namespace: namespace, name: name})
	if !ok {
		return nil
	}
	return e.obj
}

// Get returns the objects whose index keys begin with the given ones, by index
// key, namespace and name: all keys for an exact look-up, fewer for a prefix,
// none for everything. The index is [Options.IndexBy]; without one it is the
// namespace and the name. A value that an object does not have is indexed as "".
// An object that matches in several ways comes once.
func (s *Snapshot) Get(keys ...string) []Object {
	return collect[Object](s, keys)
}

// few is the room that a look-up makes at first: most find no more.
const few = 4

func collect[T Object](s *Snapshot, keys []string) []T {
	var objs []T
	s.matching(keys, func(o Object) bool {
		if objs == nil {
			objs = make([]T, 0, few)
		}
		objs = append(objs, o.(T))
		return true
	})
	return objs
}

// GetSingle returns the first object that [Snapshot.Get] would, or nil.
func (s *Snapshot) GetSingle(keys ...string) Object {
	var first Object
	s.matching(keys, func(o Object) bool { first = o; return false })
	return first
}

// matching calls yield for each object until that returns false. It is no
// iterator: those of nested calls allocate.
func (s *Snapshot) matching(keys []string, yield func(Object) bool) {
	switch {
	case len(keys) > s.depth:
		return
	case s.index == nil:
		s.byName(keys, yield)
		return
	}
	prefix := encodeKey(keys)
	var seen map[*entry]struct{} // only a prefix can meet an object twice
	if s.many > 0 && len(keys) < s.depth {
		seen = map[*entry]struct{}{}
	}
	s.index.AscendGreaterOrEqual(indexed{key: prefix}, func(i indexed) bool {
		if !strings.HasPrefix(i.key, prefix) {
			return false
		}
		if seen != nil && len(i.e.keys) > 1 {
			if _, again := seen[i.e]; again {
				return true
			}
			seen[i.e] = struct{}{}
		}
		return yield(i.e.obj)
	})
}

// byName is the index of a watcher without IndexBy.
func (s *Snapshot) byName(keys []string, yield func(Object) bool) {
	switch len(keys) {
	case 0:
		s.primary.Ascend(func(e *entry) bool { return yield(e.obj) })
	case 1:
		s.primary.AscendGreaterOrEqual(&entry{namespace: keys[0]}, func(e *entry) bool {
			return e.namespace == keys[0] && yield(e.obj)
		})
	default:
		if e, ok := s.primary.Get(&entry{namespace: keys[0], name: keys[1]}); ok {
			yield(e.obj)
		}
	}
}

// Reader reads a snapshot with the type of its objects. It is what templates see
// as a global. A Reader is a small value, immutable, and safe for concurrent use;
// the zero Reader holds nothing.
type Reader[T Object] struct {
	s *Snapshot
}

// Read returns a typed reader of a snapshot: [Read][*networkingv1.Ingress](s).
// Where the scheme of client-go does not know the type of a resource, T is
// *unstructured.Unstructured; [Object] reads everything. As with a type
// assertion, a T that the objects do not have is a mistake in the program and
// panics, at once and also when the snapshot is empty.
func Read[T Object](s *Snapshot) Reader[T] {
	want := reflect.TypeFor[T]()
	have := s.typ
	if have == nil {
		have = reflect.TypeFor[*unstructured.Unstructured]()
	}
	if want != have && want.Kind() != reflect.Interface {
		panic(fmt.Sprintf("k8swatch: the objects of %s are %s, not %s", s.resource.Resource, have, want))
	}
	return Reader[T]{s}
}

// Len is the number of objects.
func (r Reader[T]) Len() int {
	if r.s == nil {
		return 0
	}
	return r.s.Len()
}

// List returns all objects by namespace and name.
func (r Reader[T]) List() []T {
	if r.s == nil {
		return nil
	}
	objs := make([]T, 0, r.s.Len())
	for o := range r.s.All() {
		objs = append(objs, o.(T))
	}
	return objs
}

// Get returns the objects whose index keys begin with the given ones; see
// [Snapshot.Get].
func (r Reader[T]) Get(keys ...string) []T {
	if r.s == nil {
		return nil
	}
	return collect[T](r.s, keys)
}

// GetSingle returns the first object that Get would, or the zero T.
func (r Reader[T]) GetSingle(keys ...string) T {
	var none T
	if r.s == nil {
		return none
	}
	if o := r.s.GetSingle(keys...); o != nil {
		return o.(T)
	}
	return none
}
