package render

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unsafe"

	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/k8swatch/derive"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/templating"
)

// memorized are templates with everything that a render remembers: sections with
// comments in front, texts that end in an open line, entries for items of which one uses
// the host, files, and values that are refused.
var memorized = fstest.MapFS{ // constant in effect
	"haproxy.cfg":           {Data: []byte("# {{ title }}\nglobal\n{% if currentConfig != nil %}    # {{ len(currentConfig.Sections(`backend`)) }}\n{% end %}\ndefaults")},
	"haproxy.d/backend.cfg": {Data: []byte("{% if b.Text == `lead` %}\n# of {{ b.Name }}\n{% end %}{% if b.Text != `empty` %}backend {{ b.Name }}\n    # {{ b.Text }} {{ title }}{% if b.Text != `open` %}\n{% end %}{% end %}")},
	"haproxy.d/files.cfg":   {Data: []byte("{% if b.Text == `file` %}# {{ fileRegistry.Register(`file`, b.Name + `.http`, `x`) }}\n{% end %}")},
	"haproxy.d/known.cfg":   {Data: []byte("# {{ len(currentConfig.Servers(`backend`, b.Name)) }} of {{ b.Name }}\n")},
	"maps/each.map":         {Data: []byte("{% if b == nil %}# all\n{% else %}{{ b.Name }} {{ title }}{% end %}")},
	"maps/all.map":          {Data: []byte("{% for b in all %}{{ b.Name }} y\n{% end %}")},
	"general/all.http":      {Data: []byte("{{ len(all) }} of {{ title }}\n")},
}

type memorizedItem struct {
	Name, Text string
	object     *networkingv1.Ingress
}

func (b *memorizedItem) Owners() []any { return []any{b.object} }

// memorizing changes what its templates render, at random.
type memorizing struct {
	*rand.Rand
	items  []*memorizedItem
	title  string
	engine *templating.Engine
	made   int
	post   []PostProcessor
	parts  [][]any // of the items last
}

func (m *memorizing) item() *memorizedItem {
	m.made++
	name := fmt.Sprintf("b%d", m.made%40) // some come back under their name
	texts := []string{"lead", "open", "empty", "file", "a", "b", "c"}
	if m.IntN(40) == 0 {
		texts = []string{"refused\n"}
	}
	return &memorizedItem{name, texts[m.IntN(len(texts))], &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}}
}

// change does one thing to the items, or to another variable.
func (m *memorizing) change() {
	n := len(m.items)
	m.items = slices.Clone(m.items)
	switch kind := m.IntN(12); {
	case n == 0 || kind < 2:
		m.items = slices.Insert(m.items, m.IntN(n+1), m.item())
	case kind < 4:
		m.items[m.IntN(n)] = m.item()
	case kind < 6:
		at := m.IntN(n)
		m.items = slices.Delete(m.items, at, min(n, at+1+m.IntN(3)))
	case kind == 6: // one moves
		at := m.IntN(n)
		b := m.items[at]
		m.items = slices.Insert(slices.Delete(m.items, at, at+1), m.IntN(n), b)
	case kind == 7:
		slices.Reverse(m.items)
	case kind == 8: // one is there twice
		m.items = append(m.items, m.items[m.IntN(n)])
	case kind == 9: // all but the name and the text is as before
		at := m.IntN(n)
		b := *m.items[at]
		m.items[at] = &b
	case kind == 10 && m.IntN(4) == 0:
		m.items = nil
		for range 100 {
			m.items = append(m.items, m.item())
		}
	case kind == 11 && m.IntN(3) == 0:
		m.title = []string{"one", "two"}[m.IntN(2)]
	}
}

func (m *memorizing) input(context.Context) (*Input, error) {
	vars := HostVars()
	vars["b"], vars["title"], vars["all"] = (*memorizedItem)(nil), m.title, derive.OrderedOf(m.items)
	items, head := []any{}, []any{(*memorizedItem)(nil)}
	for _, b := range m.items {
		items = append(items, b)
	}
	return &Input{Vars: vars, Each: map[string]Each{"haproxy.d/backend.cfg": {Var: "b", Parts: m.inParts(items)}, "haproxy.d/files.cfg": {Var: "b", Items: items},
		"haproxy.d/known.cfg": {Var: "b", Items: items}, "maps/each.map": {Var: "b", Items: append(head, items...)}}}, nil
}

// inParts cuts items into parts. Parts that are as in the last cut share its memory.
func (m *memorizing) inParts(items []any) (parts [][]any) {
	for len(items) > 0 {
		part := items[:min(len(items), 1+m.IntN(4))]
		for _, was := range m.parts {
			if len(was) <= len(items) && slices.Equal(was, items[:len(was)]) {
				part = was
				break
			}
		}
		parts, items = append(parts, part), items[len(part):]
	}
	m.parts = parts
	return parts
}

func (m *memorizing) templates(pure bool) *Templates {
	return &Templates{Engine: m.engine, Input: m.input, Pure: pure, Post: m.post}
}

// resourcesOf names the objects among owners, or behind them.
func resourcesOf(owners []any) (all []reconcile.Resource) {
	for _, o := range owners {
		for _, obj := range appendOwners(nil, o) {
			r, _ := reconcile.ResourceOf(obj)
			all = append(all, r)
		}
	}
	return all
}

// told is all that a render says.
func told(t *testing.T, r *reconcile.Rendered, err error) (all []string) {
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if err != nil {
		for _, e := range templating.Errors(err) {
			say("%v", e)
		}
		return slices.Compact(all) // an item that stands twice fails twice, or once if texts are remembered
	}
	say("%s\n%s", r.Config.Hash(), r.Config.Main())
	asked := func(at dataplane.Position) {
		o, err := r.Origins.Origin(t.Context(), at)
		say("%v: %v %v %v", at, o.TemplateLine, resourcesOf(o.Owners), err)
	}
	lines := strings.Count(r.Config.Main(), "\n") + 2
	for i := 0; i < lines; i += 1 + lines/8 {
		asked(dataplane.Position{Line: i})
	}
	for _, f := range r.Config.Files() {
		say("%s %s:\n%s", f.Kind, f.Name, f.Content)
		asked(dataplane.Position{Kind: f.Kind, Name: f.Name, Line: 1 + len(f.Content)/20})
	}
	return all
}

// TestMemoryChangesNothing: after any changes, templates that remember what they rendered
// say the same as those that render all of it.
func TestMemoryChangesNothing(t *testing.T) {
	vars := HostVars()
	vars["b"], vars["title"], vars["all"] = (*memorizedItem)(nil), "", []*memorizedItem(nil)
	engine, err := templating.Compile(memorized, &templating.Options{Vars: vars})
	require.NoError(t, err)
	rounds := uint64(8)
	if testing.Short() {
		rounds = 3
	}
	failed, shared, renders := 0, 0, 0
	for seed := range rounds {
		m := &memorizing{Rand: rand.New(rand.NewPCG(seed, 16)), title: "one", engine: engine}
		switch seed % 4 {
		case 1:
			m.post = []PostProcessor{{Pattern: "backend (b.)", Replacement: "backend x$1"}, {Files: "map/*.map", Pattern: "one", Replacement: "three"}}
		case 2:
			m.post = []PostProcessor{{Squeeze: true}}
		}
		kept := m.templates(true)
		var last, before *dataplane.Config
		for range 40 {
			for range m.IntN(4) {
				m.change()
			}
			fresh := m.templates(false)
			fresh.SetPrevious(last)
			want, wantErr := fresh.Render(t.Context())
			got, err := kept.Render(t.Context())
			require.Equal(t, told(t, want, wantErr), told(t, got, err), "seed %d", seed)
			if err != nil {
				failed++
				m.items = slices.DeleteFunc(m.items, func(b *memorizedItem) bool { return strings.Contains(b.Text, "\n") || m.IntN(3) == 0 })
				continue
			}
			if m.IntN(2) == 0 { // it is deployed
				last = got.Config
				kept.Settle(got.Config, nil)
			}
			if before != nil {
				shared += sharing(before, got.Config)
			}
			before = got.Config
			renders++
		}
	}
	require.Positive(t, failed)
	require.Greater(t, shared, renders/2)
}

// sharing counts the files of two configurations that are the same memory.
func sharing(a, b *dataplane.Config) (n int) {
	for _, f := range a.Files() {
		if g, ok := b.File(f.Kind, f.Name); ok && unsafe.SliceData(f.Content) == unsafe.SliceData(g.Content) {
			n++
		}
	}
	return n
}

// TestWhatStaysIsShared: what a change leaves alone is the same memory in the next
// configuration, so that nobody has to read it again.
func TestWhatStaysIsShared(t *testing.T) {
	vars := HostVars()
	vars["b"], vars["title"], vars["all"] = (*memorizedItem)(nil), "", []*memorizedItem(nil)
	engine, err := templating.Compile(memorized, &templating.Options{Vars: vars})
	require.NoError(t, err)
	m := &memorizing{Rand: rand.New(rand.NewPCG(1, 16)), title: "one", engine: engine}
	for i := range 100 {
		m.items = append(m.items, &memorizedItem{fmt.Sprint("b", i), []string{"lead", "open", "a"}[i%3], &networkingv1.Ingress{}})
	}
	templates, post := m.templates(true), &postProcessing{}
	parts := func() []string {
		in, err := m.input(t.Context())
		require.NoError(t, err)
		r := templates.newRun(t.Context(), in, post)
		pieces, err := r.all(t.Context())
		require.NoError(t, err)
		return partsOf(slices.DeleteFunc(pieces, func(p piece) bool { return p.entry != "haproxy.d/backend.cfg" }))
	}
	for _, c := range []struct {
		name   string
		change func()
		more   int // parts that are new
	}{
		{"one is another", func() { m.items[50] = &memorizedItem{"new", "lead", nil} }, 2}, // its comment goes to the part before
		{"one comes", func() { m.items = slices.Insert(m.items, 50, &memorizedItem{"more", "a", nil}) }, 2},
		{"some go", func() { m.items = slices.Delete(m.items, 20, 50) }, 1},
		{"more go than few", func() { m.items = slices.Delete(m.items, 1, 2+few) }, 1},
		{"one moves", func() { m.items = append(m.items[1:], m.items[0]) }, 4},
		{"nothing", func() {}, 0},
	} {
		var known []*byte
		for _, s := range parts() {
			known = append(known, unsafe.StringData(s))
		}
		m.items = slices.Clone(m.items)
		c.change()
		more := 0
		for _, s := range parts() {
			if !slices.Contains(known, unsafe.StringData(s)) {
				more++
			}
		}
		require.LessOrEqual(t, more, c.more, c.name)
	}
}

// What other templates rendered is not remembered.
func TestOtherTemplates(t *testing.T) {
	templates := &Templates{Pure: true, Input: func(context.Context) (*Input, error) { return &Input{}, nil }}
	for _, text := range []string{"# one\n", "# two\n"} {
		var err error
		templates.Engine, err = templating.Compile(fstest.MapFS{"haproxy.cfg": {Data: []byte(text)}}, nil)
		require.NoError(t, err)
		for range 2 {
			made, err := templates.Render(t.Context())
			require.NoError(t, err)
			require.Equal(t, text, made.Config.Main())
		}
	}
}
