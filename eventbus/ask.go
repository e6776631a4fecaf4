package eventbus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Why an answer, or a whole question, failed: use [errors.Is].
var (
	// ErrAbsent is for a responder that was not there, or left before it answered.
	ErrAbsent = errors.New("no such responder")
	// ErrMissing is for a responder that did not answer in time.
	ErrMissing = errors.New("no answer")
	// ErrRejected is for a responder that returned an error of its own.
	ErrRejected = errors.New("rejected")
	// ErrPanicked is for a responder that panicked.
	ErrPanicked = errors.New("panicked")
	// ErrClosed says that the bus was closed.
	ErrClosed = errors.New("the bus is closed")
)

// question is what responders are found by: the types of the question and of the
// answer.
type question struct{ asked, answered reflect.Type }

func questionOf[Q, A any]() question {
	return question{asked: reflect.TypeFor[Q](), answered: reflect.TypeFor[A]()}
}

// Responder is the hold on an [Answer]. Its methods may be called from several
// goroutines.
type Responder struct {
	bus      *Bus
	name     string
	question question
	fn       any             // func(context.Context, Q) (A, error)
	ctx      context.Context // until it leaves (ErrAbsent) or the bus is closed (ErrClosed)
	cancel   context.CancelCauseFunc
	running  int // calls that have not returned; under Bus.mu
}

// Answer has fn called for each question of type Q to which an A is asked for,
// in a goroutine of its own for each: fn must be safe to be called several
// times at once. It works before [Bus.Start] as well as after it. The context is
// that of [Ask]; it also ends when the responder or the bus is closed. [Ask]
// returns an error of fn as an [*AnswerError].
//
// The name is unique among the responders to the same types; Answer panics
// where it is empty or taken, and where fn is nil. On a nil bus, and on a
// closed one, nobody asks.
func Answer[Q, A any](b *Bus, name string, fn func(ctx context.Context, q Q) (A, error)) *Responder {
	if fn == nil || name == "" {
		panic("eventbus: Answer without a function or a name")
	}
	if b == nil {
		b = New(nil)
	}
	r := &Responder{bus: b, name: name, question: questionOf[Q, A](), fn: fn}
	r.ctx, r.cancel = context.WithCancelCause(context.Background())
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		r.cancel(ErrClosed)
		return r
	}
	for _, other := range b.present(r.question) {
		if other.name == name {
			panic("eventbus: Answer by two responders named " + name + " to " + r.question.asked.String())
		}
	}
	b.responders = append(b.responders, r)
	return r
}

// Close ends the responder: it is absent from now on, and questions that it
// has not answered yet fail for those who ask. It does not wait for calls that
// run, so a responder may close itself; [Bus.Close] does. Further calls do
// nothing, and the name may be used again.
func (r *Responder) Close() {
	r.bus.mu.Lock()
	defer r.bus.mu.Unlock()
	r.cancel(ErrAbsent)
	r.bus.sweep()
}

// present returns those who answer q, in order of their names. The caller holds
// mu.
func (b *Bus) present(q question) []*Responder {
	var there []*Responder
	for _, r := range b.responders {
		if r.question == q && r.ctx.Err() == nil {
			there = append(there, r)
		}
	}
	slices.SortFunc(there, func(a, b *Responder) int { return cmp.Compare(a.name, b.name) })
	return there
}

// sweep drops the responders that have left and do not run. The caller holds mu.
func (b *Bus) sweep() {
	b.responders = slices.DeleteFunc(b.responders, func(r *Responder) bool { return r.ctx.Err() != nil && r.running == 0 })
	b.changed.Broadcast()
}

// enlist returns all who answer q and counts them as running, or an error and
// nobody where one of expected is absent.
func (b *Bus) enlist(q question, expected []string) ([]*Responder, *AskError) {
	b.mu.Lock()
	defer b.mu.Unlock()
	there := b.present(q)
	e := &AskError{Question: q.asked.String()}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(expected))) {
		if !slices.ContainsFunc(there, func(r *Responder) bool { return r.name == name }) {
			e.Errs = append(e.Errs, &AnswerError{name, ErrAbsent})
		}
	}
	switch {
	case b.closed:
		e.Errs = append(e.Errs, ErrClosed)
	case len(there)+len(e.Errs) == 0:
		e.Errs = append(e.Errs, ErrAbsent)
	}
	if len(e.Errs) > 0 {
		return nil, e
	}
	for _, r := range there {
		r.running++
	}
	return there, e
}

// Ask puts q to everyone who answers questions of type Q with an A, all at
// once, and returns their answers by name; the map is never nil. At least one
// responder must be there, and all that expected names; otherwise Ask fails at
// once, and nobody is asked. The answers go to the caller alone, and [Bus.Start]
// need not have been called.
//
//	verdicts, err := eventbus.Ask[Verdict](ctx, bus, candidate, "limits")
//
// Ask waits for everyone, also after one has failed, but never beyond the end of
// ctx. A responder that heeds no context goes on behind it, and [Bus.Close] waits
// for it. A responder may Ask in turn and Publish. All of them share the
// question: as with an event, nobody may write to the values that it points to.
//
// The error is an [*AskError]; [errors.Is] and [errors.As] also see each
// [*AnswerError] in it, and the responders' own errors. On a nil bus nobody is
// there to answer.
func Ask[A, Q any](ctx context.Context, b *Bus, q Q, expected ...string) (map[string]A, error) {
	if b == nil {
		b = New(nil)
	}
	got := map[string]A{}
	question := questionOf[Q, A]()
	if ctx.Err() != nil {
		return got, &AskError{question.asked.String(), []error{context.Cause(ctx)}}
	}
	there, e := b.enlist(question, expected)
	replies := make([]<-chan reply[A], len(there))
	for i, r := range there {
		replies[i] = call[A](ctx, r, q)
	}
	for i, r := range there {
		if rep := <-replies[i]; rep.failed != nil {
			e.Errs = append(e.Errs, rep.failed)
		} else {
			got[r.name] = rep.answer
		}
	}
	if len(e.Errs) > 0 {
		return got, e
	}
	return got, nil
}

// reply is the outcome of one call.
type reply[A any] struct {
	answer A
	failed *AnswerError // nil: it answered
}

// call asks one responder. The first reply counts: its answer, or the news that
// nobody waits for it any more.
func call[A, Q any](asker context.Context, r *Responder, q Q) <-chan reply[A] {
	replies := make(chan reply[A], 2)
	ctx, cancel := context.WithCancelCause(asker)
	left := context.AfterFunc(r.ctx, func() { cancel(context.Cause(r.ctx)) })
	ended := context.AfterFunc(ctx, func() { replies <- reply[A]{failed: r.unheard(ctx)} })
	go func() {
		rep := reply[A]{failed: r.failure(ErrMissing, errors.New("the responder ended its goroutine"))}
		defer func() {
			if p := recover(); p != nil {
				r.bus.panicked("responder", r.name, p)
				rep.failed = r.failure(ErrPanicked, asError(p))
			}
			if rep.failed != nil && ctx.Err() != nil { // so that it does not depend on who is first
				rep.failed = r.unheard(ctx)
			}
			r.returned()
			replies <- rep
			left()
			ended()
			cancel(nil)
		}()
		answer, err := r.fn.(func(context.Context, Q) (A, error))(ctx, q)
		rep = reply[A]{answer: answer}
		if err != nil {
			rep.failed = r.failure(ErrRejected, err)
		}
	}()
	return replies
}

// unheard is the failure of a responder when the context of its call has ended.
func (r *Responder) unheard(ctx context.Context) *AnswerError {
	if context.Cause(r.ctx) == ErrAbsent {
		return &AnswerError{r.name, ErrAbsent}
	}
	return r.failure(ErrMissing, context.Cause(ctx))
}

func (r *Responder) failure(reason, err error) *AnswerError {
	return &AnswerError{r.name, fmt.Errorf("%w: %w", reason, err)}
}

// returned ends a call that enlist counted.
func (r *Responder) returned() {
	r.bus.mu.Lock()
	defer r.bus.mu.Unlock()
	r.running--
	r.bus.sweep()
}

// asError returns the value of a panic as an error.
func asError(p any) error {
	if err, ok := p.(error); ok {
		return err
	}
	return errors.New(fmt.Sprint(p))
}

// AnswerError is the failure of one responder.
type AnswerError struct {
	Responder string
	// Err wraps ErrAbsent, ErrMissing, ErrRejected or ErrPanicked, and the error that the
	// responder returned or panicked with, or why nobody waited any longer: ErrClosed or
	// the cause of the context's end.
	Err error
}

func (e *AnswerError) Error() string { return e.Responder + ": " + e.Err.Error() }
func (e *AnswerError) Unwrap() error { return e.Err }

// AskError says that a question did not get all its answers.
type AskError struct {
	Question string  // type of the question
	Errs     []error // each an [*AnswerError], by the names of the responders; last why nobody was asked
}

func (e *AskError) Error() string {
	var why []string
	for _, err := range e.Errs {
		why = append(why, err.Error())
	}
	return fmt.Sprintf("eventbus: ask %s: %s", e.Question, strings.Join(why, "; "))
}

func (e *AskError) Unwrap() []error { return e.Errs }
