package reconcile

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile/fetch"
)

// HostVars declares the variables that [Templates] itself gives to templates:
//
//   - fileRegistry, a [*FileRegistry]
//   - currentConfig, a [*CurrentConfig]
//   - http, an [*fetch.Fetcher]
//
// Add them to both the variables that the templates are compiled with and those
// of an [Input]. Their names are free: Templates puts a value for the render in
// the place of each variable of these types.
func HostVars() map[string]any {
	return map[string]any{
		"fileRegistry":  (*FileRegistry)(nil),
		"currentConfig": (*CurrentConfig)(nil),
		"http":          (*fetch.Fetcher)(nil),
	}
}

// Reads are variables of an [Input] that read more while a template uses them,
// such as those of settings, which read the stores of watched resources.
type Reads interface {
	// Gives reports whether a variable reads. Its value is not compared.
	Gives(variable string) bool

	// Begin says that an entry, or an item of one, is rendered from here on, and
	// returns where its reads are noted.
	Begin() (notes any)

	// Again reports whether everything in these notes would be read as it was.
	Again(notes any) bool
}

// Settler is what a [Renderer] may be besides: it is told what became of what it
// rendered. The calls come from any goroutine, also during a render.
type Settler interface {
	// Settle says that a target has the configuration or, with an error, that it
	// is not valid. After an error it reports whether another render, made at
	// once, may do better.
	Settle(cfg *dataplane.Config, err error) (again bool)
}

// host is what one render gets from its host besides its input.
type host struct {
	id       uint64
	registry *FileRegistry
	current  *CurrentConfig
	store    *fetch.Store
	http     *fetch.Fetcher
	fetching *notes // of what is rendered now
	post     *postProcessing
	reads    Reads // nil: none
	lines    []int // of haproxy.cfg: where each line stood before it was squeezed; nil: all at the same place
}

// line returns the number that a line of the finished haproxy.cfg had in what
// the templates rendered, both from 1.
func (h *host) line(n int) int {
	if h.lines == nil || n < 1 || n > len(h.lines) {
		return n
	}
	return h.lines[n-1]
}

// notes is what an entry, or an item of one, asked of its host and left there
// while it was rendered: what makes its text outlive the render. A nil *notes
// takes none.
type notes struct {
	mu      sync.Mutex
	files   map[string]dataplane.File // by path
	asked   map[question]string
	fetched map[any]any // revisions, by what was fetched
	read    any         // notes of Reads
}

func newNotes() *notes {
	return &notes{files: map[string]dataplane.File{}, asked: map[question]string{}, fetched: map[any]any{}}
}

func (n *notes) file(key string, f dataplane.File) {
	if n != nil {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.files[key] = f
	}
}

func (n *notes) ask(q question, answer string) {
	if n != nil {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.asked[q] = answer
	}
}

func (n *notes) fetch(key, revision any) {
	if n != nil {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.fetched[key] = revision
	}
}

// fill returns the input with the host's values in the place of its variables.
func (h *host) fill(in *Input) *Input {
	filled := *in
	filled.host, h.reads = h, in.Reads
	filled.Vars = make(map[string]any, len(in.Vars))
	for name, v := range in.Vars {
		switch v.(type) {
		case *FileRegistry:
			v = h.registry
		case *CurrentConfig:
			v = h.current
		case *fetch.Fetcher:
			v = h.http
		}
		filled.Vars[name] = v
	}
	return &filled
}

// gives reports whether a variable comes from the host.
func (h *host) gives(name string, v any) bool {
	if h.reads != nil && h.reads.Gives(name) {
		return true
	}
	switch v.(type) {
	case *FileRegistry, *CurrentConfig, *fetch.Fetcher:
		return true
	}
	return false
}

// begin says what is rendered from here on, and returns the notes of it.
func (h *host) begin(entry string, item any) *notes {
	n := newNotes()
	h.registry.begin(entry, item, n)
	h.current.begin(n)
	h.fetching = n
	if h.reads != nil {
		n.read = h.reads.Begin()
	}
	return n
}

// begin is [host.begin], for an entry that looks whether there is a deployed
// configuration at all.
func (t *Templates) begin(entry string, item any, in *Input) *notes {
	n := in.host.begin(entry, item)
	for _, name := range t.Engine.Uses(entry) {
		if _, ok := in.Vars[name].(*CurrentConfig); ok {
			n.ask(question{op: askAny}, in.host.current.read().answer(question{op: askAny}))
		}
	}
	return n
}

// again does what was done when a text was rendered. It reports false where the
// text would not be the same any more.
func (h *host) again(entry string, item any, n *notes) bool {
	if n == nil {
		return true
	}
	for q, answer := range n.asked {
		if h.current.read().answer(q) != answer {
			return false
		}
	}
	for key, revision := range n.fetched {
		if h.store.Revision(h.http, key) != revision {
			return false
		}
	}
	return (h.reads == nil || h.reads.Again(n.read)) && h.registry.again(entry, item, n.files)
}

// replace does the replacements of post-processors in what an entry rendered.
// They are remembered with the text.
func (h *host) replace(entry, text string) string {
	if !isMain(entry) {
		return text
	}
	return h.post.replace(text)
}

// finish gives the text and the files as they go into a configuration.
func (h *host) finish(text string, files []dataplane.File) (string, []dataplane.File, error) {
	files, err := h.registry.with(files)
	if err != nil {
		return "", nil, err
	}
	text, h.lines = h.post.squeeze(text)
	return text, h.post.files(files), nil
}

// usesHost reports whether an entry uses a variable of the host.
func (t *Templates) usesHost(entry string, in *Input) bool {
	return slices.ContainsFunc(t.Engine.Uses(entry), func(name string) bool { return in.host.gives(name, in.Vars[name]) })
}

// renderItems renders an entry for each of these items, one by one where it must
// be known which of them asked what of the host.
func (t *Templates) renderItems(ctx context.Context, entry string, each Each, items []any, in *Input) ([]string, []*notes, error) {
	made := make([]*notes, len(items))
	if !t.usesHost(entry, in) {
		texts, err := t.Engine.RenderEach(ctx, entry, each.Var, each.values(items, in.Vars), in.Vars)
		return texts, made, err
	}
	texts := make([]string, len(items))
	var errs []error
	for i, item := range items {
		made[i] = t.begin(entry, item, in)
		text, err := t.Engine.RenderEach(ctx, entry, each.Var, []any{each.value(item, in.Vars)}, in.Vars)
		if ctx.Err() != nil {
			return nil, nil, err
		}
		if err != nil {
			if errs = append(errs, err); len(errs) == maxItemErrors {
				break
			}
			continue
		}
		texts[i] = text[0]
	}
	if len(errs) > 0 {
		return nil, nil, joined(errs)
	}
	return texts, made, nil
}

// maxItemErrors bounds what one render says of the items of one entry.
const maxItemErrors = 100

// keep adds the text of an item.
func (r *remembered) keep(item any, text string, n *notes) {
	r.items[item] = text
	if n != nil {
		r.noted[item] = n
	}
}

// settling is what Templates knows of what became of its renders.
type settling struct {
	mu       sync.Mutex
	last     uint64       // id of the last render
	previous *previous    // that is deployed
	deployed uint64       // id of the render that made it, 0 for SetPrevious
	renders  []settleable // not older than that, by id
	post     *postProcessing
}

// settleable is a render that may be deployed some day.
type settleable struct {
	id   uint64
	hash string
	http *fetch.Fetcher
}

// maxSettleable bounds the renders that are remembered until one is deployed.
const maxSettleable = 64

// SetPrevious says what is deployed before the first render, or when another
// process deployed before this one: what a target has ([dataplane.Local.Current]).
// Templates see it as currentConfig; nil says that nothing is known.
func (t *Templates) SetPrevious(cfg *dataplane.Config) {
	s := &t.settling
	s.mu.Lock()
	defer s.mu.Unlock()
	s.previous = newPrevious(cfg)
	s.deployed = s.last
}

// Settle takes a deployed configuration for what currentConfig says from now
// on, and lets HTTP accept or reject what the configuration was made with. An
// older configuration that is deployed after a newer one changes nothing.
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

// newHost makes what a render gets.
func (t *Templates) newHost(ctx context.Context, in *Input, post *postProcessing) *host {
	s := &t.settling
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	h := &host{id: s.last, registry: newFileRegistry(t.Layout, in.Files), store: t.HTTP, post: post}
	h.http = t.HTTP.Begin(ctx, func(key, revision any) { h.fetching.fetch(key, revision) })
	if s.previous != nil {
		h.current = &CurrentConfig{config: s.previous}
	}
	return h
}

// rendered remembers a render until it is deployed, or settles it at once where
// it made what is deployed already.
func (t *Templates) rendered(h *host, cfg *dataplane.Config) {
	s := &t.settling
	s.mu.Lock()
	s.renders = slices.DeleteFunc(s.renders, func(r settleable) bool { return r.hash == cfg.Hash() })
	if len(s.renders) >= maxSettleable {
		s.renders = slices.Clone(s.renders[1:])
	}
	s.renders = append(s.renders, settleable{h.id, cfg.Hash(), h.http})
	there := s.previous != nil && s.previous.config.Hash() == cfg.Hash()
	s.mu.Unlock()
	if there {
		t.Settle(cfg, nil)
	}
}

// renderInput renders, and again without what HTTP fetched but nobody deployed
// yet where that may be why it failed.
func (t *Templates) renderInput(ctx context.Context, in *Input) (*Rendered, error) {
	post, err := t.postProcessing()
	if err != nil {
		return nil, err
	}
	for {
		h := t.newHost(ctx, in, post)
		made, err := t.render(ctx, h.fill(in))
		if err == nil {
			t.rendered(h, made.Config)
			return made, nil
		}
		var unfetched *fetch.Error
		if ctx.Err() != nil || errors.As(err, &unfetched) || !t.HTTP.Settle(h.http, err) {
			return made, withOrigins(err)
		}
	}
}
