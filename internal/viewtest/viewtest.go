// Package viewtest has a view of objects without watchers, for tests.
package viewtest

import (
	"iter"
	"slices"
	"sync"

	"github.com/hapticsdk/haptic/internal/rendering"
)

// View is a view of objects that a function lists.
type View struct {
	List  func() []any
	KeyOf func(obj any) (rendering.Key, bool)
	Plain bool // what is held back has no earlier version

	mu    sync.Mutex
	shown *shelved
}

// Newest implements rendering.View.
func (s *View) Newest() rendering.Objects { return &shelved{View: s, all: s.List()} }

// Show implements rendering.View.
func (s *View) Show(objects rendering.Objects) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shown = objects.(*shelved)
}

// Reads returns what a render reads.
func (s *View) Reads() []any {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shown == nil {
		return s.List()
	}
	return s.shown.all
}

// Held returns what renders read in place of objects that are held back; nil: none.
func (s *View) Held() map[rendering.Key]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shown == nil {
		return nil
	}
	return s.shown.instead
}

// shelved are objects at one instant.
type shelved struct {
	*View
	all     []any
	byName  map[rendering.Key]any
	instead map[rendering.Key]any
}

func (s *shelved) Get(key rendering.Key) any {
	if s.byName == nil {
		s.byName = map[rendering.Key]any{}
		for _, o := range s.all {
			k, _ := s.KeyOf(o)
			s.byName[k] = o
		}
	}
	return s.byName[key]
}

func (s *shelved) All() iter.Seq[any] { return slices.Values(s.all) }

func (s *shelved) With(instead map[rendering.Key]any) rendering.Objects {
	if len(instead) == 0 {
		return s
	}
	now := &shelved{View: s.View, instead: instead}
	for _, o := range s.all {
		key, _ := s.KeyOf(o)
		other, is := instead[key]
		switch {
		case !is:
			now.all = append(now.all, o)
		case other != nil && !s.Plain:
			now.all = append(now.all, other)
		}
	}
	return now
}
