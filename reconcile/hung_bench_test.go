package reconcile

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
)

// slow is a target that takes its time, or hangs.
type slow struct {
	idle
	name string
	hang bool
	done chan<- time.Time
}

func (s *slow) Name() string { return s.name }

func (s *slow) Sync(ctx context.Context, _ *dataplane.Config) (*dataplane.Result, error) {
	if s.hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	time.Sleep(10 * time.Millisecond) // what a change at runtime takes
	s.done <- time.Now()
	return &dataplane.Result{Plan: &dataplane.Plan{}}, nil
}

// BenchmarkOneHungAmong100 is the time from a change to its arrival at the 99
// others, without and with one endpoint that hangs, in turns.
func BenchmarkOneHungAmong100(b *testing.B) {
	took := map[bool][]time.Duration{}
	for range b.N {
		for _, hung := range []bool{false, true} {
			took[hung] = append(took[hung], hungRound(b, hung)...)
		}
	}
	p99 := func(hung bool) float64 {
		d := took[hung]
		slices.Sort(d)
		return float64(d[len(d)*99/100].Microseconds()) / 1000
	}
	b.ReportMetric(p99(false), "p99-ms")
	b.ReportMetric(p99(true), "p99-hung-ms")
	b.ReportMetric(p99(true)/p99(false), "ratio")
}

func hungRound(b *testing.B, hung bool) (took []time.Duration) {
	const endpoints, changes = 100, 10
	done := make(chan time.Time, endpoints)
	var targets []Target
	for i := range endpoints {
		targets = append(targets, &slow{name: fmt.Sprint(i), hang: i == 0 && hung, done: done})
	}
	healthy := endpoints
	if hung {
		healthy--
	}
	change := 0
	loop, err := New(Options{Targets: targets, Debounce: time.Microsecond, Renderer: RendererFunc(func(context.Context) (*Rendered, error) {
		return &Rendered{Config: configOf(b, fmt.Sprint(change))}, nil
	})})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = loop.Run(ctx) })
	for range changes {
		change++
		start := time.Now()
		loop.Trigger("change")
		for range healthy {
			took = append(took, (<-done).Sub(start))
		}
	}
	cancel()
	wg.Wait()
	return took
}
