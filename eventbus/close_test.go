package eventbus_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/eventbus"
)

// What a handler publishes while the bus drains is refused and counted.
func TestCloseDuringPublishingHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := eventbus.New(nil)
		b.Start()
		calls := 0
		eventbus.Subscribe(b, func(_ context.Context, d eventbus.Delivery[int]) {
			<-time.After(time.Second) // of the bubble
			calls++
			eventbus.Publish(b, d.Event+1) // without end
		})
		eventbus.Publish(b, 0)
		synctest.Wait()
		closeBus(t, b)
		if st := b.Stats(); calls != 1 || st.Published != 1 || st.Discarded != 1 {
			t.Errorf("%d calls, %d published, %d discarded, want 1 of each", calls, st.Published, st.Discarded)
		}
	})
}

// A context that has ended is no reason to call finished work unfinished.
func TestCloseWithEndedContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended, cancel := context.WithCancelCause(t.Context())
		why := errors.New("shutting down")
		cancel(why)

		never := eventbus.New(nil)
		eventbus.Subscribe(never, func(context.Context, eventbus.Delivery[int]) {})
		require.NoError(t, never.Close(ended), "never started")

		b := eventbus.New(nil)
		b.Start()
		var ce *eventbus.CloseError
		eventbus.Subscribe(b, func(ctx context.Context, _ eventbus.Delivery[int]) { <-ctx.Done() })
		eventbus.Publish(b, 1)
		synctest.Wait()
		if err := b.Close(ended); !errors.As(err, &ce) || !errors.Is(err, why) || len(ce.Subscribers) != 1 {
			t.Errorf("Close: %v, want one unfinished and the cause", err)
		}
		synctest.Wait()
	})
}

// Who has delivered everything is not called unfinished, not even beside one that
// hangs.
func TestCloseCallsNobodyIdleUnfinished(t *testing.T) {
	for _, hangs := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			b := eventbus.New(nil)
			release := make(chan struct{})
			for range 9 {
				eventbus.Subscribe(b, func(context.Context, eventbus.Delivery[int]) {})
			}
			for range hangs {
				eventbus.Subscribe(b, func(context.Context, eventbus.Delivery[int]) { <-release })
			}
			b.Start()
			eventbus.Publish(b, 1)
			synctest.Wait() // they sleep
			var ce *eventbus.CloseError
			err := b.Close(ended)
			require.Equal(t, (hangs > 0), errors.As(err, &ce))
			require.False(t, ce != nil && len(ce.Subscribers) != hangs, "%d hang: %v", hangs, err)
			close(release)
		})
	}
}

// Two that close the bus at once both wait for the handlers.
func TestCloseTwiceAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := eventbus.New(nil)
		b.Start()
		done := false
		eventbus.Subscribe(b, func(context.Context, eventbus.Delivery[int]) {
			<-time.After(time.Minute)
			done = true
		})
		eventbus.Publish(b, 1)
		synctest.Wait()
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				if err := b.Close(t.Context()); err != nil || !done {
					t.Errorf("Close: %v, handler done: %v", err, done)
				}
			})
		}
		wg.Wait()
	})
}

// Publishers, subscribers that come and go, slow ones and late ones, all at
// once: nothing is lost or mixed up.
func TestChurn(t *testing.T) {
	const publishers, each = 2, 4000
	b := eventbus.New(nil)
	type pair struct{ a, b int } // written as one: a torn one shows
	var steady [3]int
	for i := range steady {
		last := uint64(0)
		eventbus.Subscribe(b, func(_ context.Context, d eventbus.Delivery[pair]) {
			if d.Event.a != -d.Event.b || d.Event.a == 0 || d.Seq <= last {
				t.Errorf("%+v at %d after %d", d.Event, d.Seq, last)
			}
			last = d.Seq
			steady[i]++
			if i == 2 && d.Seq%50 == 0 {
				runtime.Gosched()
			}
		})
	}
	b.Start()
	var wg sync.WaitGroup
	for range publishers {
		wg.Go(func() {
			for n := range each {
				eventbus.Publish(b, pair{n + 1, -n - 1})
				if n%5 == 0 {
					eventbus.Publish(b, n)
				}
			}
		})
	}
	for range 2 {
		wg.Go(func() {
			for n := range 150 {
				begin := b.Stats().Published
				last := uint64(0)
				sub := eventbus.Subscribe(b, func(_ context.Context, d eventbus.Delivery[any]) {
					if d.Seq <= begin || last != 0 && d.Seq != last+1 {
						t.Errorf("%d after %d, subscribed at %d", d.Seq, last, begin)
					}
					last = d.Seq
				})
				for range n % 7 {
					runtime.Gosched()
				}
				b.Stats()
				sub.Close()
				<-sub.Done()
			}
		})
	}
	wg.Wait()
	closeBus(t, b)
	for _, n := range steady {
		require.Equal(t, publishers*each, n)
	}
}

// A handler that ends its goroutine, as t.Fatal does, ends its subscription.
func TestHandlerEndsItsGoroutine(t *testing.T) {
	b := eventbus.New(nil)
	sub := eventbus.Subscribe(b, func(context.Context, eventbus.Delivery[int]) { runtime.Goexit() })
	b.Start()
	eventbus.Publish(b, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	select {
	case <-sub.Done():
	case <-ctx.Done():
		t.Error("the subscription has not ended")
	}
	require.NoError(t, b.Close(ctx))
}
