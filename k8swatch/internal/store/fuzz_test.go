package store

import (
	"cmp"
	"slices"
	"strings"
	"testing"
)

// FuzzKey: the encoded keys sort and match prefixes as their parts do.
func FuzzKey(f *testing.F) {
	f.Add("a", "b", "a", "")
	f.Add("a\x00", "b", "a", "\x00b")
	f.Add("a\x00\x01b", "", "a", "b")
	f.Fuzz(func(t *testing.T, a1, a2, b1, b2 string) {
		a, b := []string{a1, a2}, []string{b1, b2}
		ea, eb := Key(a...), Key(b...)
		if got, want := cmp.Compare(ea, eb), slices.Compare(a, b); got != want {
			t.Fatalf("%q and %q compare as %d, want %d", a, b, got, want)
		}
		if got, want := strings.HasPrefix(ea, Key(b[0])), a1 == b1; got != want {
			t.Fatalf("%q begins with %q: %v", a, b1, got)
		}
	})
}
