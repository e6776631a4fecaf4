package eventbus_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hapticsdk/haptic/eventbus"
)

type benchEvent struct {
	Endpoint string
	N        int
}

type load struct{ publishers, subscribers int }

func (l load) String() string { return fmt.Sprintf("p%d/s%d", l.publishers, l.subscribers) }

var loads = []load{{1, 1}, {1, 10}, {1, 100}, {4, 10}}

// BenchmarkBus measures the time for each event until all subscribers have it.
func BenchmarkBus(b *testing.B) {
	for _, l := range loads {
		b.Run(l.String(), func(b *testing.B) {
			b.ReportAllocs()
			overBus(b, l, b.N)
		})
	}
}

// BenchmarkChannels is the same work over a plain channel for each subscriber.
func BenchmarkChannels(b *testing.B) {
	for _, l := range loads {
		b.Run(l.String(), func(b *testing.B) {
			b.ReportAllocs()
			overChannels(b, l, b.N)
		})
	}
}

// BenchmarkBesideChannels has both take turns, so that whatever else the machine
// does slows down both, and reports the median of the bus's time over that of
// the channels. Each goes first every other time: who comes second may pay for
// the garbage of the other. Run it with -benchtime 20x or more: one x is 50,000
// events.
func BenchmarkBesideChannels(b *testing.B) {
	for _, l := range loads {
		b.Run(l.String(), func(b *testing.B) {
			var ratios []float64
			for i := range b.N {
				const events = 50_000
				var bus, channels time.Duration
				if i%2 == 0 {
					bus = overBus(b, l, events)
				}
				channels = overChannels(b, l, events)
				if i%2 != 0 {
					bus = overBus(b, l, events)
				}
				ratios = append(ratios, float64(bus)/float64(channels))
			}
			slices.Sort(ratios)
			b.ReportMetric(ratios[len(ratios)/2], "x/channels")
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

func overBus(b *testing.B, l load, events int) time.Duration {
	bus := eventbus.New(nil)
	got := make(counts, l.subscribers)
	for i := range got {
		eventbus.Subscribe(bus, eventbus.Lossless, func(_ context.Context, d eventbus.Delivery[benchEvent]) {
			got.add(i, d.Event)
		})
	}
	bus.Start()
	start := time.Now()
	publish(events, l.publishers, func(i int) {
		eventbus.Publish(bus, benchEvent{Endpoint: "10.0.0.7", N: i})
	})
	if err := bus.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
	took := time.Since(start)
	got.check(b, events)
	return took
}

func overChannels(b *testing.B, l load, events int) time.Duration {
	chans := make([]chan benchEvent, l.subscribers)
	got := make(counts, l.subscribers)
	var wg sync.WaitGroup
	for i := range chans {
		chans[i] = make(chan benchEvent, 1024)
		wg.Go(func() {
			for e := range chans[i] {
				got.add(i, e)
			}
		})
	}
	start := time.Now()
	publish(events, l.publishers, func(i int) {
		for _, c := range chans {
			c <- benchEvent{Endpoint: "10.0.0.7", N: i}
		}
	})
	for _, c := range chans {
		close(c)
	}
	wg.Wait()
	took := time.Since(start)
	got.check(b, events)
	return took
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
