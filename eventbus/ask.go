package eventbus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
)

// AskOptions says whose answers [Ask] needs. The zero value needs one from
// every responder there is, and at least one.
type AskOptions struct {
	// From names responders that are expected. One that is not there counts as
	// one that failed, at once, with ErrAbsent. Responders that it does not
	// name are asked as well.
	From []string
	// Quorum is how many answers are enough; Ask does not wait for the others.
	// Below 1, all responders must answer, and all that From names must be there.
	Quorum int
}

// Answers are what came of an [Ask].
type Answers[A any] struct {
	Got    map[string]A   // by responder; never nil
	Failed []*AnswerError // by responder, in order of their names
}

// AnswerError is the failure of one responder.
type AnswerError struct {
	Responder string
	Reason    error // ErrAbsent, ErrMissing, ErrRejected or ErrPanicked
	// Err is what the responder returned, a *PanicError, or why nobody waited
	// any longer: ErrClosed or the cause of the context's end. Nil where Reason
	// says it all.
	Err error
}

func (e *AnswerError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("%s: %v", e.Responder, e.Reason)
	}
	return fmt.Sprintf("%s: %v: %v", e.Responder, e.Reason, e.Err)
}

// Unwrap returns Reason and Err.
func (e *AnswerError) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Reason}
	}
	return []error{e.Reason, e.Err}
}

// PanicError is a panic that a responder's function ended with. Its text has no
// stack: print that where it does not hide the rest.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprint(e.Value) }

// Unwrap returns Value where it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// AskError says that a question did not get the answers it needs.
type AskError struct {
	Question string // type of the question
	Got      int    // answers that came
	Need     int    // answers that were needed
	Failed   []*AnswerError
	// Err is why nobody answers at all, or why Ask did not wait any longer:
	// ErrAbsent, ErrClosed, or the cause of the context's end. Nil where Failed
	// says it all.
	Err error
}

func (e *AskError) Error() string {
	var sb strings.Builder
	fmt.Fprintf(&sb, "eventbus: ask %s: %d of %d answers", e.Question, e.Got, e.Need)
	sep := ": "
	for _, f := range e.Failed {
		sb.WriteString(sep + f.Error())
		sep = "; "
	}
	if e.Err != nil {
		fmt.Fprintf(&sb, "%s%v", sep, e.Err)
	}
	return sb.String()
}

// Unwrap returns Failed and Err.
func (e *AskError) Unwrap() []error {
	var errs []error
	for _, f := range e.Failed {
		errs = append(errs, f)
	}
	if e.Err != nil {
		errs = append(errs, e.Err)
	}
	return errs
}

// Ask puts q to everyone who answers questions of type Q with an A, all at
// once, and returns their answers. Nil options need one from each. The answers
// go to the caller alone: nothing is published, and [Bus.Start] need not have
// been called.
//
//	answers, err := eventbus.Ask[Verdict](ctx, bus, candidate, nil)
//
// Without a quorum Ask waits for everyone, also after one has failed: then
// Failed is complete. With one it returns as soon as that many have answered, or
// no longer can. In both cases it returns at once, and nobody is asked, where
// too few responders are there; and it never waits beyond the end of ctx.
//
// The error is an [*AskError]; [errors.Is] and [errors.As] also see each
// [*AnswerError] in it, and the responders' own errors. Answers are never nil:
// with an error too they are what came in time. Failures that leave a quorum are
// no error; they stand in Failed.
//
// When Ask returns, the context of those who still work on an answer has ended.
// One that heeds no context goes on behind it, is counted in [ResponderStats]
// as Running, and [Bus.Close] waits for it. A responder may Ask in turn and
// Publish. The question is shared by all of them: like an event, what it points
// to must not be written to.
//
// On a nil bus nobody is there to answer.
func Ask[A, Q any](ctx context.Context, b *Bus, q Q, opts *AskOptions) (*Answers[A], error) {
	var o AskOptions
	if opts != nil {
		o = *opts
	}
	if b == nil {
		b = New(nil)
	}
	r := &round[A]{bus: b, quorum: max(0, o.Quorum), got: map[string]A{}, question: questionOf[Q, A]()}
	if ctx.Err() != nil {
		r.need = max(1, r.quorum, len(o.From))
		return r.result(context.Cause(ctx))
	}
	there, absent, err := b.desk.enlist(r.question, o.From, r.quorum)
	for _, name := range absent {
		r.failed = append(r.failed, &AnswerError{Responder: name, Reason: ErrAbsent})
	}
	r.need = r.quorum
	if r.quorum == 0 {
		r.need = max(1, len(there)+len(absent))
	}
	if err != nil {
		return r.result(err)
	}
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	defer r.cancel(context.Canceled)
	r.replies = make(chan reply[A], 2*len(there)) // each may send two, see call
	for _, responder := range there {
		go call(r, responder, q)
	}
	return r.result(r.collect(there))
}

// round is one question on its way.
type round[A any] struct {
	bus      *Bus
	question question
	quorum   int // 0: everyone
	need     int
	ctx      context.Context
	cancel   context.CancelCauseFunc
	replies  chan reply[A]
	got      map[string]A
	failed   []*AnswerError
}

// reply is what came of one responder; failed is nil where it answered.
type reply[A any] struct {
	responder *Responder
	answer    A
	failed    *AnswerError
}

// collect takes replies until the outcome is certain, and returns the cause of
// the context's end where that came first.
func (r *round[A]) collect(there []*Responder) error {
	waiting := map[*Responder]bool{}
	for _, responder := range there {
		waiting[responder] = true
	}
	for r.undecided(len(waiting)) {
		select {
		case rep := <-r.replies:
			r.take(rep, waiting)
			continue
		case <-r.ctx.Done():
		case <-r.bus.desk.closing:
		}
		return r.giveUp(there, waiting)
	}
	return nil
}

// giveUp fails all who have not replied by the end of the context, the cause of
// which it returns, or of the bus.
func (r *round[A]) giveUp(there []*Responder, waiting map[*Responder]bool) error {
	for len(r.replies) > 0 { // came at the same moment
		r.take(<-r.replies, waiting)
	}
	if !r.undecided(len(waiting)) {
		return nil
	}
	cause := context.Cause(r.ctx)
	if cause == nil {
		r.cancel(ErrClosed) // what the responders hear, too
	}
	for _, responder := range there {
		if waiting[responder] {
			r.failed = append(r.failed, unheard(responder, cause))
		}
	}
	return cause
}

// unheard returns the failure of a responder that nobody waits for any longer,
// as the asker's context ended for that cause, or, without one, the bus closed.
func unheard(responder *Responder, cause error) *AnswerError {
	failed := &AnswerError{Responder: responder.name, Reason: ErrMissing, Err: cause}
	switch {
	case cause != nil:
	case errors.Is(context.Cause(responder.ctx), ErrAbsent): // had left before
		failed.Reason = ErrAbsent
	default:
		failed.Err = ErrClosed
	}
	return failed
}

func (r *round[A]) undecided(waiting int) bool {
	if r.quorum == 0 {
		return waiting > 0
	}
	return len(r.got) < r.quorum && len(r.got)+waiting >= r.quorum
}

// take files the first reply of a responder; others are of no use any more.
func (r *round[A]) take(rep reply[A], waiting map[*Responder]bool) {
	if !waiting[rep.responder] {
		return
	}
	delete(waiting, rep.responder)
	if rep.failed != nil {
		r.failed = append(r.failed, rep.failed)
		return
	}
	r.got[rep.responder.name] = rep.answer
}

func (r *round[A]) result(err error) (*Answers[A], error) {
	slices.SortFunc(r.failed, func(a, b *AnswerError) int { return cmp.Compare(a.Responder, b.Responder) })
	answers := &Answers[A]{Got: r.got, Failed: r.failed}
	if err == nil && len(r.got) >= r.need {
		return answers, nil
	}
	if err == ErrAbsent && len(r.failed) > 0 {
		err = nil // Failed says who
	}
	return answers, &AskError{
		Question: r.question.asked.String(),
		Got:      len(r.got),
		Need:     r.need,
		Failed:   r.failed,
		Err:      err,
	}
}

// call has one responder answer. Where the responder leaves meanwhile, a
// failure goes to the asker at once, and a second reply follows in its own time.
func call[A, Q any](r *round[A], responder *Responder, q Q) {
	ctx, cancel := context.WithCancelCause(r.ctx)
	defer cancel(context.Canceled)
	stop := context.AfterFunc(responder.ctx, func() {
		cause := context.Cause(responder.ctx)
		cancel(cause)                    // before the reply, after which Ask may end the context for a reason of its own
		if errors.Is(cause, ErrAbsent) { // the asker sees for itself that the bus closes
			r.replies <- reply[A]{responder: responder, failed: &AnswerError{Responder: responder.name, Reason: ErrAbsent}}
		}
	})
	defer stop()
	rep := reply[A]{responder: responder}
	defer func() {
		if p := recover(); p != nil {
			rep.failed = &AnswerError{Responder: responder.name, Reason: ErrPanicked, Err: &PanicError{Value: p, Stack: debug.Stack()}}
		}
		var reason error
		if rep.failed != nil {
			reason = rep.failed.Reason
		}
		left := responder.ctx.Err() != nil
		if left || ctx.Err() != nil {
			r.tellUnheard(rep.failed)
		}
		r.bus.desk.end(responder, reason)
		if rep.failed == nil || !left && !echoes(ctx, rep.failed) {
			r.replies <- rep
		}
	}()
	// Until fn has returned, this is what stands: it may end its goroutine.
	rep.failed = &AnswerError{Responder: responder.name, Reason: ErrMissing, Err: errGoexit}
	answer, err := responder.fn.(func(context.Context, Q) (A, error))(ctx, q)
	rep.answer, rep.failed = answer, nil
	if err != nil {
		rep.failed = &AnswerError{Responder: responder.name, Reason: ErrRejected, Err: err}
	}
}

var errGoexit = errors.New("the responder ended its goroutine")

// echoes reports whether a responder says no more than that the asker's context
// ended. That is no reply, and neither is a failure of one that has left or whose
// bus has closed: the asker sees the same end, or is told of it, and what it says
// of those who are silent must not depend on who was first.
func echoes(ctx context.Context, failed *AnswerError) bool {
	if failed.Reason != ErrRejected || ctx.Err() == nil {
		return false
	}
	return errors.Is(failed.Err, ctx.Err()) || errors.Is(failed.Err, context.Cause(ctx))
}

// tellUnheard logs a panic that came too late for the asker to hear of it.
func (r *round[A]) tellUnheard(failed *AnswerError) {
	if failed == nil || failed.Reason != ErrPanicked {
		return
	}
	p := failed.Err.(*PanicError)
	r.bus.log.Error("eventbus: responder panicked", "responder", failed.Responder, "question", r.question.asked.String(),
		"panic", p.Error(), "stack", string(p.Stack))
}
