package settings

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/discover"
	"github.com/hapticsdk/haptic/reconcile/fetch"
)

// ErrNoSettings is the error of a render before any settings took effect.
var ErrNoSettings = errors.New("no settings yet")

// LiveOptions of a [Live]. Source is required.
type LiveOptions struct {
	Source k8swatch.Source // of the resources that the settings watch

	// Program has the options of the templates. A nil HTTP becomes a [fetch.Store] with its
	// defaults. The Live sets a missing Bus and OnChange of the store, and runs it.
	Program ProgramOptions

	// Secret is the [namespace/]name of the Secret with the credentials, for settings without
	// credentialsSecretRef. Zero: [discover.DefaultSecret], in the namespace of the
	// controller.
	Secret string

	// Bus gets the events; if nil, no events are published.
	Bus *eventbus.Bus

	// Check can refuse settings, in addition to all built-in checks; best with an [Errors].
	// name is the file or ConfigMap. Nil: there is no such check.
	Check func(ctx context.Context, name string, s *Settings) error

	// Validator returns the validator for instances with this layout, which settings may
	// change. That validator must be safe for concurrent use, as *validate.Validator is. If
	// nil, the loop's Options.Validator validates for all layouts.
	Validator func(dataplane.Layout) reconcile.Validator

	// OnApply is called when settings take effect, before the first render with them. The
	// program follows them there, for example with the level of its log.
	OnApply func(*Program)

	CheckTimeout time.Duration // for everything that a candidate must pass; zero: 1 min
	Logger       *slog.Logger  // nil means slog.Default()
}

// Live holds the settings in use. It watches the resources that they name, and is their
// [reconcile.Renderer]. Good new settings take effect while everything runs, in one step:
//
//   - All checks are made, so that one error reports every mistake.
//   - Watchers start for new resources. Watchers of unchanged resources go on with what they
//     hold.
//   - The new settings render the current resources, and the result is validated.
//   - The program is swapped, the loop reconciles once, and unused watchers end.
//
// A failure on the way is an error, and an [Invalid] on the bus and in the state. The settings
// before stay in use. Make a Live with [NewLive], its loop with [Live.NewLoop], and run both.
// All methods may be called concurrently.
type Live struct {
	opts      LiveOptions
	log       *slog.Logger
	discovery *discover.Follower
	view      *k8swatch.View

	started chan struct{} // closed when Run has begun
	first   chan struct{} // closed when the first settings are in use
	running context.Context
	wg      sync.WaitGroup // of watchers; only Run waits for it

	checking  sync.Mutex // one candidate is prepared at a time
	rendering sync.RWMutex

	mu        sync.Mutex
	current   *inUse
	loop      *reconcile.Loop
	validator reconcile.Validator // of the loop
	deployed  *dataplane.Config
	state     State
	said      string // about the last refused candidate
}

// inUse is a program with its watchers.
type inUse struct {
	program   *Program
	validator reconcile.Validator     // nil: there is none
	watchers  map[string]*liveWatcher // by name in the settings
	synced    time.Duration           // time to fill the new watchers
}

// NewLive returns a Live without settings.
func NewLive(opts LiveOptions) (*Live, error) {
	if opts.Source == nil {
		return nil, errors.New("settings: LiveOptions.Source is missing")
	}
	if opts.CheckTimeout <= 0 {
		opts.CheckTimeout = time.Minute
	}
	l := &Live{opts: opts, log: opts.Logger, started: make(chan struct{}), first: make(chan struct{})}
	if l.log == nil {
		l.log = slog.Default()
	}
	l.view = k8swatch.NewView(l.newest)
	if opts.Program.HTTP == nil {
		l.opts.Program.HTTP = &fetch.Store{}
	}
	store := l.HTTP()
	store.Bus = cmp.Or(store.Bus, opts.Bus)
	if store.OnChange == nil {
		store.OnChange = l.fetched
	}
	var err error
	l.discovery, err = l.newDiscovery()
	return l, err
}

// NewLoop returns the loop that renders with the settings in use: its Renderer is l, and its
// intervals are those of the settings. With a Leader and without a BeginTerm, it reads all
// resources again when a term begins. Options.Validator also judges new settings, unless
// LiveOptions.Validator is set. It must be safe for concurrent use, as *validate.Validator is.
// Call NewLoop once.
func (l *Live) NewLoop(opts reconcile.Options) (*reconcile.Loop, error) {
	opts.Renderer, opts.View = l, l.view
	if opts.BeginTerm == nil {
		opts.BeginTerm = l.beginTerm
	}
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

// validate validates for the loop, with the validator of the settings in use.
func (l *Live) validate(ctx context.Context, cfg *dataplane.Config) error {
	l.mu.Lock()
	use := l.current
	l.mu.Unlock()
	if use == nil {
		return ErrNoSettings
	}
	return use.validator.Validate(ctx, cfg)
}

// HTTP returns the store that templates use as the variable http. Run looks for new contents.
func (l *Live) HTTP() *fetch.Store { return l.opts.Program.HTTP }

// fetched triggers the loop when a URL has a new content.
func (l *Live) fetched(reason string) {
	l.mu.Lock()
	loop := l.loop
	l.mu.Unlock()
	if loop != nil {
		loop.Trigger(reason)
	}
}

// Run watches the resources of the settings and looks for new contents of fetched URLs, until
// ctx ends. It returns nil when everything that it started has ended. A second call returns
// [k8swatch.ErrStarted].
func (l *Live) Run(ctx context.Context) error {
	l.mu.Lock()
	if l.running != nil {
		l.mu.Unlock()
		return k8swatch.ErrStarted
	}
	l.running = ctx
	l.mu.Unlock()
	l.wg.Go(func() { _ = l.HTTP().Run(ctx) }) // it returns nil
	close(l.started)
	<-ctx.Done()
	l.checking.Lock() // from here on, start sees that ctx has ended
	l.checking.Unlock()
	l.wg.Wait()
	return nil
}

// Render implements [reconcile.Renderer] with the settings in use.
func (l *Live) Render(ctx context.Context) (*reconcile.Rendered, error) {
	l.rendering.RLock() // keeps the watchers meanwhile
	defer l.rendering.RUnlock()
	l.mu.Lock()
	use := l.current
	l.mu.Unlock()
	if use == nil {
		return nil, ErrNoSettings
	}
	return use.program.Render(ctx, l.read(use))
}

func (l *Live) Settle(cfg *dataplane.Config, err error) (again bool) {
	l.mu.Lock()
	use := l.current
	if err == nil {
		l.deployed = cfg
	}
	l.mu.Unlock()
	return use != nil && use.program.templates.Settle(cfg, err)
}

// SetPrevious sets the deployed configuration before the first settings take effect. Templates
// see it as currentConfig.
func (l *Live) SetPrevious(cfg *dataplane.Config) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deployed = cfg
	if l.current != nil {
		l.current.program.templates.SetPrevious(cfg)
	}
}

// Program returns the program in use, or nil before the first.
func (l *Live) Program() *Program {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current == nil {
		return nil
	}
	return l.current.program
}

// InForce returns the settings in use with all defaults, as JSON values, for people to see. A
// template may hold a secret, so InForce shows only its number of lines. It is nil before the
// first settings take effect.
func (l *Live) InForce() map[string]any {
	program := l.Program()
	if program == nil {
		return nil
	}
	s := *program.settings
	if len(s.Dataplane.PodSelector.MatchLabels) > 0 && s.Credentials.Name == "" {
		s.Credentials.Namespace, s.Credentials.Name = l.secret()
	}
	var all map[string]any
	text, err := json.Marshal(&s)
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil { // cannot happen with these types
		return map[string]any{"error": err.Error()}
	}
	hideTemplates(all)
	return all
}

func hideTemplates(in map[string]any) {
	for key, value := range in {
		switch v := value.(type) {
		case map[string]any:
			hideTemplates(v)
		case string:
			if key == "template" {
				in[key] = fmt.Sprintf("(%d lines)", strings.Count(v, "\n"))
			}
		}
	}
}
