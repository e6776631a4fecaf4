package reconciletest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
	"github.com/hapticsdk/haptic/reconcile"
)

// Scene is what a script gives to the controller that it tests.
type Scene struct {
	Source *k8swatchtest.Source // the resources of the script
	Bus    *eventbus.Bus        // that of the loop
	Files  fs.FS                // the files of the script, such as templates

	loop atomic.Pointer[reconcile.Loop]
}

// Changed triggers the loop: for OnChange of the group of watchers.
func (s *Scene) Changed(_ context.Context, c k8swatch.Changes) error {
	if loop := s.loop.Load(); loop != nil {
		loop.Trigger(c.String())
	}
	return nil
}

// Controller is what is tested.
type Controller struct {
	// Options of the loop. Renderer is required. Validator is asked besides what
	// a script says; Targets, Bus and Leader are the script's.
	Options reconcile.Options

	// Watchers are run beside the loop, and their objects known before it starts;
	// nil: there are none.
	Watchers *k8swatch.Group
}

// Run plays all scripts whose names match the pattern (see [filepath.Glob]),
// each as a subtest in a bubble of testing/synctest. setup makes the controller
// of one script, as the program makes its own. That no script matches is a
// failure.
func Run(t *testing.T, pattern string, setup func(*Scene) (*Controller, error)) {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	if len(names) == 0 {
		t.Fatalf("reconciletest: no script is named %s", pattern)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				if err := play(t.Context(), filepath.Base(name), archive, setup); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// player plays one script.
type player struct {
	scene   *Scene
	setup   func(*Scene) (*Controller, error)
	files   map[string]string
	targets []*Target
	known   map[string]*Target // also those that went
	loop    *reconcile.Loop    // nil before start
	options reconcile.Options
	running sync.WaitGroup
	stop    context.CancelFunc
	ctx     context.Context

	following atomic.Bool // another process leads
	mu        sync.Mutex
	events    []string // names of the types since expect events
	invalid   error    // what validation says
	ended     error    // why the controller ended by itself
}

// play runs the commands of a script and ends everything that it started.
func play(ctx context.Context, name string, archive *txtar.Archive, setup func(*Scene) (*Controller, error)) (err error) {
	files := fstest.MapFS{}
	p := &player{setup: setup, files: map[string]string{}, known: map[string]*Target{},
		scene: &Scene{Source: k8swatchtest.NewSource(), Bus: eventbus.New(nil), Files: files}}
	for _, f := range archive.Files {
		p.files[f.Name] = string(f.Data)
		files[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	p.ctx, p.stop = context.WithCancel(ctx)
	eventbus.Subscribe(p.scene.Bus, func(_ context.Context, d eventbus.Delivery[any]) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.events = append(p.events, reflect.TypeOf(d.Event).Name())
	})
	p.scene.Bus.Start()
	p.setTargets("haproxy")
	defer func() {
		p.stop()
		p.running.Wait()
		err = errors.Join(err, p.scene.Bus.Close(context.Background()))
	}()
	for n, line := range strings.Split(strings.TrimRight(string(archive.Comment), "\n"), "\n") {
		words, err := split(line)
		if err == nil && len(words) > 0 {
			err = p.run(words)
		}
		if err != nil {
			return fmt.Errorf("%s:%d: %s\n%w", name, n+1, strings.TrimSpace(line), err)
		}
	}
	if p.loop == nil {
		return fmt.Errorf("%s: the script never says start", name)
	}
	return nil
}

// split splits a line into words; those in single quotes may have spaces. A line
// that begins with # has none.
func split(line string) (words []string, err error) {
	rest := strings.TrimSpace(line)
	if strings.HasPrefix(rest, "#") {
		return nil, nil
	}
	for rest != "" {
		var word string
		if quoted, ok := strings.CutPrefix(rest, "'"); ok {
			var closed bool
			word, rest, closed = strings.Cut(quoted, "'")
			if !closed || rest != "" && rest[0] != ' ' && rest[0] != '\t' {
				return nil, errors.New("a quote is not closed, or not by the end of a word")
			}
		} else if at := strings.IndexAny(rest, " \t"); at >= 0 {
			word, rest = rest[:at], rest[at:]
		} else {
			word, rest = rest, ""
		}
		words = append(words, word)
		rest = strings.TrimLeft(rest, " \t")
	}
	return words, nil
}

// start makes the controller and runs it.
func (p *player) start() error {
	if p.loop != nil {
		return errors.New("the controller runs already")
	}
	c, err := p.setup(p.scene)
	if err == nil && (c == nil || c.Options.Renderer == nil) {
		err = errors.New("it returned no renderer")
	}
	if err != nil {
		return fmt.Errorf("setup: %w", err)
	}
	p.options = c.Options
	p.options.Bus, p.options.Leader = p.scene.Bus, p
	p.options.Validator = reconcile.ValidatorFunc(func(ctx context.Context, cfg *dataplane.Config) error {
		return p.validate(ctx, cfg, c.Options.Validator)
	})
	p.options.Targets = p.asTargets()
	loop, err := reconcile.New(p.options)
	if err != nil {
		return err
	}
	if c.Watchers != nil {
		p.running.Go(func() { p.end(c.Watchers.Run(p.ctx)) })
		if _, err := c.Watchers.WaitForSync(p.ctx); err != nil {
			return err
		}
		synctest.Wait()
	}
	p.loop = loop
	p.scene.loop.Store(loop)
	loop.Trigger("start")
	p.running.Go(func() { p.end(loop.Run(p.ctx)) })
	return nil
}

// end notes that something ended by itself.
func (p *player) end(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() == nil && p.ended == nil {
		p.ended = fmt.Errorf("the controller ended by itself: %w", err)
	}
}

func (p *player) Leading() bool { return !p.following.Load() }

// validate asks the controller's validator, unless the script knows better.
func (p *player) validate(ctx context.Context, cfg *dataplane.Config, asks reconcile.Validator) error {
	p.mu.Lock()
	err := p.invalid
	p.mu.Unlock()
	if err != nil || asks == nil {
		return err
	}
	return asks.Validate(ctx, cfg)
}

func (p *player) setTargets(names ...string) {
	p.targets = nil
	for _, name := range names {
		if p.known[name] == nil {
			p.known[name] = NewTarget(name)
		}
		p.targets = append(p.targets, p.known[name])
	}
}

func (p *player) asTargets() []reconcile.Target {
	targets := make([]reconcile.Target, len(p.targets))
	for i, t := range p.targets {
		targets[i] = t
	}
	return targets
}
