package k8swatch

import (
	"hash/maphash"
	"strings"
	"sync"

	"github.com/google/btree"
	"k8s.io/apimachinery/pkg/types"
)

// entry is one stored object with the index keys it is filed under. It never
// changes: an update makes a new one, so that the old keys are known when it goes.
type entry struct {
	obj             Object // nil where dense holds it
	dense           *dense
	namespace, name string
	uid             types.UID
	version         string   // metadata.resourceVersion
	keys            []string // encoded index keys, at least one
}

// object returns the object, which must not be changed.
func (e *entry) object() Object {
	if e.dense != nil {
		return e.dense.object()
	}
	return e.obj
}

// indexed files an entry under one of its keys.
type indexed struct {
	key string
	e   *entry
}

func lessEntry(a, b *entry) bool {
	if a.namespace != b.namespace {
		return a.namespace < b.namespace
	}
	return a.name < b.name
}

func lessIndexed(a, b indexed) bool {
	if a.key != b.key {
		return a.key < b.key
	}
	if a.e == nil || b.e == nil { // a pivot stands before all entries of its key
		return a.e == nil && b.e != nil
	}
	return lessEntry(a.e, b.e)
}

// degree of the trees: small nodes make the copy that follows a snapshot cheap.
const degree = 16

// store holds the objects of one resource: copy-on-write trees with one writer.
// A snapshot is a clone of them, taken lazily and shared until the next change.
type store struct {
	mu       sync.Mutex
	primary  *btree.BTreeG[*entry]
	index    *btree.BTreeG[indexed] // nil: the index is namespace, name
	keys     trie
	owner    *owner // of the nodes of keys that no snapshot has
	many     int    // entries filed under more than one key
	revision Revision
	snapshot *Snapshot // of this revision; nil when none was taken
	meta     snapshotMeta
}

func newStore(meta snapshotMeta) *store {
	s := &store{primary: btree.NewG(degree, lessEntry), keys: trie{seed: maphash.MakeSeed()}, owner: new(owner), meta: meta}
	if meta.indexed {
		s.index = btree.NewG(degree, lessIndexed)
	}
	return s
}

// same reports whether two entries hold the same version of one object.
func (e *entry) same(other *entry) bool {
	return e.uid == other.uid && e.version == other.version && e.version != ""
}

// put files the entry and counts what changed.
func (s *store) put(e *entry, c *Changes) {
	old, had := s.primary.ReplaceOrInsert(e)
	switch {
	case !had:
		c.Created++
	case old.uid != e.uid: // deleted and created again while nobody looked
		c.Deleted++
		c.Created++
	case old.same(e): // rare, so that it is not worth a look-up each time
		s.primary.ReplaceOrInsert(old)
		return
	default:
		c.Modified++
	}
	if had {
		s.unfile(old, e)
	}
	if len(e.keys) > 1 {
		s.many++
	}
	for _, k := range e.keys {
		if s.index != nil {
			s.index.ReplaceOrInsert(indexed{k, e})
		}
		delta := 1
		if had && contains(old.keys, k) {
			delta = 0
		}
		s.keys.file(s.owner, k, delta)
	}
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
			s.index.Delete(indexed{k, old})
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

func (s *store) remove(e *entry, c *Changes) {
	old, had := s.primary.Delete(e)
	if !had {
		return
	}
	c.Deleted++
	s.unfile(old, nil)
}

// replace makes the store hold exactly the given entries.
func (s *store) replace(entries []*entry, c *Changes) {
	keep := btree.NewG(degree, lessEntry)
	for _, e := range entries {
		keep.ReplaceOrInsert(e)
	}
	var gone []*entry
	s.primary.Ascend(func(e *entry) bool {
		if !keep.Has(e) {
			gone = append(gone, e)
		}
		return true
	})
	for _, e := range gone {
		s.remove(e, c)
	}
	for _, e := range entries {
		if old, had := s.primary.Get(e); !had || !old.same(e) {
			s.put(e, c)
		}
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
		snap := &Snapshot{snapshotMeta: s.meta, revision: s.revision, primary: s.primary.Clone(), keys: s.keys, many: s.many}
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
