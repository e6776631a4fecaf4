package eventbus_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/eventbus"
)

func TestOneTotalOrder(t *testing.T) {
	b := eventbus.New(nil)
	type seen struct {
		seq   uint64
		event any
	}
	got := make([][]seen, 3)
	for i := range got {
		eventbus.Subscribe(b, func(_ context.Context, d eventbus.Delivery[any]) {
			got[i] = append(got[i], seen{d.Seq, d.Event})
		})
	}
	b.Start()
	const publishers, each = 4, 2000
	var wg sync.WaitGroup
	for p := range publishers {
		wg.Go(func() {
			for n := range each {
				if n%3 == 0 {
					eventbus.Publish(b, &failed{Endpoint: string(rune('a' + p))})
				} else {
					eventbus.Publish(b, deployed{Endpoint: string(rune('a' + p)), N: n})
				}
			}
		})
	}
	wg.Wait()
	closeBus(t, b)

	last := map[string]int{}
	for i, s := range got[0] {
		require.Equal(t, uint64(i+1), s.seq, "event")
		if d, ok := s.event.(deployed); ok {
			require.Greater(t, d.N, last[d.Endpoint])
			last[d.Endpoint] = d.N
		}
	}
	require.Len(t, got[0], publishers*each)
	for i := range got {
		require.True(t, slices.Equal(got[i], got[0]), "subscriber %d saw another order", i)
	}
}

// Two handlers answer each other's events: one that slept without having seen
// the last event would end the game.
func TestNoWakeIsLost(t *testing.T) {
	type ping int
	type pong int
	const rounds = 5_000
	b := eventbus.New(nil)
	over := make(chan struct{})
	eventbus.Subscribe(b, func(_ context.Context, d eventbus.Delivery[ping]) { eventbus.Publish(b, pong(d.Event)) })
	eventbus.Subscribe(b, func(_ context.Context, d eventbus.Delivery[pong]) {
		if d.Event == rounds {
			close(over)
			return
		}
		eventbus.Publish(b, ping(d.Event+1))
	})
	b.Start()
	eventbus.Publish(b, ping(1))
	<-over
	closeBus(t, b)
	require.Equal(t, uint64(2*rounds), b.Stats().Published)
}
