package reconcile

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
)

// worker makes the calls to one instance that the schedule asks for: a slow or
// failing instance holds back no other.
type worker struct {
	loop   *Loop
	target Target
	born   uint64        // of the instance in the schedule
	wake   chan struct{} // of size 1
	stop   context.CancelFunc

	public InstanceState // what others see; guarded by Loop.mu, as the schedule is
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
		c, until := w.next()
		switch c.what {
		case stepWait:
			w.wait(ctx, until)
		case stepProbe:
			w.probe(ctx, c)
		case stepRuntime:
			w.tryRuntime(ctx, c)
		case stepAsk:
			w.ask(ctx, c)
		default:
			w.deploy(ctx, c)
		}
	}
}

// next asks the schedule what to do now. Leadership is asked each time, for
// nobody may have reported a change of it.
func (w *worker) next() (call, time.Time) {
	leading := w.loop.leading()
	w.loop.mu.Lock()
	defer w.loop.mu.Unlock()
	s := &w.loop.sched
	if leading != s.leading {
		s.leads(leading)
		w.loop.pokeWorkers() // whoever sees it first: followLeader finds nothing new any more
	}
	if e := s.instances[w.target.Name()]; e == nil || e.born != w.born {
		return call{}, time.Time{} // it is being stopped
	}
	c, until := s.next(w.target.Name(), w.loop.timing(), time.Now())
	if c.what != stepWait {
		s.began(c)
	}
	return c, until
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

// ended tells the schedule how a call ended and, where the instance is still
// wanted, has show say so to others.
func (w *worker) ended(c call, o outcome, show func(p *InstanceState, e *instanceState, now time.Time)) {
	l := w.loop
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if !l.sched.ended(c, o, now) {
		if successor := l.workers[c.instance]; successor != nil {
			successor.poke() // it waited for this call
		}
		return
	}
	if show != nil {
		show(&w.public, l.sched.instances[c.instance], now)
	}
	switch asked := c.what == stepAsk; {
	case asked && !o.unknown:
		l.note(answer{instance: c.instance, born: c.born, to: c.want, asked: true, refused: o.refused, failed: o.failed})
		l.trigger(c.instance + " was asked whether it takes the rest")
	case o.refused != nil:
		l.note(answer{instance: c.instance, born: c.born, to: c.want, refused: o.refused})
		l.trigger(c.instance + " refused the configuration")
	}
}

// probe finds out what a target is.
func (w *worker) probe(ctx context.Context, c call) {
	start := time.Now()
	is, err := w.identify(ctx, c)
	if err == nil {
		w.ended(c, outcome{}, func(p *InstanceState, _ *instanceState, _ time.Time) {
			p.identified(is)
			p.Error, p.Failures, p.RetryAt = "", 0, time.Time{}
		})
		return
	}
	w.failed(ctx, c, nil, err, start)
}

// identify probes a [Prober]. Of any other target nothing is known.
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

// identified notes what a target is, and that it fits.
func (p *InstanceState) identified(is dataplane.Target) {
	p.HAProxy, p.API, p.Unfit = "", is.API.String(), ""
	if is.Version != (dataplane.Version{}) { // which would read as the oldest
		p.HAProxy = is.Version.String()
	}
}

// tryRuntime applies at once what takes no reload. The rest waits for the minimum
// interval between reloads.
func (w *worker) tryRuntime(ctx context.Context, c call) {
	start := time.Now()
	if !w.loop.leading() { // asked last of all, so that a process that was frozen makes no call
		w.ended(c, outcome{unknown: true}, nil)
		return
	}
	result, err := w.sync(ctx, c, dataplane.WithoutReload())
	switch {
	case err != nil:
		w.failed(ctx, c, result, err, start)
		return
	case result.Left.Empty():
		w.loop.settled(c.want.rendered(), nil)
		failures := w.deployed(c, result)
		eventbus.Publish(w.loop.bus, DeploymentStarted{ID: c.want.id, Instance: c.instance})
		eventbus.Publish(w.loop.bus, InstanceDeployed{ID: c.want.id, Instance: c.instance, Result: result, Took: time.Since(start), Failures: failures})
		return
	}
	var at time.Time
	w.ended(c, outcome{waits: true, changed: result.Commands > 0 || result.Files > 0}, func(p *InstanceState, e *instanceState, _ time.Time) {
		p.Commands += uint64(result.Commands)
		at = e.spaced(w.loop.timing())
	})
	if ctx.Err() == nil {
		eventbus.Publish(w.loop.bus, DeploymentScheduled{ID: c.want.id, Instance: c.instance, At: at, Applied: result})
	}
}

func (w *worker) deploy(ctx context.Context, c call) {
	start, check := time.Now(), c.what == stepCheck
	if !w.loop.leading() { // asked last of all, so that a process that was frozen makes no call
		w.ended(c, outcome{unknown: true}, nil)
		return
	}
	if !check {
		eventbus.Publish(w.loop.bus, DeploymentStarted{ID: c.want.id, Instance: c.instance})
	} else if f, ok := w.target.(forgetter); ok {
		f.Forget() // a check for drift trusts nothing
	}
	result, err := w.sync(ctx, c)
	if err != nil {
		w.failed(ctx, c, result, err, start)
		return
	}
	w.loop.settled(c.want.rendered(), nil)
	failures := w.deployed(c, result)
	switch {
	case !check:
		eventbus.Publish(w.loop.bus, InstanceDeployed{ID: c.want.id, Instance: c.instance, Result: result, Took: time.Since(start), Failures: failures})
	case !result.Plan.Empty():
		eventbus.Publish(w.loop.bus, DriftRepaired{ID: c.want.id, Instance: c.instance, Result: result})
	}
}

// deployed notes a deployment, and returns how many failed before it.
func (w *worker) deployed(c call, result *dataplane.Result) (failures int) {
	changed := !result.Plan.Empty()
	w.ended(c, outcome{reloads: result.Reloads, changed: changed}, func(p *InstanceState, e *instanceState, now time.Time) {
		p.Hash = c.want.config.Hash()
		if c.what != stepAsk || !e.want.same(e.refused) { // else it still has not what it shall have, for that reason
			failures = p.Failures
			p.Error, p.Failures, p.RetryAt = "", 0, time.Time{}
		}
		if c.what != stepCheck || changed {
			p.DeployedAt = now
		}
		p.Reloads += uint64(result.Reloads)
		p.Commands += uint64(result.Commands)
		p.Last = result
		p.StaleSince = time.Time{}
		if !c.want.same(e.want) {
			p.StaleSince = e.want.at
		}
	})
	return failures
}

func (w *worker) failed(ctx context.Context, c call, result *dataplane.Result, err error, start time.Time) {
	reloads, commands := 0, 0
	if result != nil {
		reloads, commands = result.Reloads, result.Commands
	}
	if ctx.Err() != nil || errors.Is(err, errNotLeading) {
		// The loop ends, or the instance is gone, or it is for another process to
		// finish: nothing failed, but what is there now is not known.
		w.ended(c, outcome{unknown: true, reloads: reloads}, nil)
		return
	}
	fetched := errors.Is(err, dataplane.ErrInvalid) && w.loop.settled(c.want.rendered(), err)
	if fetched {
		w.loop.Trigger("an instance refused what was fetched")
	}
	err = w.loop.explain(ctx, c.want, err)
	var refused *ConfigError
	if !fetched {
		refused = w.loop.refusal(err)
	}
	event := InstanceDeploymentFailed{ID: c.want.id, Instance: c.instance, Result: result, Err: err, Took: time.Since(start)}
	gone := true
	w.ended(c, outcome{failed: true, hopeless: !retryable(err), invalid: invalid(err), reloads: reloads, refused: refused}, func(p *InstanceState, e *instanceState, now time.Time) {
		p.Error, p.Failures, p.RetryAt = err.Error(), e.failures, e.retryAt(w.loop.timing())
		p.Reloads += uint64(reloads)
		p.Commands += uint64(commands)
		if c.what == stepProbe && errors.Is(err, dataplane.ErrUnsupported) {
			p.Unfit = err.Error()
		}
		if p.StaleSince.IsZero() {
			p.StaleSince = now
		}
		event.Failures, event.RetryAt = p.Failures, p.RetryAt
		gone = false
	})
	if !gone {
		eventbus.Publish(w.loop.bus, event)
	}
}

// ask deploys what no other instance gets, to learn whether this one takes it.
// That it does not changes nothing that others see of its state.
func (w *worker) ask(ctx context.Context, c call) {
	start := time.Now()
	if !w.loop.leading() {
		w.ended(c, outcome{unknown: true}, nil)
		return
	}
	eventbus.Publish(w.loop.bus, DeploymentStarted{ID: c.want.id, Instance: c.instance})
	result, err := w.sync(ctx, c)
	if err == nil {
		w.loop.settled(c.want.rendered(), nil)
		w.deployed(c, result)
		eventbus.Publish(w.loop.bus, InstanceDeployed{ID: c.want.id, Instance: c.instance, Result: result, Took: time.Since(start)})
		return
	}
	o := outcome{failed: true, unknown: ctx.Err() != nil || errors.Is(err, errNotLeading)}
	if result != nil {
		o.reloads = result.Reloads
	}
	if !o.unknown {
		err = w.loop.explain(ctx, c.want, err)
		o.refused = w.loop.refusal(err)
	}
	gone := true
	w.ended(c, o, func(p *InstanceState, _ *instanceState, _ time.Time) {
		p.Reloads += uint64(o.reloads)
		gone = false
	})
	if !gone && !o.unknown {
		eventbus.Publish(w.loop.bus, InstanceDeploymentFailed{ID: c.want.id, Instance: c.instance, Result: result, Err: err,
			Took: time.Since(start), Asked: true})
	}
}

// sync makes the target have what a call wants, if this process leads.
func (w *worker) sync(ctx context.Context, c call, options ...dataplane.SyncOption) (result *dataplane.Result, err error) {
	if !w.loop.leading() { // asked last of all, so that a process that was frozen makes no call
		return nil, errNotLeading
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

// call bounds one call to the target and takes a panic for a failure.
func (w *worker) call(ctx context.Context, c call, f func(context.Context) error) error {
	ctx, cancel := context.WithDeadline(ctx, c.deadline)
	defer cancel()
	return guard(func() error { return f(ctx) })
}

// explain says what wrote the line that an instance refused, and for which
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

// fence has leadership asked before each call that changes something.
func (l *Loop) fence() dataplane.SyncOption {
	return dataplane.WithFence(func() error {
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
// It is an error, and nothing changes, where a target is nil, has no name or the
// name of another, or is of a type that cannot be compared.
func (l *Loop) SetTargets(targets ...Target) error {
	names := map[string]bool{}
	for i, t := range targets {
		if v := reflect.ValueOf(t); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
			return fmt.Errorf("reconcile: target %d of %d is nil", i+1, len(targets))
		} else if !v.Comparable() {
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
	if slices.ContainsFunc(event.Removed, l.refusedSomething) {
		l.trigger("an instance left that refused something")
	}
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
	defer wg.Wait()
	if l.opts.Leader != nil {
		wg.Go(func() { l.followLeader(ctx) })
	}
	for {
		l.mu.Lock()
		changed := l.changed
		l.dropWorkers(l.targets)
		for _, t := range l.targets {
			if l.workers[t.Name()] == nil {
				w, wctx := l.addWorker(ctx, t)
				wg.Go(func() { w.run(wctx) })
			}
		}
		l.mu.Unlock()
		select {
		case <-ctx.Done():
			l.mu.Lock()
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
func (l *Loop) addWorker(ctx context.Context, t Target) (*worker, context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	_, probe := t.(Prober)
	w := &worker{loop: l, target: t, wake: make(chan struct{}, 1), stop: cancel}
	w.born = l.sched.arrived(t.Name(), probe)
	w.public.Name = t.Name()
	if v := l.sched.newest; v != nil {
		w.public.StaleSince = v.at
	}
	l.workers[t.Name()] = w
	l.cameBack(t.Name())
	return w, ctx
}

// leadershipPoll is how often a [Leader] is asked whose changes nobody reports.
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
		}
		leading := l.leading()
		l.mu.Lock()
		if leading != l.sched.leading {
			l.sched.leads(leading)
			l.pokeWorkers()
		}
		l.mu.Unlock()
	}
}

// pokeWorkers makes all workers ask the schedule again. The caller holds l.mu.
func (l *Loop) pokeWorkers() {
	for _, w := range l.workers {
		w.poke()
	}
}
