package eventbus

import (
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
)

// Delivery is an event on its way to one subscriber.
type Delivery[E any] struct {
	Event E
	// Seq is the place of the event in the order of the bus, from 1.
	Seq uint64
	// Missed is the number of events that were dropped ([Lossy]) or replaced
	// by this one ([Latest]). For [Lossless] it is 0, unless the subscription
	// asked for [Everything] and the history of the bus had let go of some: then
	// its first delivery says how many.
	Missed uint64
}

// Subscribe has fn called for each event of type E, or, where E is an
// interface, for each event that implements E: any receives everything. Calls
// are made one after the other, on a goroutine of the subscription, from
// [Bus.Start] on. The context ends when the subscription is closed or
// [Bus.Close] gives up waiting.
//
// A panic of fn is logged and counted, and delivery goes on with the next
// event: what observes must not take down what works.
//
// On a closed bus the subscription is over from the beginning. Subscribe
// panics where the policy is [Latest] with a key of another event type.
func Subscribe[E any](b *Bus, policy Policy, fn func(ctx context.Context, d Delivery[E])) *Subscription {
	if fn == nil {
		panic("eventbus: Subscribe without a function")
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &subscriber{
		bus:    b,
		event:  reflect.TypeFor[E]().String(),
		policy: policy,
		cancel: cancel,
		wake:   make(chan struct{}, 1),
		done:   make(chan struct{}),
	}
	s.name = s.event + " " + callSite()
	bind(ctx, s, fn)
	b.add(s, reflect.TypeFor[E]())
	return &Subscription{s}
}

// callSite returns the file, with its folder, and line of the caller of the
// exported function that calls it.
func callSite() string {
	_, file, line, ok := runtime.Caller(2)
	if !ok {
		return "?"
	}
	dir, base := filepath.Split(file)
	return fmt.Sprintf("%s/%s:%d", filepath.Base(dir), base, line)
}

// Subscription is the subscriber's hold on what [Subscribe] began.
type Subscription struct{ s *subscriber }

// Close ends the subscription: its context is cancelled and no further call
// begins. It does not wait for a call that runs, so a handler may use it; wait
// on Done for that. What waited is not delivered.
func (s *Subscription) Close() { s.s.bus.unsubscribe(s.s) }

// Done is closed when the subscription has ended and its handler has returned.
func (s *Subscription) Done() <-chan struct{} { return s.s.done }

// Stats returns the figures of this subscription.
func (s *Subscription) Stats() SubscriberStats { return s.s.stats() }

// SubscriberStats are the figures of one subscription at one moment.
type SubscriberStats struct {
	Name      string // event type, and file and line of the call to Subscribe
	Event     string // event type
	Policy    string // as Policy.String
	Delivered uint64 // calls of the handler that have ended
	Missed    uint64 // events dropped or replaced, as the policy says, or gone from the history
	Panics    uint64 // panics of the handler or of the key function
	// Pending is the number of events that wait, with the one that the handler
	// is at. Those of the log that the
	// subscription has not looked at yet are counted whatever their type.
	Pending uint64
	// Watermark is the highest Pending there was, measured before each batch
	// that the subscription takes from the log, where the newest few events may
	// be left out, and each time Stats is called.
	Watermark uint64
}

// subscriber is the part of a subscription that does not depend on its type.
type subscriber struct {
	bus         *Bus
	name, event string
	policy      Policy
	cancel      context.CancelFunc
	wake        chan struct{}
	done        chan struct{}
	nextSleeper *subscriber // under Bus.mu while on its list

	each func(it item, seq uint64) // Lossless: hand it to the handler
	some func(limit uint64)        // Lossless: the same for those of the log, up to one that panics

	mu     sync.Mutex                // guards cur, past and the queue of bounded policies
	pull   func(it item, seq uint64) // bounded: put it in the queue
	one    func() bool               // bounded: hand the first of the queue to the handler
	queued func() int

	// Of Lossless, only the goroutine of run looks at these.
	cur    cursor
	past   []kept // events from before the cursor, to be delivered first
	gone   uint64 // events that it asked for and does not get
	passed uint64 // events of other types since pos

	start   uint64 // of Lossless: pos at the beginning
	skipped uint64 // of Lossless: events of other types up to pos; under mu

	stopped   atomic.Bool
	cutShort  atomic.Bool // Bus.Close gave up on it
	end       sync.Once
	behind    atomic.Int64  // as len(past)
	waiting   atomic.Uint64 // bounded: events in the queue; written under mu
	busy      atomic.Uint64 // bounded: 1 while the handler is at one of them
	pos       atomic.Uint64
	delivered atomic.Uint64
	missed    atomic.Uint64
	panics    atomic.Uint64
	watermark atomic.Uint64
}

// add registers s, with its cursor at the first event before Start and behind
// the last one after it. What it wants of the past is a list of its own then.
func (b *Bus) add(s *subscriber, typ reflect.Type) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		s.finish()
		return
	}
	b.reveal()
	s.cur = cursor{chunk: b.head}
	if b.started {
		s.cur = cursor{chunk: b.tail, pos: b.count}
		s.past, s.gone = b.backlog(typ, s.policy.begin)
		s.behind.Store(int64(len(s.past)))
		s.missed.Store(s.gone)
	}
	s.start = s.cur.pos
	s.pos.Store(s.start)
	b.subs = append(slices.Clip(b.subs), s) // a copy: others read the old one
	if s.pull != nil {
		b.bounded++
	}
	if b.started {
		go s.run()
	}
}

// unsubscribe ends s. One with a goroutine stays on the bus until that has
// ended, so that Bus.Close waits for it.
func (b *Bus) unsubscribe(s *subscriber) {
	b.mu.Lock()
	idle := !b.started
	if idle {
		b.drop(s)
	}
	b.mu.Unlock()
	s.stop()
	if idle {
		s.finish()
	}
}

// drop takes s off the bus, except after Close, when its last figures remain to
// be seen. The caller holds mu.
func (b *Bus) drop(s *subscriber) {
	if i := slices.Index(b.subs, s); i >= 0 && !b.closed {
		b.subs = slices.Concat(b.subs[:i], b.subs[i+1:])
		if s.pull != nil {
			b.bounded--
		}
		b.laggard = nil
		b.reclaim()
	}
}

// finish releases what s holds and tells those who wait for its end.
func (s *subscriber) finish() {
	s.end.Do(func() {
		s.cancel()
		s.letGo()
		close(s.done)
	})
}

// over reports, on a closed bus, whether s has ended. One that has delivered
// everything ends by itself, with no code of others in between, and is waited for.
func (s *subscriber) over() bool {
	select {
	case <-s.done:
		return true
	default:
	}
	if s.stats().Pending > 0 {
		return false
	}
	<-s.done
	return true
}

// letGo takes the cursor off the log, so that nobody fills the queue any more.
func (s *subscriber) letGo() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cur.chunk, s.past = nil, nil
}

// stop has the goroutine of s end after the call that it is in.
func (s *subscriber) stop() {
	s.stopped.Store(true)
	s.cancel()
	s.bus.mu.Lock()
	sleepers := s.bus.takeSleepers() // all: who has nothing to do sleeps on
	s.bus.mu.Unlock()
	wake(sleepers)
}

// run delivers until the subscription is stopped or the bus is closed and
// drained.
func (s *subscriber) run() {
	defer func() {
		s.letGo() // before drop, which may give the chunk away
		s.bus.mu.Lock()
		s.bus.drop(s)
		s.bus.mu.Unlock()
		s.finish()
	}()
	if s.pull == nil {
		sortKept(s.past)
	}
	for !s.stopped.Load() {
		if s.pull != nil {
			s.fill()
			for s.one() && !s.stopped.Load() {
				s.fill()
			}
		} else {
			s.batch()
		}
		if !s.sleep() {
			return
		}
	}
}

// batch hands the events that are in the log to the handler of a Lossless
// subscription, one by one.
func (s *subscriber) batch() {
	limit := s.bus.published.Load()
	s.mark(limit - s.cur.pos + uint64(len(s.past)))
	for len(s.past) > 0 && !s.stopped.Load() {
		k := s.past[0]
		s.past[0], s.past = kept{}, s.past[1:]
		s.each(k.it, k.seq)
		s.behind.Add(-1)
	}
	for s.cur.pos < limit && !s.stopped.Load() {
		s.some(limit)
	}
}

// pass moves pos beyond events of other types. A change of pos on its own is a
// delivery: one atomic operation for each is all that the figures cost.
func (s *subscriber) pass(pos uint64) {
	s.mu.Lock()
	s.skipped += s.passed
	s.passed = 0
	s.pos.Store(pos)
	s.mu.Unlock()
}

// ran, deferred, ends a run of deliveries, where the handler panicked too.
func (s *subscriber) ran() {
	if r := recover(); r != nil {
		s.panicked("handler", s.cur.pos, r)
		s.pos.Store(s.cur.pos)
	}
	if s.passed != 0 {
		s.pass(s.cur.pos)
	}
}

// fill moves what is in the log to the queue of a bounded subscription.
func (s *subscriber) fill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cur.chunk == nil { // ended
		return
	}
	sortKept(s.past)
	for _, k := range s.past {
		s.pull(k.it, k.seq)
	}
	behind := s.past != nil
	s.past = nil
	limit := s.bus.published.Load()
	if s.cur.pos == limit && !behind {
		return
	}
	for s.cur.pos < limit {
		it := s.cur.take()
		s.pull(it, s.cur.pos)
	}
	s.waiting.Store(uint64(s.queued())) // before pos: sleep must not miss it
	s.behind.Store(0)
	s.pos.Store(limit)
	s.mark(s.waiting.Load())
}

// patience is how often a subscriber that has nothing to do looks again, after it
// let others run, before it sleeps. To be woken for each event of a burst costs
// publishers and subscribers far more than the work on the event.
const patience = 8

// sleep waits for events. It returns false when there will be none.
func (s *subscriber) sleep() bool {
	b := s.bus
	for range patience {
		if b.published.Load() != s.pos.Load() {
			return true
		}
		runtime.Gosched()
	}
	b.mu.Lock()
	b.reveal()
	if s.stopped.Load() || b.count != s.pos.Load() || s.waiting.Load() > 0 {
		b.mu.Unlock()
		return true
	}
	if b.closed {
		b.mu.Unlock()
		return false
	}
	b.reclaim()
	s.nextSleeper = b.sleepers
	b.sleepers = s
	b.mu.Unlock()
	<-s.wake
	return true
}

func (s *subscriber) mark(pending uint64) {
	for {
		old := s.watermark.Load()
		if pending <= old || s.watermark.CompareAndSwap(old, pending) {
			return
		}
	}
}

// recovered, deferred, keeps a panic of user code from ending the process.
func (s *subscriber) recovered(what string, seq uint64) {
	if r := recover(); r != nil {
		s.panicked(what, seq, r)
	}
}

func (s *subscriber) panicked(what string, seq uint64, r any) {
	s.panics.Add(1)
	s.bus.log.Error("eventbus: "+what+" panicked", "subscriber", s.name, "seq", seq,
		"panic", fmt.Sprint(r), "stack", string(debug.Stack()))
}

func (s *subscriber) stats() SubscriberStats {
	// Not s.mu: a key function that hangs must not hide the figures. Read in this
	// order the difference cannot be negative.
	delivered := s.delivered.Load()
	if s.some != nil {
		s.mu.Lock() // there is no key function
		delivered += s.pos.Load() - s.start - s.skipped
		s.mu.Unlock()
	}
	pos, behind := s.pos.Load(), uint64(s.behind.Load())
	waiting := s.waiting.Load() // after behind: fill moves events from that to this
	pending := behind + waiting + s.busy.Load() + s.bus.total() - pos
	s.mark(pending)
	return SubscriberStats{
		Name:      s.name,
		Event:     s.event,
		Policy:    s.policy.String(),
		Delivered: delivered,
		Missed:    s.missed.Load(),
		Panics:    s.panics.Load(),
		Pending:   pending,
		Watermark: s.watermark.Load(),
	}
}
