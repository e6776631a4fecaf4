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

func (noView) Show(rendering.Objects) {}

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

// attemptTime is the time that an attempt with changes may take, at least. Without a valid
// configuration of the current templates, and in the last attempts of a search, only the
// time-outs bound it.
const attemptTime = time.Second

// mostAttemptTime is attemptTime or, if that is longer, twice what the longest validation of a
// valid configuration and the last valid render took.
func (l *Loop) mostAttemptTime() time.Duration { return max(attemptTime, 2*(l.longest+l.rendered)) }

// bounded makes an attempt of a search. Changes that make a template or haproxy hang would
// otherwise hold up all others until the time-out, each time.
func (l *Loop) bounded(ctx context.Context, s *quarantine.Search) *attempt {
	if l.opts.NoQuarantine || !l.quarantine.Proven() || s.Closed() {
		a := l.attempt(ctx, s.Objects(), s.Held())
		a.newest = s.Newest
		return a
	}
	limit := l.mostAttemptTime()
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

// fail finds out which resources and template lines a failure comes from.
func (a *attempt) fail(ctx context.Context, timeout time.Duration, stage string, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	a.err = a.rendered.Explain(ctx, stage, err)
	a.verdict = isVerdict(err)
}
