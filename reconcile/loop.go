package reconcile

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

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
	untold  bool             // a message to the Recorder has to wait
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

	refusing     sync.Mutex    // one refusal at a time goes to the renderer
	rendering    sync.Mutex    // one render at a time: Run, Once and Preview share the renderer
	lastID       uint64        // guarded by rendering, like the fields below
	term         uint64        // the newest whose BeginTerm returned before the current reconciliation
	attempts     int           // renders and validations of the current reconciliation
	failures     int           // reconciliations that failed, in a row
	longest      time.Duration // longest validation of a valid configuration
	rendered     time.Duration // time of the last valid render
	took         time.Duration // with its validation
	reported     []Refusal     // refusals of the last render that was reported
	allRecorded  bool          // the Recorder has all of these
	view         View
	quarantine   *quarantine.Quarantine
	rates        rates
	recorded     map[rendering.Key]bool // quarantined objects that the Recorder has; false: in an earlier version
	unpublished  []quarantine.Change    // that the next event tells
	publishedAt  time.Time
	publishEvery time.Duration // see publishTogether
	hung         time.Time     // when something was tried last that hung before
	gaveUp       *attempt      // for which a search found no resource at fault
	gaveUpAs     string        // and why it found none
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
		rates:      newRates(),
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

// untoldFor is how long messages that have to wait do so if nothing else is to be done.
const untoldFor = 10 * time.Second

// triggered waits for a trigger, or until a quarantined resource is due or a message may be
// sent that had to wait. After a failed reconciliation it also ends after a back-off: a missing
// condition, such as room on a disk, may return although no resource changes. It reports false
// if ctx ends first.
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
	var tell <-chan time.Time
	if l.hasUntold() {
		timer := time.NewTimer(untoldFor)
		defer timer.Stop()
		tell = timer.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-l.wake:
	case <-tell:
		l.Trigger("Kubernetes Events that had to wait")
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
