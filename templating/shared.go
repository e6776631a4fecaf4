package templating

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/open2b/scriggo/native"

	"github.com/hapticsdk/haptic/templating/internal/funcs"
	"github.com/hapticsdk/haptic/templating/internal/place"
)

// Shared holds values that are computed once and used by all templates of a
// reconciliation. Templates have it as the variable shared:
//
//	{% var taken = shared.ComputeIfAbsent("taken", func() any { ... }) %}
//
// Give the same one to several renders with [WithShared]; without it each
// render has its own. It is safe for concurrent use.
type Shared struct {
	mu      sync.Mutex
	values  map[string]any
	pending map[string]*computation
}

// computation is a value that is being computed.
type computation struct {
	key  string
	by   *run          // the render that computes it
	done chan struct{} // closed when it has ended, well or not
}

// NewShared returns an empty Shared.
func NewShared() *Shared {
	return &Shared{values: map[string]any{}, pending: map[string]*computation{}}
}

type sharedKey struct{}

// WithShared makes all renders with the context it returns use s.
func WithShared(ctx context.Context, s *Shared) context.Context {
	return context.WithValue(ctx, sharedKey{}, s)
}

func sharedOf(ctx context.Context) *Shared {
	if s, ok := ctx.Value(sharedKey{}).(*Shared); ok && s != nil {
		return s
	}
	return NewShared()
}

// Shares reports whether an entry may use values of a [Shared], by itself or
// through the files that it renders, imports, extends or includes. What such an
// entry renders depends on all entries that share, and on the order in which
// they are rendered.
func (e *Engine) Shares(name string) bool {
	en := e.entries[name]
	return en != nil && en.shares
}

// Get returns a value that was computed, nil if there is none.
func (s *Shared) Get(key string) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.values[key]
}

// ComputeIfAbsent returns the value of a key. Where there is none, it calls
// compute, a function or a macro without parameters and with one result, once:
// other renders that want the value wait for it. What fails leaves no value.
// Values that wait for each other are an error that names them. Templates leave
// out env.
func (s *Shared) ComputeIfAbsent(env native.Env, key string, compute any) any {
	state := runOf(env)
	call, err := computeFunc(compute)
	if err != nil {
		funcs.Failf("shared.ComputeIfAbsent: %s: %w", place.Shorten(key), err)
	}
	for {
		v, own, other := s.claim(key, state)
		switch {
		case own != nil:
			return s.compute(own, call)
		case other == nil:
			return v
		}
		if err := s.wait(env.Context(), state, other); err != nil {
			funcs.Failf("shared.ComputeIfAbsent: %s: %w", place.Shorten(key), err)
		}
	}
}

// claim returns the value, or a computation: one's own, or that to wait for.
func (s *Shared) claim(key string, by *run) (v any, own, other *computation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok := s.values[key]; ok {
		return v, nil, nil
	}
	if c := s.pending[key]; c != nil {
		return nil, nil, c
	}
	c := &computation{key: key, by: by, done: make(chan struct{})}
	s.pending[key] = c
	return nil, c, nil
}

func (s *Shared) compute(c *computation, call func() any) any {
	var v any
	ok := false
	c.by.computes = append(c.by.computes, c.key)
	defer func() { // also when it panics
		c.by.computes = c.by.computes[:len(c.by.computes)-1]
		s.mu.Lock()
		defer s.mu.Unlock()
		if ok {
			s.values[c.key] = v
		}
		delete(s.pending, c.key)
		close(c.done)
	}()
	v = call()
	ok = true
	return v
}

// wait waits for a computation of another render, or fails when that one, on
// the way, waits for this render.
func (s *Shared) wait(ctx context.Context, state *run, c *computation) error {
	s.mu.Lock()
	chain := []string{c.key}
	for at := c; ; {
		if at.by == state {
			if at == c { // all of them are computed here
				chain = state.computes[slices.Index(state.computes, c.key):]
			}
			s.mu.Unlock()
			return fmt.Errorf("values that need each other: %s", strings.Join(append(slices.Clone(chain), c.key), " > "))
		}
		next := at.by.waits
		if next == nil || s.pending[next.key] != next {
			break
		}
		at = next
		chain = append(chain, at.key)
	}
	state.waits = c
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		state.waits = nil
		s.mu.Unlock()
	}()
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// computeFunc returns a template's function or macro as one that is called.
func computeFunc(f any) (func() any, error) {
	switch f := f.(type) {
	case func() any:
		return f, nil
	case func() native.JSON: // a macro
		return func() any { return f() }, nil
	}
	v := reflect.ValueOf(f)
	if v.Kind() != reflect.Func || v.Type().NumIn() != 0 || v.Type().NumOut() != 1 {
		return nil, fmt.Errorf("a function without parameters and with one result wanted, not a %T", f)
	}
	return func() any { return v.Call(nil)[0].Interface() }, nil
}
