package templating

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestStopwatch: time in which the process did not run does not count.
func TestStopwatch(t *testing.T) {
	w := &stopwatch{}
	for _, passed := range []time.Duration{10 * time.Millisecond, 30 * time.Millisecond, 3 * time.Second, time.Hour} {
		w.add(passed)
	}
	if got, want := w.elapsed(), 140*time.Millisecond; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if (*stopwatch)(nil).elapsed() != 0 {
		t.Error("no stopwatch, and yet time passes")
	}
}

// TestStopwatchLimit: over is called at the limit and not before, and never by one
// that was stopped.
func TestStopwatchLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over := make(chan time.Time, 1)
		start := time.Now()
		w := startStopwatch(time.Second, func() { over <- time.Now() })
		if took := (<-over).Sub(start); took != time.Second {
			t.Errorf("over after %s", took)
		}
		time.Sleep(time.Second)
		if got := w.elapsed(); got != time.Second {
			t.Errorf("%s have passed, and the limit was 1 s", got)
		}
		w.stop()
		stopped := startStopwatch(time.Second, func() { t.Error("over, and yet it was stopped") })
		time.Sleep(500 * time.Millisecond)
		stopped.stop()
		time.Sleep(time.Second)
	})
}
