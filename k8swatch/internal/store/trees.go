package store

import (
	"slices"
	"strings"

	"github.com/google/btree"
)

// degree is the degree of the trees. Small nodes make the copy after a snapshot cheap.
const degree = 16

// filed is an object under one of its keys.
type filed struct {
	key string
	*Entry
}

// byName orders the objects, byKey the index. Objects of one key are ordered by name,
// after the pivot of a search.
func byName(a, b filed) bool { return a.key < b.key }

func byKey(a, b filed) bool {
	if c := strings.Compare(a.key, b.key); c != 0 {
		return c < 0
	}
	if a.Entry == nil || b.Entry == nil {
		return b.Entry != nil
	}
	return a.name < b.name
}

// trees are sorted sets of the same objects. Clones share all nodes that neither has
// changed since.
type trees struct {
	objects *btree.BTreeG[filed] // by namespace and name
	index   *btree.BTreeG[filed] // by keys; nil without an index
}

func newTrees(indexed bool) trees {
	t := trees{objects: btree.NewG(degree, byName)}
	if indexed {
		t.index = btree.NewG(degree, byKey)
	}
	return t
}

func (t trees) clone() trees {
	c := trees{objects: t.objects.Clone()}
	if t.index != nil {
		c.index = t.index.Clone()
	}
	return c
}

// get returns the entry of an encoded name, or nil.
func (t trees) get(name string) *Entry {
	f, _ := t.objects.Get(filed{key: name})
	return f.Entry
}

// put stores an entry in place of the old version, if there is one.
func (t trees) put(e *Entry) {
	old, _ := t.objects.ReplaceOrInsert(filed{e.name, e})
	if old.Entry != nil {
		t.unfile(old.Entry, e.keys)
	}
	for _, k := range e.keys {
		t.index.ReplaceOrInsert(filed{k, e})
	}
}

func (t trees) remove(e *Entry) {
	t.objects.Delete(filed{key: e.name})
	t.unfile(e, nil)
}

// unfile removes an entry from the index, except under the keys of its next version.
func (t trees) unfile(old *Entry, next []string) {
	for _, k := range old.keys {
		if !slices.Contains(next, k) {
			t.index.Delete(filed{k, old})
		}
	}
}
