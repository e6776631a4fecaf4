package store

import (
	"slices"
	"strings"
)

// Snapshot is the content of a store at one instant. It never changes. All methods may
// be called concurrently.
type Snapshot struct {
	trees    trees
	revision uint64
	history  history  // of the store
	instead  []string // the names of the objects that With changed
}

// Revision is the number of changes of the store up to the snapshot.
func (s *Snapshot) Revision() uint64 { return s.revision }

// Len is the number of objects.
func (s *Snapshot) Len() int { return s.trees.objects.Len() }

// All calls yield with each object by namespace and name, until it returns false.
func (s *Snapshot) All(yield func(Object) bool) {
	s.trees.objects.Ascend(func(f filed) bool { return yield(f.Object()) })
}

// Get returns one object by its namespace and name, or nil.
func (s *Snapshot) Get(namespace, name string) Object {
	if e := s.trees.get(Key(namespace, name)); e != nil {
		return e.Object()
	}
	return nil
}

// Find calls yield with each object that has keys which begin with the given ones, until
// yield returns false. The order is by key, namespace and name, and each object comes once.
func (s *Snapshot) Find(keys []string, yield func(Object) bool) {
	if s.trees.index == nil {
		s.findByName(keys, yield)
		return
	}
	prefix := Key(keys...)
	s.trees.index.AscendGreaterOrEqual(filed{key: prefix}, func(f filed) bool {
		if !strings.HasPrefix(f.key, prefix) {
			return false
		}
		if len(f.keys) > 1 && f.key != f.first(prefix) {
			return true // it came under another key
		}
		return yield(f.Object())
	})
}

func (s *Snapshot) findByName(keys []string, yield func(Object) bool) {
	if len(keys) == 2 {
		if o := s.Get(keys[0], keys[1]); o != nil {
			yield(o)
		}
		return
	}
	prefix := Key(keys...)
	s.trees.objects.AscendGreaterOrEqual(filed{key: prefix}, func(f filed) bool {
		return strings.HasPrefix(f.key, prefix) && yield(f.Object())
	})
}

// first returns the first key that begins with the prefix.
func (e *Entry) first(prefix string) string {
	i, _ := slices.BinarySearch(e.keys, prefix)
	return e.keys[i]
}

// The encoding of a key keeps the order of its parts, and the first parts encode to a prefix
// of the whole. Each part ends in 0x00 0x01, and a 0x00 within it becomes 0x00 0xff.
const (
	partEnd    = "\x00\x01"
	escapedNul = "\x00\xff"
)

// Key encodes the parts of a key.
func Key(parts ...string) string {
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
