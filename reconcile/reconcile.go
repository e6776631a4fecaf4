package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
)

// reconcile renders and validates once, and hands the outcome to the workers,
// unless it is unchanged. While they deploy it, resources in quarantine that are due
// are tried. It returns the newest configuration.
func (l *Loop) reconcile(ctx context.Context) (v *validated, unchanged bool, err error) {
	l.rendering.Lock()
	defer l.rendering.Unlock()
	l.mu.Lock()
	reasons := l.reasons
	l.reasons = nil
	l.mu.Unlock()
	id, start := l.begin(reasons)

	l.hear(ctx)
	l.takeRelease()
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
	unchanged = l.complete(v, reasons, start)
	if tried := l.trial(ctx); tried != nil {
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
	unchanged = l.accept(v)
	eventbus.Publish(l.bus, ReconciliationCompleted{ID: v.id, Hash: v.config.Hash(), Unchanged: unchanged, Took: time.Since(start),
		Reasons: reasons, Rendered: v.made, Attempts: l.attempts, Failures: l.failures})
	l.mu.Unlock() // and only now the workers see it
	l.failures = 0
	if !l.leading() { // another process deploys it, or its like: no deployment tells the renderer
		l.settled(v.rendered(), nil)
	}
	return unchanged
}

// accept makes v the newest configuration and wakes the workers. The caller holds
// l.mu.
func (l *Loop) accept(v *validated) (unchanged bool) {
	l.state.LastError = ""
	if newest := l.sched.newest; v.same(newest) {
		// It is the same text, but of other versions of the resources: a late verdict
		// must be about them as they are now.
		l.refetch = 0
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
	q := &l.quarantine
	others, due := q.resources(time.Now())
	s := &search{loop: l, start: slices.Concat(others, due), blamed: slices.Clone(q.pending)}
	first := s.run(ctx)
	if with := l.withDue(ctx, s); with != nil {
		s = with
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if s.last.err != nil {
		q.pending = slices.DeleteFunc(q.pending, func(c culprit) bool { return c.instances == nil })
		if s.tired && len(s.blamed) > 0 { // the rest is found next time
			q.pending = s.blamed
			l.Trigger("the search for what is at fault goes on")
		}
		first.err.Why = s.why
		l.reportRender(id, first)
		l.reportFailure(id, first)
		return nil, first.err
	}
	if first.err != nil {
		l.reportFailure(id, first)
	}
	return l.found(id, s), nil
}

// withDue searches once more with the resources in quarantine that are due, where
// nothing is valid without them. It returns nil if that fails, too.
func (l *Loop) withDue(ctx context.Context, without *search) *search {
	q, now := &l.quarantine, time.Now()
	if without.last.err == nil || !without.last.verdict || without.tired || l.opts.NoQuarantine || ctx.Err() != nil {
		return nil
	}
	for _, v := range q.out() {
		if is, asked := without.last.left.now(v.Resource.identity()); asked {
			l.notice(v, is)
		}
	}
	others, due := q.resources(now)
	if len(due) == 0 {
		return nil
	}
	gaveUp, why := q.gaveUp, q.why
	s := &search{loop: l, start: others, due: due}
	if s.run(ctx); s.last.err == nil {
		return s
	}
	q.gaveUp, q.why = gaveUp, why // the search without them is not made again
	if ctx.Err() == nil && !s.yielded {
		for _, r := range due {
			l.inVain(r, now)
		}
	}
	return nil
}

// found makes a validated configuration of the outcome of a search.
func (l *Loop) found(id uint64, s *search) *validated {
	made := l.reportRender(id, s.last)
	cfg := s.last.rendered.Config
	eventbus.Publish(l.bus, ValidationCompleted{ID: id, Hash: cfg.Hash(), Took: s.last.validateTook})
	l.adopt(id, s)
	return &validated{id: id, config: cfg, origins: s.last.rendered.Origins, at: time.Now(), without: s.last.excluded, made: made}
}

// trial renders and validates once more with the resources in quarantine that are
// due. One that is valid with some of them is the newest configuration; nil says
// that there is none. A trial that fails is no news. One that takes several attempts
// goes on in the next reconciliation where that is asked for already.
func (l *Loop) trial(ctx context.Context) *validated {
	q, now := &l.quarantine, time.Now()
	others, due := q.resources(now)
	if len(due) == 0 {
		return nil
	}
	reasons := []string{"a trial of " + due[0].String() + andMore(len(due)-1)}
	id, start := l.begin(reasons)
	s := &search{loop: l, start: others, due: due}
	s.run(ctx)
	if s.last.err == nil {
		v := l.found(id, s)
		l.complete(v, reasons, start)
		return v
	}
	if ctx.Err() != nil {
		return nil
	}
	for _, r := range due {
		if i := indexOf(s.blamed, r.identity()); i >= 0 {
			l.judge(id, s.blamed[i], now)
		} else if !s.yielded {
			l.inVain(r, now)
		}
	}
	l.showQuarantine()
	l.mu.Lock()
	hash := l.sched.newest.config.Hash()
	l.mu.Unlock()
	eventbus.Publish(l.bus, ReconciliationCompleted{ID: id, Hash: hash, Unchanged: true, Took: time.Since(start), Reasons: reasons, Attempts: l.attempts})
	return nil
}

func andMore(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}

// reportRender says what an attempt rendered, if it did.
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
		ID: id, Hash: cfg.Hash(), Sections: cfg.SectionCount(), Lines: strings.Count(cfg.Main(), "\n"), Files: len(cfg.Files()),
		Refused: len(a.rendered.Refused), Resources: maps.Clone(a.rendered.Resources), Took: a.renderTook,
	}
	eventbus.Publish(l.bus, made)
	return made
}

// reportFailure says why an attempt led to nothing.
func (l *Loop) reportFailure(id uint64, a *attempt) {
	if cfg := a.made(); cfg == nil {
		eventbus.Publish(l.bus, TemplateRenderFailed{ID: id, Err: a.err, Took: a.renderTook})
	} else {
		eventbus.Publish(l.bus, ValidationFailed{ID: id, Hash: cfg.Hash(), Err: a.err, Took: a.validateTook})
	}
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

// Outcome is what Once and Preview found for one instance.
type Outcome struct {
	Instance string
	Plan     *dataplane.Plan   // what differed; nil if that could not be found out
	Result   *dataplane.Result // nil after Preview
	Err      error
}

// Once renders, validates, and deploys to all targets, all of it once and at
// once: it waits for no interval, tries nothing again, and leaves nothing out for
// what an instance refuses. For the rest it is one reconciliation of Run, through
// the same schedule: a [Prober] is probed first, and one that does not fit is not
// deployed to; events tell of it all, and [Loop.State] of each instance, until Run
// begins. Its error joins those of the instances; the outcomes are in the order of
// the targets. One of Run, Once and Preview runs at a time.
func (l *Loop) Once(ctx context.Context) ([]Outcome, error) {
	return l.alone(ctx, func(t Target, _ *validated) Outcome { return l.hire(t).once(ctx) })
}

// hire returns the worker of a target, to be called at once. That of a Once before
// knows how often the target failed.
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

// once follows the schedule until the instance has been deployed to.
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

// Preview renders, validates, and says what Once would change at each target,
// without changing anything. A [Prober] is probed first here, too, so that it fails
// where Once would.
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

// alone reconciles while nothing else runs, and does something for each target.
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
		if o.Err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", o.Instance, o.Err))
		}
	}
	return outcomes, errors.Join(errs...)
}
