package templating_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/templating"
)

// TestUses: an entry reads what it, the files and snippets that it may read, and the values that it may
// get from another entry read.
func TestUses(t *testing.T) {
	for _, tt := range []struct {
		files fstest.MapFS
		want  map[string]string
	}{
		{files("none.cfg", "global\n", "one.cfg", "{% if a != `` %}{{ b }}{% end %}", "render.cfg", "{{ render `_part.cfg` }}",
			"import.cfg", "{% import `_lib.cfg` %}{{ M() }}", "macro.cfg", "{% macro M() %}{{ a }}{% end %}{{ M() }}",
			"_part.cfg", "{{ c }}", "_lib.cfg", "{% macro M() %}{{ b }}{% end %}"),
			map[string]string{"none.cfg": "", "one.cfg": "a b", "render.cfg": "c", "import.cfg": "b", "macro.cfg": "a", "unknown.cfg": ""}},
		{files("a.cfg", "{{ include(`s`) }}", "b.cfg", "b", "m.map", "{{ include_all(`*`) }}",
			"snippets/s.cfg", "{{ a }}", "snippets/t.cfg", "{% macro M() %}{{ b }}{% end %}{{ M() }}", "snippets/s.map", "{{ c }}"),
			map[string]string{"a.cfg": "a b", "b.cfg": "", "m.map": "c"}},
		{files("a.cfg", "{{ shared.Get(`k`) }}{{ b }}", "b.cfg", "{{ shared.ComputeIfAbsent(`k`, func() any { return a }) }}", "c.cfg", "{{ c }}"),
			map[string]string{"a.cfg": "a b", "b.cfg": "a b", "c.cfg": "c"}},
	} {
		engine := compile(t, tt.files, &templating.Options{
			Vars: map[string]any{"a": "", "b": "", "c": "", "d": ""}, Globals: map[string]any{"fixed": []string{"x"}}})
		for entry, want := range tt.want {
			require.Equal(t, want, strings.Join(engine.Uses(entry), " "), "%s uses", entry)
		}
	}
}

type eachThing struct{ Name, Note string }

func TestRenderEach(t *testing.T) {
	fsys := files(
		"haproxy.d/x.cfg", "backend {{ x.Name }} # {{ suffix }}\n{% if x.Note != `` %}    # {{ x.Note }}\n{% end %}",
		"macro.cfg", "{% macro M() %}{{ x.Name }}{% end %}{{ M() }}\n",
		"maps/x.map", "{{ x.Name }} {{ x.Note }}\n",
	)
	engine := compile(t, fsys, &templating.Options{Vars: map[string]any{"x": (*eachThing)(nil), "suffix": ""}})
	vars := map[string]any{"x": (*eachThing)(nil), "suffix": "s"}
	items := []any{&eachThing{"a", "n"}, &eachThing{"b-c", ""}, &eachThing{"d", "n"}}
	for _, entry := range engine.Entries() {
		for n := range len(items) + 1 {
			some := items[:n]
			if entry == "maps/x.map" {
				some = items[2:][:min(n, 1)] // no white space in a key
			}
			got, err := engine.RenderEach(t.Context(), entry, "x", some, vars)
			require.NoError(t, err)
			for i, item := range some {
				want, err := engine.Render(t.Context(), entry, map[string]any{"x": item, "suffix": "s"})
				require.NoError(t, err)
				require.Equal(t, want, got[i], "%s, item", entry)
				require.NotEmpty(t, want, "%s, item", entry)
			}
		}
	}

	var e *templating.Error
	_, err := engine.RenderEach(t.Context(), "haproxy.d/x.cfg", "x", []any{items[0], &eachThing{"a\nb", ""}}, vars)
	if !errors.As(err, &e) || e.File != "haproxy.d/x.cfg" || e.Line != 1 || !strings.Contains(e.Message, "control character") {
		t.Errorf("hostile item: %v", err)
	}
	_, err = engine.RenderEach(t.Context(), "haproxy.d/x.cfg", "x", []any{items[0], (*eachThing)(nil)}, vars)
	require.ErrorAs(t, err, &e, "nil item")
	require.Equal(t, 1, e.Line, "nil item")
	_, err = engine.RenderEach(t.Context(), "haproxy.d/x.cfg", "x", []any{items[0], "text"}, vars)
	require.ErrorContains(t, err, "variable x is a string", "item of another type")
	for _, wrong := range [][2]string{{"nope.cfg", "x"}, {"macro.cfg", "nope"}} {
		require.ErrorAs(t, errOf(engine.RenderEach(t.Context(), wrong[0], wrong[1], items, vars)), &e, "%q", wrong)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, errOf(engine.RenderEach(ctx, "macro.cfg", "x", items, vars)), context.Canceled, "cancelled")
}
