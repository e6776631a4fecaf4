package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
)

// worker deploys to one endpoint, at its own pace: a slow or failing endpoint
// holds back no other.
type worker struct {
	loop   *Loop
	target Target
	wake   chan struct{} // of size 1
	stop   context.CancelFunc
	done   chan struct{} // closed when run has returned

	mu     sync.Mutex
	state  endpointState
	public EndpointState // the part of the state that others see
}

// offer replaces what the endpoint shall have: the latest wins.
func (w *worker) offer(v *validated) {
	w.mu.Lock()
	w.state.want = v
	if w.public.StaleSince.IsZero() && !v.same(w.state.have) {
		w.public.StaleSince = v.at
	}
	w.mu.Unlock()
	w.poke()
}

func (w *worker) poke() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// run follows the schedule until ctx ends.
func (w *worker) run(ctx context.Context) {
	for ctx.Err() == nil {
		w.mu.Lock()
		leading := w.loop.leading()
		if leading && !w.state.leading { // nobody may have reported it
			w.state.newTerm()
		}
		w.state.leading = leading
		what, at := w.state.next(w.loop.timing(), time.Now())
		want := w.state.want
		w.mu.Unlock()
		switch what {
		case stepWait:
			w.wait(ctx, at)
		case stepRuntime:
			w.tryRuntime(ctx, want)
		default:
			w.deploy(ctx, want, what == stepCheck)
		}
	}
}

// leadershipPoll is how often a process that may not deploy asks again, for a
// [Leader] that nobody reports changes of.
const leadershipPoll = time.Second

func (w *worker) wait(ctx context.Context, at time.Time) {
	var timer <-chan time.Time
	wait := time.Until(at)
	if at.IsZero() {
		wait = leadershipPoll
	}
	if !at.IsZero() || w.loop.opts.Leader != nil {
		t := time.NewTimer(wait)
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-ctx.Done():
	case <-w.wake:
	case <-timer:
	}
}

// tryRuntime deploys v at once if that takes no reload, and otherwise notes
// that v has to wait for the minimum interval.
func (w *worker) tryRuntime(ctx context.Context, v *validated) {
	var plan *dataplane.Plan
	err := w.call(ctx, func(ctx context.Context) (err error) {
		plan, err = w.target.DryRun(ctx, v.config)
		return err
	})
	if err == nil && plan.Impact() < dataplane.ImpactReload {
		w.deploy(ctx, v, false)
		return
	}
	if ctx.Err() != nil {
		return
	}
	w.mu.Lock()
	w.state.probed = v
	at := w.state.lastReload.Add(w.loop.timing().minInterval)
	w.mu.Unlock()
	eventbus.Publish(w.loop.bus, DeploymentScheduled{ID: v.id, Endpoint: w.target.Name(), At: at})
}

func (w *worker) deploy(ctx context.Context, v *validated, check bool) {
	name, start := w.target.Name(), time.Now()
	if !w.loop.leading() { // asked last of all, so that a process that was frozen makes no call
		return
	}
	w.mu.Lock()
	term := w.state.term
	w.mu.Unlock()
	if !check {
		eventbus.Publish(w.loop.bus, DeploymentStarted{ID: v.id, Endpoint: name})
	}
	var result *dataplane.Result
	err := w.call(ctx, func(ctx context.Context) (err error) {
		result, err = w.target.Sync(w.loop.fenced(ctx), v.config)
		return err
	})
	if err != nil && ctx.Err() != nil {
		return // the loop ends, or the endpoint is gone
	}
	if errors.Is(err, errNotLeading) {
		// Nothing failed: it is for another process to finish. What is there now
		// is not known.
		w.mu.Lock()
		w.state.have = nil
		w.mu.Unlock()
		return
	}
	if err == nil && result == nil {
		err = fmt.Errorf("%s: Sync returned neither a result nor an error", name)
	}
	if err != nil {
		w.failed(ctx, v, result, err, start)
		return
	}
	w.loop.settled(v.rendered(), nil)
	w.mu.Lock()
	now := time.Now()
	w.state.succeeded(v, result.Reloads, now)
	if w.state.term != term {
		w.state.have = nil
	}
	p := &w.public
	p.Hash, p.Error, p.Failures, p.RetryAt = v.config.Hash(), "", 0, time.Time{}
	if !check || !result.Plan.Empty() {
		p.DeployedAt = now
	}
	p.Reloads += uint64(result.Reloads)
	p.Commands += uint64(result.Commands)
	p.Last = result
	p.StaleSince = time.Time{}
	if !v.same(w.state.want) {
		p.StaleSince = w.state.want.at
	}
	w.mu.Unlock()
	switch {
	case !check:
		eventbus.Publish(w.loop.bus, InstanceDeployed{ID: v.id, Endpoint: name, Result: result, Took: time.Since(start)})
	case !result.Plan.Empty():
		eventbus.Publish(w.loop.bus, DriftRepaired{ID: v.id, Endpoint: name, Result: result})
	}
}

func (w *worker) failed(ctx context.Context, v *validated, result *dataplane.Result, err error, start time.Time) {
	if errors.Is(err, dataplane.ErrInvalid) && w.loop.settled(v.rendered(), err) {
		w.loop.Trigger("an endpoint refused what was fetched")
	}
	err = w.loop.explain(ctx, v, err)
	reloads := 0
	if result != nil {
		reloads = result.Reloads
	}
	w.mu.Lock()
	w.state.failedWith(v, reloads, !retryable(err), time.Now())
	p := &w.public
	p.Error, p.Failures, p.RetryAt = err.Error(), w.state.failures, w.state.retryAt(w.loop.timing())
	p.Reloads += uint64(reloads)
	if p.StaleSince.IsZero() {
		p.StaleSince = time.Now()
	}
	event := InstanceDeploymentFailed{ID: v.id, Endpoint: w.target.Name(), Result: result, Err: err,
		Failures: p.Failures, RetryAt: p.RetryAt, Took: time.Since(start)}
	w.mu.Unlock()
	eventbus.Publish(w.loop.bus, event)
}

// call bounds one call to the target and takes a panic for a failure.
func (w *worker) call(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, w.loop.live.Load().deployTimeout)
	defer cancel()
	return guard(func() error { return f(ctx) })
}

// explain says what wrote the line that an endpoint refused, and for which
// resource; another error, or one that says no line, stays as it is.
func (l *Loop) explain(ctx context.Context, v *validated, err error) error {
	if !errors.Is(err, dataplane.ErrInvalid) && !errors.Is(err, dataplane.ErrReload) && !errors.Is(err, dataplane.ErrUnsupported) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, l.live.Load().renderTimeout)
	defer cancel()
	var blamed *ConfigError
	_ = guard(func() error { blamed = blame(ctx, "deploy", err, v.config, v.origins); return nil })
	if blamed == nil || len(blamed.Faults) == 0 {
		return err
	}
	return blamed
}

// errNotLeading ends a deployment in the middle of which another process came
// to lead.
var errNotLeading = errors.New("another process leads")

// fenced has leadership asked before each call that changes something.
func (l *Loop) fenced(ctx context.Context) context.Context {
	return dataplane.WithFence(ctx, func() error {
		if !l.leading() {
			return errNotLeading
		}
		return nil
	})
}

func (l *Loop) leading() bool { return l.opts.Leader == nil || l.opts.Leader.Leading() }

func (l *Loop) timing() timing { return l.live.Load().timing }

// SetTargets says which HAProxys the loop deploys to from now on. A target
// that stays (the same value) goes on undisturbed; a new one gets the newest
// validated configuration at once; one that goes is forgotten with its state.
// Two targets of one name are an error, and nothing changes.
func (l *Loop) SetTargets(targets ...Target) error {
	names := map[string]bool{}
	for _, t := range targets {
		if names[t.Name()] {
			return fmt.Errorf("reconcile: two targets have the name %q", t.Name())
		}
		names[t.Name()] = true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.targets
	l.targets = slices.Clone(targets)
	close(l.changed)
	l.changed = make(chan struct{})

	event := EndpointsChanged{}
	for _, t := range targets {
		event.Endpoints = append(event.Endpoints, t.Name())
		if !slices.Contains(before, t) {
			event.Added = append(event.Added, t.Name())
		}
	}
	for _, t := range before {
		if !slices.Contains(targets, t) {
			event.Removed = append(event.Removed, t.Name())
		}
	}
	if len(event.Added)+len(event.Removed) > 0 {
		eventbus.Publish(l.bus, event)
	}
	return nil
}

// runWorkers keeps one worker for each target, until ctx ends.
func (l *Loop) runWorkers(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	gone := map[string]*worker{} // the last of each name that was told to stop
	for {
		l.mu.Lock()
		changed := l.changed
		l.dropWorkers(gone)
		for _, t := range l.targets {
			if l.workers[t.Name()] != nil {
				continue
			}
			w, wctx := l.addWorker(ctx, t)
			predecessor := gone[t.Name()]
			wg.Go(func() {
				defer close(w.done)
				if predecessor != nil {
					<-predecessor.done // one call at a time to an endpoint, under any credentials
				}
				w.run(wctx)
			})
		}
		l.mu.Unlock()
		select {
		case <-ctx.Done():
			l.mu.Lock()
			clear(l.workers)
			l.mu.Unlock()
			return
		case <-changed:
		}
	}
}

// dropWorkers stops the workers whose target is no longer wanted, adds them to
// gone, and forgets those of gone that have ended. The caller holds l.mu.
func (l *Loop) dropWorkers(gone map[string]*worker) {
	for name, w := range gone {
		select {
		case <-w.done:
			delete(gone, name)
		default:
		}
	}
	for name, w := range l.workers {
		if !slices.Contains(l.targets, w.target) {
			w.stop()
			delete(l.workers, name)
			gone[name] = w
		}
	}
}

// addWorker makes the worker of a target, with the newest configuration
// waiting. The caller holds l.mu.
func (l *Loop) addWorker(ctx context.Context, t Target) (*worker, context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	w := &worker{loop: l, target: t, wake: make(chan struct{}, 1), done: make(chan struct{}), stop: cancel}
	w.public.Name = t.Name()
	if l.newest != nil {
		w.offer(l.newest)
	}
	l.workers[t.Name()] = w
	return w, ctx
}
