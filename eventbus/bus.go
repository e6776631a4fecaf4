package eventbus

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
)

// Options of a [Bus]. The zero value is the recommended one.
type Options struct {
	// Logger receives one error for each handler or key function that panicked.
	// Nil is slog.Default().
	Logger *slog.Logger
	// History is how many events of each type the bus keeps for subscribers that
	// come after Start and ask for them: see [Policy.From]. Below 1 counts as 1,
	// the last value of each type; [Unlimited] keeps all of them. It costs the
	// memory of these events and a pointer for each, published or read by nobody
	// else as they may be; what an event points to stays in memory with it.
	History int
}

// Bus carries events from publishers to subscribers. Make one with [New]; all
// its methods may be called from several goroutines.
type Bus struct {
	log  *slog.Logger
	desk desk // who answers questions

	mu        sync.Mutex
	slabs     map[reflect.Type]resetter // *slab[E] by E
	histories map[reflect.Type]*history // by the dynamic type of events
	keep      int                       // limit of each history
	lastSlab  resetter                  // that of the last event
	head      *chunk                    // the oldest chunk that somebody has yet to read
	tail      *chunk                    // the chunk that is written to
	count     uint64                    // events in the log, freed ones included
	laggard   *subscriber               // who was last when reclaim looked
	spare     sync.Pool                 // of *chunk
	sleepers  *subscriber               // linked through subscriber.nextSleeper
	subs      []*subscriber
	bounded   int // how many of subs have a bounded policy
	started   bool
	closed    bool
	discarded uint64
	sweepDone chan struct{}

	newChunk chan struct{} // of size 1: tells sweep that a chunk is full
	closing  chan struct{}

	// published is how many events subscribers may read without mu: count, less
	// the last few, see reveal. It is written under mu and read by all
	// subscribers; the padding keeps what publishers write for themselves off
	// their cache line.
	_         [64]byte
	published atomic.Uint64
	_         [64]byte
}

// New returns a bus on which nothing is delivered before [Bus.Start]. Nil
// options are the zero Options.
func New(opts *Options) *Bus {
	first := &chunk{}
	b := &Bus{
		log:       slog.Default(),
		slabs:     map[reflect.Type]resetter{},
		histories: map[reflect.Type]*history{},
		keep:      1,
		head:      first,
		tail:      first,
		sweepDone: make(chan struct{}),
		newChunk:  make(chan struct{}, 1),
		closing:   make(chan struct{}),
		desk: desk{
			present: map[question]map[string]*Responder{},
			busy:    map[*Responder]bool{},
			closing: make(chan struct{}),
			done:    make(chan struct{}),
		},
	}
	if opts == nil {
		return b
	}
	if opts.Logger != nil {
		b.log = opts.Logger
	}
	b.keep = max(1, opts.History)
	if opts.History == Unlimited {
		b.keep = Unlimited
	}
	return b
}

// Publish adds e to the bus. It never waits for a subscriber. The topic is E,
// or the dynamic type of e where E is an interface. After [Bus.Close] it does
// nothing but count ([Stats].Discarded). On a nil bus it does nothing, so that a
// component's bus may be optional. It panics when e is a nil interface.
func Publish[E any](b *Bus, e E) {
	if b == nil {
		return
	}
	if isInterface[E]() {
		publishDynamic(b, e)
		return
	}
	b.mu.Lock()
	room := b.room()
	if room == 0 {
		b.mu.Unlock()
		return
	}
	s, ok := b.lastSlab.(*slab[E]) // events of a type come in bursts
	if !ok {
		s = slabOf[E](b)
		b.lastSlab = s
	}
	it := s.put(e, b.tail, room)
	s.history.add(it, b.count+1)
	b.append(it)
}

func slabOf[E any](b *Bus) *slab[E] {
	typ := reflect.TypeFor[E]()
	s, ok := b.slabs[typ].(*slab[E])
	if !ok {
		s = &slab[E]{history: b.historyOf(typ)}
		b.slabs[typ] = s
	}
	return s
}

func publishDynamic(b *Bus, e any) {
	if e == nil {
		panic("eventbus: Publish of a nil event")
	}
	b.mu.Lock()
	if b.room() == 0 {
		b.mu.Unlock()
		return
	}
	it := &dynamic{event: e}
	b.historyOf(reflect.TypeOf(e)).add(it, b.count+1)
	b.append(it)
}

// room returns how many places the tail has left, after adding a chunk where
// there were none, or 0 when the bus is closed. The caller holds mu.
func (b *Bus) room() int {
	if b.closed {
		b.discarded++
		return 0
	}
	if used := b.count - b.tail.base; used < chunkSize {
		return chunkSize - int(used)
	}
	b.extend()
	return chunkSize
}

// extend adds a chunk to the log. The caller holds mu.
func (b *Bus) extend() {
	b.reclaim()
	next, _ := b.spare.Get().(*chunk)
	if next == nil {
		next = &chunk{}
	}
	next.base = b.tail.base + chunkSize
	b.tail.next = next
	b.tail = next
	for _, s := range b.slabs {
		s.reset()
	}
	if b.bounded == 0 {
		return // nothing to sweep
	}
	select {
	case b.newChunk <- struct{}{}:
	default: // sweep has yet to act on the one before
	}
}

// stride is how many events of a burst subscribers come to see at once. Each
// time that published changes costs a publisher about as much as the lock does,
// and the subscribers that read it the same again.
const stride = 16

// append writes it to the log, releases mu and wakes who sleeps. Whoever is awake
// looks under mu before it sleeps, so the end of a burst need not be revealed. A
// bounded subscription must see it all the same: what waits behind decides what
// it delivers next.
func (b *Bus) append(it item) {
	b.tail.items[b.count-b.tail.base] = it
	b.count++
	if b.sleepers == nil && b.bounded == 0 && b.count%stride != 0 {
		b.mu.Unlock()
		return
	}
	b.reveal()
	sleepers := b.takeSleepers()
	b.mu.Unlock()
	wake(sleepers)
}

// reveal lets subscribers read all events there are. The caller holds mu.
func (b *Bus) reveal() { b.published.Store(b.count) }

// total returns how many events there ever were, revealed or not.
func (b *Bus) total() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.count
}

func (b *Bus) takeSleepers() *subscriber {
	s := b.sleepers
	b.sleepers = nil
	return s
}

// wake wakes a list of sleepers. The channel of each has room for the one
// value that it gets for each time it was put on the list.
func wake(s *subscriber) {
	for s != nil {
		next := s.nextSleeper // s may go back to sleep, on another list, at once
		s.nextSleeper = nil
		s.wake <- struct{}{}
		s = next
	}
}

// Start begins delivery: first what was published so far, in order, to all
// subscribers there are. Further calls, and calls after Close, do nothing.
func (b *Bus) Start() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.started || b.closed {
		return
	}
	b.started = true
	b.reclaim()
	for _, s := range b.subs {
		go s.run()
	}
	go b.sweep()
}

// sweep moves bounded subscribers along each time a chunk is full, so that one
// with a slow handler does not keep the log in memory. Publishers leave that
// to this goroutine because it may call key functions, which are user code.
func (b *Bus) sweep() {
	defer close(b.sweepDone)
	for {
		select {
		case <-b.closing:
			return
		case <-b.newChunk:
		}
		b.mu.Lock()
		subs := b.subs // never written to in place
		b.mu.Unlock()
		for _, s := range subs {
			if s.pull != nil {
				s.fill()
			}
		}
		b.mu.Lock()
		b.reclaim()
		b.mu.Unlock()
	}
}

// Close refuses further events, delivers all that were published before, and
// returns when all handlers have returned. Questions, those that wait and
// those to come, fail with [ErrClosed] at once; Close waits for the responders
// that were asked. When ctx ends first, it cancels the context of the handlers
// that still run, delivers nothing more, and returns a [*CloseError] that names
// the subscribers and responders that did not finish; their goroutines end when
// their functions return. A bus that was never started delivers nothing. Close
// may be called again, to wait for those stragglers; a handler or a responder
// must not call it, for it would wait for itself.
func (b *Bus) Close(ctx context.Context) error {
	b.mu.Lock()
	subs, started := b.subs, b.started
	if !b.closed {
		b.closed = true
		close(b.closing)
		b.head, b.laggard = nil, nil
	}
	sleepers := b.takeSleepers()
	b.mu.Unlock()
	wake(sleepers)
	b.desk.close()
	if !started {
		for _, s := range subs {
			s.finish()
		}
	}
	for _, s := range subs {
		if !ended(ctx, s.done) && !s.over() {
			return b.giveUp(ctx)
		}
	}
	if !ended(ctx, b.desk.done) {
		return b.giveUp(ctx)
	}
	if started {
		<-b.sweepDone // at once: nobody has a queue to fill any more
	}
	for _, s := range subs {
		if s.cutShort.Load() {
			return b.giveUp(ctx)
		}
	}
	return nil
}

// ended waits until done is closed or ctx ends; what is done counts as done
// even when ctx has ended as well.
func ended(ctx context.Context, done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-ctx.Done():
	}
	select {
	case <-done: // at the same moment, or before
		return true
	default:
		return false
	}
}

// giveUp stops all subscribers that still run and reports who did not finish.
func (b *Bus) giveUp(ctx context.Context) error {
	b.mu.Lock()
	subs := b.subs
	b.mu.Unlock()
	e := &CloseError{Err: context.Cause(ctx), Responders: b.desk.unfinished()}
	for _, s := range subs {
		if s.over() {
			if !s.cutShort.Load() {
				continue
			}
		} else {
			s.cutShort.Store(true)
			s.stop()
		}
		e.Unfinished = append(e.Unfinished, s.stats())
	}
	return e
}

// CloseError reports the subscribers that had not seen all events, or whose
// handler had not returned, and the responders that had not returned, when the
// context of [Bus.Close] ended.
type CloseError struct {
	Unfinished []SubscriberStats
	Responders []ResponderStats
	Err        error // why Close stopped waiting; nil when only an earlier Close did
}

func (e *CloseError) Error() string {
	var sb strings.Builder
	fmt.Fprintf(&sb, "eventbus: close: %d subscribers did not finish", len(e.Unfinished)) // 0: responders did not
	sep := ": "
	for _, s := range e.Unfinished {
		fmt.Fprintf(&sb, "%s%s (%d pending)", sep, s.Name, s.Pending)
		sep = ", "
	}
	for _, r := range e.Responders {
		fmt.Fprintf(&sb, "; responder %s to %s still runs", r.Name, r.Question)
	}
	if e.Err != nil {
		fmt.Fprintf(&sb, ": %v", e.Err)
	}
	return sb.String()
}

// Unwrap returns Err.
func (e *CloseError) Unwrap() error { return e.Err }

// Stats are the figures of a [Bus] at one moment.
type Stats struct {
	Published   uint64            // events accepted so far
	Discarded   uint64            // events refused because the bus was closed
	Kept        uint64            // events in memory for late subscribers, see Options.History
	Subscribers []SubscriberStats // in the order in which they subscribed
	Responders  []ResponderStats  // by types and name
}

// Stats returns the figures of the bus and of all its subscribers.
func (b *Bus) Stats() Stats {
	b.mu.Lock()
	subs := b.subs
	st := Stats{Published: b.count, Discarded: b.discarded, Kept: b.kept()}
	b.mu.Unlock()
	st.Subscribers = make([]SubscriberStats, len(subs))
	for i, s := range subs {
		st.Subscribers[i] = s.stats()
	}
	st.Responders = b.desk.stats()
	return st
}
