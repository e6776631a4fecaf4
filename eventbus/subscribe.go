package eventbus

import (
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
)

// Delivery is an event on its way to one subscriber.
type Delivery[E any] struct {
	Event E
	Seq   uint64 // place of the event in the order of the bus, from 1
}

// Subscribe registers fn for each event of type E. If E is an interface, fn gets every
// event that implements it; any receives everything. From [Bus.Start] on, a goroutine
// of the subscription calls fn for one event after the other. The context ends when the
// subscription is closed or [Bus.Close] gives up waiting.
//
// If fn panics, the bus logs and counts it and delivers the next event. On a closed or
// nil bus the subscription is over from the beginning.
func Subscribe[E any](b *Bus, fn func(ctx context.Context, d Delivery[E])) *Subscription {
	if fn == nil {
		panic("eventbus: Subscribe without a function")
	}
	if b == nil {
		b = New(nil)
		b.closed = true
	}
	s := &Subscription{bus: b, event: typeName(reflect.TypeFor[E]()), done: make(chan struct{})}
	s.name = s.event + " " + callSite()
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.deliver = func(event any, seq uint64) {
		if e, ok := event.(E); ok {
			defer s.returned()
			fn(s.ctx, Delivery[E]{Event: e, Seq: seq})
		}
	}
	b.add(s)
	return s
}

// typeName returns a type as Go source writes it.
func typeName(t reflect.Type) string {
	return strings.ReplaceAll(t.String(), "interface {}", "any")
}

// callSite returns folder/file:line of the call of the exported function that calls it.
func callSite() string {
	_, file, line, ok := runtime.Caller(2)
	if !ok {
		return "?"
	}
	dir, base := filepath.Split(file)
	return fmt.Sprintf("%s/%s:%d", filepath.Base(dir), base, line)
}

// Subscription is the handle that [Subscribe] returns. Its methods may be called from
// several goroutines.
type Subscription struct {
	bus         *Bus
	name, event string
	deliver     func(event any, seq uint64) // calls the handler if the event has its type
	ctx         context.Context
	cancel      context.CancelFunc
	done        chan struct{}

	pos       atomic.Uint64 // events handled or skipped, counted from the first of the bus
	delivered atomic.Uint64
	panics    atomic.Uint64

	// Under Bus.mu.
	watermark uint64
	closed    bool // takes no more events
	ended     bool
}

// add registers s. Before Start it gets all events, afterwards only new ones.
func (b *Bus) add(s *Subscription) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		s.end()
		return
	}
	b.subs = append(b.subs, s)
	if b.started {
		s.pos.Store(b.published())
		go s.run()
	}
}

// run delivers until the subscription is closed, or until the bus is closed and
// drained.
func (s *Subscription) run() {
	defer func() { // runs even if the handler calls runtime.Goexit
		s.bus.mu.Lock()
		defer s.bus.mu.Unlock()
		s.end()
	}()
	for events := s.next(); len(events) > 0; events = s.next() {
		for _, event := range events {
			s.deliver(event, s.pos.Load()+1)
			s.pos.Add(1)
			if s.ctx.Err() != nil {
				break
			}
		}
	}
}

// next waits for events and returns all pending ones. It returns none when the
// subscription is over.
func (s *Subscription) next() []any {
	b := s.bus
	b.mu.Lock()
	defer b.mu.Unlock()
	for s.ctx.Err() == nil {
		if n := s.pending(); n > 0 {
			s.watermark = max(s.watermark, n)
			return b.log[uint64(len(b.log))-n:]
		}
		if b.closed {
			break
		}
		b.forget()
		b.changed.Wait()
	}
	return nil
}

// end frees s and wakes everyone who waits for its end. A closed bus keeps the figures
// of s. The caller holds Bus.mu.
func (s *Subscription) end() {
	s.cancel()
	if s.ended {
		return
	}
	s.ended = true
	close(s.done)
	b := s.bus
	if !b.closed {
		b.subs = slices.DeleteFunc(b.subs, func(other *Subscription) bool { return other == s })
	}
	b.changed.Broadcast()
}

// returned is deferred around each call of the handler: it recovers a panic and counts
// the call.
func (s *Subscription) returned() {
	if r := recover(); r != nil {
		s.panics.Add(1)
		s.bus.panicked("subscriber", s.name, r)
	}
	s.delivered.Add(1)
}

// Close ends the subscription: it cancels the context, and no further call begins.
// Waiting events are not delivered. Close does not wait for a running call, so a
// handler may use it. To wait for that call, use Done.
func (s *Subscription) Close() {
	b := s.bus
	b.mu.Lock()
	defer b.mu.Unlock()
	s.closed = true
	if !b.started { // it has no goroutine
		s.end()
	}
	s.cancel()
	b.changed.Broadcast()
}

// Done returns a channel that closes when the subscription has ended and its handler
// has returned.
func (s *Subscription) Done() <-chan struct{} { return s.done }

// Stats returns the figures of this subscription.
func (s *Subscription) Stats() SubscriberStats {
	s.bus.mu.Lock()
	defer s.bus.mu.Unlock()
	return s.stats()
}

// SubscriberStats are the figures of one subscription at one moment.
type SubscriberStats struct {
	Name      string // event type, then file and line of the Subscribe call
	Event     string // event type
	Delivered uint64 // ended calls of the handler
	Panics    uint64 // calls of the handler that panicked
	// Pending is the number of waiting events, plus the event in the handler. It counts
	// events that the subscription has not looked at yet, whatever their type.
	Pending uint64
	// Watermark is the highest Pending so far. The subscription measures it when it
	// takes events, and Stats does.
	Watermark uint64
}

// pending returns the number of events that s has yet to handle. The caller holds
// Bus.mu.
func (s *Subscription) pending() uint64 { return s.bus.published() - s.pos.Load() }

// stats returns the figures of s. The caller holds Bus.mu.
func (s *Subscription) stats() SubscriberStats {
	pending := s.pending()
	s.watermark = max(s.watermark, pending)
	return SubscriberStats{
		Name:      s.name,
		Event:     s.event,
		Delivered: s.delivered.Load(),
		Panics:    s.panics.Load(),
		Pending:   pending,
		Watermark: s.watermark,
	}
}
