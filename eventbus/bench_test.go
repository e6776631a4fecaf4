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

var loads = []struct{ publishers, subscribers int }{{1, 1}, {1, 10}, {1, 100}, {4, 10}}

// BenchmarkBus measures the time for each event until all subscribers have it.
func BenchmarkBus(b *testing.B) {
	for _, l := range loads {
		b.Run(fmt.Sprintf("p%d/s%d", l.publishers, l.subscribers), func(b *testing.B) {
			b.ReportAllocs()
			bus := eventbus.New(nil)
			sums := make([]struct {
				n int
				_ [56]byte
			}, l.subscribers)
			for i := range sums {
				eventbus.Subscribe(bus, eventbus.Lossless, func(_ context.Context, d eventbus.Delivery[benchEvent]) {
					sums[i].n++
				})
			}
			bus.Start()
			b.ResetTimer()
			publish(b.N, l.publishers, func(i int) {
				eventbus.Publish(bus, benchEvent{Endpoint: "10.0.0.7", N: i})
			})
			if err := bus.Close(context.Background()); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			for i := range sums {
				if sums[i].n != b.N {
					b.Fatalf("subscriber %d got %d of %d", i, sums[i].n, b.N)
				}
			}
		})
	}
}

// BenchmarkChannels is the same work over a plain channel for each subscriber.
func BenchmarkChannels(b *testing.B) {
	for _, l := range loads {
		b.Run(fmt.Sprintf("p%d/s%d", l.publishers, l.subscribers), func(b *testing.B) {
			b.ReportAllocs()
			chans := make([]chan benchEvent, l.subscribers)
			sums := make([]struct {
				n int
				_ [56]byte
			}, l.subscribers)
			var wg sync.WaitGroup
			for i := range chans {
				chans[i] = make(chan benchEvent, 1024)
				wg.Go(func() {
					for range chans[i] {
						sums[i].n++
					}
				})
			}
			b.ResetTimer()
			publish(b.N, l.publishers, func(i int) {
				for _, c := range chans {
					c <- benchEvent{Endpoint: "10.0.0.7", N: i}
				}
			})
			for _, c := range chans {
				close(c)
			}
			wg.Wait()
		})
	}
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
