package eventbus

import (
	"cmp"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
)

// Options of a [Bus]. The zero value is the recommended one.
type Options struct {
	// Logger receives one error for each handler or responder that panicked.
	// Nil is slog.Default().
	Logger *slog.Logger

	// MaxPending is the number of waiting events above which a subscriber counts as
	// hanging: it is closed, and the Logger receives an error. Zero is 100,000.
	MaxPending int
}

// Bus carries events from publishers to subscribers. Make one with [New]. Its methods
// may be called from several goroutines. A nil Bus is valid: like a closed one, it
// delivers nothing.
//
// The bus is a log of events, and each subscription is a position in it.
type Bus struct {
	logger *slog.Logger
	most   int // events that a subscriber may have before it

	mu         sync.Mutex
	changed    sync.Cond // on mu: signals each event and each end
	log        []any     // append only: subscribers read it without mu
	first      uint64    // number of forgotten events, all before log[0]
	subs       []*Subscription
	responders []*Responder // present, or with a running call
	started    bool
	closed     bool
	discarded  uint64
}

// New returns a bus that delivers nothing before [Bus.Start]. Nil options mean the zero
// Options.
func New(opts *Options) *Bus {
	if opts == nil {
		opts = &Options{}
	}
	b := &Bus{logger: cmp.Or(opts.Logger, slog.Default()), most: cmp.Or(max(opts.MaxPending, 0), 100_000)}
	b.changed.L = &b.mu
	return b
}

// Publish adds e to the bus. It never waits for a subscriber. The topic is E, or the
// dynamic type of e if E is an interface. On a closed bus Publish only counts the event
// ([Stats].Discarded). On a nil bus it does nothing. It panics if e is a nil interface.
func Publish[E any](b *Bus, e E) {
	event := any(e)
	if event == nil {
		panic("eventbus: Publish of a nil event")
	}
	if b != nil {
		b.publish(event)
	}
}

func (b *Bus) publish(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		b.discarded++
		return
	}
	if len(b.log) == cap(b.log) {
		b.giveUp()
		b.forget()
	}
	b.log = append(b.log, event)
	b.changed.Broadcast()
}

// published returns the number of events ever accepted. The caller holds mu.
func (b *Bus) published() uint64 { return b.first + uint64(len(b.log)) }

// slack is the length up to which the log keeps handled events.
const slack = 64

// giveUp closes the subscribers that hang: the log would grow for ever. The caller holds mu.
func (b *Bus) giveUp() {
	if !b.started || len(b.log) < b.most {
		return
	}
	for _, s := range b.subs {
		if n := s.pending(); !s.closed && n >= uint64(b.most) {
			s.closed = true
			s.cancel()
			b.logger.Error("eventbus: subscriber hangs, and gets no more events", "subscriber", s.name, "pending", n)
		}
	}
}

// forget drops the events that all subscribers have handled, once they are more than
// half of the log. The caller holds mu.
func (b *Bus) forget() {
	if !b.started || len(b.log) < slack {
		return
	}
	least := b.published()
	for _, s := range b.subs {
		if !s.closed { // a closed one takes no more events, though its handler may hang
			least = min(least, s.pos.Load())
		}
	}
	if n := int(least - b.first); n > len(b.log)/2 {
		b.log = append(make([]any, 0, slack), b.log[n:]...)
		b.first = least
	}
}

// Start begins delivery. Every present subscriber first gets the events published so
// far, in order. Further calls and calls after Close do nothing.
func (b *Bus) Start() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.started || b.closed {
		return
	}
	b.started = true
	for _, s := range b.subs {
		go s.run()
	}
}

// panicked logs a panic of a function that the bus called.
func (b *Bus) panicked(what, name string, value any) {
	b.logger.Error("eventbus: "+what+" panicked", what, name, "panic", fmt.Sprint(value), "stack", string(debug.Stack()))
}

// Stats are the figures of a [Bus] at one moment.
type Stats struct {
	Published   uint64            // events accepted so far
	Discarded   uint64            // events refused because the bus was closed
	Subscribers []SubscriberStats // in the order in which they subscribed
}

// Stats returns the figures of the bus and of all its subscribers.
func (b *Bus) Stats() Stats {
	if b == nil {
		return Stats{}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	st := Stats{Published: b.published(), Discarded: b.discarded}
	for _, s := range b.subs {
		st.Subscribers = append(st.Subscribers, s.stats())
	}
	return st
}
