package reconcile

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

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
	refused map[Refusal]bool // and whether that was recorded
	release bool             // what is in quarantine is to be tried

	reports []report // of instances, that the next reconciliation makes late verdicts of
	left    []string // instances that refused something, and left
	state   State
	running bool // one of Run, Once and Preview

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
	if err := opts.check(); err != nil {
		return nil, err
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
	l.live.Store(&opts)
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
		pace.hold = l.live.Load().Debounce
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
