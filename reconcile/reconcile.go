package reconcile

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/hapticsdk/haptic/eventbus"
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
	l.reasons, l.untold = nil, false
	l.mu.Unlock()
	if l.terms != nil {
		l.term = l.terms.begun.Load()
	}
	id, start := l.begin(reasons)

	recorded := l.collectRefusals()
	l.takeRelease()
	v, err = l.renderAndValidate(ctx, id, recorded)
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
	l.publishRollout(nil)
	term, newest := l.deployedIn(), l.sched.newest
	l.mu.Unlock() // the workers see it only now
	l.failures = 0
	if unchanged && term != 0 {
		l.publishDeployed(newest, term)
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
		l.sched.accepted(
			&validated{id: newest.id, config: newest.config, origins: v.origins, objects: v.objects, at: newest.at, without: v.without, deployed: v.deployed},
		)
		return true
	}
	l.publishRollout(v)
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
