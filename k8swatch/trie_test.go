package k8swatch

import (
	"fmt"
	"hash/maphash"
	"maps"
	"math/rand/v2"
	"testing"
)

// TestTrie drives a trie with hashes that collide, wholly and in their first
// bits, against a map; tries from before stay as they were.
func TestTrie(t *testing.T) {
	hashes := []uint64{0, 1, 32, 33, 1 << 60, 1<<60 | 1, 1 << 63, ^uint64(0), ^uint64(0) >> 1, 1 << 5, 1 << 10, 1 << 15}
	r := rand.New(rand.NewPCG(1, 2))
	var root *node
	o := new(owner)
	counts := map[string]int{}
	type kept struct {
		root   *node
		counts map[string]int
	}
	var before []kept
	check := func(root *node, counts map[string]int) {
		t.Helper()
		got := map[string]int{}
		for l := range root.all() {
			got[l.key] = l.count
		}
		if !maps.Equal(got, counts) {
			t.Fatalf("holds %v, want %v", got, counts)
		}
		for h, hash := range hashes {
			for k := range 3 {
				key := fmt.Sprint(h, ".", k)
				count := 0
				for l := root.get(hash); l != nil; l = l.next {
					if l.key == key {
						count = l.count
					}
				}
				if count != counts[key] {
					t.Fatalf("%s is counted %d times, want %d", key, count, counts[key])
				}
			}
		}
	}
	for range 3000 {
		h := r.IntN(len(hashes))
		key := fmt.Sprint(h, ".", r.IntN(3))
		delta := 1
		if counts[key] > 0 {
			delta = r.IntN(3) - 1
		}
		root = root.file(o, 0, hashes[h], key, delta)
		if counts[key] += delta; counts[key] == 0 {
			delete(counts, key)
		}
		check(root, counts)
		if r.IntN(20) == 0 {
			before = append(before, kept{root, maps.Clone(counts)})
			o = new(owner)
		}
	}
	for key, n := range counts { // until nothing is left
		var h int
		if _, err := fmt.Sscanf(key, "%d.", &h); err != nil {
			t.Fatal(err)
		}
		root = root.file(o, 0, hashes[h], key, -n)
	}
	if root != nil {
		t.Errorf("an empty trie has nodes: %v", root)
	}
	for _, k := range before {
		check(k.root, k.counts)
	}
}

// FuzzFind: a key is found by its parts and by each of their prefixes, and by
// nothing else.
func FuzzFind(f *testing.F) {
	f.Add("a", "b", "a", "b")
	f.Add("a\x00", "b", "a", "\x00b")
	f.Add("a\x00\x01b", "", "a", "b")
	f.Add("", "", "", "\x00\x01")
	f.Fuzz(func(t *testing.T, a1, a2, b1, b2 string) {
		keys := trie{seed: maphash.MakeSeed()}
		keys.file(new(owner), encodeKey([]string{a1, a2}), 1)
		for _, tt := range []struct {
			parts []string
			want  bool
		}{
			{[]string{a1, a2}, true}, {[]string{a1}, true}, {[]string{a1, a2, ""}, false},
			{[]string{b1, b2}, a1 == b1 && a2 == b2}, {[]string{b1}, a1 == b1}, {[]string{a1 + partEnd + a2}, a1+partEnd+a2 == a1},
		} {
			l := keys.find(tt.parts)
			if (l != nil) != tt.want || (l != nil && l.key != encodeKey(tt.parts)) {
				t.Fatalf("find(%q) = %v, want %v", tt.parts, l, tt.want)
			}
		}
	})
}
