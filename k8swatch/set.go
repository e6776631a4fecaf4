package k8swatch

import (
	"fmt"
	"sync"
)

// Set reads several watchers at one instant, as a [Group] does, but its members
// may come and go while they run. Who adds a watcher runs it; its own OnChange
// tells of changes. The zero value is an empty set; all methods may be called
// concurrently.
type Set struct {
	mu      sync.Mutex
	members map[*Watcher]bool
}

// Add puts a watcher into the set, before it runs. A watcher belongs to one set
// or group at most. The error is [ErrInGroup] or [ErrStarted].
func (s *Set) Add(w *Watcher) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := ErrStarted; w.started {
		return fmt.Errorf("k8swatch: %s: %w", w.resource.Resource, err)
	}
	if w.inGroup {
		return fmt.Errorf("k8swatch: %s: %w", w.resource.Resource, ErrInGroup)
	}
	w.inGroup = true
	if s.members == nil {
		s.members = map[*Watcher]bool{}
	}
	s.members[w] = true
	return nil
}

// Remove takes a watcher out of the set. It goes on for as long as it runs, and
// cannot join another.
func (s *Set) Remove(w *Watcher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.members, w)
}

// Snapshot reads these watchers at one instant: no change of any of them falls
// between two of the parts. Those that the set does not have are not in it.
func (s *Set) Snapshot(watchers ...*Watcher) *GroupSnapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	var members []*Watcher
	seen := map[*Watcher]bool{}
	for _, w := range watchers {
		if s.members[w] && !seen[w] {
			seen[w] = true
			members = append(members, w)
		}
	}
	return snapshotOf(members)
}
