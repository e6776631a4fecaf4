package templating

import (
	"context"
	"errors"
	"maps"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
	"weak"

	"github.com/open2b/scriggo/native"
	"github.com/stretchr/testify/require"
)

// reusable is templates that use each other in every way.
var reusable = map[string]string{
	"alone.cfg":         "# {{ n }}\n",
	"renders.cfg":       "{{ render \"_part.cfg\" }}",
	"_part.cfg":         "# part {{ n }}\n",
	"may.cfg":           "{{ render \"_absent.cfg\" default \"# none\\n\" }}",
	"imports.cfg":       "{% import m \"_macros.cfg\" %}{{ m.Name(\"x\") }}\n",
	"_macros.cfg":       "{% macro Name(s string) %}# {{ s }}{% end macro %}",
	"extends.cfg":       "{% extends \"_base.cfg\" %}{% macro Body %}# body{% end macro %}",
	"_base.cfg":         "# base\n{{ Body() }}\n",
	"includes.cfg":      "{{ include(\"a\") }}",
	"lists.cfg":         "{{ include_all(\"*\") }}",
	"names.cfg":         "{% for name in templateSnippets %}# {{ name }}\n{% end %}",
	"snippets/a.cfg":    "# a\n",
	"snippets/b.map":    "k v\n",
	"fails.cfg":         "global\n  description {{ fail(\"no\") }}\n",
	"numbers.map":       "{{ text }} {{ twice(n) }}\n",
	"says.cfg":          "# {{ greeting }} {{ text }}\n",
	"nothing/to-do.cfg": "global\n",
}

func reusableOptions() *Options {
	return &Options{
		Vars:    map[string]any{"n": 0, "text": ""},
		Globals: map[string]any{"twice": func(n int) int { return 2 * n }, "greeting": "hello"},
	}
}

func filesOf(texts map[string]string) fstest.MapFS {
	files := fstest.MapFS{}
	for name, text := range texts {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return files
}

// TestPrevious takes over what has not changed, and only that; what is rendered
// is what an engine without a previous one renders.
func TestPrevious(t *testing.T) {
	everything := "alone.cfg extends.cfg fails.cfg imports.cfg includes.cfg lists.cfg may.cfg names.cfg nothing/to-do.cfg numbers.map renders.cfg says.cfg"
	for name, c := range map[string]struct {
		change   func(map[string]string, *Options)
		compiled string // anew
	}{
		"nothing":         {func(map[string]string, *Options) {}, ""},
		"an entry":        {func(f map[string]string, _ *Options) { f["alone.cfg"] += "# more\n" }, "alone.cfg"},
		"a rendered file": {func(f map[string]string, _ *Options) { f["_part.cfg"] += "# more\n" }, "renders.cfg"},
		"a file appears":  {func(f map[string]string, _ *Options) { f["_absent.cfg"] = "# here\n" }, "may.cfg"},
		"an imported file": {func(f map[string]string, _ *Options) {
			f["_macros.cfg"] = strings.Replace(f["_macros.cfg"], "#", "# is", 1)
		}, "imports.cfg"},
		"an extended file":    {func(f map[string]string, _ *Options) { f["_base.cfg"] += "# more\n" }, "extends.cfg"},
		"a snippet":           {func(f map[string]string, _ *Options) { f["snippets/a.cfg"] += "# more\n" }, "includes.cfg lists.cfg"},
		"a snippet more":      {func(f map[string]string, _ *Options) { f["snippets/c.cfg"] = "# c\n" }, "includes.cfg lists.cfg"},
		"an entry more":       {func(f map[string]string, _ *Options) { f["more.cfg"] = "# more\n" }, "more.cfg"},
		"an entry less":       {func(f map[string]string, _ *Options) { delete(f, "alone.cfg") }, ""},
		"the type of a var":   {func(_ map[string]string, o *Options) { o.Vars["text"] = any(true) }, everything},
		"a var more":          {func(_ map[string]string, o *Options) { o.Vars["more"] = "" }, everything},
		"a constant":          {func(_ map[string]string, o *Options) { o.Globals["greeting"] = "hi" }, everything},
		"the type of a value": {func(_ map[string]string, o *Options) { o.Globals["greeting"] = 7 }, everything},
		"a function":          {func(_ map[string]string, o *Options) { o.Globals["twice"] = func(n int) string { return "" } }, everything},
		"debug":               {func(_ map[string]string, o *Options) { o.Debug = func(Origin, any) {} }, everything},
	} {
		t.Run(name, func(t *testing.T) {
			before, err := Compile(filesOf(reusable), reusableOptions())
			require.NoError(t, err)
			texts, opts := maps.Clone(reusable), reusableOptions()
			c.change(texts, opts)
			fresh, err := Compile(filesOf(texts), opts)
			require.NoError(t, err)
			opts.Previous = before
			again, err := Compile(filesOf(texts), opts)
			require.NoError(t, err)
			require.Equal(t, fresh.Entries(), again.Entries())
			var compiled []string
			for _, name := range again.Entries() {
				if old := before.entries[name]; old == nil || old.compiled != again.entries[name].compiled {
					compiled = append(compiled, name)
				}
				require.Equal(t, fresh.Uses(name), again.Uses(name))
				if c.compiled != everything {
					require.Equal(t, rendered(t, fresh, name), rendered(t, again, name))
				}
			}
			require.Equal(t, c.compiled, strings.Join(compiled, " "))
		})
	}
}

// rendered is what an entry gives in all ways to render it, errors included.
func rendered(t *testing.T, e *Engine, name string) []string {
	t.Helper()
	vars := map[string]any{"n": 3, "text": "x"}
	for name, typ := range e.decl.vars {
		switch {
		case typ.String() == "bool":
			vars[name] = true
		case vars[name] == nil:
			vars[name] = ""
		}
	}
	says := func(text string, err error) string {
		if err != nil {
			return err.Error()
		}
		return text
	}
	all := []string{says(e.Render(t.Context(), name, vars))}
	texts, err := e.RenderEach(t.Context(), name, "n", []any{1, 2, 3}, vars)
	all = append(all, says(strings.Join(texts, "|"), err))
	traced, err := e.RenderTraced(t.Context(), name, vars)
	if err != nil {
		return append(all, err.Error())
	}
	return append(all, traced.Text)
}

// TestPreviousIsForgotten: engines that take over from each other, one after the
// other, do not keep the first.
func TestPreviousIsForgotten(t *testing.T) {
	engine, err := Compile(filesOf(reusable), reusableOptions())
	require.NoError(t, err)
	_, err = engine.RenderEach(t.Context(), "alone.cfg", "n", []any{1, 2}, map[string]any{"n": 1, "text": ""})
	require.NoError(t, err)
	first := weak.Make(engine)
	for _, more := range []string{"a", "b"} {
		texts, opts := maps.Clone(reusable), reusableOptions()
		texts["alone.cfg"] += "# " + more + "\n"
		opts.Previous = engine
		engine, err = Compile(filesOf(texts), opts)
		require.NoError(t, err)
	}
	for range 100 {
		if runtime.GC(); first.Value() == nil {
			break
		}
	}
	require.Nil(t, first.Value())
	_, err = engine.Render(context.Background(), "alone.cfg", map[string]any{"n": 1, "text": ""})
	require.NoError(t, err)
}

// TestPreviousFunctions: the functions of the host that are called are those of the
// engine that renders, in whatever way they are called.
func TestPreviousFunctions(t *testing.T) {
	files := filesOf(map[string]string{
		"called.cfg":   "# {{ say(text) }}\n",
		"value.cfg":    "{% var f = say %}# {{ f(text) }}\n",
		"argument.cfg": "# {{ shared.ComputeIfAbsent(`k`, none) }}\n",
		"macro.cfg":    "{% macro M(s string) %}{{ say(s) }}{% end %}# {{ M(text) }}\n",
		"context.cfg":  "# {{ long(text, 1, 2) }}\n",
		"env.cfg":      "# {{ env(text) }}\n",
		"lower.cfg":    "# {{ lower(text) }}\n",
		"fails.cfg":    "# {{ fails(text) }}\n",
	})
	options := func(who string) *Options {
		return &Options{Vars: map[string]any{"text": ""}, Globals: map[string]any{
			"say":   func(s string) string { return who },
			"none":  func() string { return who },
			"long":  func(ctx context.Context, s string, n ...int) (string, error) { return who, ctx.Err() },
			"env":   func(env native.Env, s string) string { return who },
			"lower": func(s string) string { return who },
			"fails": func(s string) (string, error) { return "", errors.New(who) },
		}}
	}
	vars := map[string]any{"text": "x"}
	first, err := Compile(files, options("first"))
	require.NoError(t, err)
	opts := options("second")
	opts.Previous = first
	second, err := Compile(files, opts)
	require.NoError(t, err)
	for _, name := range second.Entries() {
		reused := first.entries[name].compiled == second.entries[name].compiled
		require.Equal(t, name != "value.cfg" && name != "argument.cfg", reused, name)
		for _, c := range []struct {
			engine *Engine
			who    string
		}{{second, "second"}, {first, "first"}, {second, "second"}} {
			text, err := c.engine.Render(t.Context(), name, vars)
			texts, each := c.engine.RenderEach(t.Context(), name, "text", []any{"x", "y"}, vars)
			if name == "fails.cfg" {
				require.ErrorContains(t, err, c.who)
				require.ErrorContains(t, each, c.who)
				continue
			}
			require.NoError(t, err, name)
			require.NoError(t, each, name)
			traced, err := c.engine.RenderTraced(t.Context(), name, vars)
			require.NoError(t, err, name)
			require.Equal(t, text, traced.Text, name)
			require.Equal(t, "# "+c.who+"\n", text, name)
			require.Equal(t, []string{text, text}, texts, name)
		}
	}

	// The standard function of the name is another one.
	opts = options("third")
	delete(opts.Globals, "lower")
	opts.Previous = first
	third, err := Compile(files, opts)
	require.NoError(t, err)
	text, err := third.Render(t.Context(), "lower.cfg", map[string]any{"text": "X"})
	require.NoError(t, err)
	require.Equal(t, "# x\n", text)
	opts = options("fourth")
	opts.Previous = third
	fourth, err := Compile(files, opts)
	require.NoError(t, err)
	text, err = fourth.Render(t.Context(), "lower.cfg", vars)
	require.NoError(t, err)
	require.Equal(t, "# fourth\n", text)
}
