package settings

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
)

// ErrSuperseded is what [Live.Apply] returns when newer settings came while these
// were still being checked.
var ErrSuperseded = errors.New("newer settings came")

// ErrNoSettings is the error of a render before any settings took effect.
var ErrNoSettings = errors.New("no settings yet")

// LiveOptions of a [Live]. Source is required.
type LiveOptions struct {
	Source  k8swatch.Source // of what the settings watch
	Program ProgramOptions

	// Bus gets the events of settings, and is where they are checked: whoever
	// answers a [ValidationRequest] ([eventbus.Answer]) has a say. Nil: they
	// are checked by the built-in validators alone.
	Bus *eventbus.Bus

	// Validator makes the validator of configurations for HAProxys with these
	// folders, which settings may change. It must be safe for concurrent use, as
	// *validate.Validator is. Nil: the loop's Options.Validator is for all.
	Validator func(dataplane.Layout) reconcile.Validator

	// OnApply is called when settings take effect, before the first render with
	// them: for what the host does with them, such as the level of its log.
	OnApply func(*Program)

	// OnChange is called when something that is watched changed, besides the
	// trigger of the loop: to find HAProxys again, see [Live.Stores].
	OnChange func()

	CheckTimeout time.Duration // of all that is done to candidates before they take effect; zero: 1 min
	Logger       *slog.Logger  // nil means slog.Default()
}

// Live holds the settings in use: it watches what they name, and is the
// [reconcile.Renderer] of what they say. New ones take effect while everything runs, if
// they are good, and in one step:
//
//   - All validators check them at once, through Ask and Answer on the bus.
//   - Watchers are started for what is new in them; those of the same resource
//     go on as they are, with all that they hold.
//   - They are rendered with the resources of now, and the outcome is validated.
//   - The program is swapped, the loop has one reconciliation, and watchers that
//     nobody needs any more end.
//
// What fails on the way is an error, a [Invalid] on the bus and in the state;
// what was in use stays in use. Make a Live with [NewLive], its loop with
// [Live.NewLoop], and run both. All methods may be called concurrently.
type Live struct {
	opts LiveOptions
	bus  *eventbus.Bus
	log  *slog.Logger

	started chan struct{} // closed when Run has begun
	pods    chan struct{} // of size 1: FollowPods is to look again
	running context.Context
	wg      sync.WaitGroup // of watchers; only Run waits

	checking  sync.Mutex // one candidate at a time is made ready
	rendering sync.RWMutex

	mu        sync.Mutex
	supersede context.CancelCauseFunc // of the newest candidate
	current   *inUse
	loop      *reconcile.Loop
	validator reconcile.Validator // of the loop
	layouts   map[dataplane.Layout]reconcile.Validator
	deployed  *dataplane.Config
	reads     map[string]func() k8swatch.State // what FollowPods reads, by kind and name
	state     State
	said      string // about the candidate that was refused last
}

// inUse is a program with its watchers.
type inUse struct {
	program  *Program
	name     string
	watchers map[string]*liveWatcher // by name in the settings
	proof    *proof
	previous *dataplane.Config // that the proof was rendered with
}

// proof is the render with which a program proved itself. The loop need not do it
// again while nothing has changed.
type proof struct {
	revision k8swatch.Revision
	rendered *reconcile.Rendered
}

// NewLive returns a Live without settings.
func NewLive(opts LiveOptions) (*Live, error) {
	if opts.Source == nil {
		return nil, errors.New("reconcile: LiveOptions.Source is missing")
	}
	if opts.CheckTimeout <= 0 {
		opts.CheckTimeout = time.Minute
	}
	l := &Live{opts: opts, bus: opts.Bus, log: opts.Logger, started: make(chan struct{}), pods: make(chan struct{}, 1)}
	if l.bus == nil {
		l.bus = eventbus.New(nil)
	}
	if l.log == nil {
		l.log = slog.Default()
	}
	l.answer()
	return l, nil
}

// NewLoop makes the loop that renders with the settings in use: its Renderer is
// l, and its intervals are theirs. Options.Validator also judges new settings; it
// must be safe for concurrent use, as *validate.Validator is. Call it once.
func (l *Live) NewLoop(opts reconcile.Options) (*reconcile.Loop, error) {
	opts.Renderer = l
	if opts.Validator == nil && l.opts.Validator != nil {
		opts.Validator = reconcile.ValidatorFunc(l.validate)
	}
	if opts.Bus == nil {
		opts.Bus = l.opts.Bus
	}
	loop, err := reconcile.New(opts)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.loop = loop
	if l.opts.Validator == nil {
		l.validator = opts.Validator
	}
	if l.current != nil {
		err = loop.SetIntervals(l.current.program.settings.Reconcile.options())
	}
	return loop, err
}

// validate is the validator of the loop where that depends on the settings.
func (l *Live) validate(ctx context.Context, cfg *dataplane.Config) error {
	p := l.Program()
	if p == nil {
		return ErrNoSettings
	}
	return l.validatorOf(p).Validate(ctx, cfg)
}

// validatorOf returns the validator for what a program renders, nil for none. One
// that is kept remembers what it said.
func (l *Live) validatorOf(p *Program) reconcile.Validator {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.opts.Validator == nil {
		return l.validator
	}
	if l.layouts[p.layout] == nil {
		if l.layouts == nil || len(l.layouts) >= maxLayouts {
			l.layouts = map[dataplane.Layout]reconcile.Validator{}
		}
		l.layouts[p.layout] = l.opts.Validator(p.layout)
	}
	return l.layouts[p.layout]
}

// maxLayouts bounds the validators that are kept.
const maxLayouts = 4

// Run watches what the settings name until ctx ends, and returns nil when
// everything that it started has ended. It runs once.
func (l *Live) Run(ctx context.Context) error {
	l.mu.Lock()
	if l.running != nil {
		l.mu.Unlock()
		return k8swatch.ErrStarted
	}
	l.running = ctx
	l.mu.Unlock()
	close(l.started)
	<-ctx.Done()
	l.checking.Lock() // nothing is started from here on: start looks at ctx
	l.checking.Unlock()
	l.wg.Wait()
	return nil
}

// Render implements [reconcile.Renderer] with the settings in use.
func (l *Live) Render(ctx context.Context) (*reconcile.Rendered, error) {
	l.rendering.RLock() // the watchers stay meanwhile
	defer l.rendering.RUnlock()
	l.mu.Lock()
	use := l.current
	l.mu.Unlock()
	if use == nil {
		return nil, ErrNoSettings
	}
	stores, revision := l.read(use)
	l.mu.Lock()
	done := use.proof
	use.proof = nil
	l.mu.Unlock()
	if done != nil && done.revision == revision && reconcile.Excluding(ctx).Empty() {
		return done.rendered, nil
	}
	return use.program.Render(ctx, stores)
}

// Settle implements [reconcile.Settler].
func (l *Live) Settle(cfg *dataplane.Config, err error) (again bool) {
	l.mu.Lock()
	use := l.current
	if err == nil {
		l.deployed = cfg
	}
	l.mu.Unlock()
	return use != nil && use.program.templates.Settle(cfg, err)
}

// SetPrevious says what is deployed before the first settings take effect:
// templates see it as currentConfig.
func (l *Live) SetPrevious(cfg *dataplane.Config) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deployed = cfg
	if l.current != nil {
		l.current.program.templates.SetPrevious(cfg)
	}
}

// Program returns the program in use, nil before the first.
func (l *Live) Program() *Program {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current == nil {
		return nil
	}
	return l.current.program
}

// Apply makes settings take effect, if they are good, and returns when they
// have. It waits for Run to have begun. The error is a [Errors] for what is
// wrong in the settings; [ErrSuperseded]; a [k8swatch.SyncError] where a new resource
// cannot be watched; what a validator, a render or the validation said; or that of
// ctx where that ended before, which is reported to nobody else.
// Settings that say the same as those in use are in use already.
func (l *Live) Apply(ctx context.Context, s *Settings) error {
	name := "settings"
	if s.doc != nil {
		name = s.doc.File
	}
	return l.consider(ctx, &candidate{name: name, settings: s})
}

// ApplyYAML is [Parse] and [Live.Apply] in one, with all that is wrong in
// either. name says what the file is called in errors.
func (l *Live) ApplyYAML(ctx context.Context, name string, data []byte) error {
	s, errs := read(name, data)
	return l.consider(ctx, &candidate{name: name, settings: s, errs: errs})
}

// consider does all of Apply.
func (l *Live) consider(ctx context.Context, c *candidate) error {
	start, caller := time.Now(), ctx
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l.mu.Lock()
	if l.supersede != nil {
		l.supersede(ErrSuperseded)
	}
	l.supersede = cancel
	l.mu.Unlock()
	select {
	case <-l.started:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	end := context.AfterFunc(l.running, func() { cancel(l.running.Err()) })
	defer end()
	l.checking.Lock()
	defer l.checking.Unlock()
	if ctx.Err() != nil || l.running.Err() != nil { // which ends ctx, but a moment later
		return cmp.Or(context.Cause(ctx), l.running.Err())
	}
	ctx, stop := context.WithTimeout(ctx, l.opts.CheckTimeout)
	defer stop()
	c.version = "unreadable"
	if c.settings != nil {
		c.version = c.settings.Version()
	}
	l.begin(c)
	use, err := l.prepare(ctx, c)
	if err != nil {
		// Nothing is known of settings that nobody waits for any more.
		if cause := context.Cause(ctx); errors.Is(cause, ErrSuperseded) || caller.Err() != nil || l.running.Err() != nil {
			return cmp.Or(cause, l.running.Err())
		}
		return l.refuse(c, err, start)
	}
	if use != nil {
		l.swap(c, use, start)
	}
	return nil
}

// prepare makes everything ready for a candidate; nil says that it is in use.
func (l *Live) prepare(ctx context.Context, c *candidate) (*inUse, error) {
	l.mu.Lock()
	before := l.current
	l.mu.Unlock()
	if before != nil && len(c.errs) == 0 && before.program.version == c.version {
		l.unchanged(c)
		return nil, nil
	}
	eventbus.Publish(l.opts.Bus, Parsed{Name: c.name, Version: c.version})
	start := time.Now()
	if err := l.check(ctx, c); err != nil {
		return nil, err
	}
	eventbus.Publish(l.opts.Bus, Validated{Name: c.name, Version: c.version, Took: time.Since(start)})
	program, errs := c.compile(&l.opts.Program)
	if len(errs) > 0 { // also without the validator that says so
		return nil, errs.OrNil()
	}
	use := &inUse{program: program, name: c.name}
	started, err := l.watch(ctx, use, before)
	if err == nil {
		err = l.try(ctx, use)
		if before == nil && l.quarantines(err) {
			err = nil
		}
	}
	if err != nil {
		l.end(started)
		return nil, err
	}
	return use, nil
}

// try renders and validates with a program that is not in use yet. What is in
// quarantine is left out, but nothing else is put there: a resource that is good
// with the settings in use and bad with new ones speaks against these. What is in
// quarantine is tried again once they are in use. The first settings have none
// to be compared with; see quarantines.
func (l *Live) try(ctx context.Context, use *inUse) error {
	l.mu.Lock()
	loop, deployed := l.loop, l.deployed
	l.mu.Unlock()
	validator := l.validatorOf(use.program)
	var excluded []reconcile.Resource
	if loop != nil {
		for _, q := range loop.State().Quarantined {
			excluded = append(excluded, q.Resource)
		}
	}
	ctx = reconcile.WithExcluded(ctx, excluded...)
	use.program.templates.SetPrevious(deployed)
	use.previous = deployed
	stores, revision := l.read(use)
	var rendered *reconcile.Rendered
	err := reconcile.Guard(func() (err error) {
		rendered, err = use.program.Render(ctx, stores)
		return err
	})
	if err != nil {
		return &trialError{"render", err, reconcile.Blame(ctx, "render", err, nil, nil)}
	}
	if validator != nil {
		if err := reconcile.Guard(func() error { return validator.Validate(ctx, rendered.Config) }); err != nil {
			use.program.templates.Settle(rendered.Config, err)
			return &trialError{"validate", err, reconcile.Blame(ctx, "validate", err, rendered.Config, rendered.Origins)}
		}
	}
	if len(excluded) == 0 { // else the loop wants to see what is left out
		use.proof = &proof{revision: revision, rendered: rendered}
	}
	return nil
}

// trialError says that settings are good as such, and yet make nothing valid of
// the resources of now. Other resources may change that.
type trialError struct {
	stage  string
	err    error
	blamed *reconcile.ConfigError
}

func (e *trialError) Error() string { return e.stage + " with the new settings: " + e.err.Error() }
func (e *trialError) Unwrap() error { return e.err }

// quarantines reports whether the loop leaves out what a trial failed for. So a
// resource that is wrong keeps a controller that starts from nothing but itself.
func (l *Live) quarantines(err error) bool {
	l.mu.Lock()
	loop := l.loop
	l.mu.Unlock()
	var trial *trialError
	return loop != nil && errors.As(err, &trial) && loop.Quarantines(trial.blamed)
}

// swap makes a program the one in use.
func (l *Live) swap(c *candidate, use *inUse, start time.Time) {
	l.mu.Lock()
	before, loop := l.current, l.loop
	l.current = use
	if l.deployed != use.previous { // deployed meanwhile
		use.program.templates.SetPrevious(l.deployed)
		use.proof = nil
	}
	now := time.Now()
	l.state.Name, l.state.Version, l.state.AppliedAt = c.name, c.version, now
	l.state.Candidate, l.state.Error, l.state.ErrorAt = "", "", time.Time{}
	l.mu.Unlock()
	event := Applied{Name: c.name, Version: c.version, Took: now.Sub(start)}
	var gone []*liveWatcher
	event.Started, event.Stopped, gone = difference(before, use)
	if loop != nil {
		// The intervals were checked: there is no error.
		_ = loop.SetIntervals(use.program.settings.Reconcile.options())
	}
	if l.opts.OnApply != nil {
		l.opts.OnApply(use.program)
	}
	eventbus.Publish(l.opts.Bus, event)
	l.wakePods()
	if loop != nil {
		reconcileAnew(loop)
	}
	l.rendering.Lock() // until a render with the program before has ended
	l.rendering.Unlock()
	l.end(gone)
}

// reconcileAnew has the loop reconcile. What is in quarantine is tried with the
// new templates too: what was wrong may be right.
func reconcileAnew(loop *reconcile.Loop) {
	if len(loop.State().Quarantined) > 0 {
		loop.Release()
	}
	loop.Trigger("settings")
}
