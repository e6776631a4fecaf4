package store

import (
	"slices"
	"strings"
)

// With returns a snapshot in which some entries stand in place of those of their names, and
// names without an entry do not exist. revision tells it apart from other snapshots.
func (s *Snapshot) With(entries []*Entry, gone [][2]string, revision uint64) *Snapshot {
	now := &Snapshot{trees: s.trees.clone(), revision: revision, history: s.history, instead: slices.Clone(s.instead)}
	for _, e := range entries {
		now.trees.put(e)
		now.instead = append(now.instead, e.name)
	}
	for _, name := range gone {
		if e := now.trees.get(Key(name[:]...)); e != nil {
			now.trees.remove(e)
			now.instead = append(now.instead, e.name)
		}
	}
	return now
}

// Parts returns the parts of a key.
func Parts(key string) (parts []string) {
	for len(key) > 0 {
		end := strings.Index(key, partEnd)
		parts, key = append(parts, strings.ReplaceAll(key[:end], escapedNul, "\x00")), key[end+len(partEnd):]
	}
	return parts
}
