package store

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestChangedSince: the keys of all objects that differ, or none if they are not known.
func TestChangedSince(t *testing.T) {
	s, other := New(true), New(true)
	put := func(name, version string, keys ...string) *Snapshot {
		s.Put(entry(name, name, version, keys...))
		return s.Snapshot()
	}
	empty := s.Snapshot()
	x1 := put("x", "1", "a")
	x2 := put("x", "2", "b", "c")
	y1 := put("y", "1", "d")
	back := put("x", "3", "a")
	replaced := y1.With([]*Entry{entry("x", "x", "1", "a")}, nil, 100)
	without := replaced.With(nil, [][2]string{{"ns", "y"}, {"ns", "none"}}, 101)
	for i, c := range []struct {
		before, now *Snapshot
		want        string
		known       bool
	}{
		{empty, empty, "", true},
		{empty, x1, "a", true},
		{x1, x2, "a b c", true},
		{x2, x1, "a b c", true},
		{x1, y1, "a b c d", true},
		{x2, back, "a b c d", true},
		{y1, replaced, "a b c", true},
		{replaced, y1, "a b c", true},
		{replaced, without, "d", true},
		{y1, without, "a b c d", true},
		{without, back, "a d", true},
		{replaced, y1.With([]*Entry{entry("x", "x", "1", "e")}, nil, 102), "a e", true},
		{nil, y1, "", false},
		{other.Snapshot(), y1, "", false},
	} {
		keys, known := c.now.ChangedSince(c.before)
		var got []string
		for _, key := range keys {
			got = append(got, Parts(key)...)
		}
		slices.Sort(got)
		require.Equal(t, "["+c.want+"]", fmt.Sprint(slices.Compact(got)), "%d", i)
		require.Equal(t, c.known, known, "%d", i)
	}
}

// TestChangedSinceIsBounded: a store forgets old changes, and says so.
func TestChangedSinceIsBounded(t *testing.T) {
	s := New(false)
	var all []*Snapshot
	for i := range 5 * keptNames {
		s.Put(entry(fmt.Sprint(i), "1", "1"))
		all = append(all, s.Snapshot())
		for _, ago := range []int{1, keptNames, 2 * keptNames, 3 * keptNames} {
			if ago > i {
				continue
			}
			keys, known := all[i].ChangedSince(all[i-ago])
			if known && len(keys) != ago || !known && ago <= keptNames || known && ago > 2*keptNames {
				t.Fatalf("%d changes before %d: %d keys, %v", ago, i, len(keys), known)
			}
		}
		require.LessOrEqual(t, len(s.history.names), 2*keptNames)
	}
}
