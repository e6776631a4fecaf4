package k8swatch

import (
	"hash/maphash"
	"math/bits"
	"slices"
	"strings"
	"sync/atomic"
)

// The look-up of keys: a persistent hash trie with a leaf for each key, and each
// prefix of a key, that any object is filed under. A leaf holds no objects but
// remembers, once somebody asked, which ones the ordered index has under it: a
// change of one of them replaces the leaf, so what it remembers never ages, and
// snapshots share the leaves of what did not change.

// leaf is one key or prefix. All but found is immutable.
type leaf struct {
	hash  uint64
	key   string // encoded
	count int    // how often objects are filed under it
	next  *leaf  // another key of the same hash
	found atomic.Pointer[found]
}

// found is the result of a look-up. There is one per type of slice that was
// asked for, at most two: that of the objects, and []Object.
type found struct {
	objs any // []T
	next *found
}

// owner marks the nodes that a store may change in place. Each snapshot makes
// the store take a new one, and thereby copy what it changes from then on.
type owner struct{ _ byte }

// node has up to 32 branches, by five bits of the hash.
type node struct {
	owner    *owner
	bits     uint32 // which branches there are
	branches []branch
}

// branch is a leaf or another node.
type branch struct {
	leaf *leaf
	node *node
}

const branchBits = 5

// bit is the branch of a hash in a node at a depth of so many bits.
func bit(hash uint64, depth int) uint32 { return 1 << (hash >> depth & (1<<branchBits - 1)) }

// position is where a branch stands among those that there are.
func (n *node) position(bit uint32) int { return bits.OnesCount32(n.bits & (bit - 1)) }

// get returns the first leaf with the hash, or nil.
func (n *node) get(hash uint64) *leaf {
	for depth := 0; n != nil; depth += branchBits {
		bit := bit(hash, depth)
		if n.bits&bit == 0 {
			return nil
		}
		b := &n.branches[n.position(bit)]
		if l := b.leaf; l != nil {
			if l.hash != hash {
				return nil
			}
			return l
		}
		n = b.node
	}
	return nil
}

// own returns the node itself or, where a snapshot has it too, a copy.
func (n *node) own(o *owner) *node {
	if n == nil {
		return &node{owner: o}
	}
	if n.owner == o {
		return n
	}
	return &node{owner: o, bits: n.bits, branches: slices.Clone(n.branches)}
}

// file changes the count of a key by delta and forgets what was found under it.
// It returns the node to use from then on, nil when nothing is left in it.
func (n *node) file(o *owner, depth int, hash uint64, key string, delta int) *node {
	n = n.own(o)
	bit := bit(hash, depth)
	at := n.position(bit)
	if n.bits&bit == 0 {
		n.bits |= bit
		n.branches = slices.Insert(n.branches, at, branch{leaf: &leaf{hash: hash, key: key, count: delta}})
		return n
	}
	b := n.branches[at]
	switch {
	case b.leaf != nil && b.leaf.hash == hash:
		b.leaf = b.leaf.file(key, delta)
	case b.leaf != nil: // two keys that part further down
		b = branch{node: b.leaf.lift(o, depth+branchBits).file(o, depth+branchBits, hash, key, delta)}
	default:
		b.node = b.node.file(o, depth+branchBits, hash, key, delta)
		if lone := b.node; lone != nil && len(lone.branches) == 1 && lone.branches[0].leaf != nil {
			b = lone.branches[0] // needs no node of its own
		}
	}
	if b != (branch{}) {
		n.branches[at] = b
		return n
	}
	n.bits &^= bit
	n.branches = slices.Delete(n.branches, at, at+1)
	if n.bits == 0 {
		return nil
	}
	return n
}

// lift returns a node at the given depth that holds just the leaf.
func (l *leaf) lift(o *owner, depth int) *node {
	return &node{owner: o, bits: bit(l.hash, depth), branches: []branch{{leaf: l}}}
}

// file does the same among the keys of one hash, which hardly ever are two.
func (l *leaf) file(key string, delta int) *leaf {
	hash := l.hash
	var others *leaf
	count := delta
	for ; l != nil; l = l.next {
		if l.key == key {
			count += l.count
		} else {
			others = &leaf{hash: l.hash, key: l.key, count: l.count, next: others}
		}
	}
	if count == 0 {
		return others
	}
	return &leaf{hash: hash, key: key, count: count, next: others}
}

// trie files keys and finds them.
type trie struct {
	root *node
	seed maphash.Seed
}

// chain mixes the hash of the next part into that of the parts before it.
func (t *trie) chain(hash uint64, part string) uint64 {
	hash ^= maphash.String(t.seed, part)
	return (hash ^ hash>>29) * 0x9e3779b97f4a7c15
}

// part returns where the part of an encoded key that begins at at ends, and the
// hash of the prefix up to there.
func (t *trie) part(key string, at int, hash uint64) (end int, chained uint64) {
	n := strings.Index(key[at:], partEnd)
	return at + n + len(partEnd), t.chain(hash, key[at:at+n])
}

// file changes the counts of an encoded key and of all its prefixes by delta,
// which may be 0: then what was found under them is forgotten, no more.
func (t *trie) file(o *owner, key string, delta int) {
	var hash uint64
	for at := 0; at < len(key); {
		at, hash = t.part(key, at, hash)
		t.root = t.root.file(o, 0, hash, key[:at], delta)
	}
}

// find returns the leaf of a key or prefix, or nil.
func (t *trie) find(parts []string) *leaf {
	var hash uint64
	for _, p := range parts {
		if strings.IndexByte(p, 0) >= 0 {
			return t.findEscaped(parts)
		}
		hash = t.chain(hash, p)
	}
	for l := t.root.get(hash); l != nil; l = l.next {
		if isKey(l.key, parts) {
			return l
		}
	}
	return nil
}

func (t *trie) findEscaped(parts []string) *leaf {
	key := encodeKey(parts)
	var hash uint64
	for at := 0; at < len(key); {
		at, hash = t.part(key, at, hash)
	}
	for l := t.root.get(hash); l != nil; l = l.next {
		if l.key == key {
			return l
		}
	}
	return nil
}

// isKey reports whether key is what encodeKey makes of parts without a NUL.
func isKey(key string, parts []string) bool {
	for _, p := range parts {
		if len(key) < len(p)+len(partEnd) || key[:len(p)] != p || key[len(p):len(p)+len(partEnd)] != partEnd {
			return false
		}
		key = key[len(p)+len(partEnd):]
	}
	return key == ""
}
