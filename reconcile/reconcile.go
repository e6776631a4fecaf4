package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/internal/phrase"
)

// reconcile renders and validates once and, if the configuration has changed, hands it to
// the workers. While they deploy, it tries the quarantined resources that are due. It
// returns the newest configuration.
func (l *Loop) reconcile(ctx context.Context) (v *validated, unchanged bool, err error) {
	l.rendering.Lock()
	defer l.rendering.Unlock()
	defer func() { // a trial that failed showed something else
		if good := l.quarantine.Good(); good != nil {
			l.view.Show(good)
		}
	}()
	l.mu.Lock()
	reasons := l.reasons
	l.reasons = nil
	l.mu.Unlock()
	if l.terms != nil {
		l.term = l.terms.begun.Load()
	}
	id, start := l.begin(reasons)

	heard := l.hear()
	l.takeRelease()
	v, err = l.renderAndValidate(ctx, id, heard)
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
	unchanged = l.complete(v, reasons, start)
	tried := l.trials(ctx, max(trialPatience, 2*l.took, 2*l.longest))
	if tried != nil {
		return tried, false, nil
	}
	return v, unchanged, nil
}

// begin opens a reconciliation.
func (l *Loop) begin(reasons []string) (id uint64, start time.Time) {
	l.lastID++
	l.attempts = 0
	eventbus.Publish(l.bus, ReconciliationStarted{ID: l.lastID, Reasons: reasons})
	return l.lastID, time.Now()
}

// complete closes a reconciliation that began at start.
func (l *Loop) complete(v *validated, reasons []string, start time.Time) (unchanged bool) {
	l.mu.Lock()
	if l.terms != nil && l.terms.fresh.Swap(l.term) != l.term { // this process may deploy now
		l.pokeWorkers()
	}
	unchanged = l.accept(v)
	eventbus.Publish(l.bus, ReconciliationCompleted{ID: v.id, Hash: v.config.Hash(), Unchanged: unchanged, Took: time.Since(start),
		Reasons: reasons, Rendered: v.made, Attempts: l.attempts, HeldBack: v.heldBack, Failures: l.failures})
	l.tellRollout(nil)
	term, newest := l.deployedIn(), l.sched.newest
	l.mu.Unlock() // the workers see it only now
	l.failures = 0
	if unchanged && term != 0 {
		l.tellDeployed(newest, term)
	}
	if !l.leading() { // another process deploys it, so no deployment here settles it
		l.settled(v.rendered(), nil)
	}
	return unchanged
}

// accept makes v the newest configuration and wakes the workers. The caller holds
// l.mu.
func (l *Loop) accept(v *validated) (unchanged bool) {
	l.state.LastError = ""
	if newest := l.sched.newest; v.same(newest) {
		// The text is the same, but the resources may have other versions: a refusal by an
		// instance must name these.
		l.refetch = 0
		l.sched.accepted(&validated{id: newest.id, config: newest.config, origins: v.origins, objects: v.objects, at: newest.at, without: v.without, deployed: v.deployed})
		return true
	}
	l.tellRollout(v)
	l.sched.accepted(v)
	l.rolling, l.rolls = v, time.Now()
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

func andMore(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}

// settled tells the renderer whether a configuration is deployed or refused. It reports
// whether another render may do better.
func (l *Loop) settled(r *Rendered, outcome error) (again bool) {
	settler, ok := l.opts.Renderer.(Settler)
	if !ok || r == nil || r.Config == nil {
		return false
	}
	return l.callback("Settler.Settle", func() { again = settler.Settle(r.Config, outcome) }) && again
}

// reportRender publishes what an attempt rendered, if anything.
func (l *Loop) reportRender(id uint64, a *attempt) (made TemplateRendered) {
	cfg := a.made()
	if cfg == nil {
		return made
	}
	l.reportRefusals(id, a.rendered.Refused)
	l.mu.Lock()
	l.state.Rendered = cfg.Hash()
	l.mu.Unlock()
	made = TemplateRendered{
		ID: id, Hash: cfg.Hash(), Sections: cfg.SectionCount(), Lines: cfg.LineCount(), Files: len(cfg.Files()),
		Refused: countRefused(a.rendered.Refused), Resources: maps.Clone(a.rendered.Resources), Took: a.renderTook,
	}
	eventbus.Publish(l.bus, made)
	return made
}

// reportFailure publishes why an attempt failed.
func (l *Loop) reportFailure(id uint64, a *attempt) {
	if cfg := a.made(); cfg == nil {
		eventbus.Publish(l.bus, TemplateRenderFailed{ID: id, Err: a.err, Took: a.renderTook})
	} else {
		eventbus.Publish(l.bus, ValidationFailed{ID: id, Hash: cfg.Hash(), Err: a.err, Took: a.validateTook})
	}
}

// Outcome is the result of Once or Preview for one instance.
type Outcome struct {
	Instance string
	Plan     *dataplane.Plan   // the differences; nil if they are not known
	Result   *dataplane.Result // nil after Preview
	Err      error
}

// Once renders, validates, and deploys to all targets at once, a single time. It waits for
// no interval and does not try again. It quarantines nothing because an instance refuses it.
// Otherwise it is one reconciliation of Run, with the same schedule. It probes a [Prober]
// first, and does not deploy to one that does not fit. It publishes all events, and
// [Loop.State] has each instance until Run begins. The error joins those of the instances;
// the outcomes are in the order of the targets. Only one of Run, Once and Preview runs at a
// time.
func (l *Loop) Once(ctx context.Context) ([]Outcome, error) {
	return l.alone(ctx, func(t Target, v *validated) Outcome {
		o := l.hire(t).once(ctx)
		if o.Err != nil && ctx.Err() != nil {
			o.Err = fmt.Errorf("ended before revision %s was deployed: %w", phrase.Short(v.config.Hash()), o.Err)
		}
		return o
	})
}

// hire returns the worker of a target, ready to be called at once. It reuses the worker of
// an earlier Once, which knows how often the target failed.
func (l *Loop) hire(t Target) *worker {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.workers[t.Name()]
	if w == nil || w.target != t {
		w = l.addWorker(t)
		w.single = true
	}
	l.sched.hurry(t.Name())
	return w
}

// once follows the schedule until it has deployed to the instance.
func (w *worker) once(ctx context.Context) Outcome {
	for w.loop.leading() {
		c, _ := w.next()
		if c.what == stepWait {
			break
		}
		if o := w.do(ctx, c); c.what != stepProbe || o.Err != nil {
			return o
		}
	}
	w.loop.mu.Lock()
	defer w.loop.mu.Unlock()
	w.loop.sched.leads(false) // a new term begins when this process leads again
	return Outcome{Err: errNotLeading}
}

// Preview renders, validates, and returns what Once would change at each target, without
// changing anything. It also probes a [Prober] first, so it fails where Once would.
func (l *Loop) Preview(ctx context.Context) ([]Outcome, error) {
	return l.alone(ctx, func(t Target, v *validated) (o Outcome) {
		w := &worker{loop: l, target: t}
		c := call{instance: t.Name(), want: v, deadline: time.Now().Add(l.live.Load().DeployTimeout)}
		if _, o.Err = w.identify(ctx, c); o.Err != nil {
			return o
		}
		c.deadline = time.Now().Add(l.live.Load().DeployTimeout)
		o.Err = w.call(ctx, c, func(ctx context.Context) (err error) {
			o.Plan, err = t.DryRun(ctx, v.config)
			return err
		})
		return o
	})
}

// alone reconciles while nothing else runs, and calls do for each target.
func (l *Loop) alone(ctx context.Context, do func(Target, *validated) Outcome) ([]Outcome, error) {
	l.mu.Lock()
	targets, running := l.targets, l.running
	l.running = true
	l.mu.Unlock()
	if running {
		return nil, errors.New("reconcile: the loop is running: Trigger it instead")
	}
	defer func() {
		l.mu.Lock()
		l.running = false
		l.mu.Unlock()
	}()
	l.beginTerm(ctx)
	v, _, err := l.reconcile(ctx)
	if err != nil {
		return nil, err
	}
	outcomes := make([]Outcome, len(targets))
	var wg sync.WaitGroup
	for i, t := range targets {
		wg.Go(func() {
			outcomes[i] = do(t, v)
			outcomes[i].Instance = t.Name()
		})
	}
	wg.Wait()
	var errs []error
	for _, o := range outcomes {
		switch {
		case o.Err == nil:
		case strings.HasPrefix(o.Err.Error(), o.Instance+": "): // it names the instance itself
			errs = append(errs, o.Err)
		default:
			errs = append(errs, fmt.Errorf("%s: %w", o.Instance, o.Err))
		}
	}
	return outcomes, errors.Join(errs...)
}
