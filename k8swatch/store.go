package k8swatch

import (
	"hash/maphash"
	"strings"
	"sync"

	"github.com/google/btree"
	"k8s.io/apimachinery/pkg/types"
)

// entry is one version of a stored object with the index keys it is filed under.
// It never changes once it is filed: an update makes a new one, so that the old
// keys are known when it goes.
type entry struct {
	obj     Object // nil where dense holds it
	dense   *dense
	place   *place
	uid     types.UID
	version string   // metadata.resourceVersion
	keys    []string // encoded index keys, at least one
}

// object returns the object, which must not be changed.
func (e *entry) object() Object {
	if e.dense != nil {
		return e.dense.object()
	}
	return e.obj
}

// indexed files an object under one of its keys.
type indexed struct {
	key string
	at  *place
}

func lessIndexed(a, b indexed) bool {
	if a.key != b.key {
		return a.key < b.key
	}
	if a.at == nil || b.at == nil { // a pivot stands before all objects of its key
		return a.at == nil && b.at != nil
	}
	return lessPlace(a.at, b.at)
}

// degree of the trees: small nodes make the copy that follows a snapshot cheap.
const degree = 16

// store holds the objects of one resource: copy-on-write trees with one writer.
// A snapshot is a clone of them, taken lazily and shared until the next change.
// An update that changes no key touches the slot of the object and the leaves of
// its keys alone.
type store struct {
	mu       sync.Mutex
	places   map[objectName]*place
	entries  slots
	used     int                    // slots that were ever in use
	free     []int                  // those that are not in use any more
	primary  *btree.BTreeG[*place]  // all objects
	index    *btree.BTreeG[indexed] // nil: the index is namespace, name
	keys     trie
	owner    *owner // of what no snapshot has of entries and keys
	many     int    // entries filed under more than one key
	revision Revision
	snapshot *Snapshot // of this revision; nil when none was taken
	meta     snapshotMeta
}

func newStore(meta snapshotMeta) *store {
	s := &store{
		places: map[objectName]*place{}, primary: btree.NewG(degree, lessPlace),
		keys: trie{seed: maphash.MakeSeed()}, owner: new(owner), meta: meta,
	}
	if meta.indexed {
		s.index = btree.NewG(degree, lessIndexed)
	}
	return s
}

// same reports whether two entries hold the same version of one object.
func (e *entry) same(other *entry) bool {
	return e == other || e.uid == other.uid && e.version == other.version && e.version != ""
}

// get returns the entry of a name, or nil.
func (s *store) get(name objectName) *entry {
	if at := s.places[name]; at != nil {
		return s.entries.get(at.slot)
	}
	return nil
}

// put files the entry and counts what changed.
func (s *store) put(e *entry, c *Changes) {
	old := s.get(e.place.objectName)
	switch {
	case old == nil:
		c.Created++
		s.open(e.place)
	case old.same(e):
		return
	case old.uid != e.uid: // deleted and created again while nobody looked
		c.Deleted++
		c.Created++
	default:
		c.Modified++
	}
	if old != nil {
		e.place = old.place
		s.unfile(old, e)
	}
	s.entries.set(s.owner, e.place.slot, e)
	if len(e.keys) > 1 {
		s.many++
	}
	for _, k := range e.keys {
		delta := 0
		if old == nil || !contains(old.keys, k) {
			delta = 1
			if s.index != nil {
				s.index.ReplaceOrInsert(indexed{k, e.place})
			}
		}
		s.keys.file(s.owner, k, delta)
	}
}

// open gives a place to a new name.
func (s *store) open(at *place) {
	if n := len(s.free); n > 0 {
		at.slot, s.free = s.free[n-1], s.free[:n-1]
	} else {
		at.slot = s.used
		s.used++
	}
	s.places[at.objectName] = at
	s.primary.ReplaceOrInsert(at)
}

// unfile removes the keys of old that next does not have; the others are
// replaced in place.
func (s *store) unfile(old, next *entry) {
	if len(old.keys) > 1 {
		s.many--
	}
	for _, k := range old.keys {
		if next != nil && contains(next.keys, k) {
			continue
		}
		if s.index != nil {
			s.index.Delete(indexed{k, old.place})
		}
		s.keys.file(s.owner, k, -1)
	}
}

func contains(keys []string, k string) bool {
	for _, have := range keys {
		if have == k {
			return true
		}
	}
	return false
}

func (s *store) remove(name objectName, c *Changes) {
	old := s.get(name)
	if old == nil {
		return
	}
	c.Deleted++
	s.unfile(old, nil)
	s.primary.Delete(old.place)
	delete(s.places, name)
	s.entries.set(s.owner, old.place.slot, nil)
	s.free = append(s.free, old.place.slot)
}

// replace makes the store hold exactly the given entries.
func (s *store) replace(entries []*entry, c *Changes) {
	keep := make(map[objectName]struct{}, len(entries))
	for _, e := range entries {
		keep[e.place.objectName] = struct{}{}
	}
	var gone []objectName
	for name := range s.places {
		if _, ok := keep[name]; !ok {
			gone = append(gone, name)
		}
	}
	for _, name := range gone {
		s.remove(name, c)
	}
	for _, e := range entries {
		s.put(e, c)
	}
}

// change runs f under the lock. Where it changed something the revision goes up
// by one, whatever the number of objects.
func (s *store) change(f func(*Changes)) Changes {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := Changes{From: s.revision}
	f(&c)
	if c.Created+c.Modified+c.Deleted > 0 {
		s.revision++
		s.snapshot = nil
	}
	c.To = s.revision
	return c
}

// current is get for those who do not hold the lock.
func (s *store) current(name objectName) *entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.get(name)
}

func (s *store) size() (objects int, revision Revision) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.primary.Len(), s.revision
}

// take returns the snapshot of now.
func (s *store) take() *Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.takeLocked()
}

func (s *store) takeLocked() *Snapshot {
	if s.snapshot == nil {
		snap := &Snapshot{snapshotMeta: s.meta, revision: s.revision, entries: s.entries, primary: s.primary.Clone(), keys: s.keys, many: s.many}
		if s.index != nil {
			snap.index = s.index.Clone()
		}
		s.owner = new(owner)
		s.snapshot = snap
	}
	return s.snapshot
}

// Composite keys are encoded so that the order of the encoded form is that of
// the parts one after the other, and that a prefix of parts is a prefix of the
// string: each part ends in 0x00 0x01, and a 0x00 within is 0x00 0xff.
const (
	partEnd    = "\x00\x01"
	escapedNul = "\x00\xff"
)

func encodeKey(parts []string) string {
	n := 0
	for _, p := range parts {
		n += len(p) + len(partEnd)
	}
	var b strings.Builder
	b.Grow(n)
	for _, p := range parts {
		if strings.IndexByte(p, 0) >= 0 {
			p = strings.ReplaceAll(p, "\x00", escapedNul)
		}
		b.WriteString(p)
		b.WriteString(partEnd)
	}
	return b.String()
}

// decodeKey is the reverse of encodeKey.
func decodeKey(key string) []string {
	var parts []string
	for key != "" {
		part, rest, _ := strings.Cut(key, partEnd)
		parts = append(parts, strings.ReplaceAll(part, escapedNul, "\x00"))
		key = rest
	}
	return parts
}
