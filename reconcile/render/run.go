package render

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile/fetch"
)

// HostVars declares the variables that [Templates] itself gives to templates:
//
//   - fileRegistry, a [*FileRegistry]
//   - currentConfig, a [*CurrentConfig]
//   - http, a [*fetch.Fetcher]
//
// Add them to the variables that you compile the templates with, and to those of an [Input].
// You choose their names: Templates sets each variable of these types to a value for the
// render.
func HostVars() map[string]any {
	return map[string]any{
		"fileRegistry":  (*FileRegistry)(nil),
		"currentConfig": (*CurrentConfig)(nil),
		"http":          (*fetch.Fetcher)(nil),
	}
}

// run is one render: its input, with the host's values for the host's variables.
type run struct {
	*Templates
	id       uint64
	in       *Input
	post     *postProcessing
	registry *FileRegistry
	current  *CurrentConfig
	http     *fetch.Fetcher
	asks     map[string]bool // see asksHost

	mu     sync.Mutex
	wholes map[string]any // by variable, see Whole
}

func (t *Templates) newRun(ctx context.Context, in *Input, post *postProcessing) *run {
	if t.texts == nil || t.texts.engine != t.Engine || t.texts.post != post {
		t.texts = newTexts(t.Engine, post)
	}
	r := &run{Templates: t, post: post, registry: newFileRegistry(t.Layout, in.Files), asks: map[string]bool{}, wholes: map[string]any{}}
	r.http = t.HTTP.Begin(ctx, r.noter(ofHTTP))
	in.Reads.follow(r.noter(ofInput))
	deployed := t.settling.begin(r)
	if deployed != nil {
		r.current = &CurrentConfig{config: deployed, note: r.noter(ofCurrent)}
	}
	filled := *in
	filled.Vars = make(map[string]any, len(in.Vars))
	for name, v := range in.Vars {
		switch v.(type) {
		case *FileRegistry:
			v = r.registry
		case *CurrentConfig:
			v = r.current
		case *fetch.Fetcher:
			v = r.http
		}
		filled.Vars[name] = v
	}
	r.in = &filled
	return r
}

// varsOf returns the variables as an entry sees them.
func (r *run) varsOf(entry string) map[string]any {
	r.mu.Lock()
	defer r.mu.Unlock()
	vars, uses := r.in.Vars, []string(nil)
	for name, v := range r.in.Vars {
		whole, is := v.(Whole)
		if !is {
			continue
		}
		if uses == nil {
			vars, uses = maps.Clone(vars), r.Engine.Uses(entry)
		}
		vars[name] = r.wholes[name]
		if !slices.Contains(uses, name) {
			vars[name] = reflect.Zero(reflect.TypeOf(v)).Interface().(Whole).Whole()
		} else if vars[name] == nil {
			vars[name] = whole.Whole()
			r.wholes[name] = vars[name]
		}
	}
	return vars
}

func (r *run) noter(of source) func(key, answer any) {
	texts := r.texts
	return func(key, answer any) { texts.note(r, dependency{of, key}, answer) }
}

// settling is what Templates knows about the deployment of its renders.
type settling struct {
	mu       sync.Mutex
	last     uint64       // id of the last render
	previous *previous    // the deployed configuration
	deployed uint64       // id of the render that made it, or of the last one before SetPrevious
	renders  []settleable // that one and newer ones, by id
	post     *postProcessing
}

// settleable is a render that may still be deployed.
type settleable struct {
	id   uint64
	hash string
	http *fetch.Fetcher
}

// maxSettleable bounds the renders that wait for their deployment.
const maxSettleable = 64

// begin numbers a render, and returns the deployed configuration.
func (s *settling) begin(r *run) *previous {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	r.id = s.last
	return s.previous
}

// made remembers a render until it is deployed. If its configuration is deployed already,
// made settles it at once.
func (t *Templates) made(r *run, cfg *dataplane.Config) {
	if t.Pure {
		t.last = cfg
	}
	s := &t.settling
	s.mu.Lock()
	s.renders = slices.DeleteFunc(s.renders, func(r settleable) bool { return r.hash == cfg.Hash() })
	if len(s.renders) >= maxSettleable {
		s.renders = slices.Clone(s.renders[1:])
	}
	s.renders = append(s.renders, settleable{r.id, cfg.Hash(), r.http})
	there := s.previous != nil && s.previous.config.Hash() == cfg.Hash()
	s.mu.Unlock()
	if there {
		t.Settle(cfg, nil)
	}
}

// SetPrevious says which configuration is deployed before the first render, or after another
// process deployed: the one that a target has ([dataplane.Local.Current]). Templates see it
// as currentConfig; nil says that none is known.
func (t *Templates) SetPrevious(cfg *dataplane.Config) {
	s := &t.settling
	s.mu.Lock()
	defer s.mu.Unlock()
	s.previous = newPrevious(cfg)
	s.deployed = s.last
}

// Settle implements [reconcile.Settler]. A deployed configuration becomes currentConfig.
// HTTP accepts or rejects the contents that the configuration was made with. An older
// configuration that is deployed after a newer one changes nothing.
func (t *Templates) Settle(cfg *dataplane.Config, err error) (again bool) {
	s := &t.settling
	s.mu.Lock()
	i := slices.IndexFunc(s.renders, func(r settleable) bool { return r.hash == cfg.Hash() })
	if i < 0 {
		s.mu.Unlock()
		return false
	}
	r := s.renders[i]
	if err == nil && r.id >= s.deployed {
		if s.previous == nil || s.previous.config.Hash() != r.hash {
			s.previous = newPrevious(cfg)
		}
		s.deployed = r.id
		s.renders = slices.Clone(s.renders[i:])
	}
	s.mu.Unlock()
	return t.HTTP.Settle(r.http, err)
}
