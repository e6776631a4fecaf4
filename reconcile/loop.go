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
)

// Loop keeps every target on the newest valid configuration. Its methods may
// be called from any goroutine.
type Loop struct {
	opts Options
	bus  *eventbus.Bus

	live atomic.Pointer[Options] // with the intervals of now

	wake chan struct{} // of size 1: a trigger while one waits is the same trigger

	mu      sync.Mutex
	reasons []string
	targets []Target
	changed chan struct{} // closed when targets change
	workers map[string]*worker
	sched   schedule
	terms   *terms           // nil: what is valid before a term is deployed in it
	refused map[Refusal]bool // and whether that was recorded
	release bool             // what is in quarantine is to be tried

	reports []report   // of instances, that the next reconciliation makes late verdicts of
	left    []string   // instances that left since then
	rolling *validated // a revision that not every instance has or failed on; nil: none
	rolls   time.Time  // since when
	refetch uint64     // the reconciliation whose outcome is made again, without what was fetched for it
	state   State
	running bool   // one of Run, Once and Preview
	hurry   func() // ends a trial that takes too long

	refusing   sync.Mutex    // one refusal at a time is told the renderer
	rendering  sync.Mutex    // one render at a time: Run, Once and Preview share the renderer
	lastID     uint64        // guarded by rendering, as is what follows
	term       uint64        // of terms, begun before the reconciliation under way
	attempts   int           // to render and validate, of the reconciliation under way
	failures   int           // reconciliations that failed, in a row
	longest    time.Duration // of the validations of what was valid
	rendered   time.Duration // what the last valid render took
	reported   []Refusal     // by the last render that was told of
	allHeard   bool          // the Recorder has all of these
	quarantine quarantine
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

		quarantine: quarantine{rulings: map[identity]*ruling{}, turns: map[string]uint64{}},
	}
	l.terms = newTerms(&l.opts)
	l.live.Store(&opts)
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
	l.hurry()
}

// Run reconciles until ctx ends, and returns nil when everything that it
// started has ended. It may run once at a time.
func (l *Loop) Run(ctx context.Context) error {
	l.mu.Lock()
	if l.running {
		l.mu.Unlock()
		return errors.New("reconcile: the loop is already running")
	}
	l.running = true
	l.dropWorkers(nil) // those of Once: it begins anew
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
		// What is triggered from here on is a new reconciliation: it may come
		// from a change that this one does not see any more.
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

// triggered waits for a trigger. A reconciliation that failed is tried again
// without one, with back-off: what it lacked, such as room on a disk, may come
// back without a change of any resource. It reports false when ctx ended first.
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

// SetTargets says which instances the loop deploys to from now on. A target
// that stays (the same value) goes on undisturbed; a new one gets the newest
// validated configuration at once; one that goes is forgotten with its state.
// It is an error, and nothing changes, where a target is nil, has no name or the
// name of another, or is of a type that cannot be compared.
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

// missing names those of targets that are not in list.
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

// dropWorkers stops the workers whose target is not wanted, and forgets what is
// known of their instances. The caller holds l.mu.
func (l *Loop) dropWorkers(wanted []Target) {
	for name, w := range l.workers {
		if !slices.Contains(wanted, w.target) {
			w.stop()
			delete(l.workers, name)
			l.sched.left(name)
		}
	}
}

// addWorker makes the worker of a target, with the newest configuration
// waiting. The caller holds l.mu.
func (l *Loop) addWorker(t Target) *worker {
	_, probe := t.(Prober)
	w := &worker{loop: l, target: t, wake: make(chan struct{}, 1), stop: func() {}, public: l.unknown(t)}
	w.born = l.sched.arrived(t.Name(), probe)
	l.workers[t.Name()] = w
	return w
}

// unknown is the state of an instance of which nothing is known. The caller holds
// l.mu.
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

// errNotLeading ends a deployment in the middle of which another process came
// to lead.
var errNotLeading = errors.New("another process leads")

func (l *Loop) leading() bool { return l.opts.Leader == nil || l.opts.Leader.Leading() }

// fence has leadership asked before each call that changes something.
func (l *Loop) fence() dataplane.SyncOption {
	return dataplane.WithFence(func() error {
		if !l.leading() {
			return errNotLeading
		}
		return nil
	})
}

// LeadershipChanged makes every instance ask its [Leader] again, at once, and
// deploy in a new term whatever was deployed in an older one: another process
// may have changed it in between.
func (l *Loop) LeadershipChanged() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.terms.end()
	l.sched.newTerm()
	l.rolls = time.Now()
	l.pokeWorkers()
}

// leadershipPoll is how often a [Leader] is asked that reports no change.
const leadershipPoll = 250 * time.Millisecond

// followLeader wakes the workers when this process comes to lead or no longer
// does.
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

// leads says whether this process deploys. When it stops to, what is wrong with
// deployments is for the next leader to say. The caller holds l.mu.
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
