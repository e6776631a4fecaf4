package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
)

// Options of a [Loop]. Renderer is required; every other zero value is the
// recommended behaviour.
type Options struct {
	Renderer  Renderer
	Validator Validator // zero: whatever renders is deployed
	Leader    Leader    // zero: this process always leads
	Targets   []Target  // to start with; see SetTargets

	// Recorder speaks of a resource that is left out, or in quarantine, once for
	// each change of it; nil: nobody does.
	Recorder Recorder

	// NoQuarantine keeps the last good configuration whatever is wrong. Zero:
	// where a resource is at fault, it alone is left out, also where only an
	// instance refuses it. That takes a Renderer
	// that asks [Excluding] and knows its [Origins], as [Templates] do.
	NoQuarantine    bool
	QuarantineTries int           // rounds of leaving more out in one reconciliation; zero: 10
	TrialBase       time.Duration // until a resource in quarantine is tried again though it did not change, doubling; zero: 1 min
	TrialMax        time.Duration // longest wait between two trials; zero: 1 h

	// Bus gets the events of the loop; nil: nobody hears them.
	Bus *eventbus.Bus

	Debounce      time.Duration // between two renders, at most; zero: 500 ms. The first trigger acts at once
	MinInterval   time.Duration // between two reloads of one instance; zero: 2 s. Runtime changes do not wait
	HoldRuntime   bool          // MinInterval is between any two changes of an instance, with a reload or without
	DriftInterval time.Duration // idle time after which an instance is checked; zero: 60 s
	DeployTimeout time.Duration // of one deployment to one instance; zero: 30 s
	RenderTimeout time.Duration // of one render; zero: 30 s
	RetryBase     time.Duration // first wait after a failed deployment or reconciliation, doubling; zero: 1 s
	RetryMax      time.Duration // longest wait between two tries; zero: 60 s
}

func (o *Options) setDefaults() {
	for _, d := range []struct {
		v    *time.Duration
		zero time.Duration
	}{
		{&o.Debounce, 500 * time.Millisecond},
		{&o.MinInterval, 2 * time.Second},
		{&o.DriftInterval, time.Minute},
		{&o.DeployTimeout, 30 * time.Second},
		{&o.RenderTimeout, 30 * time.Second},
		{&o.RetryBase, time.Second},
		{&o.RetryMax, time.Minute},
		{&o.TrialBase, time.Minute},
		{&o.TrialMax, time.Hour},
	} {
		if *d.v == 0 {
			*d.v = d.zero
		}
	}
	if o.QuarantineTries == 0 {
		o.QuarantineTries = 10
	}
}

// Loop keeps every target on the newest valid configuration. Its methods may
// be called from any goroutine.
type Loop struct {
	opts Options
	bus  *eventbus.Bus

	live atomic.Pointer[intervals]

	wake chan struct{} // of size 1: a trigger while one waits is the same trigger

	mu      sync.Mutex
	reasons []string
	targets []Target
	changed chan struct{} // closed when targets change
	workers map[string]*worker
	sched   schedule
	refused map[Refusal]bool // and whether that was recorded
	release bool             // what is in quarantine is to be tried

	answers   []answer  // of instances, that the next reconciliation draws conclusions from
	returned  []string  // instances that refused something, and are new again
	inquiring time.Time // when the instance that is asked must have answered; zero: none is
	state     State
	atRest    map[Target]InstanceState // outside of Run: what Once found
	running   bool

	rendering  sync.Mutex // one render at a time: Run, Once and Preview share the renderer
	lastID     uint64     // guarded by rendering, as is what follows
	attempts   int        // to render and validate, of the reconciliation under way
	failures   int        // reconciliations that failed, in a row
	quarantine quarantine
}

// New makes a loop that waits for Run, Once or Preview.
func New(opts Options) (*Loop, error) {
	if opts.Renderer == nil {
		return nil, errors.New("reconcile: Options.Renderer is missing")
	}
	for _, d := range []time.Duration{opts.Debounce, opts.MinInterval, opts.DriftInterval, opts.DeployTimeout,
		opts.RenderTimeout, opts.RetryBase, opts.RetryMax, opts.TrialBase, opts.TrialMax} {
		if d < 0 {
			return nil, fmt.Errorf("reconcile: a duration in Options is negative: %s", d)
		}
	}
	if opts.QuarantineTries < 0 {
		return nil, fmt.Errorf("reconcile: Options.QuarantineTries is negative: %d", opts.QuarantineTries)
	}
	opts.setDefaults()
	l := &Loop{
		opts:    opts,
		bus:     opts.Bus,
		wake:    make(chan struct{}, 1),
		changed: make(chan struct{}),
		workers: map[string]*worker{},
		sched:   schedule{instances: map[string]*instanceState{}},
		refused: map[Refusal]bool{},
	}
	l.live.Store(l.opts.intervals())
	if l.opts.Leader != nil {
		l.opts.Leader = &terms{Leader: l.opts.Leader, began: l.forget}
	}
	if err := l.SetTargets(opts.Targets...); err != nil {
		return nil, err
	}
	return l, nil
}

// Trigger asks for a reconciliation. It never blocks; triggers that come while
// one waits are one.
func (l *Loop) Trigger(reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trigger(reason)
}

// trigger is Trigger for a caller that holds l.mu.
func (l *Loop) trigger(reason string) {
	if len(l.reasons) < 16 { // enough to explain, bounded under a storm
		l.reasons = append(l.reasons, reason)
	}
	eventbus.Publish(l.bus, ReconciliationTriggered{Reason: reason})
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// LeadershipChanged makes every instance ask its [Leader] again, at once, and
// deploy in a new term whatever was deployed in an older one: another process
// may have changed it in between.
func (l *Loop) LeadershipChanged() {
	l.forget()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sched.newTerm()
	l.pokeWorkers()
}

// Run reconciles until ctx ends, and returns nil when everything that it
// started has ended. It may run once at a time.
func (l *Loop) Run(ctx context.Context) error {
	l.mu.Lock()
	if l.running {
		l.mu.Unlock()
		return errors.New("reconcile: the loop is already running")
	}
	l.running, l.atRest = true, nil // whatever Once found: it looks anew
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		l.running = false
		l.mu.Unlock()
	}()

	var wg sync.WaitGroup
	wg.Go(func() { l.runWorkers(ctx) })
	l.runRenders(ctx)
	wg.Wait()
	return nil
}

func (l *Loop) runRenders(ctx context.Context) {
	pace := pacer{}
	failures := 0
	for {
		if !l.triggered(ctx, failures) {
			return
		}
		if !sleepUntil(ctx, pace.at(time.Now())) {
			return
		}
		// What is triggered from here on is a new reconciliation: it may come
		// from a change that this one does not see any more.
		select {
		case <-l.wake:
		default:
		}
		start := time.Now()
		// A failure is published and kept in the state.
		_, unchanged, err := l.reconcile(ctx)
		pace.hold = l.live.Load().debounce
		pace.acted(start, time.Now(), unchanged)
		failures++
		if err == nil {
			failures = 0
		}
	}
}

// triggered waits for a trigger. A reconciliation that failed is tried again
// without one, with back-off: what it lacked, such as room on a disk, may come
// back without a change of any resource. It reports false when ctx ended first.
func (l *Loop) triggered(ctx context.Context, failures int) bool {
	var retry <-chan time.Time
	if failures > 0 {
		timer := time.NewTimer(l.timing().backOff(failures))
		defer timer.Stop()
		retry = timer.C
	}
	var trial <-chan time.Time
	if at := l.nextTrial(); !at.IsZero() {
		timer := time.NewTimer(time.Until(at))
		defer timer.Stop()
		trial = timer.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-l.wake:
	case <-retry:
		l.Trigger("the failure before")
	case <-trial:
		l.Trigger("a trial of what is in quarantine")
	}
	return true
}

// sleepUntil reports false when ctx ended first.
func sleepUntil(ctx context.Context, at time.Time) bool {
	wait := time.Until(at)
	if wait <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// reconcile renders and validates once, and hands the outcome to the workers,
// unless it is unchanged.
func (l *Loop) reconcile(ctx context.Context) (v *validated, unchanged bool, err error) {
	l.rendering.Lock()
	defer l.rendering.Unlock()
	l.lastID++
	l.attempts = 0
	id, start := l.lastID, time.Now()
	l.mu.Lock()
	reasons := l.reasons
	l.reasons = nil
	l.mu.Unlock()
	eventbus.Publish(l.bus, ReconciliationStarted{ID: id, Reasons: reasons})

	heard := l.hear(ctx, id)
	defer func() { l.concluded(heard) }()
	v, err = l.renderAndValidate(ctx, id)
	if err != nil {
		if ctx.Err() != nil {
			return nil, false, ctx.Err() // the loop ends: nothing failed
		}
		l.mu.Lock()
		l.state.LastError, l.state.LastErrorAt = err.Error(), time.Now()
		l.mu.Unlock()
		l.failures++
		eventbus.Publish(l.bus, ReconciliationFailed{ID: id, Err: err, Took: time.Since(start), Reasons: reasons, Failures: l.failures})
		return nil, false, err
	}
	unchanged = l.accept(v)
	if !l.leading() { // another process deploys it, or its like: nothing else would tell the renderer
		l.settled(v.rendered(), nil)
	}
	eventbus.Publish(l.bus, ReconciliationCompleted{ID: id, Hash: v.config.Hash(), Unchanged: unchanged, Took: time.Since(start),
		Reasons: reasons, Rendered: v.made, Attempts: l.attempts, Failures: l.failures})
	l.failures = 0
	l.inquire(ctx, id)
	return v, unchanged, nil
}

// accept makes v the newest configuration and wakes the workers.
func (l *Loop) accept(v *validated) (unchanged bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state.LastError = ""
	if newest := l.sched.newest; v.same(newest) {
		// It is the same text, but of other versions of the resources: who is
		// accused because of it must be so as it is now.
		l.sched.accepted(&validated{id: newest.id, config: newest.config, origins: v.origins, at: newest.at, without: v.without})
		return true
	}
	l.sched.accepted(v)
	for name, w := range l.workers {
		switch has := v.same(l.sched.instances[name].have); {
		case has:
			w.public.StaleSince = time.Time{}
			w.public.Error, w.public.Failures, w.public.RetryAt = "", 0, time.Time{}
		case w.public.StaleSince.IsZero():
			w.public.StaleSince = v.at
		}
	}
	l.pokeWorkers()
	return false
}

// renderAndValidate makes a valid configuration, if need be without what is at
// fault.
func (l *Loop) renderAndValidate(ctx context.Context, id uint64) (*validated, error) {
	first, s := l.settle(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if s.last.err != nil {
		l.quarantine.pending = nil
		if s.tired && len(s.accused) > 0 { // the rest is found next time
			l.quarantine.pending = s.accused
			l.Trigger("the search for what is at fault goes on")
		}
		if first.blamed != nil {
			first.blamed.Why = s.why
		}
		l.reportRender(id, first)
		l.reportFailure(id, first)
		return nil, first.err
	}
	if first.err != nil && !s.trial { // a trial that fails is no news
		l.reportFailure(id, first)
	}
	made := l.reportRender(id, s.last)
	cfg := s.last.rendered.Config
	eventbus.Publish(l.bus, ValidationCompleted{ID: id, Hash: cfg.Hash(), Took: s.last.validateTook})
	l.adopt(id, s)
	return &validated{id: id, config: cfg, origins: s.last.rendered.Origins, at: time.Now(), without: s.last.excluded, made: made}, nil
}

// reportRender says what an attempt rendered, if it did.
func (l *Loop) reportRender(id uint64, a *attempt) (made TemplateRendered) {
	if a.rendered == nil || a.rendered.Config == nil {
		return made
	}
	cfg := a.rendered.Config
	l.reportRefusals(id, a.rendered.Refused)
	l.mu.Lock()
	l.state.Rendered = cfg.Hash()
	l.mu.Unlock()
	made = TemplateRendered{
		ID: id, Hash: cfg.Hash(), Sections: cfg.SectionCount(), Lines: strings.Count(cfg.Main(), "\n"), Files: len(cfg.Files()),
		Refused: len(a.rendered.Refused), Resources: maps.Clone(a.rendered.Resources), Took: a.renderTook,
	}
	eventbus.Publish(l.bus, made)
	return made
}

// reportFailure says why an attempt led to nothing.
func (l *Loop) reportFailure(id uint64, a *attempt) {
	if a.rendered == nil || a.rendered.Config == nil {
		eventbus.Publish(l.bus, TemplateRenderFailed{ID: id, Err: a.err, Took: a.renderTook})
		return
	}
	eventbus.Publish(l.bus, ValidationFailed{ID: id, Hash: a.rendered.Config.Hash(), Err: a.err, Took: a.validateTook})
}

func (l *Loop) render(ctx context.Context) (rendered *Rendered, err error) {
	ctx, cancel := context.WithTimeout(ctx, l.live.Load().renderTimeout)
	defer cancel()
	err = guard(func() (err error) {
		rendered, err = l.opts.Renderer.Render(ctx)
		return err
	})
	if err == nil && (rendered == nil || rendered.Config == nil) {
		err = errors.New("the renderer returned no configuration")
	}
	return rendered, err
}

// reportRefusals publishes what is refused since now and what is no longer.
func (l *Loop) reportRefusals(id uint64, refused []Refusal) {
	now := make(map[Refusal]bool, len(refused))
	l.mu.Lock()
	before := l.refused
	l.state.Refused = refused
	l.mu.Unlock()
	for _, r := range refused {
		recorded, was := before[r.still()]
		if !was {
			eventbus.Publish(l.bus, ResourceRefused{ID: id, Refusal: r})
		}
		now[r.still()] = recorded || l.record(r.Object, eventWarning, "Refused", r.what())
	}
	l.mu.Lock()
	l.refused = now
	l.mu.Unlock()
	for r := range before {
		if _, still := now[r]; !still {
			eventbus.Publish(l.bus, ResourceAccepted{ID: id, Refusal: r})
		}
	}
}

// guard makes an error of a panic in f.
func guard(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return f()
}

// retryable reports whether the same deployment may succeed soon. A reload that
// failed may: what it lacked, such as a free port, is often outside of the
// configuration, which was validated after all.
func retryable(err error) bool {
	var panicked *PanicError
	if errors.As(err, &panicked) {
		return false
	}
	return errors.Is(err, dataplane.ErrReload) || dataplane.Retryable(err)
}
