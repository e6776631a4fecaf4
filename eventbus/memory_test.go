package eventbus_test

import (
	"bytes"
	"context"
	"log/slog"
	"runtime"
	"testing"
	"testing/synctest"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/eventbus"
)

type heavy struct{ content *[64]byte }

func publishHeavy(b *eventbus.Bus, n int) (contents []weak.Pointer[[64]byte]) {
	for range n {
		e := heavy{new([64]byte)}
		eventbus.Publish(b, e)
		contents = append(contents, weak.Make(e.content))
	}
	return contents
}

func held(contents []weak.Pointer[[64]byte]) (n int) {
	runtime.GC()
	for _, c := range contents {
		if c.Value() != nil {
			n++
		}
	}
	return n
}

// Events that all subscribers have handled leave the memory, but for the newest
// few; those that somebody has yet to handle stay.
func TestHandledEventsAreFreed(t *testing.T) {
	const events, slack = 1000, 64
	none := func(context.Context, eventbus.Delivery[heavy]) {}
	for _, c := range []struct {
		name      string
		subscribe func(b *eventbus.Bus, hang <-chan struct{})
		hangs     bool
	}{
		{"no subscriber", func(*eventbus.Bus, <-chan struct{}) {}, false},
		{"quick", func(b *eventbus.Bus, _ <-chan struct{}) {
			eventbus.Subscribe(b, none)
			eventbus.Subscribe(b, func(context.Context, eventbus.Delivery[string]) {})
		}, false},
		{"closed", func(b *eventbus.Bus, hang <-chan struct{}) { eventbus.Subscribe(b, none).Close() }, false},
		{"hangs", func(b *eventbus.Bus, hang <-chan struct{}) {
			eventbus.Subscribe(b, none)
			eventbus.Subscribe(b, func(context.Context, eventbus.Delivery[heavy]) { <-hang })
		}, true},
		{"closed, but hangs", func(b *eventbus.Bus, hang <-chan struct{}) {
			var s *eventbus.Subscription
			s = eventbus.Subscribe(b, func(context.Context, eventbus.Delivery[heavy]) { s.Close(); <-hang })
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := eventbus.New(nil)
				hang := make(chan struct{})
				c.subscribe(b, hang)
				b.Start()
				contents := publishHeavy(b, 1)
				synctest.Wait()
				contents = append(contents, publishHeavy(b, events-1)...)
				synctest.Wait()
				if n := held(contents); c.hangs && n != events || !c.hangs && n > slack {
					t.Errorf("%d of %d events are in memory", n, events)
				}
				close(hang)
				synctest.Wait()
				require.LessOrEqual(t, held(contents), slack, "all are handled, but")
				closeBus(t, b)
			})
		})
	}
}

// TestHangingSubscriber: a subscriber that hangs is closed and told once it has too many events
// before it. The others get all of theirs, and the bus keeps no more than it needs.
func TestHangingSubscriber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		b := eventbus.New(&eventbus.Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), MaxPending: 1000})
		goOn, handled := make(chan struct{}), 0
		hangs := eventbus.Subscribe(b, func(ctx context.Context, d eventbus.Delivery[int]) {
			if d.Event == 7 {
				<-ctx.Done() // closed: it learns so
				<-goOn
			}
		})
		eventbus.Subscribe(b, func(context.Context, eventbus.Delivery[int]) { handled++ })
		b.Start()
		const all = 20_000
		for i := range all {
			eventbus.Publish(b, i)
			synctest.Wait()
		}
		require.Equal(t, all, handled)
		require.Contains(t, log.String(), "subscriber hangs, and gets no more events")
		require.Equal(t, 1, bytes.Count(log.Bytes(), []byte("\n")))
		require.Less(t, b.Kept(), 4000)
		close(goOn)
		<-hangs.Done()
		require.NoError(t, b.Close(t.Context()))
	})
}
