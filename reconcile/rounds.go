package reconcile

import (
	"context"
	"time"

	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/reconcile/internal/quarantine"
)

// renderAndValidate makes a valid configuration, if necessary with some objects as they were
// before. It adds to the changes of quarantine.
func (l *Loop) renderAndValidate(ctx context.Context, id uint64, changes []quarantine.Change) (*validated, error) {
	newest := l.view.Newest()
	if newest == nil {
		a := l.attempt(ctx, nil, 0)
		if a.err != nil {
			if !l.opts.NoQuarantine && l.Quarantines(a.err) {
				a.err.Why = "no resource can be quarantined: set reconcile.Options.View"
			}
			return nil, l.gives(ctx, id, a)
		}
		return l.found(id, a, changes), nil
	}
	s := l.quarantine.Begin(newest, time.Now())
	changes = append(changes, s.Gone...)
	first := l.bounded(ctx, s)
	a, again := first, first.err != nil && !l.gaveUp.same(first)
	for again && a.err != nil && a.verdict && ctx.Err() == nil {
		again = s.Failed(faultsOf(a.err))
		if again {
			a = l.bounded(ctx, s)
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if a.err != nil {
		l.publishQuarantine(id, changes)
		if s.Why == "" && l.gaveUp.same(first) {
			s.Why = l.gaveUpAs
		} else if a.verdict {
			l.gaveUp, l.gaveUpAs = first, s.Why
		}
		first.err.Why = s.Why
		return nil, l.gives(ctx, id, first)
	}
	l.gaveUp = nil
	changes = append(changes, s.Valid(a.objects, time.Now())...)
	if l.Validated() == nil {
		a, changes = l.admit(ctx, a, changes)
	}
	if first.err != nil {
		l.reportFailure(id, first)
	}
	return l.found(id, a, changes), nil
}

// gives reports a reconciliation that made nothing valid.
func (l *Loop) gives(ctx context.Context, id uint64, first *attempt) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	l.reportRender(id, first)
	l.reportFailure(id, first)
	return first.err
}

// found makes a validated configuration of an attempt.
func (l *Loop) found(id uint64, a *attempt, changes []quarantine.Change) *validated {
	made := l.reportRender(id, a)
	cfg := a.rendered.Config
	eventbus.Publish(l.bus, ValidationCompleted{ID: id, Hash: cfg.Hash(), Took: a.validateTook})
	l.publishQuarantine(id, changes)
	if accepted := a.rendered.Accepted; accepted != nil {
		l.callback("Rendered.Accepted", accepted) // if it panics, the renderer remembers nothing
	}
	heldBack := 0
	for _, h := range l.quarantine.All() {
		if h.Status == quarantine.HeldBack {
			heldBack++
		}
	}
	return &validated{
		id:       id,
		config:   cfg,
		origins:  a.rendered.Origins,
		objects:  a.objects,
		at:       time.Now(),
		without:  without(l.quarantine),
		heldBack: heldBack,
		made:     made,
		deployed: a.rendered.Deployed,
	}
}
