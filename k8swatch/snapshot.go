package k8swatch

import (
	"fmt"
	"iter"
	"reflect"
	"slices"
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
}

// Snapshot is what a watcher knew at one instant. It never changes, holds its
// objects in one stable order, and costs nothing to take: it shares everything
// that did not change with the store and with other snapshots. All methods may
// be called concurrently. The objects are shared too and must not be changed.
type Snapshot struct {
	snapshotMeta
	revision Revision
	entries  slots
	primary  *btree.BTreeG[*place]
	index    *btree.BTreeG[indexed]
	keys     trie
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
		s.primary.Ascend(func(at *place) bool { return yield(s.entries.get(at.slot).object()) })
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
	if s.index == nil {
		return s.GetSingle(namespace, name)
	}
	at, ok := s.primary.Get(&place{objectName: objectName{namespace, name}})
	if !ok {
		return nil
	}
	return s.entries.get(at.slot).object()
}

// Get returns the objects whose index keys begin with the given ones, by index
// key, namespace and name: all keys for an exact look-up, fewer for a prefix,
// none for everything. The index is [Options.IndexBy]; without one it is the
// namespace and the name. A value that an object does not have is indexed as "".
// An object that matches in several ways comes once.
//
// The slice is shared with everybody who asks for the same: it must not be
// changed, only copied. In return a look-up of typed objects allocates nothing,
// except the first one after a change of what it finds.
func (s *Snapshot) Get(keys ...string) []Object { return look[Object](s, keys) }

// look must not let keys escape: the slice that a caller of Get makes for them
// would be allocated.
func look[T Object](s *Snapshot, keys []string) []T {
	if len(keys) == 0 {
		return gather[T](s, "", s.Len())
	}
	l := s.keys.find(keys)
	if l == nil {
		return nil
	}
	for f := l.found.Load(); f != nil; f = f.next {
		if objs, ok := f.objs.([]T); ok {
			return objs
		}
	}
	return remember(s, l, gather[T](s, l.key, l.count))
}

func gather[T Object](s *Snapshot, prefix string, count int) []T {
	objs := make([]T, 0, count)
	s.matching(prefix, func(e *entry) bool {
		objs = append(objs, e.object().(T))
		return true
	})
	return objs[:len(objs):len(objs)] // who appends gets a slice of their own
}

// remember keeps what was found in the leaf, or returns what somebody else put
// there meanwhile. Dense objects are not kept: they would be in memory twice.
func remember[T Object](s *Snapshot, l *leaf, objs []T) []T {
	if t := reflect.TypeFor[T](); s.typ == nil || (t != s.typ && t != reflect.TypeFor[Object]()) {
		return objs
	}
	mine := &found{objs: objs}
	for {
		mine.next = l.found.Load()
		for f := mine.next; f != nil; f = f.next {
			if theirs, ok := f.objs.([]T); ok {
				return theirs
			}
		}
		if l.found.CompareAndSwap(mine.next, mine) {
			return objs
		}
	}
}

// GetSingle returns the first object that [Snapshot.Get] would, or nil.
func (s *Snapshot) GetSingle(keys ...string) Object { return single[Object](s, keys) }

func single[T Object](s *Snapshot, keys []string) (first T) {
	if len(keys) > 0 && s.typ != nil {
		if objs := look[T](s, keys); len(objs) > 0 {
			return objs[0]
		}
		return first
	}
	prefix := ""
	if len(keys) > 0 {
		l := s.keys.find(keys)
		if l == nil {
			return first
		}
		prefix = l.key
	}
	s.matching(prefix, func(e *entry) bool { first = e.object().(T); return false })
	return first
}

// matching calls yield for each entry under an encoded key or prefix, in order,
// until that returns false.
func (s *Snapshot) matching(prefix string, yield func(*entry) bool) {
	if s.index == nil {
		s.byName(decodeKey(prefix), yield)
		return
	}
	var seen map[*entry]struct{}
	if s.many > 0 {
		seen = map[*entry]struct{}{}
	}
	s.index.AscendGreaterOrEqual(indexed{key: prefix}, func(i indexed) bool {
		if !strings.HasPrefix(i.key, prefix) {
			return false
		}
		e := s.entries.get(i.at.slot)
		if len(e.keys) > 1 {
			if _, again := seen[e]; again {
				return true
			}
			seen[e] = struct{}{}
		}
		return yield(e)
	})
}

// byName is the index of a watcher without IndexBy.
func (s *Snapshot) byName(keys []string, yield func(*entry) bool) {
	switch len(keys) {
	case 0:
		s.primary.Ascend(func(at *place) bool { return yield(s.entries.get(at.slot)) })
	case 1:
		s.primary.AscendGreaterOrEqual(&place{objectName: objectName{keys[0], ""}}, func(at *place) bool {
			return at.namespace == keys[0] && yield(s.entries.get(at.slot))
		})
	default:
		if at, ok := s.primary.Get(&place{objectName: objectName{keys[0], keys[1]}}); ok {
			yield(s.entries.get(at.slot))
		}
	}
}

// Reader reads a snapshot with the type of its objects. A Reader is a small value,
// immutable, and safe for concurrent use; the zero Reader holds nothing.
//
// A Reader can be a variable of templates: pods.Get(ns, name).
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

// All iterates over the objects by namespace and name.
func (r Reader[T]) All() iter.Seq[T] {
	return func(yield func(T) bool) {
		if r.s == nil {
			return
		}
		for o := range r.s.All() {
			if !yield(o.(T)) {
				return
			}
		}
	}
}

// List returns all objects by namespace and name.
func (r Reader[T]) List() []T {
	if r.s == nil {
		return nil
	}
	return slices.AppendSeq(make([]T, 0, r.s.Len()), r.All())
}

// Get returns the objects whose index keys begin with the given ones, in a slice
// that is shared and must not be changed; see [Snapshot.Get].
func (r Reader[T]) Get(keys ...string) []T {
	if r.s == nil {
		return nil
	}
	return look[T](r.s, keys)
}

// GetSingle returns the first object that Get would, or the zero T.
func (r Reader[T]) GetSingle(keys ...string) T {
	if r.s == nil {
		var none T
		return none
	}
	return single[T](r.s, keys)
}
