package render_test

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/reconcile/render"
	"github.com/hapticsdk/haptic/templating"
)

// TestSharedByEntries computes a value in one entry and uses it in the others,
// once a reconciliation.
func TestSharedByEntries(t *testing.T) {
	const value = "{{ shared.ComputeIfAbsent(`n`, func() any { return count() }) }}"
	n := 0
	engine, err := templating.Compile(fstest.MapFS{
		"haproxy.cfg":       {Data: []byte("# " + value + "\n")},
		"haproxy.d/a.cfg":   {Data: []byte("# " + value + "\n")},
		"general/count.lua": {Data: []byte("-- " + value + "\n")},
	}, &templating.Options{Globals: map[string]any{"count": func() int { n++; return n }}})
	require.NoError(t, err)
	templates := &render.Templates{Engine: engine, Input: func(context.Context) (*render.Input, error) { return &render.Input{}, nil }}
	for _, want := range []string{"1", "2"} {
		rendered, err := templates.Render(t.Context())
		require.NoError(t, err)
		if got := rendered.Config.Main(); strings.Count(got, "# "+want+"\n") != 2 {
			t.Errorf("got %q, want %s in both files", got, want)
		}
	}
}

// TestSharedIsNotStale changes, one after the other, what a shared value was
// computed from, and compares each render with one that remembers nothing.
func TestSharedIsNotStale(t *testing.T) {
	engine, err := templating.Compile(fstest.MapFS{
		"haproxy.cfg":     {Data: []byte("# {{ shared.ComputeIfAbsent(`title`, func() any { return title }) }}\n")},
		"haproxy.d/a.cfg": {Data: []byte("# {{ item }} {{ shared.Get(`title`) }} {{ shared.ComputeIfAbsent(`first`, func() any { return item }) }}\n")},
		"haproxy.d/b.cfg": {Data: []byte("# {{ item }} {{ shared.Get(`first`) }}\n")},
		"haproxy.d/c.cfg": {Data: []byte("# {{ item }} {{ count() }}\n")},
	}, &templating.Options{Vars: map[string]any{"title": "", "item": ""}, Globals: map[string]any{"count": counter()}})
	require.NoError(t, err)
	var in *render.Input
	templates := &render.Templates{Engine: engine, Pure: true, Input: func(context.Context) (*render.Input, error) { return in, nil }}
	steps := []struct {
		name, title, a, b, c string
		want                 string
	}{
		{"the first render", "t", "1 2", "x", "y", "# t|# 1 t 1|# 2 t 1|# x 1|# y 1"},
		{"nothing changes", "t", "1 2", "x", "y", "# t|# 1 t 1|# 2 t 1|# x 1|# y 1"},
		{"an item comes", "t", "1 2 3", "x", "y", "# t|# 1 t 1|# 2 t 1|# 3 t 1|# x 1|# y 1"},
		{"the first item goes", "t", "2 3", "x", "y", "# t|# 2 t 2|# 3 t 2|# x 2|# y 1"},
		{"the order changes", "t", "3 2", "x", "y", "# t|# 3 t 3|# 2 t 3|# x 3|# y 1"},
		{"another entry has a new item", "t", "3 2", "x z", "y", "# t|# 3 t 3|# 2 t 3|# x 3|# z 3|# y 1"},
		{"the variable changes", "u", "3 2", "x z", "y", "# u|# 3 u 3|# 2 u 3|# x 3|# z 3|# y 1"},
	}
	for _, step := range steps {
		in = &render.Input{Vars: map[string]any{"title": step.title, "item": ""}, Each: map[string]render.Each{}}
		for entry, items := range map[string]string{"haproxy.d/a.cfg": step.a, "haproxy.d/b.cfg": step.b, "haproxy.d/c.cfg": step.c} {
			each := render.Each{Var: "item"}
			for _, item := range strings.Fields(items) {
				each.Items = append(each.Items, item)
			}
			in.Each[entry] = each
		}
		rendered, err := templates.Render(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if got := strings.ReplaceAll(strings.TrimSpace(rendered.Config.Main()), "\n", "|"); got != step.want {
			t.Errorf("%s: got %s, want %s", step.name, got, step.want)
		}
	}
}

// counter returns a function that counts its calls.
func counter() func() int {
	n := 0
	return func() int { n++; return n }
}
