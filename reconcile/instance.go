package reconcile

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/internal/panics"
)

// worker makes the calls to one instance that the schedule asks for. A slow or failing
// instance holds back no other.
type worker struct {
	loop   *Loop
	target Target
	born   uint64        // number of the instance in the schedule
	wake   chan struct{} // of size 1
	stored chan struct{} // of size 1: the target has something to store; nil if it stores at once
	stop   context.CancelFunc
	single bool // Once made it: a call is not repeated

	// Only its own goroutine uses these.
	term  uint64   // of its last deployment
	held  *waiting // nil: no reload waits for old workers
	again bool     // the call under way tries that reload again

	public InstanceState // what others see; guarded by Loop.mu, as the schedule is
	rounds int           // refusals that quarantined something since its last success; guarded by Loop.mu
	gaveUp string        // why its refusals no longer quarantine anything; guarded by Loop.mu
}

// storer is a [Target] that can change a running process first and store the change later,
// as [dataplane.Client] does. The loop calls Store beside other calls, at most once in five
// seconds, and at its end.
type storer interface {
	Store(ctx context.Context, options ...dataplane.SyncOption) error
}

func (w *worker) poke() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// run follows the schedule until ctx ends. Then the target stores what is left.
func (w *worker) run(ctx context.Context) {
	if target, ok := w.target.(storer); ok {
		var storing sync.WaitGroup
		w.stored = make(chan struct{}, 1)
		unhurried, cancel := context.WithCancel(context.WithoutCancel(ctx))
		defer cancel()
		storing.Go(func() { w.store(ctx, unhurried, target) })
		defer func() {
			end := time.AfterFunc(storeTimeout, cancel)
			defer end.Stop()
			storing.Wait()
			w.storeNow(unhurried, target)
		}()
	}
	for ctx.Err() == nil {
		if c, until := w.next(); c.what == stepWait {
			w.wait(ctx, until)
		} else {
			w.do(ctx, c)
		}
	}
}

// next asks the schedule what to do now. It asks the Leader each time, because a Leader need
// not report changes.
func (w *worker) next() (call, time.Time) {
	leading := w.loop.leading()
	w.loop.mu.Lock()
	defer w.loop.mu.Unlock()
	s := &w.loop.sched
	if leading != s.leading {
		w.loop.leads(leading)
		w.loop.pokeWorkers() // followLeader finds nothing new any more
	}
	if e := s.instances[w.target.Name()]; e == nil || e.born != w.born {
		return call{}, time.Time{} // it is being stopped
	}
	c, until := s.next(w.target.Name(), w.loop.live.Load(), time.Now())
	if c.what != stepWait {
		s.began(c)
	}
	return c, until
}

// storeInterval is the time between the end of a Store and the next one: each costs as much
// as everything that an instance has. storeTimeout bounds the last Stores at the end.
const (
	storeInterval = 5 * time.Second
	storeTimeout  = 10 * time.Second
)

// store makes the target store changes until ctx ends. A Store under way goes on until
// unhurried ends.
func (w *worker) store(ctx, unhurried context.Context, target storer) {
	for ctx.Err() == nil {
		select {
		case <-w.stored:
			w.storeNow(unhurried, target)
			sleepUntil(ctx, time.Now().Add(storeInterval))
		case <-ctx.Done():
		}
	}
}

// storeNow stores. After a failure the loop does not know what the instance has. The next
// call finds out, and stores as well.
func (w *worker) storeNow(ctx context.Context, target storer) {
	err := panics.Guard(func() error { return target.Store(ctx, w.loop.fence()) })
	if panicked := (*PanicError)(nil); err == nil || errors.As(err, &panicked) {
		w.loop.calledBack("Target.Store", err)
	}
	if err == nil || errors.Is(err, errNotLeading) {
		return
	}
	w.loop.mu.Lock()
	defer w.loop.mu.Unlock()
	if e := w.loop.sched.instances[w.target.Name()]; e != nil && e.born == w.born {
		e.have = nil
		w.poke()
	}
}

func (w *worker) wait(ctx context.Context, until time.Time) {
	var timer <-chan time.Time
	if !until.IsZero() {
		t := time.NewTimer(time.Until(until))
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-ctx.Done():
	case <-w.wake:
	case <-timer:
	}
}

// do makes a call and tells the schedule, the state and the bus how it ended.
func (w *worker) do(ctx context.Context, c call) Outcome {
	start := time.Now()
	if c.what == stepProbe {
		is, err := w.identify(ctx, c)
		if err != nil {
			return w.failed(ctx, c, nil, err, start)
		}
		w.ended(c, outcome{}, func(p *InstanceState, _ *instanceState, _ time.Time) {
			w.loop.state.Reached = true
			p.HAProxy, p.API, p.Unfit = "", is.API.String(), ""
			if is.Version != (dataplane.Version{}) { // a zero version would read as the oldest
				p.HAProxy = is.Version.String()
			}
			if p.Failures > 0 {
				eventbus.Publish(w.loop.bus, InstanceReached{Instance: c.instance, Failures: p.Failures})
			}
			p.Error, p.Failures, p.RetryAt = "", 0, time.Time{}
		})
		return Outcome{}
	}
	return w.deploy(ctx, c, start)
}

// identify probes a [Prober]. Other targets have no known versions.
func (w *worker) identify(ctx context.Context, c call) (is dataplane.Target, err error) {
	prober, ok := w.target.(Prober)
	if !ok {
		return is, nil
	}
	err = w.call(ctx, c, func(ctx context.Context) (err error) {
		is, err = prober.Probe(ctx)
		return err
	})
	return is, err
}

// deploy brings the target to the configuration of a call. Before the minimum interval
// between two reloads has passed, it applies only what needs no reload.
func (w *worker) deploy(ctx context.Context, c call, start time.Time) Outcome {
	l := w.loop
	if !l.leading() { // asked last of all, so that a process that was frozen makes no call
		return w.failed(ctx, c, nil, errNotLeading, start)
	}
	if f, ok := w.target.(forgetter); ok && (c.what == stepCheck || c.term != w.term) {
		f.Forget()
	}
	if c.term != w.term { // another process may have deployed meanwhile
		w.term, w.held = c.term, nil
	}
	w.again = c.what == stepDeploy && w.held.about(c)
	var options []dataplane.SyncOption
	switch c.what {
	case stepDeploy:
		if !w.again {
			eventbus.Publish(l.bus, DeploymentStarted{ID: c.want.id, Instance: c.instance})
		}
	case stepRuntime:
		options = append(options, dataplane.WithoutReload())
	case stepCheck:
		eventbus.Publish(l.bus, DriftPreventionTriggered{ID: c.want.id, Instance: c.instance, Idle: c.idle})
	}
	result, err := w.sync(ctx, c, options...)
	switch {
	case result != nil && errors.Is(err, dataplane.ErrOldWorkers):
		w.waits(c, result, err)
		return Outcome{Plan: result.Plan, Result: result, Err: err}
	case err != nil:
		return w.failed(ctx, c, result, err, start)
	}
	if result.Pending && w.stored != nil {
		select {
		case w.stored <- struct{}{}:
		default:
		}
	}
	switch {
	case c.what == stepRuntime && !result.Left.Empty():
		w.waits(c, result, nil)
		return Outcome{Plan: result.Plan, Result: result}
	}
	l.settled(c.want.rendered(), nil)
	w.deployed(c, result, start)
	l.publishDeployed(c.want, c.term)
	return Outcome{Plan: result.Plan, Result: result}
}

// waiting says that a reload waits for old workers to end.
type waiting struct {
	want *validated
	why  error
}

// about reports whether a call tries the same configuration again.
func (h *waiting) about(c call) bool { return h != nil && h.want.same(c.want) }

// waits notes that the rest of a configuration needs a reload that has to wait: for the
// minimum interval, or for old workers. It publishes that once for each configuration.
func (w *worker) waits(c call, result *dataplane.Result, why error) {
	o := outcome{waits: true, changed: result.Commands > 0 || result.Files > 0, held: why != nil}
	said := w.held.about(c)
	switch {
	case why != nil:
		w.held = &waiting{c.want, why}
	case w.held != nil: // it still waits for the old workers
		why = w.held.why
		w.held = &waiting{c.want, why}
	}
	w.ended(c, o, func(p *InstanceState, e *instanceState, now time.Time) {
		p.Commands += uint64(result.Commands)
		if why != nil {
			p.Waits, p.Error, p.Failures, p.RetryAt = why.Error(), "", 0, time.Time{}
			if p.StaleSince.IsZero() { // a check found drift
				p.StaleSince = now
			}
		}
		if !said {
			eventbus.Publish(w.loop.bus, DeploymentScheduled{ID: c.want.id, Instance: c.instance, At: e.spaced(w.loop.live.Load()), Applied: result, Waits: why})
		}
	})
}

// deployed notes that an instance has the configuration of a call.
func (w *worker) deployed(c call, result *dataplane.Result, start time.Time) {
	changed := !result.Plan.Empty()
	w.held = nil
	w.ended(c, outcome{reloads: result.Reloads}, func(p *InstanceState, e *instanceState, now time.Time) {
		done := InstanceDeployed{ID: c.want.id, Instance: c.instance, Result: result, Took: now.Sub(start), Failures: p.Failures}
		p.Hash, p.Last = c.want.config.Hash(), result
		w.loop.state.Reached = true
		p.Error, p.Waits, p.Failures, p.RetryAt = "", "", 0, time.Time{}
		if c.what != stepCheck || changed {
			p.DeployedAt = now
		}
		p.Reloads += uint64(result.Reloads)
		p.Commands += uint64(result.Commands)
		p.StaleSince = time.Time{}
		if !c.want.same(e.want) {
			p.StaleSince = e.want.at
		}
		w.rounds, w.gaveUp = 0, ""
		switch {
		case c.what == stepCheck && changed:
			eventbus.Publish(w.loop.bus, DriftRepaired{ID: c.want.id, Instance: c.instance, Result: result})
		case c.what == stepRuntime, w.again:
			eventbus.Publish(w.loop.bus, DeploymentStarted{ID: c.want.id, Instance: c.instance})
			eventbus.Publish(w.loop.bus, done)
		case c.what == stepDeploy:
			eventbus.Publish(w.loop.bus, done)
		}
	})
}

// failed notes that a call failed, and when the schedule repeats it.
func (w *worker) failed(ctx context.Context, c call, result *dataplane.Result, err error, start time.Time) Outcome {
	l, o, commands := w.loop, outcome{}, 0
	if result != nil {
		o.reloads, commands = result.Reloads, result.Commands
	}
	if ctx.Err() != nil || errors.Is(err, errNotLeading) {
		// The loop ends, the instance is gone, or another process takes over. Nothing
		// failed, but the loop does not know what is there now.
		o.unknown = true
		w.ended(c, o, func(*InstanceState, *instanceState, time.Time) {
			if errors.Is(err, errNotLeading) {
				l.leads(false) // and a new term begins, even if this process leads again by now
			}
		})
		return Outcome{Result: result, Err: err}
	}
	fetched := errors.Is(err, dataplane.ErrInvalid) && l.refetched(c.want, err)
	if fetched && !w.single {
		l.Trigger("an instance refused what was fetched")
	}
	w.held = nil
	err = l.explain(ctx, c.want, err)
	o.failed, o.hopeless = true, !retryable(err)
	there := w.ended(c, o, func(p *InstanceState, e *instanceState, now time.Time) {
		p.Error, p.Waits, p.Failures, p.RetryAt = err.Error(), "", e.failures, time.Time{}
		if w.gaveUp != "" {
			p.Error += " (" + w.gaveUp + ")"
		}
		if !w.single {
			p.RetryAt = e.retryAt(l.live.Load())
		}
		p.Reloads += uint64(o.reloads)
		p.Commands += uint64(commands)
		if c.what == stepProbe && errors.Is(err, dataplane.ErrUnsupported) {
			p.Unfit = err.Error()
		}
		if p.StaleSince.IsZero() {
			p.StaleSince = now
		}
		eventbus.Publish(l.bus, InstanceDeploymentFailed{ID: c.want.id, Instance: c.instance, Result: result, Err: err,
			Took: now.Sub(start), Failures: p.Failures, RetryAt: p.RetryAt})
		if !w.single && !l.sched.leading { // the call outlived the term
			l.leads(false)
		}
	})
	if there && !fetched && !w.single {
		l.report(w, c.want, err)
	}
	return Outcome{Result: result, Err: err}
}

// ended tells the schedule how a call ended, and reports whether the instance is still
// wanted. If so, it calls show, which updates the state and publishes at the same time.
func (w *worker) ended(c call, o outcome, show func(p *InstanceState, e *instanceState, now time.Time)) bool {
	l := w.loop
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if !l.sched.ended(c, o, now) {
		if successor := l.workers[c.instance]; successor != nil {
			successor.poke() // it waited for this call
		}
		return false
	}
	if show != nil {
		show(&w.public, l.sched.instances[c.instance], now)
	}
	l.publishRollout(nil)
	return true
}

// sync brings the target to the configuration of a call, if this process leads.
func (w *worker) sync(ctx context.Context, c call, options ...dataplane.SyncOption) (result *dataplane.Result, err error) {
	if w.stored != nil {
		options = append(options, dataplane.StoreLater())
	}
	err = w.call(ctx, c, func(ctx context.Context) (err error) {
		result, err = w.target.Sync(ctx, c.want.config, append(options, w.loop.fence())...)
		if err == nil && result == nil {
			err = errors.New("Sync returned neither a result nor an error")
		}
		return err
	})
	return result, err
}

// call bounds one call to the target, and turns a panic into a failure.
func (w *worker) call(ctx context.Context, c call, f func(context.Context) error) error {
	ctx, cancel := context.WithDeadline(ctx, c.deadline)
	defer cancel()
	return panics.Guard(func() error { return f(ctx) })
}
