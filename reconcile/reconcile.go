package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

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
	unchanged = l.accept(v)
	if !l.leading() { // another process deploys it, or its like: no deployment tells the renderer
		l.settled(v.rendered(), nil)
	}
	eventbus.Publish(l.bus, ReconciliationCompleted{ID: v.id, Hash: v.config.Hash(), Unchanged: unchanged, Took: time.Since(start),
		Reasons: reasons, Rendered: v.made, Attempts: l.attempts, Failures: l.failures})
	l.failures = 0
	return unchanged
}

// accept makes v the newest configuration and wakes the workers.
func (l *Loop) accept(v *validated) (unchanged bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state.LastError = ""
	if newest := l.sched.newest; v.same(newest) {
		// It is the same text, but of other versions of the resources: a late verdict
		// must be about them as they are now.
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
	all, _ := q.resources(time.Time{})
	s := &search{loop: l, start: all, accused: slices.Clone(q.accused)}
	first := s.run(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if s.last.err != nil {
		q.accused = slices.DeleteFunc(q.accused, func(a accusation) bool { return a.instances == nil })
		if s.tired && len(s.accused) > 0 { // the rest is found next time
			q.accused = s.accused
			l.Trigger("the search for what is at fault goes on")
		}
		if first.blamed != nil {
			first.blamed.Why = s.why
		}
		l.reportRender(id, first)
		l.reportFailure(id, first)
		return nil, first.err
	}
	if first.err != nil {
		l.reportFailure(id, first)
	}
	return l.found(id, s), nil
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
// that there is none. A trial that fails disturbs nobody, and is no news.
func (l *Loop) trial(ctx context.Context) *validated {
	q, now := &l.quarantine, time.Now()
	all, due := q.resources(now)
	if len(due) == 0 {
		return nil
	}
	rest := slices.DeleteFunc(all, func(r Resource) bool { return containsResource(due, r.identity()) })
	reasons := []string{"a trial of " + due[0].String() + andMore(len(due)-1)}
	id, start := l.begin(reasons)
	s := &search{loop: l, start: rest, due: due}
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
		v := q.rulings[r.identity()]
		i := slices.IndexFunc(s.accused, func(a accusation) bool { return a.resource.identity() == r.identity() })
		if s.futile() {
			l.convict(id, s.accused[i], time.Now())
			continue
		}
		v.Trials++
		l.postpone(v, time.Now())
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
	if a.rendered == nil || a.rendered.Config == nil {
		return made
	}
	cfg := a.rendered.Config
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
	if a.rendered == nil || a.rendered.Config == nil {
		eventbus.Publish(l.bus, TemplateRenderFailed{ID: id, Err: a.err, Took: a.renderTook})
		return
	}
	eventbus.Publish(l.bus, ValidationFailed{ID: id, Hash: a.rendered.Config.Hash(), Err: a.err, Took: a.validateTook})
}

func (l *Loop) render(ctx context.Context) (rendered *Rendered, err error) {
	ctx, cancel := context.WithTimeout(ctx, l.live.Load().RenderTimeout)
	defer cancel()
	err = guard(func() (err error) {
		rendered, err = l.opts.Renderer.Render(ctx)
		return err
	})
	if err == nil && (rendered == nil || rendered.Config == nil) {
		err = errors.New("the renderer returned no configuration")
	}
	return rendered, err
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
