package eventbustest

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/hapticsdk/haptic/eventbus"
)

// Stub answers questions as a test tells it to, with the zero A until then, and
// remembers them.
type Stub[Q, A any] struct {
	responder *eventbus.Responder

	mu        sync.Mutex
	answer    func(context.Context, Q) (A, error)
	questions []Q
}

// NewStub has a stub answer on bus until the test ends.
func NewStub[Q, A any](t testing.TB, bus *eventbus.Bus, name string) *Stub[Q, A] {
	t.Helper()
	s := &Stub[Q, A]{}
	s.Answer(func(context.Context, Q) (a A, err error) { return a, nil })
	s.responder = eventbus.Answer(bus, name, func(ctx context.Context, q Q) (A, error) {
		s.mu.Lock()
		s.questions = append(s.questions, q)
		answer := s.answer
		s.mu.Unlock()
		return answer(ctx, q)
	})
	t.Cleanup(s.Close)
	return s
}

// Answer has questions from now on answered by fn.
func (s *Stub[Q, A]) Answer(fn func(ctx context.Context, q Q) (A, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = fn
}

// Return has questions from now on answered with a, or, where err is not nil,
// rejected with it.
func (s *Stub[Q, A]) Return(a A, err error) {
	s.Answer(func(context.Context, Q) (A, error) { return a, err })
}

// Panic has the stub panic over questions from now on.
func (s *Stub[Q, A]) Panic(value any) {
	s.Answer(func(context.Context, Q) (A, error) { panic(value) })
}

// Hang has questions from now on wait until nobody waits for an answer any more.
func (s *Stub[Q, A]) Hang() {
	s.Answer(func(ctx context.Context, _ Q) (a A, err error) {
		<-ctx.Done()
		return a, context.Cause(ctx)
	})
}

// Questions returns what the stub was asked so far, in order.
func (s *Stub[Q, A]) Questions() []Q {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.questions)
}

// Close has the stub leave: it is absent from now on.
func (s *Stub[Q, A]) Close() { s.responder.Close() }
