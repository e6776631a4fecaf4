// Package eventbustest helps to test components that publish to, or subscribe
// to, an [eventbus.Bus]. It works inside testing/synctest bubbles, where its
// waiting takes no time.
//
//	bus := eventbustest.NewBus(t)
//	seen := eventbustest.Watch(t, bus)
//	loop.Trigger()
//	done := eventbustest.Expect(t, seen, func(e reconcile.Deployed) bool { return e.Err == nil })
//
// For components that ask, a test answers with [eventbus.Answer]; for those that
// answer, it asks with [eventbus.Ask].
package eventbustest

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hapticsdk/haptic/eventbus"
)

// Timeout is how long [Expect] and [Drain] wait, and how long a bus of [NewBus]
// may take to close. Only a test that fails uses it up.
const Timeout = 30 * time.Second

// NewBus returns a started bus that is closed at the end of the test, which
// fails when a subscriber does not finish by then.
func NewBus(t testing.TB) *eventbus.Bus {
	t.Helper()
	bus := eventbus.New(nil)
	bus.Start()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), Timeout)
		defer cancel()
		if err := bus.Close(ctx); err != nil {
			t.Errorf("closing the bus: %v", err)
		}
	})
	return bus
}

// Watcher records all events of a bus, for [Expect].
type Watcher struct {
	mu      sync.Mutex
	events  []any
	next    int           // first event that Expect has not looked at
	changed chan struct{} // closed when an event comes
}

// Watch records the events published on bus from now on (from the first event
// where bus has not been started yet) until the test ends.
func Watch(t testing.TB, bus *eventbus.Bus) *Watcher {
	t.Helper()
	w := &Watcher{changed: make(chan struct{})}
	sub := eventbus.Subscribe(bus, func(_ context.Context, d eventbus.Delivery[any]) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.events = append(w.events, d.Event)
		close(w.changed)
		w.changed = make(chan struct{})
	})
	t.Cleanup(sub.Close)
	return w
}

// Events returns all events seen so far, in order.
func (w *Watcher) Events() []any {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.events)
}

// Expect waits for the next event of type E for which all of match hold, skips
// those before it, and returns it. It ends the test when none comes within
// [Timeout], and lists the types of the events that came instead.
func Expect[E any](t testing.TB, w *Watcher, match ...func(E) bool) (found E) {
	t.Helper()
	fits := func(event any) (ok bool) {
		found, ok = event.(E)
		return ok && !slices.ContainsFunc(match, func(m func(E) bool) bool { return !m(found) })
	}
	var skipped []string // their content may be long
	timeout := time.After(Timeout)
	for {
		event, changed := w.take()
		switch {
		case changed != nil:
			select {
			case <-changed:
			case <-timeout:
				t.Fatalf("no %v came within %v; came instead: [%s]", reflect.TypeFor[E](), Timeout, strings.Join(skipped, ", "))
			}
		case fits(event):
			return found
		default:
			skipped = append(skipped, fmt.Sprintf("%T", event))
		}
	}
}

// take returns the next event, or, if there is none, the channel that announces
// one.
func (w *Watcher) take() (event any, changed <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.next == len(w.events) {
		return nil, w.changed
	}
	w.next++
	return w.events[w.next-1], nil
}

// Drain waits until all subscribers of bus have dealt with all that was published
// before, and with what they published in turn: a test that expects nothing
// more to happen looks afterwards. It ends the test where that takes longer than
// [Timeout] and names who is behind. The bus must have been started.
func Drain(t testing.TB, bus *eventbus.Bus) {
	t.Helper()
	deadline := time.Now().Add(Timeout)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		var behind []string
		for _, s := range bus.Stats().Subscribers {
			if s.Pending > 0 {
				behind = append(behind, fmt.Sprintf("%s (%d pending)", s.Name, s.Pending))
			}
		}
		if len(behind) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %v, still to be delivered: %s", Timeout, strings.Join(behind, ", "))
		}
		<-tick.C
	}
}
