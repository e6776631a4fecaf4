package eventbus_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/hapticsdk/haptic/eventbus"
)

type benchEvent struct {
	Endpoint string
	N        int
}

type load struct{ publishers, subscribers int }

func (l load) String() string { return fmt.Sprintf("p%d/s%d", l.publishers, l.subscribers) }

var loads = []load{{1, 0}, {1, 1}, {1, 10}, {1, 100}, {4, 10}}

// BenchmarkBus measures the time for each event until all subscribers have it.
func BenchmarkBus(b *testing.B) {
	for _, l := range loads {
		b.Run(l.String(), func(b *testing.B) {
			b.ReportAllocs()
			overBus(b, l, b.N)
		})
	}
}

// counts has the events of each subscriber and the sum of their N, each on a
// cache line of its own.
type counts []struct {
	n, sum int
	_      [48]byte
}

func (c counts) add(i int, e benchEvent) {
	c[i].n++
	c[i].sum += e.N
}

func (c counts) check(b *testing.B, want int) {
	for i := range c {
		if c[i].n != want || c[i].sum != want*(want-1)/2 {
			b.Fatalf("subscriber %d got %d of %d, their sum is %d", i, c[i].n, want, c[i].sum)
		}
	}
}

func overBus(b *testing.B, l load, events int) {
	bus := eventbus.New(nil)
	got := make(counts, l.subscribers)
	for i := range got {
		eventbus.Subscribe(bus, func(_ context.Context, d eventbus.Delivery[benchEvent]) {
			got.add(i, d.Event)
		})
	}
	bus.Start()
	publish(events, l.publishers, func(i int) {
		eventbus.Publish(bus, benchEvent{Endpoint: "10.0.0.7", N: i})
	})
	if err := bus.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
	got.check(b, events)
}

func publish(n, publishers int, f func(i int)) {
	var wg sync.WaitGroup
	for p := range publishers {
		wg.Go(func() {
			for i := p; i < n; i += publishers {
				f(i)
			}
		})
	}
	wg.Wait()
}
