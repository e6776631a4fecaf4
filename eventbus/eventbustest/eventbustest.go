// Package eventbustest helps to test what publishes to, or subscribes to, an
// [eventbus.Bus]. It works inside testing/synctest bubbles, where its waiting
// takes no time.
//
//	bus := eventbustest.NewBus(t)
//	seen := eventbustest.Watch(t, bus)
//	loop.Trigger()
//	done := eventbustest.Expect(t, seen, func(e reconcile.Deployed) bool { return e.Err == nil })
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
const Timeout = 10 * time.Second

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

// find advances w to behind the next event that fits. Otherwise it returns the
// channel that announces more.
func find[E any](w *Watcher, match []func(E) bool) (E, <-chan struct{}, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
next:
	for w.next < len(w.events) {
		e, ok := w.events[w.next].(E)
		w.next++
		if !ok {
			continue
		}
		for _, m := range match {
			if !m(e) {
				continue next
			}
		}
		return e, nil, true
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
