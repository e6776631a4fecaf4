package reconcile

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
)

// slow is a target that takes a fixed time, or hangs.
type slow struct {
	idle
	name string
	hang bool
	done chan<- time.Time
}

func (s *slow) Name() string { return s.name }

func (s *slow) Sync(ctx context.Context, _ *dataplane.Config, options ...dataplane.SyncOption) (*dataplane.Result, error) {
	if s.hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	time.Sleep(10 * time.Millisecond) // what a change at runtime takes
	s.done <- time.Now()
	return &dataplane.Result{Plan: &dataplane.Plan{}}, nil
}

// BenchmarkHungAmong100 is the time from a change to its arrival at those of 100
// instances that do not hang, and the processor time of a change, beside the same
// without any that hangs. Rounds with and without take turns, in both orders, and
// medians of the rounds are compared, so that what else the machine does is in
// both.
func BenchmarkHungAmong100(b *testing.B) {
	for _, hung := range []int{0, 1, 2, 10, 50} { // 0 says how far two equal things are apart
		b.Run(fmt.Sprint(hung), func(b *testing.B) {
			var with, without hungFigures
			for i := range b.N {
				if i%2 == 0 {
					without.add(hungRound(b, 0))
					with.add(hungRound(b, hung))
				} else {
					with.add(hungRound(b, hung))
					without.add(hungRound(b, 0))
				}
			}
			b.ReportMetric(median(without.p99)*1000, "p99-ms")
			b.ReportMetric(median(with.p99)*1000, "p99-hung-ms")
			b.ReportMetric(median(with.p99)/median(without.p99), "p99-ratio")
			b.ReportMetric(median(with.cpu)/median(without.cpu), "cpu-ratio")
		})
	}
}

// hungFigures are those of rounds, in seconds.
type hungFigures struct{ p99, cpu []float64 }

func (f *hungFigures) add(p99, cpu time.Duration) {
	f.p99, f.cpu = append(f.p99, p99.Seconds()), append(f.cpu, cpu.Seconds())
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// hungRound makes changes one after the other, each once the one before has
// arrived everywhere.
func hungRound(b *testing.B, hung int) (p99, cpu time.Duration) {
	const instances, changes = 100, 20
	done := make(chan time.Time, instances)
	var targets []Target
	for i := range instances {
		targets = append(targets, &slow{name: fmt.Sprint(i), hang: i < hung, done: done})
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
	var took []time.Duration
	before := processorTime(b)
	for range changes {
		change++
		start := time.Now()
		loop.Trigger("change")
		for range instances - hung {
			took = append(took, (<-done).Sub(start))
		}
	}
	cpu = processorTime(b) - before
	cancel()
	wg.Wait()
	slices.Sort(took)
	return took[len(took)*99/100], cpu
}
