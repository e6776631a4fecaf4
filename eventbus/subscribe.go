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

// Subscribe has fn called for each event of type E, or, where E is an
// interface, for each event that implements E: any receives everything. Calls
// are made one after the other, on a goroutine of the subscription, from
// [Bus.Start] on. The context ends when the subscription is closed or
// [Bus.Close] gives up waiting.
//
// A panic of fn is logged and counted, and delivery goes on with the next
// event. On a closed bus, and on a nil one, the subscription is over from the beginning.
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

// typeName is how Go source writes a type.
func typeName(t reflect.Type) string {
	return strings.ReplaceAll(t.String(), "interface {}", "any")
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

// Subscription is the subscriber's hold on its [Subscribe]. Its methods may be
// called from several goroutines.
type Subscription struct {
	bus         *Bus
	name, event string
	deliver     func(event any, seq uint64) // calls the handler if the event is of its type
	ctx         context.Context
	cancel      context.CancelFunc
	done        chan struct{}

	pos       atomic.Uint64 // events that it has handled or passed, of all that there ever were
	delivered atomic.Uint64
	panics    atomic.Uint64

	// Under Bus.mu.
	watermark uint64
	closed    bool // it wants no more events
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

// run delivers until the subscription is closed or the bus is closed and
// drained.
func (s *Subscription) run() {
	defer func() { // also where the handler ends its goroutine
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

// next waits for events and returns all that there are; none when it is over.
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

// end frees s and tells those who wait for its end. The bus keeps its figures
// where it was closed meanwhile. The caller holds Bus.mu.
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

// returned, deferred, follows each call of the handler.
func (s *Subscription) returned() {
	if r := recover(); r != nil {
		s.panics.Add(1)
		s.bus.panicked("subscriber", s.name, r)
	}
	s.delivered.Add(1)
}

// Close ends the subscription: its context is cancelled and no further call
// begins. It does not wait for a call that runs, so a handler may use it; wait
// on Done for that. Events that waited are not delivered.
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

// Done is closed when the subscription has ended and its handler has returned.
func (s *Subscription) Done() <-chan struct{} { return s.done }

// Stats returns the figures of this subscription.
func (s *Subscription) Stats() SubscriberStats {
	s.bus.mu.Lock()
	defer s.bus.mu.Unlock()
	return s.stats()
}

// SubscriberStats are the figures of one subscription at one moment.
type SubscriberStats struct {
	Name      string // event type, and file and line of the call to Subscribe
	Event     string // event type
	Delivered uint64 // calls of the handler that have ended
	Panics    uint64 // calls of the handler that panicked
	// Pending is the number of events that wait, with the one that the handler
	// is at. Events that the subscription has not looked at yet are counted
	// whatever their type.
	Pending uint64
	// Watermark is the highest Pending there was, measured each time that the
	// subscription takes the events that wait, and by Stats.
	Watermark uint64
}

// pending is how many events it has yet to handle. The caller holds Bus.mu.
func (s *Subscription) pending() uint64 { return s.bus.published() - s.pos.Load() }

// stats returns its figures. The caller holds Bus.mu.
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
