package reconcile

import (
	"fmt"
	"time"
)

// intervals are those of the options that may change while a loop runs.
type intervals struct {
	debounce, renderTimeout time.Duration
	timing
}

func (o *Options) intervals() *intervals {
	return &intervals{o.Debounce, o.RenderTimeout, timing{minInterval: o.MinInterval, holdRuntime: o.HoldRuntime, drift: o.DriftInterval,
		deployTimeout: o.DeployTimeout, retryBase: o.RetryBase, retryMax: o.RetryMax}}
}

// SetIntervals changes the durations of a loop, which may run: Debounce,
// MinInterval, DriftInterval, DeployTimeout, RenderTimeout, RetryBase and RetryMax
// of these options, zero meaning what it means in [Options]. The other fields are
// not looked at. Instances that wait go by the new ones at once; a call that is
// under way keeps its time-out, and a debounce that has begun its length. A negative duration is an error, and nothing changes.
func (l *Loop) SetIntervals(opts Options) error {
	for _, d := range []time.Duration{opts.Debounce, opts.MinInterval, opts.DriftInterval, opts.DeployTimeout,
		opts.RenderTimeout, opts.RetryBase, opts.RetryMax} {
		if d < 0 {
			return fmt.Errorf("reconcile: a duration in Options is negative: %s", d)
		}
	}
	opts.HoldRuntime = l.opts.HoldRuntime // no duration
	opts.setDefaults()
	l.live.Store(opts.intervals())
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pokeWorkers()
	return nil
}
