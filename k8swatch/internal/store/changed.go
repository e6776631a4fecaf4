package store

import "slices"

// keptNames is how many of the last changes a store can tell at least.
const keptNames = 1000

// history names the objects that changed last, the newest last. Snapshots share the names:
// nothing but append changes them.
type history struct {
	of      *Store
	names   []string // as keys
	dropped int      // changes before these
}

// note adds a change.
func (h *history) note(name string) {
	if n := len(h.names) - keptNames; n >= keptNames {
		h.names, h.dropped = slices.Clone(h.names[n:]), h.dropped+n
	}
	h.names = append(h.names, name)
}

// end counts all changes.
func (h history) end() int { return h.dropped + len(h.names) }

// since returns the changes after an earlier state, and whether it has them all.
func (h history) since(before history) (names []string, known bool) {
	if before.end() > h.end() {
		h, before = before, h // the same objects may differ
	}
	if h.of != before.of || before.end() < h.dropped {
		return nil, false
	}
	return h.names[before.end()-h.dropped:], true
}

// ChangedSince returns the keys under which Find finds the objects that differ between two
// snapshots of one store, in either of them. It returns false for snapshots of two stores, and
// if too many changes lie between the two.
func (s *Snapshot) ChangedSince(before *Snapshot) (keys []string, known bool) {
	if before == nil {
		return nil, false
	}
	names, known := s.history.since(before.history)
	if !known {
		return nil, false
	}
	names = slices.Concat(names, before.instead, s.instead)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if was, is := before.trees.get(name), s.trees.get(name); was != is {
			keys = append(append(keys, before.keys(was)...), s.keys(is)...)
		}
	}
	return keys, true
}

// keys returns the keys under which Find finds an entry of the snapshot; nil has none.
func (s *Snapshot) keys(e *Entry) []string {
	switch {
	case e == nil:
		return nil
	case s.trees.index == nil:
		return []string{e.name}
	}
	return e.keys
}
