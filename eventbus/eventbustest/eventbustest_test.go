package eventbustest_test

import (
	"context"
	"errors"
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
		{"nothing", nil, "no eventbustest_test.opened came within 30s; came instead: nothing"},
		{"others", []any{"a", 1, opened{0}}, "no eventbustest_test.opened came within 30s; came instead: string, int, eventbustest_test.opened"},
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
		eventbus.Subscribe(bus, eventbus.Lossless, func(context.Context, eventbus.Delivery[opened]) { <-release })
		eventbus.Publish(bus, opened{})
		f.run(f.cleanups[0])
		close(release)
		if len(f.messages) != 1 || !strings.Contains(f.messages[0], "eventbustest_test.go:") {
			t.Errorf("reported %q, want the subscriber", f.messages)
		}
	})
}

func TestExpectNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := eventbustest.NewBus(t)
		seen := eventbustest.Watch(t, bus)
		// What a subscriber publishes in turn, after a while, counts too.
		eventbus.Subscribe(bus, eventbus.Lossy(3), func(_ context.Context, d eventbus.Delivery[string]) {
			<-time.After(time.Second)
			eventbus.Publish(bus, opened{len(d.Event)})
		})
		eventbus.Publish(bus, "abc")
		f := &failing{TB: t}
		eventbustest.ExpectNone(f, bus, seen, func(e opened) bool { return e.Door == 4 })
		eventbustest.ExpectNone[int](f, bus, seen)
		if len(f.messages) != 0 {
			t.Errorf("reported %q", f.messages)
		}
		eventbustest.ExpectNone[opened](f, bus, seen)
		if len(f.messages) != 1 || f.messages[0] != "a eventbustest_test.opened came: {Door:3}" {
			t.Errorf("reported %q", f.messages)
		}
		if e := eventbustest.Expect[opened](t, seen); e.Door != 3 {
			t.Errorf("got %+v", e)
		}
	})
}

func TestDrainNamesWhoIsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := eventbustest.NewBus(t)
		release := make(chan struct{})
		eventbus.Subscribe(bus, eventbus.Lossless, func(context.Context, eventbus.Delivery[opened]) { <-release })
		eventbus.Publish(bus, opened{})
		f := &failing{TB: t}
		f.run(func() { eventbustest.Drain(f, bus) })
		close(release)
		if len(f.messages) != 1 || !strings.Contains(f.messages[0], "after 30s, still to be delivered: eventbustest_test.opened eventbustest/eventbustest_test.go:") {
			t.Errorf("reported %q", f.messages)
		}
	})
}

func TestStub(t *testing.T) {
	bus := eventbustest.NewBus(t)
	stub := eventbustest.NewStub[opened, bool](t, bus, "guard")
	ask := func() (bool, error) {
		answers, err := eventbus.Ask[bool](t.Context(), bus, opened{7}, nil)
		return answers.Got["guard"], err
	}
	if ok, err := ask(); ok || err != nil {
		t.Errorf("the zero answer: %v, %v", ok, err)
	}
	stub.Return(true, nil)
	if ok, err := ask(); !ok || err != nil {
		t.Errorf("true: %v, %v", ok, err)
	}
	rejected := errors.New("closed on Sundays")
	stub.Return(false, rejected)
	if _, err := ask(); !errors.Is(err, rejected) || !errors.Is(err, eventbus.ErrRejected) {
		t.Errorf("error: %v", err)
	}
	stub.Panic("broken")
	if _, err := ask(); !errors.Is(err, eventbus.ErrPanicked) {
		t.Errorf("panic: %v", err)
	}
	if got := fmt.Sprint(stub.Questions()); got != "[{7} {7} {7} {7}]" {
		t.Errorf("questions: %s", got)
	}
	stub.Close()
	if _, err := ask(); !errors.Is(err, eventbus.ErrAbsent) {
		t.Errorf("closed: %v", err)
	}
}

func TestStubThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := eventbustest.NewBus(t)
		eventbustest.NewStub[opened, bool](t, bus, "guard").Hang()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := eventbus.Ask[bool](ctx, bus, opened{}, nil); !errors.Is(err, eventbus.ErrMissing) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

func ExampleStub() {
	// In a test, t is its *testing.T.
	run := func(t testing.TB) {
		bus := eventbustest.NewBus(t)
		guard := eventbustest.NewStub[opened, bool](t, bus, "guard")
		guard.Return(true, nil)
		answers, err := eventbus.Ask[bool](context.Background(), bus, opened{Door: 7}, nil) // what the tested component does
		fmt.Println(answers.Got, err, guard.Questions())
	}
	t := &failing{}
	run(t)
	for _, cleanup := range slices.Backward(t.cleanups) {
		cleanup()
	}
	// Output: map[guard:true] <nil> [{7}]
}

func ExampleExpectNone() {
	// In a test, t is its *testing.T.
	run := func(t testing.TB) {
		bus := eventbustest.NewBus(t)
		seen := eventbustest.Watch(t, bus)
		eventbus.Publish(bus, "noise")
		eventbustest.ExpectNone[opened](t, bus, seen)
		fmt.Println(seen.Events())
	}
	t := &failing{}
	run(t)
	for _, cleanup := range slices.Backward(t.cleanups) {
		cleanup()
	}
	// Output: [noise]
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
