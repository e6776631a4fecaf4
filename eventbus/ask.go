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

// Reasons why one responder or a whole question failed: use [errors.Is].
var (
	// ErrAbsent is for a responder that was not there or left before it answered.
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

// question identifies responders by the types of the question and of the answer.
type question struct{ asked, answered reflect.Type }

func questionOf[Q, A any]() question {
	return question{asked: reflect.TypeFor[Q](), answered: reflect.TypeFor[A]()}
}

// Responder is the handle that [Answer] returns. Its methods may be called from several
// goroutines.
type Responder struct {
	bus      *Bus
	name     string
	question question
	fn       any             // func(context.Context, Q) (A, error)
	ctx      context.Context // ends when the responder is closed (ErrAbsent) or the bus is (ErrClosed)
	cancel   context.CancelCauseFunc
	running  int // calls that have not returned; under Bus.mu
}

// Answer registers fn for each question of type Q whose answer is an A. Each question
// calls fn in a new goroutine, so fn must be safe for concurrent calls. Answer works
// before [Bus.Start] and after it. The context of fn is the context of [Ask]; it also
// ends when the responder or the bus is closed. If fn returns an error, [Ask] reports
// it as an [*AnswerError].
//
// The name is unique among the responders to the same types. Answer panics if the name
// is empty or taken, or fn is nil. On a nil or closed bus, fn is never called.
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

// Close ends the responder. It is absent from now on, and questions that it has not
// answered fail for their askers. Close does not wait for running calls, but
// [Bus.Close] does; so a responder may close itself. Further calls do nothing, and the
// name may be used again.
func (r *Responder) Close() {
	r.bus.mu.Lock()
	defer r.bus.mu.Unlock()
	r.cancel(ErrAbsent)
	r.bus.sweep()
}

// present returns the responders to q, sorted by name. The caller holds mu.
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

// sweep drops the responders that have left and have no running call. The caller holds
// mu.
func (b *Bus) sweep() {
	b.responders = slices.DeleteFunc(b.responders, func(r *Responder) bool { return r.ctx.Err() != nil && r.running == 0 })
	b.changed.Broadcast()
}

// enlist returns the responders to q and counts one running call for each. It returns
// an error and counts none if q has no responder, one of expected is absent, or the bus
// is closed.
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

// Ask puts q to every responder that answers a Q with an A, all at once, and returns
// their answers by name; the map is never nil. At least one responder must be there,
// and every responder that expected names. Otherwise Ask fails at once and calls none.
// Only the caller gets the answers. Ask works before [Bus.Start], too.
//
//	verdicts, err := eventbus.Ask[Verdict](ctx, bus, candidate, "limits")
//
// Ask waits for all responders, even after one has failed, but never beyond the end of
// ctx. A responder that ignores its context runs on after Ask, and [Bus.Close] waits
// for it. A responder may itself call Ask and Publish. The responders share the
// question: do not write to the values that it points to.
//
// The error is an [*AskError]. [errors.Is] and [errors.As] also see each [*AnswerError]
// in it and the responders' own errors. A nil bus has no responders.
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
	failed *AnswerError // nil: the responder answered
}

// call asks one responder. The caller reads only the first reply: the answer or failure
// of the responder, or the end of the context.
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
			if rep.failed != nil && ctx.Err() != nil { // both replies must report the same failure, whichever is first
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

// unheard returns the failure of a responder whose call outlived its context.
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
	// Err wraps ErrAbsent, ErrMissing, ErrRejected or ErrPanicked. It also wraps the
	// error that the responder returned or panicked with, or the reason why Ask stopped
	// waiting: ErrClosed or the cause of the context's end.
	Err error
}

func (e *AnswerError) Error() string { return e.Responder + ": " + e.Err.Error() }
func (e *AnswerError) Unwrap() error { return e.Err }

// AskError says that a question did not get all its answers.
type AskError struct {
	Question string  // type of the question
	Errs     []error // each an [*AnswerError], by responder name; the last may say why no responder was asked
}

func (e *AskError) Error() string {
	var why []string
	for _, err := range e.Errs {
		why = append(why, err.Error())
	}
	return fmt.Sprintf("eventbus: ask %s: %s", e.Question, strings.Join(why, "; "))
}

func (e *AskError) Unwrap() []error { return e.Errs }
