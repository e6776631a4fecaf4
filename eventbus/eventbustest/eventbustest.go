// Package eventbustest helps to test what publishes to, or subscribes to, an
// [eventbus.Bus]. It works inside testing/synctest bubbles, where its waiting
// takes no time.
//
//	bus := eventbustest.NewBus(t)
//	seen := eventbustest.Watch(t, bus)
//	loop.Trigger()
//	done := eventbustest.Expect(t, seen, func(e reconcile.Deployed) bool { return e.Err == nil })
//
// For a component that asks, [Stub] stands in for those who answer; for one that
// answers, [eventbus.Ask] is all a test needs.
package eventbustest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hapticsdk/haptic/eventbus"
)

// Timeout is how long [Expect] waits for an event and how long a bus of
// [NewBus] may take to drain. It is only ever used up by a test that fails.
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

// Watch records what is published on bus from now on (from the first event
// where bus has not been started yet) until the test ends.
func Watch(t testing.TB, bus *eventbus.Bus) *Watcher {
	t.Helper()
	w := &Watcher{changed: make(chan struct{})}
	sub := eventbus.Subscribe(bus, eventbus.Lossless, func(_ context.Context, d eventbus.Delivery[any]) {
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
	return append([]any(nil), w.events...)
}

// Expect waits for the next event of type E for which all of match hold, skips
// those before it, and returns it. It ends the test when none comes within
// [Timeout], and lists the types of the events that came instead.
func Expect[E any](t testing.TB, w *Watcher, match ...func(E) bool) E {
	t.Helper()
	from := w.position()
	timeout := time.NewTimer(Timeout)
	defer timeout.Stop()
	for {
		e, changed, ok := find(w, match)
		if ok {
			return e
		}
		select {
		case <-changed:
		case <-timeout.C:
			var want E
			t.Fatalf("no %s came within %v; came instead: %s", typeName(&want), Timeout, w.types(from))
			return want
		}
	}
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
		before := bus.Stats()
		behind := pending(before)
		if len(behind) == 0 && bus.Stats().Published == before.Published {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %v, still to be delivered: %s", Timeout, strings.Join(behind, ", "))
			return
		}
		<-tick.C
	}
}

func pending(st eventbus.Stats) (names []string) {
	for _, s := range st.Subscribers {
		if s.Pending > 0 {
			names = append(names, fmt.Sprintf("%s (%d pending)", s.Name, s.Pending))
		}
	}
	return names
}

// ExpectNone fails the test where an event of type E for which all of match hold
// came since the last call of [Expect], or comes until the bus has drained; see
// [Drain]. It skips nothing: Expect still finds what came.
func ExpectNone[E any](t testing.TB, bus *eventbus.Bus, w *Watcher, match ...func(E) bool) {
	t.Helper()
	Drain(t, bus)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.events[w.next:] {
		if e, ok := e.(E); ok && fits(e, match) {
			t.Errorf("a %T came: %+v", e, e)
			return
		}
	}
}

func fits[E any](e E, match []func(E) bool) bool {
	for _, m := range match {
		if !m(e) {
			return false
		}
	}
	return true
}

// find advances w to behind the next event that fits. Otherwise it returns the
// channel that announces more.
func find[E any](w *Watcher, match []func(E) bool) (E, <-chan struct{}, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.next < len(w.events) {
		e, ok := w.events[w.next].(E)
		w.next++
		if ok && fits(e, match) {
			return e, nil, true
		}
	}
	var zero E
	return zero, w.changed, false
}

func (w *Watcher) position() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.next
}

// types lists the types of the events from one on. Their content is left out:
// it may be long.
func (w *Watcher) types(from int) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if from == len(w.events) {
		return "nothing"
	}
	var names []string
	for _, e := range w.events[from:] {
		names = append(names, fmt.Sprintf("%T", e))
	}
	return strings.Join(names, ", ")
}

func typeName(p any) string { return strings.TrimPrefix(fmt.Sprintf("%T", p), "*") }
