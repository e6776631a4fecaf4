package templating_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/internal/haproxycfg"
	"github.com/hapticsdk/haptic/templating"
)

// compileShow compiles an entry that shows x behind a text.
func compileShow(tb testing.TB, entry, before, after string) (*templating.Engine, error) {
	tb.Helper()
	return templating.Compile(files(entry, before+"{{ x }}"+after), &templating.Options{Vars: map[string]any{"x": ""}})
}

// FuzzEscape checks that any value that is not refused is, cut into words as
// HAProxy does, exactly one word and equal to the value, wherever it stands.
func FuzzEscape(f *testing.F) {
	for _, seed := range []string{"a", "a b", `\`, `\n`, `\x20`, `"`, `'`, "#", "$HOME", "${X}", `\\"`, "ü b", "a\nb", "\x00", "%[src]", " ", `a\`} {
		f.Add(seed)
	}
	unquoted, err := compileShow(f, "a.cfg", "set ", " end")
	require.NoError(f, err)
	double, err := compileShow(f, "a.cfg", `set "`, `" end`)
	require.NoError(f, err)
	single, err := compileShow(f, "a.cfg", "set '", "' end")
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, s string) {
		for name, e := range map[string]*templating.Engine{"unquoted": unquoted, "double": double, "single": single} {
			out, err := e.Render(t.Context(), "a.cfg", map[string]any{"x": s})
			if err != nil {
				continue
			}
			if s == "" && name == "unquoted" {
				continue // nothing is written: an argument less
			}
			words, err := haproxycfg.Fields(out)
			if err != nil || len(words) != 3 || words[1] != s || words[2] != "end" {
				t.Errorf("%s: %q became %q: %q, %v", name, s, out, words, err)
			}
			if name == "double" && strings.Contains(strings.NewReplacer(`\\`, "", `\$`, "").Replace(out), "$") {
				t.Errorf("%q expands a variable in %q", s, out)
			}
		}
	})
}

// FuzzStructure checks that no value changes how many words a line has,
// whatever stands before it, nor how many lines there are.
func FuzzStructure(f *testing.F) {
	f.Add("set a", "b c")
	f.Add(`set "a `, `b" c`)
	f.Add(`set 'a `, `b' c`)
	f.Add(`# it's `, "x\ny")
	f.Add(`set a\\`, `#`)
	f.Add(`set "a"'b'`, `\`)
	f.Fuzz(func(t *testing.T, before, value string) {
		if strings.ContainsAny(before, "{}\n\r") || value == "" || strings.HasPrefix(before, "#!") {
			t.Skip() // Scriggo leaves out a first line that starts with #!
		}
		e, err := compileShow(t, "a.cfg", before, "")
		if err != nil {
			t.Skip()
		}
		out, err := e.Render(t.Context(), "a.cfg", map[string]any{"x": value})
		if err != nil {
			return
		}
		if strings.ContainsAny(out, "\n\r") {
			t.Fatalf("%q has more than one line", out)
		}
		for _, quote := range []string{"", `"`, `'`} { // whatever closes the line
			want, wantErr := haproxycfg.Fields(before + "x" + quote)
			got, gotErr := haproxycfg.Fields(out + quote)
			if (wantErr == nil) != (gotErr == nil) || len(want) != len(got) {
				t.Fatalf("%q behind %q: %q (%v) instead of %q (%v)", value, before, got, gotErr, want, wantErr)
			}
		}
	})
}

// FuzzMap checks that a value never adds an entry to a map, nor changes where
// the key of an entry ends.
func FuzzMap(f *testing.F) {
	f.Add("host", "backend")
	f.Add("#a", "b")
	f.Add("", "a b")
	f.Add("a b", "c\nd e")
	e, err := templating.Compile(files("hosts.map", "{{ k }} {{ v }}\n"), &templating.Options{Vars: map[string]any{"k": "", "v": ""}})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, k, v string) {
		out, err := e.Render(t.Context(), "hosts.map", map[string]any{"k": k, "v": v})
		if err != nil {
			return
		}
		if out != k+" "+v+"\n" || strings.Count(out, "\n") != 1 {
			t.Fatalf("%q", out)
		}
		if key := strings.FieldsFunc(out, func(r rune) bool { return r == ' ' || r == '\t' || r == '\n' || r == '\r' })[0]; key != k || key[0] == '#' {
			t.Fatalf("key %q instead of %q", key, k)
		}
	})
}

// FuzzCompile checks that no template makes the compiler or a render panic.
func FuzzCompile(f *testing.F) {
	f.Add("{{ x }}")
	f.Add("{% macro A(n int) %}{{ n }}{% end %}{{ A(1) }}{{ raw(`a`) }}")
	f.Add("{% for i := range []int{1} %}{% if i == 0 %}{% continue %}{% end %}\"{{ x }}\"{% end %}")
	f.Add("{% switch x %}{% case `a` %}b{% default %}{% end %}{# c #}{% raw %}{{{% end raw %}")
	f.Add("{% show itea; using %}{{ x }}{% end using %}{%% var y = x %%}{{ y }}")
	f.Fuzz(func(t *testing.T, src string) {
		e, err := templating.Compile(files("a.cfg", src), &templating.Options{MaxOutput: 1 << 16, Vars: map[string]any{"x": ""}})
		if err != nil {
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second) // it may be endless
		defer cancel()
		_, _ = e.Render(ctx, "a.cfg", map[string]any{"x": "a b"})
	})
}
