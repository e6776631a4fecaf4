package reconcile

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/hapticsdk/haptic/eventbus"
)

// Options configure a [Loop]. Renderer is required. Every other zero value is the
// recommended behaviour.
type Options struct {
	Renderer  Renderer
	Validator Validator // zero: every render is deployed
	Leader    Leader    // zero: this process always leads
	Targets   []Target  // to start with; see SetTargets

	// BeginTerm runs when a term of the Leader begins. In that term the loop deploys only
	// what it began to render afterwards. Another process may have deployed changes that the
	// watches of this one missed: k8swatch's Group.Refresh brings them up to date. ctx is
	// that of Run. Bound the wait, because no instance changes meanwhile. Zero: the loop
	// deploys at once what was valid before the term.
	BeginTerm func(ctx context.Context)

	// Recorder tells the owner when a resource is refused, quarantined or released, once for
	// each change; nil: owners are not told. After 10 warnings an object gets one in 10 seconds,
	// after 100 a namespace gets one a second. Others wait, and are sent if they are still true.
	Recorder Recorder

	// View is what the Renderer reads, such as a k8swatch.View. With it the loop quarantines
	// the resource at fault alone, even if only an instance refuses it. The [Origins] of the
	// Renderer name that resource; without them the loop finds it by halves, and no instance
	// can name one. Zero: the last good configuration stays, whatever is wrong.
	View View

	// NoQuarantine keeps the last good configuration whatever is wrong, as without a View.
	NoQuarantine bool

	// QuarantineTries bounds the rounds of a search in one reconciliation; once the templates
	// have made a valid configuration, 3 does if that is less. For each instance
	// it bounds the refusals in a row, and the resources quarantined because of it. Zero: 10.
	QuarantineTries int

	QuarantineBase time.Duration // first wait before an unchanged quarantined resource is tried again, doubling; zero: 1 min
	QuarantineMax  time.Duration // longest wait before it is tried again; zero: 1 h

	// Bus gets the events of the loop; nil: no events are published.
	Bus *eventbus.Bus

	Debounce      time.Duration // longest hold between two renders, after a failure and under a storm; zero: 500 ms. See package
	MinInterval   time.Duration // between two reloads of one instance; zero: 2 s. Runtime changes do not wait
	DriftInterval time.Duration // idle time after which an instance is checked; zero: 60 s
	DeployTimeout time.Duration // of one deployment to one instance; zero: 30 s
	RenderTimeout time.Duration // of one render; zero: 30 s
	RetryBase     time.Duration // first wait after a failed deployment or reconciliation, doubling; zero: 1 s
	RetryMax      time.Duration // longest wait between two tries; zero: 60 s

	// StallTime is how long something may take to end before the checks of
	// package observe call it stalled. It belongs far above all time-outs. It is at least
	// DeployTimeout plus twice RenderTimeout: whatever a time-out ends is slow, not stalled.
	// Zero: 5 min.
	StallTime time.Duration
}

// Interval is one duration of [Options]. A new one is a field there and a row of
// [Options.Intervals].
type Interval struct {
	Name     string        // in settings, such as "debounceInterval"; empty: fixed while a loop runs
	Doc      string        // for users of settings, without the default
	Default  time.Duration // what zero means
	Min, Max time.Duration // bounds of settings, beyond which a value is mistyped; zero: none
	Value    *time.Duration
}

// Intervals returns the table of all durations, each with its place in o.
func (o *Options) Intervals() []Interval {
	const short, long = 10 * time.Millisecond, 24 * time.Hour
	return []Interval{
		{
			"debounceInterval",
			"Longest hold between two renders, after a failure and under a storm of changes. Otherwise the hold is 20 ms, or twice as long as the reconciliation before took.",
			500 * time.Millisecond,
			0,
			long,
			&o.Debounce,
		},
		{"minDeploymentInterval", "Shortest time between two reloads of one instance.", 2 * time.Second, 0, long, &o.MinInterval},
		{"driftPreventionInterval", "Idle time after which an instance is checked for drift.", time.Minute, 0, 0, &o.DriftInterval}, // a long one turns it off
		{"deploymentTimeout", "Time limit of one deployment to one instance.", 30 * time.Second, short, long, &o.DeployTimeout},
		{"renderTimeout", "Time limit of one render.", 30 * time.Second, short, long, &o.RenderTimeout},
		{"retryInterval", "First wait after a failure, doubling.", time.Second, 0, long, &o.RetryBase},
		{"retryMaxInterval", "Longest wait between two tries.", time.Minute, 0, long, &o.RetryMax},
		{"stallTime", "A health check fails when something does not end for so long.", 5 * time.Minute, 10 * time.Second, long, &o.StallTime},
		{"", "", time.Minute, 0, 0, &o.QuarantineBase},
		{"", "", time.Hour, 0, 0, &o.QuarantineMax},
	}
}

// WithDefaults returns the options with defaults in place of zero values.
func (o Options) WithDefaults() Options {
	for _, i := range o.Intervals() {
		if *i.Value == 0 {
			*i.Value = i.Default
		}
	}
	if o.QuarantineTries == 0 {
		o.QuarantineTries = 10
	}
	return o
}

// isNil reports whether an interface holds no value that can be called.
func isNil(v any) bool {
	switch rv := reflect.ValueOf(v); rv.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Func, reflect.Map:
		return rv.IsNil()
	}
	return false
}

// check refuses options that make no sense. A nil pointer in an interface is no nil
// interface: the loop would call it, and fail much later.
func (o *Options) check() error {
	if o.Renderer == nil {
		return errors.New("reconcile: Options.Renderer is missing")
	}
	for _, f := range []struct {
		name  string
		value any
	}{{"Renderer", o.Renderer}, {"Validator", o.Validator}, {"Leader", o.Leader}, {"Recorder", o.Recorder}, {"View", o.View}} {
		if f.value != nil && isNil(f.value) {
			return fmt.Errorf("reconcile: Options.%s is a nil %T: set it, or leave the field out", f.name, f.value)
		}
	}
	for _, i := range o.Intervals() {
		if *i.Value < 0 {
			return fmt.Errorf("reconcile: Options.%s is negative: %s: want 0, for %s, or more", o.fieldOf(i.Value), *i.Value, i.Default)
		}
	}
	if o.QuarantineTries < 0 {
		return fmt.Errorf("reconcile: Options.QuarantineTries is negative: %d: want 0, for 10, or more", o.QuarantineTries)
	}
	return nil
}

// stallTime returns StallTime or, if longer, the time that a deployment and two renders may
// take. The second render finds the cause of a failure.
func (o *Options) stallTime() time.Duration {
	return max(o.StallTime, o.DeployTimeout+2*o.RenderTimeout)
}

// fieldOf returns the name of the field that a row of Intervals leads to.
func (o *Options) fieldOf(value *time.Duration) string {
	fields := reflect.ValueOf(o).Elem()
	for i := range fields.NumField() {
		if fields.Field(i).Addr().Interface() == any(value) {
			return fields.Type().Field(i).Name
		}
	}
	return ""
}

// SetIntervals changes the durations of a loop, which may be running. It takes those of opts
// that have a name in [Options.Intervals]; zero means the default. It ignores the other
// fields. Waiting instances use the new ones at once. A call under way keeps its time-out,
// and a hold that has begun keeps its length. A negative duration is an error, and nothing
// changes.
func (l *Loop) SetIntervals(opts Options) error {
	set := l.opts
	given := opts.Intervals()
	for n, i := range set.Intervals() {
		if i.Name != "" {
			*i.Value = *given[n].Value
		}
	}
	if err := set.check(); err != nil {
		return err
	}
	set = set.WithDefaults()
	l.live.Store(&set)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pokeWorkers()
	return nil
}
