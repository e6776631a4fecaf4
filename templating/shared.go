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

// Shared holds values that templates compute once and share during a reconciliation. It is
// their variable shared:
//
//	{% var taken = shared.ComputeIfAbsent("taken", func() any { ... }) %}
//
// [WithShared] gives one Shared to several renders; without it each render has its own. It
// is safe for concurrent use.
type Shared struct {
	turn   chan struct{} // held by the render that computes: only one at a time, so two cannot wait for each other
	mu     sync.Mutex
	values map[string]any
}

// NewShared returns an empty Shared.
func NewShared() *Shared {
	return &Shared{turn: make(chan struct{}, 1), values: map[string]any{}}
}

type sharedKey struct{}

// WithShared returns a context; all renders with it use s.
func WithShared(ctx context.Context, s *Shared) context.Context {
	return context.WithValue(ctx, sharedKey{}, s)
}

func sharedOf(ctx context.Context) *Shared {
	if s, ok := ctx.Value(sharedKey{}).(*Shared); ok && s != nil {
		return s
	}
	return NewShared()
}

// Shares reports whether an entry may use values of a [Shared], by itself or through the
// files that it renders, imports, extends or includes. The output of such an entry depends
// on all entries that share, and on the order of their renders.
func (e *Engine) Shares(name string) bool {
	en := e.entries[name]
	return en != nil && en.shares
}

// Get returns the value of a key, nil if no template has computed it.
func (s *Shared) Get(key string) any {
	v, _ := s.get(key)
	return v
}

func (s *Shared) get(key string) (v any, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok = s.values[key]
	return v, ok
}

// ComputeIfAbsent returns the value of a key. If there is none, it calls compute once.
// compute is a function or a macro without parameters and with one result. Other renders
// that compute wait for it, or for the end of their context. A failed compute leaves no
// value. If values need each other, the error names them. Templates leave out env.
func (s *Shared) ComputeIfAbsent(env native.Env, key string, compute any) any {
	call, err := computeFunc(compute)
	if err != nil {
		funcs.Failf("shared.ComputeIfAbsent: %s: %w", place.Shorten(key), err)
	}
	if v, ok := s.get(key); ok {
		return v
	}
	r := runOf(env)
	if len(r.computes) == 0 {
		select {
		case s.turn <- struct{}{}:
			defer func() { <-s.turn }()
		case <-env.Context().Done():
			funcs.Failf("shared.ComputeIfAbsent: %s: %w", place.Shorten(key), env.Context().Err())
		}
	}
	if v, ok := s.get(key); ok {
		return v
	}
	if i := slices.Index(r.computes, key); i >= 0 {
		funcs.Failf("shared.ComputeIfAbsent: %s: values that need each other: %s", place.Shorten(key), strings.Join(append(slices.Clone(r.computes[i:]), key), " > "))
	}
	r.computes = append(r.computes, key)
	defer func() { r.computes = r.computes[:len(r.computes)-1] }()
	v := call()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values[key] = v
	return v
}

// computeFunc returns a function or a macro of a template as a Go function.
func computeFunc(f any) (func() any, error) {
	switch f := f.(type) {
	case func() any:
		return f, nil
	case func() native.JSON: // a macro
		return func() any { return f() }, nil
	}
	v := reflect.ValueOf(f)
	if v.Kind() != reflect.Func || v.Type().NumIn() != 0 || v.Type().NumOut() != 1 {
		return nil, fmt.Errorf("compute is a %T: give a function without parameters and with one result", f)
	}
	return func() any { return v.Call(nil)[0].Interface() }, nil
}
