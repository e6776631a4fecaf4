package eventbustest_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/eventbus/eventbustest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type opened struct{ Door int }

func TestExpect(t *testing.T) {
	bus := eventbustest.NewBus(t)
	seen := eventbustest.Watch(t, bus)
	go func() {
		eventbus.Publish(bus, opened{1})
		eventbus.Publish(bus, "noise")
		eventbus.Publish(bus, opened{2})
		eventbus.Publish(bus, opened{3})
	}()
	if e := eventbustest.Expect[opened](t, seen); e.Door != 1 {
		t.Errorf("first: %+v", e)
	}
	if e := eventbustest.Expect(t, seen, func(e opened) bool { return e.Door > 2 }); e.Door != 3 {
		t.Errorf("second: %+v", e)
	}
	if got := fmt.Sprint(seen.Events()); got != "[{1} noise {2} {3}]" {
		t.Errorf("events: %s", got)
	}
}

// failing records what a helper reports instead of failing this test.
type failing struct {
	testing.TB
	messages []string
	cleanups []func()
}

func (f *failing) Helper()           {}
func (f *failing) Cleanup(fn func()) { f.cleanups = append(f.cleanups, fn) }
func (f *failing) Errorf(format string, args ...any) {
	f.messages = append(f.messages, fmt.Sprintf(format, args...))
}
func (f *failing) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	runtime.Goexit()
}

func (f *failing) run(fn func()) {
	done := make(chan struct{})
	go func() { defer close(done); fn() }()
	<-done
}

func TestExpectFails(t *testing.T) {
	for _, c := range []struct {
		name    string
		publish []any
		want    string
	}{
		{"nothing", nil, "no eventbustest_test.opened came within 30s; came instead: []"},
		{"others", []any{"a", 1, opened{0}}, "no eventbustest_test.opened came within 30s; came instead: [string, int, eventbustest_test.opened]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				bus := eventbustest.NewBus(t)
				seen := eventbustest.Watch(t, bus)
				for _, e := range c.publish {
					eventbus.Publish(bus, e)
				}
				f := &failing{TB: t}
				f.run(func() { eventbustest.Expect(f, seen, func(e opened) bool { return e.Door > 0 }) })
				if len(f.messages) != 1 || f.messages[0] != c.want {
					t.Errorf("reported %q, want %q", f.messages, c.want)
				}
			})
		})
	}
}

func TestNewBusReportsWhoDoesNotFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &failing{TB: t}
		bus := eventbustest.NewBus(f)
		release := make(chan struct{})
		eventbus.Subscribe(bus, func(context.Context, eventbus.Delivery[opened]) { <-release })
		eventbus.Publish(bus, opened{})
		f.run(f.cleanups[0])
		close(release)
		if len(f.messages) != 1 || !strings.Contains(f.messages[0], "eventbustest_test.go:") {
			t.Errorf("reported %q, want the subscriber", f.messages)
		}
	})
}

// Events that a subscriber publishes in turn, after a while, count too.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := eventbustest.NewBus(t)
		seen := eventbustest.Watch(t, bus)
		eventbus.Subscribe(bus, func(_ context.Context, d eventbus.Delivery[string]) {
			<-time.After(time.Second)
			eventbus.Publish(bus, opened{len(d.Event)})
		})
		eventbus.Publish(bus, "abc")
		eventbustest.Drain(t, bus)
		if got := fmt.Sprint(seen.Events()); got != "[abc {3}]" {
			t.Errorf("events: %s", got)
		}
	})
}

func TestDrainNamesWhoIsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := eventbustest.NewBus(t)
		release := make(chan struct{})
		eventbus.Subscribe(bus, func(context.Context, eventbus.Delivery[opened]) { <-release })
		eventbus.Publish(bus, opened{})
		f := &failing{TB: t}
		f.run(func() { eventbustest.Drain(f, bus) })
		close(release)
		if len(f.messages) != 1 || !strings.Contains(f.messages[0], "after 30s, still to be delivered: eventbustest_test.opened eventbustest/eventbustest_test.go:") {
			t.Errorf("reported %q", f.messages)
		}
	})
}

func ExampleExpect() {
	// In a test, t is its *testing.T.
	run := func(t testing.TB) {
		bus := eventbustest.NewBus(t)
		seen := eventbustest.Watch(t, bus)
		eventbus.Publish(bus, opened{Door: 7})
		fmt.Println(eventbustest.Expect[opened](t, seen).Door)
	}
	t := &failing{}
	run(t)
	for _, cleanup := range t.cleanups {
		cleanup()
	}
	// Output: 7
}

func ExampleDrain() {
	// In a test, t is its *testing.T.
	run := func(t testing.TB) {
		bus := eventbustest.NewBus(t)
		seen := eventbustest.Watch(t, bus)
		eventbus.Publish(bus, "noise")
		eventbustest.Drain(t, bus)
		fmt.Println(seen.Events())
	}
	t := &failing{}
	run(t)
	for _, cleanup := range slices.Backward(t.cleanups) {
		cleanup()
	}
	// Output: [noise]
}
