package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/internal/panics"
	"github.com/hapticsdk/haptic/internal/rendering"
	"github.com/hapticsdk/haptic/reconcile/internal/quarantine"
)

// attempt is one render and its validation.
type attempt struct {
	newest   rendering.Objects // as they were; nil without a View
	objects  rendering.Objects // that it read
	held     int               // of them are held back
	rendered *Rendered         // after a failed render: nil, or with Origins alone
	err      *ConfigError      // nil: the configuration is valid
	verdict  bool              // the error is about resources or templates: without some resources it may be gone

	renderTook, validateTook time.Duration
}

// made returns the rendered configuration, nil if there is none.
func (a *attempt) made() *dataplane.Config {
	if a.rendered == nil {
		return nil
	}
	return a.rendered.Config
}

// same reports whether two attempts failed in the same way with the same objects. a may be nil.
func (a *attempt) same(b *attempt) bool {
	switch {
	case a == nil:
		return false
	case a.made() != nil && b.made() != nil:
		if a.made().Hash() != b.made().Hash() {
			return false
		}
	case a.err.Err.Error() != b.err.Err.Error():
		return false
	}
	return sameObjects(a.newest, b.newest)
}

func sameObjects(a, b rendering.Objects) bool {
	n := 0
	for obj := range a.All() {
		n++
		if key, ok := keyOf(obj); !ok || !quarantine.Same(obj, b.Get(key)) {
			return false
		}
	}
	for range b.All() {
		n--
	}
	return n == 0
}

// noView stands for a View if there is none: nothing can be held back.
type noView struct{}

func (noView) Newest() rendering.Objects { return nil }
func (noView) Show(rendering.Objects)    {}

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
		if again = s.Failed(faultsOf(a.err)); again {
			a = l.bounded(ctx, s)
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if a.err != nil {
		l.tellQuarantine(id, changes)
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
	l.tellQuarantine(id, changes)
	if accepted := a.rendered.Accepted; accepted != nil {
		l.callback("Rendered.Accepted", accepted) // if it panics, the renderer remembers nothing
	}
	heldBack := 0
	for _, h := range l.quarantine.All() {
		if h.Status == quarantine.HeldBack {
			heldBack++
		}
	}
	return &validated{id: id, config: cfg, origins: a.rendered.Origins, objects: a.objects, at: time.Now(), without: without(l.quarantine), heldBack: heldBack, made: made, deployed: a.rendered.Deployed}
}

// leash is the least time that an attempt with changes may take. Without a valid configuration
// of the current templates, and in the last attempts of a search, only the time-outs bound it.
const leash = time.Second

// leash returns how long an attempt may take: the constant leash or, if longer, twice the
// sum of the longest validation of a valid configuration and the last valid render.
func (l *Loop) leash() time.Duration { return max(leash, 2*(l.longest+l.rendered)) }

// bounded makes an attempt of a search. Changes that make a template or haproxy hang would
// otherwise hold up all others until the time-out, each time.
func (l *Loop) bounded(ctx context.Context, s *quarantine.Search) *attempt {
	if l.opts.NoQuarantine || !l.quarantine.Proven() || s.Closed() {
		a := l.attempt(ctx, s.Objects(), s.Held())
		a.newest = s.Newest
		return a
	}
	limit := l.leash()
	bounded, end := context.WithTimeout(ctx, limit)
	defer end()
	a := l.attempt(bounded, s.Objects(), s.Held())
	a.newest = s.Newest
	if a.err != nil && bounded.Err() != nil && ctx.Err() == nil {
		a.verdict = true
		f := tooLong(a, limit, fmt.Sprintf(" since it changed: the controller holds it back and tries it separately for up to %s", l.live.Load().RenderTimeout))
		a.err = &ConfigError{Stage: a.err.Stage, Faults: []Fault{f}, Err: a.err.Err}
	}
	return a
}

// attempt renders and validates. If contents of the renderer may be the cause, such as
// fetched ones, it tries again without them: no resource is at fault then.
func (l *Loop) attempt(ctx context.Context, objects rendering.Objects, held int) *attempt {
	for range 2 {
		a := l.tryOnce(ctx, objects, held)
		if a.err == nil || !a.verdict || !l.settled(a.rendered, a.err) {
			return a
		}
	}
	return l.tryOnce(ctx, objects, held)
}

func (l *Loop) tryOnce(ctx context.Context, objects rendering.Objects, held int) *attempt {
	a := &attempt{objects: objects, held: held}
	if objects != nil {
		l.view.Show(objects)
	}
	began := time.Now()
	var err error
	a.rendered, err = l.render(ctx)
	a.renderTook = time.Since(began)
	if err != nil {
		a.fail(ctx, l.live.Load().RenderTimeout, "render", err)
	} else if l.opts.Validator != nil {
		validating := time.Now()
		err = panics.Guard(func() error { return l.opts.Validator.Validate(ctx, a.rendered.Config) })
		a.validateTook = time.Since(validating)
		if err != nil {
			a.fail(ctx, l.live.Load().RenderTimeout, "validate", err)
		}
	}
	if a.err == nil {
		l.longest, l.rendered, l.took = max(l.longest, a.validateTook), a.renderTook, a.renderTook+a.validateTook
	}
	l.attempts++
	done := AttemptCompleted{ID: l.lastID, HeldBack: held, At: began, RenderTook: a.renderTook, ValidateTook: a.validateTook}
	if a.err != nil {
		done.Err = a.err
	}
	eventbus.Publish(l.bus, done)
	return a
}

// fail finds out which resources and template lines a failure comes from.
func (a *attempt) fail(ctx context.Context, timeout time.Duration, stage string, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	a.err = a.rendered.Explain(ctx, stage, err)
	a.verdict = isVerdict(err)
}

func (l *Loop) render(ctx context.Context) (rendered *Rendered, err error) {
	ctx, cancel := context.WithTimeout(ctx, l.live.Load().RenderTimeout)
	defer cancel()
	err = panics.Guard(func() (err error) {
		rendered, err = l.opts.Renderer.Render(ctx)
		return err
	})
	if err == nil && (rendered == nil || rendered.Config == nil) {
		err = errors.New("the renderer returned no configuration")
	}
	return rendered, err
}

// admit tries what a search held back, before the first configuration is deployed. Afterwards
// trials come between reconciliations, in the same goroutine.
func (l *Loop) admit(ctx context.Context, valid *attempt, changes []quarantine.Change) (*attempt, []quarantine.Change) {
	a, begun := valid, time.Now()
	for ctx.Err() == nil && time.Since(begun) < startPatience {
		t := l.quarantine.Trial(begun)
		if t == nil {
			break
		}
		bounded, end := context.WithTimeout(ctx, l.leash())
		a = l.attempt(bounded, t.Objects(), len(l.quarantine.All())-len(t.Keys))
		end()
		changes = append(changes, l.outcome(a, t, l.leash(), "")...)
	}
	if a.err != nil { // the renderer is to remember what is valid
		a = l.attempt(ctx, l.quarantine.Good(), len(l.quarantine.All()))
	}
	if a.err != nil {
		a = valid
	}
	return a, changes
}

// outcome tells quarantine how a trial ended.
func (l *Loop) outcome(a *attempt, t *quarantine.Trial, limit time.Duration, then string) []quarantine.Change {
	now := time.Now()
	switch {
	case a.err == nil:
		return t.Passed(now)
	case a.verdict:
		return t.Failed(faultsOf(a.err), now)
	case len(t.Keys) > 1 || !errors.Is(a.err.Err, context.DeadlineExceeded): // it says nothing about them
		t.Cut(now)
		return nil
	}
	return t.Failed([]quarantine.Fault{{About: tooLong(a, limit, then)}}, now)
}

// trialPatience is how long a trial may hold up a reconciliation. If twice the time of the
// attempts before is longer, that counts.
const trialPatience = 500 * time.Millisecond

// startPatience bounds the trials before the first configuration is deployed: until then, what
// a search set back in one step is not served.
const startPatience = 10 * time.Second

// hangPause is how long what hung before waits for a moment without other changes.
const hangPause = 30 * time.Second

// trials tries what is held back and due. It stops when a reconciliation is asked for. It
// returns the newest configuration that it made, or nil.
func (l *Loop) trials(ctx context.Context, patience time.Duration) (newest *validated) {
	for begun := time.Now(); ctx.Err() == nil; {
		t := l.quarantine.Trial(begun)
		if t == nil || t.Hangs && len(l.wake) > 0 && time.Since(l.hung) < hangPause {
			break
		}
		if t.Hangs {
			l.hung = time.Now()
		}
		if v := l.trial(ctx, t, patience); v != nil {
			newest = v
		}
		if len(l.wake) > 0 {
			break
		}
	}
	return newest
}

// trial renders and validates once more with some of what is held back. If that is valid, it
// returns the configuration, otherwise nil. A failed trial is an unchanged reconciliation.
func (l *Loop) trial(ctx context.Context, t *quarantine.Trial, patience time.Duration) *validated {
	reasons := []string{"a try of " + t.Keys[0].Kind + " " + t.Keys[0].Namespace + "/" + t.Keys[0].Name + andMore(len(t.Keys)-1)}
	id, start := l.begin(reasons)
	if patience < leash { // a trial that was cut gets more time
		patience = min(patience*time.Duration(1+t.Tries), leash)
	}
	bounded, end := l.yielding(ctx, patience)
	if t.Others || len(t.Keys) > 1 { // the next one waits, too
		end()
		bounded, end = context.WithTimeout(ctx, max(patience, l.leash()))
	}
	a := l.attempt(bounded, t.Objects(), len(l.quarantine.All())-len(t.Keys))
	cut := bounded.Err() != nil
	end()
	if ctx.Err() != nil && a.err != nil {
		return nil
	}
	if cut && a.err != nil {
		t.Cut(time.Now())
		l.showQuarantine()
	} else if changes := l.outcome(a, t, a.renderTook+a.validateTook, ", apart from others, too"); a.err == nil {
		v := l.found(id, a, changes)
		l.complete(v, reasons, start)
		return v
	} else {
		l.tellTogether(id, changes)
	}
	l.mu.Lock()
	hash := l.sched.newest.config.Hash()
	l.mu.Unlock()
	eventbus.Publish(l.bus, ReconciliationCompleted{ID: id, Hash: hash, Unchanged: true, Took: time.Since(start), Reasons: reasons, Attempts: l.attempts})
	return nil
}

// yielding returns a context that ends when a reconciliation waits, but not before patience
// is over.
func (l *Loop) yielding(ctx context.Context, patience time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	timer := time.AfterFunc(patience, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if ctx.Err() != nil {
			return
		}
		if l.hurry = cancel; len(l.wake) > 0 {
			cancel()
		}
	})
	return ctx, func() {
		timer.Stop()
		cancel()
		l.mu.Lock()
		defer l.mu.Unlock()
		l.hurry = func() {}
	}
}
