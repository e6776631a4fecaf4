package kit

import (
	"time"

	"github.com/hapticsdk/haptic/reconcile"
)

// IntervalFlags say how often the loop acts. Their defaults are those of [reconcile.Options].
type IntervalFlags struct {
	Debounce, MinInterval, Drift, Stall time.Duration
}

// Declare declares -debounce, -min-interval, -drift-interval and -stall-time.
func (i *IntervalFlags) Declare(f *Flags) {
	usual := reconcile.Options{}.WithDefaults()
	f.DurationVar(&i.Debounce, "debounce", usual.Debounce, "longest hold between two renders, after a failure and under a storm of changes; otherwise it is "+
		"about 20 ms")
	f.DurationVar(&i.MinInterval, "min-interval", usual.MinInterval, "time between two reloads of one HAProxy")
	f.DurationVar(&i.Drift, "drift-interval", usual.DriftInterval, "idle time after which a HAProxy is checked")
	f.DurationVar(&i.Stall, "stall-time", usual.StallTime, "/healthz fails when an operation hangs this long; keep it far above all time-outs")
}

// Check checks the values.
func (i *IntervalFlags) Check(f *Flags) {
	f.CheckAbove("debounce", i.Debounce)
	f.CheckAbove("min-interval", i.MinInterval)
	f.CheckAbove("drift-interval", i.Drift)
	f.Check("stall-time", i.Stall >= 10*time.Second, "10s or more, such as 5m")
}

// Set sets the intervals of a loop.
func (i *IntervalFlags) Set(opts *reconcile.Options) {
	opts.Debounce, opts.MinInterval, opts.DriftInterval, opts.StallTime = i.Debounce, i.MinInterval, i.Drift, i.Stall
}
