// Package store holds the objects of one resource in copy-on-write trees: one writer at
// a time, snapshots that cost nothing, and counts of changes. It depends neither on the
// source of objects nor on their readers.
package store

import (
	"bytes"
	"cmp"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Object is any Kubernetes object.
type Object interface {
	metav1.Object
	runtime.Object
}

// Entry is one version of an object with its keys. Neither changes, so the store still
// knows the keys of the old version when a new one arrives.
type Entry struct {
	name    string // namespace and name, as a key
	keys    []string
	uid     types.UID
	version string // the newest metadata.resourceVersion with this content; guarded by the store
	obj     Object // nil where compact holds it
	compact *compact
}

// NewEntry takes over an object. [Key] encodes the keys; NewEntry sorts and compacts
// them. An object without keys is found only by its namespace and name.
func NewEntry(obj Object, keys []string) *Entry {
	if len(keys) > 1 {
		slices.Sort(keys)
		keys = slices.Clip(slices.Compact(keys))
	}
	e := &Entry{name: Key(obj.GetNamespace(), obj.GetName()), keys: keys, uid: obj.GetUID(), version: obj.GetResourceVersion()}
	e.compact = newCompact(obj)
	if e.compact == nil {
		e.obj = obj
	}
	return e
}

// Object returns the object, which must not be changed.
func (e *Entry) Object() Object {
	if e.compact != nil {
		return e.compact.object()
	}
	return e.obj
}

// id returns namespace and name.
func (e *Entry) id() (namespace, name string) {
	end := strings.Index(e.name, partEnd)
	namespace, name = e.name[:end], strings.TrimSuffix(e.name[end+len(partEnd):], partEnd)
	if strings.Contains(e.name, escapedNul) {
		return strings.ReplaceAll(namespace, escapedNul, "\x00"), strings.ReplaceAll(name, escapedNul, "\x00")
	}
	return namespace, name
}

// same reports whether two entries hold the same version of one object. It compares uid
// and resource version, because Secrets and ConfigMaps have no generation.
func (e *Entry) same(other *Entry) bool {
	return e == other || e.uid == other.uid && e.version == other.version && e.version != ""
}

// keep reports whether the stored entry stays: next is the same version, or it differs in
// nothing but the resource version. The writer of an ignored status causes such updates.
// Then keep notes the newer version, so that the next list needs no comparison.
func (e *Entry) keep(next *Entry) bool {
	if e.same(next) {
		return true
	}
	if e.uid != next.uid || !slices.Equal(e.keys, next.keys) || !e.equal(next) {
		return false
	}
	e.version = next.version
	return true
}

// equal compares the contents apart from the resource version. Metadata without content
// is never equal: its resource version stands for the content. The caller owns next.
func (e *Entry) equal(next *Entry) bool {
	switch _, partial := next.obj.(*metav1.PartialObjectMetadata); {
	case partial:
		return false
	case e.compact != nil && next.compact != nil:
		return bytes.Equal(e.compact.text, next.compact.text)
	case e.obj == nil || next.obj == nil:
		return false
	}
	version := next.obj.GetResourceVersion()
	next.obj.SetResourceVersion(e.obj.GetResourceVersion())
	defer next.obj.SetResourceVersion(version)
	return reflect.DeepEqual(e.obj, next.obj)
}

// Change counts the changes of objects in one step. An object that was deleted and
// created again under its name counts as both.
type Change struct {
	Created, Modified, Deleted int
	Revision                   uint64 // of the store after the change
}

// Total is the number of changes.
func (c Change) Total() int { return c.Created + c.Modified + c.Deleted }

// Kind says what happened to an object. An object that was deleted and created again is
// Modified.
type Kind uint8

// The kinds.
const (
	Created Kind = iota + 1
	Modified
	Deleted
)

// Changed is an object that changed.
type Changed struct {
	Namespace, Name string
	Kind            Kind
}

// Store holds the objects of one resource. All methods may be called concurrently.
type Store struct {
	indexed bool
	order   uint64 // random; several stores are locked in this order

	// OnCommit is called after each change while the store is locked. It must not call the
	// store, nor keep changed. changed lists up to MaxChanged objects, and more is the number
	// of other changed ones. Set both before the first change. OnCommit may be nil.
	OnCommit   func(c Change, changed []Changed, more int)
	MaxChanged int

	mu       sync.Mutex
	trees    trees
	revision uint64
	snapshot *Snapshot // of this revision; nil when none was taken
	changed  []Changed // by the current change
	more     int       // changes that are not in changed
	history  history
}

// New returns an empty store. Without an index, objects are found by namespace and name.
func New(indexed bool) *Store {
	s := &Store{indexed: indexed, order: rand.Uint64(), trees: newTrees(indexed)}
	s.history.of = s
	return s
}

// Put stores an object in place of its old version. The same version changes nothing, nor
// does one that differs only in its resource version.
func (s *Store) Put(e *Entry) Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	var c Change
	if old := s.trees.get(e.name); old == nil || !old.keep(e) {
		s.count(&c, old, e)
		s.trees.put(e)
	}
	return s.commit(c)
}

// Remove deletes an object, if it exists.
func (s *Store) Remove(namespace, name string) Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	var c Change
	if old := s.trees.get(Key(namespace, name)); old != nil {
		s.count(&c, old, nil)
		s.trees.remove(old)
	}
	return s.commit(c)
}

// Replace makes the store hold exactly these objects, in one step. It keeps the entries
// of unchanged objects. If a name occurs several times, the last object counts.
func (s *Store) Replace(entries []*Entry) Change {
	next := newTrees(s.indexed)
	for _, e := range entries {
		next.put(e)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var c Change
	fresh := next.objects.Len() - s.trees.objects.Len()
	s.trees.objects.Ascend(func(old filed) bool {
		switch e := next.get(old.name); {
		case e == nil:
			s.count(&c, old.Entry, nil)
			fresh++
		case old.keep(e):
			next.put(old.Entry)
		default:
			s.count(&c, old.Entry, e)
		}
		return true
	})
	next.objects.Ascend(func(e filed) bool {
		if fresh > 0 && s.trees.get(e.name) == nil {
			s.count(&c, nil, e.Entry)
			fresh--
		}
		return fresh > 0
	})
	if c.Total() > 0 {
		s.trees = next
	}
	return s.commit(c)
}

// count compares an object with its old version. Nil means that there is none.
func (s *Store) count(c *Change, old, next *Entry) {
	e, kind := next, Modified
	switch {
	case next == nil:
		c.Deleted++
		e, kind = old, Deleted
	case old == nil:
		c.Created++
		kind = Created
	case old.uid != next.uid: // deleted and created while the connection was down
		c.Deleted++
		c.Created++
	default:
		c.Modified++
	}
	s.history.note(e.name)
	if len(s.changed) >= s.MaxChanged {
		s.more++
		return
	}
	namespace, name := e.id()
	s.changed = append(s.changed, Changed{namespace, name, kind})
}

// commit raises the revision by one if something changed.
func (s *Store) commit(c Change) Change {
	if c.Total() > 0 {
		s.revision++
		s.snapshot = nil
	}
	c.Revision = s.revision
	if s.OnCommit != nil && c.Total() > 0 {
		s.OnCommit(c, s.changed, s.more)
	}
	if cap(s.changed) > keptChanged {
		s.changed = nil
	}
	s.changed, s.more = s.changed[:0], 0
	return c
}

// keptChanged bounds the list of changes that a store keeps for reuse. Most lists have
// one object.
const keptChanged = 16

// Get returns the newest version of an object, or nil.
func (s *Store) Get(namespace, name string) *Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.trees.get(Key(namespace, name))
}

// Len is the number of objects.
func (s *Store) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.trees.objects.Len()
}

// Snapshot returns the current content.
func (s *Store) Snapshot() *Snapshot { return Snapshots(s)[0] }

func (s *Store) take() *Snapshot {
	if s.snapshot == nil {
		s.snapshot = &Snapshot{trees: s.trees.clone(), revision: s.revision, history: s.history}
	}
	return s.snapshot
}

// Snapshots reads several stores at one instant: no change of any of them falls between
// two of the snapshots. They come in the order of the stores.
func Snapshots(stores ...*Store) []*Snapshot { return SnapshotsWith(func() {}, stores...) }

// SnapshotsWith calls with while no store can change. The changes that OnCommit
// reported before that lead to the snapshots.
func SnapshotsWith(with func(), stores ...*Store) []*Snapshot {
	locking := slices.SortedFunc(slices.Values(stores), func(a, b *Store) int { return cmp.Compare(a.order, b.order) })
	for _, s := range slices.Compact(locking) {
		s.mu.Lock()
		defer s.mu.Unlock()
	}
	with()
	snaps := make([]*Snapshot, len(stores))
	for i, s := range stores {
		snaps[i] = s.take()
	}
	return snaps
}
