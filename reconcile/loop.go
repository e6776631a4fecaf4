package reconcile

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/internal/rendering"
	"github.com/hapticsdk/haptic/reconcile/internal/quarantine"
)

// Loop keeps every target on the newest valid configuration. Any goroutine may call its
// methods.
type Loop struct {
	opts Options
	bus  *eventbus.Bus

	live atomic.Pointer[Options] // with the current intervals

	wake chan struct{} // of size 1: a trigger while one waits is the same trigger

	mu      sync.Mutex
	reasons []string
	targets []Target
	changed chan struct{} // closed when targets change
	workers map[string]*worker
	sched   schedule
	terms   *terms           // nil without Options.BeginTerm
	refused map[Refusal]bool // true: the Recorder has it
	release bool             // Release was called: try quarantined resources again

	reports []report   // refusals by instances, for the next reconciliation
	left    []string   // instances that left since the last reconciliation
	rolling *validated // a revision that some instances still have to get; nil: none
	rolls   time.Time  // since when
	refetch uint64     // the reconciliation to make again without its fetched contents
	state   State
	running bool   // one of Run, Once and Preview
	hurry   func() // gives up a try of quarantined resources that takes too long

	callbacks sync.Mutex     // guards panics
	panics    map[string]int // of callbacks, in a row

	refusing   sync.Mutex    // one refusal at a time goes to the renderer
	rendering  sync.Mutex    // one render at a time: Run, Once and Preview share the renderer
	lastID     uint64        // guarded by rendering, like the fields below
	term       uint64        // the newest whose BeginTerm returned before the current reconciliation
	attempts   int           // renders and validations of the current reconciliation
	failures   int           // reconciliations that failed, in a row
	longest    time.Duration // longest validation of a valid configuration
	rendered   time.Duration // time of the last valid render
	took       time.Duration // with its validation
	reported   []Refusal     // refusals of the last render that was reported
	allHeard   bool          // the Recorder has all of these
	view       View
	quarantine *quarantine.Quarantine
	recorded   map[rendering.Key]bool // quarantined objects that the Recorder has
	untold     []quarantine.Change    // that the next event tells
	toldAt     time.Time
	tellEvery  time.Duration // see tellTogether
	hung       time.Time     // when something was tried last that hung before
	gaveUp     *attempt      // for which a search found no resource at fault
	gaveUpAs   string        // and why it found none
}

// New makes a loop that waits for Run, Once or Preview.
func New(opts Options) (*Loop, error) {
	if err := opts.check(); err != nil {
		return nil, err
	}
	opts = opts.WithDefaults()
	l := &Loop{
		opts:    opts,
		bus:     opts.Bus,
		wake:    make(chan struct{}, 1),
		changed: make(chan struct{}),
		hurry:   func() {},
		workers: map[string]*worker{},
		sched:   schedule{instances: map[string]*instanceState{}},
		refused: map[Refusal]bool{},
		panics:  map[string]int{},

		view:       opts.View,
		recorded:   map[rendering.Key]bool{},
		quarantine: quarantine.New(quarantine.Options{Tries: opts.QuarantineTries, Base: opts.QuarantineBase, Max: opts.QuarantineMax, KeyOf: keyOf}),
	}
	if l.view == nil || opts.NoQuarantine {
		l.view = noView{}
	}
	l.terms = newTerms(&l.opts)
	l.live.Store(&opts)
	if err := l.SetTargets(opts.Targets...); err != nil {
		return nil, err
	}
	return l, nil
}

// Trigger asks for a reconciliation. It never blocks. Triggers that come while one waits
// count as one.
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
	l.hurry()
}

// Run reconciles until ctx ends, and returns nil when everything that it started has ended.
// Only one Run may run at a time.
func (l *Loop) Run(ctx context.Context) error {
	l.mu.Lock()
	if l.running {
		l.mu.Unlock()
		return errors.New("reconcile: the loop is already running")
	}
	l.running = true
	l.dropWorkers(nil) // the workers of Once: Run begins anew
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
		if !sleepUntil(ctx, pace.at(time.Now(), failures > 0 || l.isRefused())) {
			return
		}
		// A trigger from here on needs another reconciliation: it may come from a change
		// that this one no longer sees.
		select {
		case <-l.wake:
		default:
		}
		start := time.Now()
		// A failure is published and kept in the state.
		_, unchanged, err := l.reconcile(ctx)
		pace.acted(start, time.Now(), l.live.Load().Debounce, unchanged)
		failures++
		if err == nil {
			failures = 0
		}
	}
}

// triggered waits for a trigger, or until a quarantined resource is due. After a failed
// reconciliation it also ends after a back-off: a missing condition, such as room on a disk,
// may return although no resource changes. It reports false if ctx ends first.
func (l *Loop) triggered(ctx context.Context, failures int) bool {
	var retry <-chan time.Time
	if failures > 0 {
		timer := time.NewTimer(backOff(l.live.Load().RetryBase, l.live.Load().RetryMax, failures))
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
		l.Trigger("a try of what is in quarantine")
	}
	return true
}

// sleepUntil reports false if ctx ends first.
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

// SetTargets says which instances the loop deploys to from now on. A target that stays (the
// same value) goes on undisturbed. A new one gets the newest validated configuration at
// once. The loop forgets a target that goes, and its state. A target must not be nil and
// needs a name of its own and a type that can be compared. Otherwise SetTargets returns an
// error and changes nothing.
func (l *Loop) SetTargets(targets ...Target) error {
	names := map[string]bool{}
	for i, t := range targets {
		if isNil(t) {
			return fmt.Errorf("reconcile: target %d of %d is nil", i+1, len(targets))
		} else if !reflect.ValueOf(t).Comparable() {
			return fmt.Errorf("reconcile: targets of type %T cannot be compared: make it a pointer", t)
		}
		name := t.Name()
		if name == "" {
			return fmt.Errorf("reconcile: target %d of %d has no name", i+1, len(targets))
		}
		if names[name] {
			return fmt.Errorf("reconcile: two targets have the name %q", name)
		}
		names[name] = true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.targets
	l.targets = slices.Clone(targets)
	close(l.changed)
	l.changed = make(chan struct{})

	event := InstancesChanged{Added: missing(before, targets), Removed: missing(targets, before)}
	for _, t := range targets {
		event.Instances = append(event.Instances, t.Name())
	}
	if len(event.Added)+len(event.Removed) > 0 {
		eventbus.Publish(l.bus, event)
	}
	for _, name := range event.Removed {
		l.left = withName(l.left, name)
	}
	l.tellRollout(nil)
	l.withdrawSoon()
	return nil
}

// missing returns the names of those targets that are not in list.
func missing(list, targets []Target) (names []string) {
	for _, t := range targets {
		if !slices.Contains(list, t) {
			names = append(names, t.Name())
		}
	}
	return names
}

// runWorkers keeps one worker for each target, until ctx ends.
func (l *Loop) runWorkers(ctx context.Context) {
	var wg sync.WaitGroup
	if l.opts.Leader != nil {
		wg.Go(func() { l.followLeader(ctx) })
	}
	for {
		l.mu.Lock()
		changed := l.changed
		l.dropWorkers(l.targets)
		for _, t := range l.targets {
			if l.workers[t.Name()] == nil {
				w := l.addWorker(t)
				ctx, cancel := context.WithCancel(ctx)
				w.stop = cancel
				wg.Go(func() { w.run(ctx) })
			}
		}
		l.mu.Unlock()
		select {
		case <-ctx.Done():
			l.mu.Lock()
			led := l.sched.leading // an election that ends with the loop takes nothing back
			l.mu.Unlock()
			wg.Wait() // calls under way may still end well
			l.mu.Lock()
			l.tellUnfinished(led, time.Now())
			l.dropWorkers(nil)
			l.mu.Unlock()
			return
		case <-changed:
		}
	}
}

// dropWorkers stops the workers whose targets are no longer wanted, and forgets their
// instances. The caller holds l.mu.
func (l *Loop) dropWorkers(wanted []Target) {
	for name, w := range l.workers {
		if !slices.Contains(wanted, w.target) {
			w.stop()
			delete(l.workers, name)
			l.sched.left(name)
		}
	}
}

// addWorker makes the worker of a target, with the newest configuration to deploy. The
// caller holds l.mu.
func (l *Loop) addWorker(t Target) *worker {
	_, probe := t.(Prober)
	w := &worker{loop: l, target: t, wake: make(chan struct{}, 1), stop: func() {}, public: l.unknown(t)}
	w.born = l.sched.arrived(t.Name(), probe)
	l.workers[t.Name()] = w
	return w
}

// unknown returns the state of an instance before its first call. The caller holds l.mu.
func (l *Loop) unknown(t Target) InstanceState {
	p := InstanceState{Name: t.Name()}
	if v := l.sched.newest; v != nil {
		p.StaleSince = v.at
	}
	return p
}

// pokeWorkers makes all workers ask the schedule again. The caller holds l.mu.
func (l *Loop) pokeWorkers() {
	for _, w := range l.workers {
		w.poke()
	}
}

// errNotLeading ends a deployment if another process comes to lead in the middle of it.
var errNotLeading = errors.New("another process leads")

func (l *Loop) leading() bool { return l.opts.Leader == nil || l.opts.Leader.Leading() }

// fence makes each changing call ask for leadership first.
func (l *Loop) fence() dataplane.SyncOption {
	return dataplane.WithFence(func() error {
		if !l.leading() {
			return errNotLeading
		}
		return nil
	})
}

// LeadershipChanged makes the loop ask the [Leader] again for every instance, at once, and
// deploy everything again in a new term. Another process may have changed the instances in
// between.
func (l *Loop) LeadershipChanged() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.terms.end()
	l.sched.newTerm()
	l.rolls = time.Now()
	l.pokeWorkers()
}

// leadershipPoll is how often the loop asks a [Leader] that reports no change.
const leadershipPoll = 250 * time.Millisecond

// followLeader wakes the workers when this process starts or stops leading.
func (l *Loop) followLeader(ctx context.Context) {
	ticker := time.NewTicker(leadershipPoll)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-l.terms.ended():
		}
		l.beginTerm(ctx)
		leading := l.leading()
		l.mu.Lock()
		if leading != l.sched.leading {
			l.leads(leading)
			l.pokeWorkers()
		}
		l.mu.Unlock()
	}
}

// leads records whether this process deploys. When it stops, leads clears the errors of
// deployments: the next leader reports its own. The caller holds l.mu.
func (l *Loop) leads(leading bool) {
	for name, w := range l.workers {
		if e := l.sched.instances[name]; !leading && e != nil && (!e.probe || e.fits) {
			w.public.Error, w.public.Waits, w.public.Failures, w.public.RetryAt = "", "", 0, time.Time{}
		}
	}
	if leading && !l.sched.leading {
		l.rolls = time.Now()
	}
	l.sched.leads(leading)
}
