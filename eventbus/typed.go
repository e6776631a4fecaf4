package eventbus

import (
	"context"
	"fmt"
	"reflect"
)

// typed is the part of a subscription that depends on the type of its events:
// it finds them among all others and hands them to the function.
type typed[E any] struct {
	s     *subscriber
	ctx   context.Context // of the subscription
	match func(item) (E, bool)
	fn    func(context.Context, Delivery[E])
	queue queue[E] // of a bounded policy
}

// bind has s deliver to fn as its policy says.
func bind[E any](ctx context.Context, s *subscriber, fn func(context.Context, Delivery[E])) {
	t := &typed[E]{s: s, ctx: ctx, match: as[E], fn: fn, queue: newQueue[E](s.policy)}
	if isInterface[E]() {
		t.match = asInterface[E]
	}
	if t.queue == nil {
		s.each, s.some = t.each, t.some
		return
	}
	s.pull, s.one, s.queued = t.pull, t.one, t.queue.size
}

// newQueue returns what the policy keeps waiting events in, nil for Lossless.
func newQueue[E any](p Policy) queue[E] {
	if p.latest != nil {
		f, ok := p.latest.(func() queue[E])
		if !ok {
			panic(fmt.Sprintf("eventbus: Subscribe to %v with a Latest policy for another type (%T)", reflect.TypeFor[E](), p.latest))
		}
		return f()
	}
	if p.lossy > 0 {
		return &lossyQueue[E]{limit: p.lossy}
	}
	return nil
}

// each hands one event to the function of a Lossless subscription.
func (t *typed[E]) each(it item, seq uint64) {
	if e, ok := t.match(it); ok {
		t.deliver(Delivery[E]{Event: e, Seq: seq})
		t.s.delivered.Add(1)
	}
}

// some does the same with those of the log below limit, up to one over which the
// function panics. It is the way of nearly all events, and without a deferred
// call for each.
func (t *typed[E]) some(limit uint64) {
	s, ctx, match, fn := t.s, t.ctx, t.match, t.fn
	defer s.ran()
	for s.cur.pos < limit && !s.stopped.Load() {
		e, ok := match(s.cur.take())
		if !ok {
			s.passed++
			continue
		}
		if s.passed != 0 {
			s.pass(s.cur.pos - 1)
		}
		fn(ctx, Delivery[E]{Event: e, Seq: s.cur.pos})
		s.pos.Store(s.cur.pos)
	}
}

// pull puts an event in the queue of a bounded subscription. The caller holds
// the lock of the subscription.
func (t *typed[E]) pull(it item, seq uint64) {
	if e, ok := t.match(it); ok {
		defer t.s.recovered("key function", seq)
		t.s.missed.Add(uint64(t.queue.add(Delivery[E]{Event: e, Seq: seq})))
	}
}

// one hands the first event of the queue to the function, and reports whether
// there was one.
func (t *typed[E]) one() bool {
	s := t.s
	s.mu.Lock()
	d, ok := t.queue.next()
	if ok {
		s.busy.Store(1)
	}
	s.waiting.Store(uint64(t.queue.size()))
	s.mu.Unlock()
	if ok {
		t.deliver(d)
		s.delivered.Add(1)
		s.busy.Store(0)
	}
	return ok
}

func (t *typed[E]) deliver(d Delivery[E]) {
	defer t.s.recovered("handler", d.Seq)
	if t.s.gone != 0 { // this is the first
		d.Missed += t.s.gone
		t.s.gone = 0
	}
	t.fn(t.ctx, d)
}
