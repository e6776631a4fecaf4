package eventbus

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"
)

// Why an answer, or a whole question, failed: use [errors.Is].
var (
	// ErrAbsent is for a responder that was not there, or left before it answered.
	ErrAbsent = errors.New("no such responder")
	// ErrMissing is for a responder that did not answer in time.
	ErrMissing = errors.New("no answer")
	// ErrRejected is for a responder that returned an error of its own.
	ErrRejected = errors.New("rejected")
	// ErrPanicked is for a responder that panicked: see [PanicError].
	ErrPanicked = errors.New("panicked")
	// ErrClosed says that the bus was closed.
	ErrClosed = errors.New("the bus is closed")
)

// question is what responders are found by: the types of what is asked and of
// what is answered.
type question struct{ asked, answered reflect.Type }

func questionOf[Q, A any]() question {
	return question{asked: reflect.TypeFor[Q](), answered: reflect.TypeFor[A]()}
}

// Responder is the hold on what [Answer] began. Its methods may be called from
// several goroutines.
type Responder struct {
	desk     *desk // nil on a nil bus
	name     string
	question question
	fn       any // func(context.Context, Q) (A, error)
	ctx      context.Context
	cancel   context.CancelCauseFunc

	// Under desk.mu.
	running                 int // calls that have not ended
	asked, answered, panics uint64
}

// Answer has fn called for each question of type Q to which an A is asked for,
// in a goroutine of its own for each: fn must be safe to be called several
// times at once. It works before [Bus.Start] as well as after it. The
// context is that of [Ask]; it ends when nobody waits for the answer any more.
// What an error of fn means is up to those who ask: they get it as an
// [*AnswerError].
//
// The name is unique among the responders to the same types; Answer panics
// where it is empty or taken, and where fn is nil. On a nil bus, and on a
// closed one, nobody asks.
func Answer[Q, A any](b *Bus, name string, fn func(ctx context.Context, q Q) (A, error)) *Responder {
	if fn == nil {
		panic("eventbus: Answer without a function")
	}
	if name == "" {
		panic("eventbus: Answer without a name")
	}
	r := &Responder{name: name, question: questionOf[Q, A](), fn: fn}
	r.ctx, r.cancel = context.WithCancelCause(context.Background())
	if b == nil {
		return r
	}
	r.desk = &b.desk
	r.desk.add(r)
	return r
}

// Close ends the responder: it is absent from now on, and questions that it
// has not answered yet fail for those who ask. It does not wait for calls that
// run, so a responder may close itself; [Bus.Close] does. Further calls do
// nothing, and the name may be used again.
func (r *Responder) Close() {
	if r.desk != nil {
		r.desk.remove(r)
	}
	r.cancel(ErrAbsent)
}

// Stats returns the figures of the responder.
func (r *Responder) Stats() ResponderStats {
	if r.desk == nil {
		return r.stats()
	}
	r.desk.mu.Lock()
	defer r.desk.mu.Unlock()
	return r.stats()
}

func (r *Responder) stats() ResponderStats {
	return ResponderStats{
		Name:     r.name,
		Question: r.question.asked.String(),
		Answer:   r.question.answered.String(),
		Asked:    r.asked,
		Answered: r.answered,
		Panics:   r.panics,
		Running:  r.running,
	}
}

// ResponderStats are the figures of one responder at one moment. Asked less
// Answered, Panics and Running is how often it returned an error.
type ResponderStats struct {
	Name     string // as given to Answer
	Question string // type of the question
	Answer   string // type of the answer
	Asked    uint64 // calls that began
	Answered uint64 // calls that returned without an error, in time or not
	Panics   uint64
	Running  int // calls that have not returned
}

// desk knows the responders of a bus.
type desk struct {
	mu      sync.Mutex
	present map[question]map[string]*Responder
	busy    map[*Responder]bool // those with calls that run; some have left
	closed  bool
	closing chan struct{} // closed when desk is and all responders know
	done    chan struct{} // closed when desk is and no call runs
}

func (d *desk) add(r *Responder) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		r.cancel(ErrClosed)
		return
	}
	byName := d.present[r.question]
	if byName == nil {
		byName = map[string]*Responder{}
		d.present[r.question] = byName
	}
	if byName[r.name] != nil {
		panic("eventbus: Answer by two responders named " + r.name + " to " + r.question.asked.String())
	}
	byName[r.name] = r
}

func (d *desk) remove(r *Responder) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if byName := d.present[r.question]; byName[r.name] == r {
		delete(byName, r.name)
		if len(byName) == 0 {
			delete(d.present, r.question)
		}
	}
}

// enlist finds all who answer q and the names of from who are not there. Where
// there are enough of them, and so no error, it has begun a call of each, which
// the caller ends.
// Both are in order; quorum 0 means that everyone must be there.
func (d *desk) enlist(q question, from []string, quorum int) (there []*Responder, absent []string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	byName := d.present[q]
	for _, name := range from {
		if byName[name] == nil && !slices.Contains(absent, name) {
			absent = append(absent, name)
		}
	}
	slices.Sort(absent)
	for _, r := range byName {
		there = append(there, r)
	}
	slices.SortFunc(there, func(a, b *Responder) int { return cmp.Compare(a.name, b.name) })
	switch {
	case d.closed:
		return there, absent, ErrClosed
	case len(there) == 0, quorum == 0 && len(absent) > 0, quorum > len(there):
		return there, absent, ErrAbsent
	}
	for _, r := range there {
		r.asked++
		r.running++
		d.busy[r] = true
	}
	return there, absent, nil
}

// end ends a call that enlist began; reason is nil where it answered.
func (d *desk) end(r *Responder, reason error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch reason {
	case nil:
		r.answered++
	case ErrPanicked:
		r.panics++
	}
	if r.running--; r.running == 0 {
		delete(d.busy, r)
	}
	if d.closed && len(d.busy) == 0 {
		close(d.done)
	}
}

// close has all questions fail, those that wait and those to come.
func (d *desk) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return
	}
	d.closed = true
	if len(d.busy) == 0 {
		close(d.done)
	}
	for r := range d.busy {
		r.cancel(ErrClosed)
	}
	for _, byName := range d.present {
		for _, r := range byName {
			r.cancel(ErrClosed)
		}
	}
	close(d.closing)
}

// unfinished returns the figures of the responders that are in a call.
func (d *desk) unfinished() []ResponderStats {
	d.mu.Lock()
	defer d.mu.Unlock()
	return figures(d.busy)
}

// stats returns the figures of all responders that are there or still run.
func (d *desk) stats() []ResponderStats {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := map[*Responder]bool{}
	for r := range d.busy {
		all[r] = true
	}
	for _, byName := range d.present {
		for _, r := range byName {
			all[r] = true
		}
	}
	return figures(all)
}

func figures(responders map[*Responder]bool) []ResponderStats {
	var out []ResponderStats
	for r := range responders {
		out = append(out, r.stats())
	}
	slices.SortFunc(out, func(a, b ResponderStats) int {
		return cmp.Or(cmp.Compare(a.Question, b.Question), cmp.Compare(a.Answer, b.Answer), cmp.Compare(a.Name, b.Name))
	})
	return out
}
