package templating

import (
	"context"
	"sync/atomic"
	"time"
)

// stopwatch measures the time in which this process ran. A clock goes on while
// the machine stands still or is busy with others; measured by that, an object
// that a template was at by chance has taken all of it, and the search for what is
// wrong is over before it began.
type stopwatch struct {
	ran  atomic.Int64 // nanoseconds
	quit chan struct{}
	done chan struct{}
}

// How often a stopwatch looks at the clock, and how much of what passed since
// counts at most.
const (
	stopwatchTick = 10 * time.Millisecond
	stopwatchMost = 5 * stopwatchTick
)

// startStopwatch starts one that calls over, if that is not nil, when the process
// has run for limit. It must be stopped.
func startStopwatch(limit time.Duration, over func()) *stopwatch {
	w := &stopwatch{quit: make(chan struct{}), done: make(chan struct{})}
	go w.run(limit, over)
	return w
}

func (w *stopwatch) run(limit time.Duration, over func()) {
	defer close(w.done)
	ticker := time.NewTicker(stopwatchTick)
	defer ticker.Stop()
	for last := time.Now(); w.elapsed() < limit; {
		select {
		case <-w.quit:
			return
		case <-ticker.C:
			now := time.Now()
			w.add(now.Sub(last))
			last = now
		}
	}
	if over != nil {
		over()
	}
}

// add counts what passed between two looks at the clock.
func (w *stopwatch) add(passed time.Duration) { w.ran.Add(int64(min(passed, stopwatchMost))) }

// elapsed says for how long the process has run, the limit at most; zero without
// a stopwatch.
func (w *stopwatch) elapsed() time.Duration {
	if w == nil {
		return 0
	}
	return time.Duration(w.ran.Load())
}

// stop ends a stopwatch, and returns when it has ended.
func (w *stopwatch) stop() {
	close(w.quit)
	<-w.done
}

// stopwatchKey finds the stopwatch of a traced render in its context.
type stopwatchKey struct{}

func withStopwatch(ctx context.Context, w *stopwatch) context.Context {
	return context.WithValue(ctx, stopwatchKey{}, w)
}

func stopwatchOf(ctx context.Context) *stopwatch {
	w, _ := ctx.Value(stopwatchKey{}).(*stopwatch)
	return w
}
