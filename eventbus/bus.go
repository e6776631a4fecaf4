package eventbus

import (
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
}

// Bus carries events from publishers to subscribers. Make one with [New]; all
// its methods may be called from several goroutines. A component's bus may be optional:
// a nil one does nothing, and is as one that was closed at once.
//
// The bus is a log of events, and each subscription is a place in it.
type Bus struct {
	logger *slog.Logger

	mu         sync.Mutex
	changed    sync.Cond // on mu: for each event, and whenever something ends
	log        []any     // appended to, never written to in place: subscribers read it without mu
	first      uint64    // events that were forgotten, those before log[0]
	subs       []*Subscription
	responders []*Responder // those that are there, or still run
	started    bool
	closed     bool
	discarded  uint64
}

// New returns a bus on which nothing is delivered before [Bus.Start]. Nil
// options are the zero Options.
func New(opts *Options) *Bus {
	b := &Bus{logger: slog.Default()}
	b.changed.L = &b.mu
	if opts != nil && opts.Logger != nil {
		b.logger = opts.Logger
	}
	return b
}

// Publish adds e to the bus. It never waits for a subscriber. The topic is E,
// or the dynamic type of e where E is an interface. After [Bus.Close] it does
// nothing but count ([Stats].Discarded). On a nil bus it does nothing. It panics when e
// is a nil interface.
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
		b.forget()
	}
	b.log = append(b.log, event)
	b.changed.Broadcast()
}

// published is how many events there ever were. The caller holds mu.
func (b *Bus) published() uint64 { return b.first + uint64(len(b.log)) }

// slack is how many handled events may stay in memory.
const slack = 64

// forget drops the events that all subscribers have handled, once there are
// enough of them to be worth a copy of the others. The caller holds mu.
func (b *Bus) forget() {
	if !b.started || len(b.log) < slack {
		return
	}
	least := b.published()
	for _, s := range b.subs {
		if !s.closed { // its handler may hang, and it takes no more
			least = min(least, s.pos.Load())
		}
	}
	if n := int(least - b.first); n > len(b.log)/2 {
		b.log = append(make([]any, 0, slack), b.log[n:]...)
		b.first = least
	}
}

// Start begins delivery: first the events published so far, in order, to all
// subscribers there are. Further calls, and calls after Close, do nothing.
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

// panicked reports a panic of a function that the bus called.
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
