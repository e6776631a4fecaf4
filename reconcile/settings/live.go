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
	Source k8swatch.Source // of what the settings watch

	// Program is what the templates have besides. Its HTTP, where it is nil, is a store
	// with the defaults of [fetch.Store]; the Live gives it the Bus and OnChange that it
	// lacks, and runs it.
	Program ProgramOptions

	// Secret is the [namespace/]name of the Secret with the credentials where settings
	// have no credentialsSecretRef. Zero: [discover.DefaultSecret], in the namespace of
	// the controller.
	Secret string

	// Bus gets the events of settings; nil: nobody does.
	Bus *eventbus.Bus

	// Check has a say in which settings take effect, besides all built-in checks;
	// best with an [Errors]. name is that of the file or ConfigMap. Nil: it has none.
	Check func(ctx context.Context, name string, s *Settings) error

	// Validator makes the validator of configurations for instances with these
	// folders, which settings may change. It must be safe for concurrent use, as
	// *validate.Validator is. Nil: the loop's Options.Validator is for all.
	Validator func(dataplane.Layout) reconcile.Validator

	// OnApply is called when settings take effect, before the first render with
	// them: for what the host does with them, such as the level of its log.
	OnApply func(*Program)

	CheckTimeout time.Duration // of all that is done to candidates before they take effect; zero: 1 min
	Logger       *slog.Logger  // nil means slog.Default()
}

// Live holds the settings in use: it watches what they name, and is the
// [reconcile.Renderer] of what they say. New ones take effect while everything runs, if
// they are good, and in one step:
//
//   - All checks are made, so that everything that is wrong is said at once.
//   - Watchers are started for what is new in them; those of the same resource
//     go on as they are, with all that they hold.
//   - They are rendered with the resources of now, and the outcome is validated.
//   - The program is swapped, the loop has one reconciliation, and watchers that
//     nobody needs any more end.
//
// What fails on the way is an error, an [Invalid] on the bus and in the state;
// what was in use stays in use. Make a Live with [NewLive], its loop with
// [Live.NewLoop], and run both. All methods may be called concurrently.
type Live struct {
	opts      LiveOptions
	log       *slog.Logger
	discovery *discover.Follower

	started chan struct{} // closed when Run has begun
	first   chan struct{} // closed when the first settings are in use
	running context.Context
	wg      sync.WaitGroup // of watchers; only Run waits

	checking  sync.Mutex // one candidate at a time is made ready
	rendering sync.RWMutex

	mu        sync.Mutex
	current   *inUse
	loop      *reconcile.Loop
	validator reconcile.Validator // of the loop
	deployed  *dataplane.Config
	state     State
	said      string // about the candidate that was refused last
}

// inUse is a program with its watchers.
type inUse struct {
	program   *Program
	validator reconcile.Validator     // nil: there is none
	watchers  map[string]*liveWatcher // by name in the settings
	synced    time.Duration           // that it took to fill the new ones
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

// NewLoop makes the loop that renders with the settings in use: its Renderer is
// l, and its intervals are theirs. With a Leader it reads all resources again when a term
// begins, unless there is a BeginTerm. Options.Validator also judges new settings; it
// must be safe for concurrent use, as *validate.Validator is. Call it once.
func (l *Live) NewLoop(opts reconcile.Options) (*reconcile.Loop, error) {
	opts.Renderer = l
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

// validate is the validator of the loop where that depends on the settings.
func (l *Live) validate(ctx context.Context, cfg *dataplane.Config) error {
	l.mu.Lock()
	use := l.current
	l.mu.Unlock()
	if use == nil {
		return ErrNoSettings
	}
	return use.validator.Validate(ctx, cfg)
}

// HTTP is the store of what templates fetch with the variable http. Run looks for new
// contents.
func (l *Live) HTTP() *fetch.Store { return l.opts.Program.HTTP }

// fetched is called when a URL has a new content.
func (l *Live) fetched(reason string) {
	l.mu.Lock()
	loop := l.loop
	l.mu.Unlock()
	if loop != nil {
		loop.Trigger(reason)
	}
}

// Run watches what the settings name, and looks for new contents of what templates
// fetch, until ctx ends. It returns nil when everything that it started has ended. It
// runs once.
func (l *Live) Run(ctx context.Context) error {
	l.mu.Lock()
	if l.running != nil {
		l.mu.Unlock()
		return k8swatch.ErrStarted
	}
	l.running = ctx
	l.mu.Unlock()
	l.wg.Go(func() { _ = l.HTTP().Run(ctx) }) // which returns nil
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

// InForce returns the settings in use with all defaults, as JSON has them, for people to
// see: of the templates, which may hold a secret, it has the number of lines. It is nil
// before the first settings took effect.
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
	if err != nil { // not of these types
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
