package eventbus_test

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/eventbus"
)

type deployed struct {
	Endpoint string
	N        int
}

func (d deployed) Where() string { return d.Endpoint }

type failed struct {
	Endpoint string
	Err      error
}

func (f *failed) Where() string { return f.Endpoint }

type located interface{ Where() string }

// record subscribes and returns what was delivered so far.
func record[E any](b *eventbus.Bus) func() []E {
	var mu sync.Mutex
	var got []E
	eventbus.Subscribe(b, func(_ context.Context, d eventbus.Delivery[E]) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, d.Event)
	})
	return func() []E {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(got)
	}
}

// errOf is the error of a call of which nothing else matters.
func errOf[T any](_ T, err error) error { return err }

func closeBus(t *testing.T, b *eventbus.Bus) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // used up by a test that fails
	defer cancel()
	require.NoError(t, b.Close(ctx))
}

func TestTopicsAreTypes(t *testing.T) {
	b := eventbus.New(nil)
	values := record[deployed](b)
	pointers := record[*failed](b)
	structs := record[failed](b)
	implementers := record[located](b)
	all := record[any](b)
	b.Start()

	f := &failed{Endpoint: "b"}
	eventbus.Publish(b, deployed{"a", 1})
	eventbus.Publish(b, f)
	eventbus.Publish(b, failed{Endpoint: "c"}) // no pointer, so not located
	eventbus.Publish(b, "text")
	eventbus.Publish[located](b, deployed{"d", 2}) // the topic is the dynamic type
	eventbus.Publish[any](b, f)
	closeBus(t, b)

	for _, c := range []struct {
		name      string
		got, want any
	}{
		{"values", values(), []deployed{{"a", 1}, {"d", 2}}},
		{"pointers", pointers(), []*failed{f, f}},
		{"structs", structs(), []failed{{Endpoint: "c"}}},
		{"implementers", implementers(), []located{deployed{"a", 1}, f, deployed{"d", 2}, f}},
		{"all", all(), []any{deployed{"a", 1}, f, failed{Endpoint: "c"}, "text", deployed{"d", 2}, f}},
	} {
		require.Empty(t, cmp.Diff(c.want, c.got), "%s (-want +got):\n", c.name)
	}
}

func TestSlowSubscribersHoldUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := eventbus.New(nil)
		b.Start()
		release := make(chan struct{})
		var got []int
		slow := eventbus.Subscribe(b, func(_ context.Context, d eventbus.Delivery[int]) {
			<-release
			got = append(got, d.Event)
		})
		quick := record[int](b)
		const n = 5000
		for i := range n {
			eventbus.Publish(b, i) // would deadlock the bubble if it waited
		}
		synctest.Wait()
		require.Len(t, quick(), n, "a slow subscriber held up another one")
		if st := slow.Stats(); st.Pending != n || st.Watermark != n || st.Delivered != 0 {
			t.Errorf("stats of the slow one: %+v, want %d pending, watermark %d, 0 delivered", st, n, n)
		}
		close(release)
		closeBus(t, b)
		require.Len(t, got, n)
		require.True(t, slices.IsSorted(got), "the slow one got %d of %d, sorted: %v", len(got), n, slices.IsSorted(got))
		if st := slow.Stats(); st.Pending != 0 || st.Watermark != n || st.Delivered != n {
			t.Errorf("stats at the end: %+v", st)
		}
	})
}

func TestPanicsAreContained(t *testing.T) {
	var log bytes.Buffer
	b := eventbus.New(&eventbus.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	var got []int
	handler := eventbus.Subscribe(b, func(_ context.Context, d eventbus.Delivery[int]) {
		if d.Event == 2 {
			panic("cannot take a two")
		}
		got = append(got, d.Event)
	})
	b.Start()
	for _, n := range []int{1, 2, 3} {
		eventbus.Publish(b, n)
	}
	closeBus(t, b)
	if want := []int{1, 3}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if st := handler.Stats(); st.Panics != 1 || st.Delivered != 3 {
		t.Errorf("stats: %+v, want 1 panic of 3", st)
	}
	for _, want := range []string{"subscriber panicked", "cannot take a two", "eventbus/bus_test.go:"} {
		require.Contains(t, log.String(), want)
	}
}

func TestWrongUse(t *testing.T) {
	b := eventbus.New(nil)
	defer closeBus(t, b)
	for _, c := range []struct {
		name, want string
		use        func()
	}{
		{"nil handler", "without a function", func() { eventbus.Subscribe[int](b, nil) }},
		{"nil event", "nil event", func() { eventbus.Publish[error](b, nil) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer func() {
				if msg, _ := recover().(string); !strings.Contains(msg, c.want) {
					t.Errorf("panic %q, want one about %q", msg, c.want)
				}
			}()
			c.use()
		})
	}
	eventbus.Publish[int](nil, 1) // an optional bus: nothing happens
}

func TestCloseNamesWhoDidNotFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := eventbus.New(nil)
		b.Start()
		release := make(chan struct{})
		var handlerErr error
		eventbus.Subscribe(b, func(ctx context.Context, d eventbus.Delivery[int]) {
			<-ctx.Done()
			handlerErr = ctx.Err()
			<-release // does not care
		})
		quick := record[int](b)
		for i := range 3 {
			eventbus.Publish(b, i)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := b.Close(ctx)
		var ce *eventbus.CloseError
		require.ErrorAs(t, err, &ce)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		if len(ce.Subscribers) != 1 || ce.Subscribers[0].Pending != 3 || !strings.Contains(ce.Subscribers[0].Name, "eventbus/bus_test.go:") {
			t.Errorf("unfinished: %+v, want the first subscriber with 3 pending", ce.Subscribers)
		}
		require.ErrorContains(t, err, "(3 pending): context deadline exceeded")
		require.Len(t, quick(), 3, "the other one")
		close(release)
		require.ErrorAs(t, b.Close(t.Context()), &ce, "second Close")
		require.Equal(t, uint64(2), ce.Subscribers[0].Pending, "second Close")
		require.Error(t, handlerErr, "the context of the handler did not end")
	})
}

func TestPublishWhenClosed(t *testing.T) {
	b := eventbus.New(nil)
	got := record[int](b)
	b.Start()
	eventbus.Publish(b, 1)
	closeBus(t, b)
	eventbus.Publish(b, 2)
	eventbus.Publish[any](b, 3)
	closeBus(t, b)
	if st := b.Stats(); st.Published != 1 || st.Discarded != 2 || len(st.Subscribers) != 1 {
		t.Errorf("stats: %+v", st)
	}
	require.Equal(t, []int{1}, got())
	sub := eventbus.Subscribe(b, func(context.Context, eventbus.Delivery[int]) {})
	<-sub.Done()
	sub.Close()
}

func TestCloseWithoutStart(t *testing.T) {
	b := eventbus.New(nil)
	got := record[int](b)
	sub := eventbus.Subscribe(b, func(context.Context, eventbus.Delivery[int]) {})
	eventbus.Publish(b, 1)
	closeBus(t, b)
	b.Start()
	<-sub.Done()
	require.Empty(t, got(), "delivered")
}

func TestCloseSubscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := eventbus.New(nil)
		early := eventbus.Subscribe(b, func(context.Context, eventbus.Delivery[int]) {
			t.Error("delivered after Close")
		})
		early.Close()
		<-early.Done()

		var self *eventbus.Subscription
		var calls int
		self = eventbus.Subscribe(b, func(ctx context.Context, _ eventbus.Delivery[int]) {
			calls++
			self.Close()
			if ctx.Err() == nil {
				t.Error("the context did not end")
			}
		})
		idle := eventbus.Subscribe(b, func(context.Context, eventbus.Delivery[string]) {})
		b.Start()
		eventbus.Publish(b, 1)
		eventbus.Publish(b, 2)
		<-self.Done()
		idle.Close() // while it sleeps
		<-idle.Done()
		idle.Close()
		require.Equal(t, 1, calls)
		require.Zero(t, len(b.Stats().Subscribers))
		closeBus(t, b)
	})
}

// Close of the bus also waits for a handler whose subscription was closed.
func TestCloseWaitsForClosedSubscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := eventbus.New(nil)
		b.Start()
		ended := false
		sub := eventbus.Subscribe(b, func(context.Context, eventbus.Delivery[int]) {
			<-time.After(time.Minute) // of the bubble: takes no time
			ended = true
		})
		eventbus.Publish(b, 1)
		synctest.Wait()
		sub.Close()
		if err := b.Close(t.Context()); err != nil || !ended {
			t.Errorf("Close: %v, handler ended: %v", err, ended)
		}
	})
}
