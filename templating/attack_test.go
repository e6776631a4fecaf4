package templating_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/templating"
)

// TestUnfinishedMacros embeds text of macros that leaves the place where the
// values behind it are taken to stand.
func TestUnfinishedMacros(t *testing.T) {
	tests := []spec{
		{name: "open double quote", template: "{% macro M() %}retry-on \"{% end %}{{ M() }}{{ x }}\"", x: "$HOME", refused: "macro"},
		{name: "open single quote", template: "{% macro M() %}retry-on '{% end %}{{ M() }}{{ x }}'", x: "a'b", refused: "macro"},
		{name: "backslash", template: "{% macro M() %}retry-on \\{% end %}{{ M() }}{{ x }}", x: "#a", refused: "macro"},
		{name: "cut escape", template: "{% macro M() %}{{ x }}{% end %}retry-on {{ M()[:2] }}{{ x }}", x: "a b", refused: "slice of"},
		{name: "line feed in a comment", template: "{% macro M() %}a\n{% end %}# {{ M() }}{{ x }}", x: "server evil 192.0.2.1:80", refused: "macro"},
		{name: "comment", template: "{% macro M() %}retry-on # it's{% end %}{{ M() }}{{ x }}", x: "a b", want: `retry-on # it'sa\ b`},
		{name: "lines", template: "{% macro M() %}retry-on \"a\"\n{% end %}{{ M() }}retry-on {{ x }}", x: "a b", want: "retry-on \"a\"\nretry-on a\\ b"},
		{name: "line feed in the value of a map", entry: "a.map", template: "{% macro M() %}a\n{% end %}k {{ M() }}{{ x }}", x: "a b", refused: "ends the key"},
		{name: "line feed from a variable", entry: "a.map", template: "{% macro M() %}a\n{% end %}{% var m = M() %}k {{ m }}{{ x }}", x: "a b", refused: "macro"},
		{name: "line of a map", entry: "a.map", template: "{% macro M() %}k v\n{% end %}{{ M() }}{{ x }} v\n", x: "#a", refused: "comment"},
		{name: "nothing in a map", entry: "a.map", template: "{% macro M() %}{% end %}{{ M() }}{{ x }} v\n", x: "", refused: "take its place"},
		{name: "part of a key", entry: "a.map", template: "{{ lower(`A`) }}{{ x }} v\n", x: "", want: "a v\n"},
		{name: "crt-list", entry: "a.txt", template: "{% macro M() %}a b\n{% end %}{{ M() }}{{ x }} v\n", x: "#a", refused: "comment"},
		{name: "rendered into a variable", template: "{% var p = render \"_p.cfg\" %}{{ p }}{{ x }}\"", more: []string{"_p.cfg", "retry-on \""}, x: "$a", refused: "macro"},
	}
	checkSpecs(t, tests)
}

// TestNamesOfVariables has a value where HAProxy reads the name of an
// environment variable.
func TestNamesOfVariables(t *testing.T) {
	for _, template := range []string{`retry-on "${{ x }}"`, `retry-on "$A{{ x }}"`, `retry-on "$A_0{{ x }}"`, `retry-on "${A{{ x }}}"`, `retry-on "${A-{{ x }}}"`, `retry-on "\\${{ x }}"`} {
		got, err := render(t, "HOME", "haproxy.cfg", template)
		check(t, got, err, "", "environment variable")
	}
	for template, want := range map[string]string{
		`retry-on ${{ x }}`: `retry-on $HOME`, `retry-on "\${{ x }}"`: `retry-on "\$HOME"`, `retry-on '${{ x }}'`: `retry-on '$HOME'`,
		`retry-on "${A}{{ x }}"`: `retry-on "${A}HOME"`, `retry-on "$A-{{ x }}"`: `retry-on "$A-HOME"`, `retry-on "$A" {{ x }}`: `retry-on "$A" HOME`,
		`retry-on "$A\"{{ x }}"`: `retry-on "$A\"HOME"`,
	} {
		got, err := render(t, "HOME", "haproxy.cfg", template)
		check(t, got, err, want, "")
	}
}

// TestLongLineOfMap: HAProxy reads a map by pieces of tune.bufsize, 16384 bytes
// unless set otherwise, and takes each for a line.
func TestLongLineOfMap(t *testing.T) {
	e := compile(t, files("a.map", "{{ x }} v\n"), &templating.Options{Vars: map[string]any{"x": ""}})
	long := strings.Repeat("a", 16380) // with " v\n" 16383 bytes: what fits
	for _, tt := range []struct {
		x  string
		ok bool
	}{{long, true}, {long + "a", false}} {
		require.Equal(t, tt.ok, errOf(e.Render(t.Context(), "a.map", map[string]any{"x": tt.x})) == nil, "%d bytes", len(tt.x))
		require.Equal(t, tt.ok, errOf(e.RenderEach(t.Context(), "a.map", "x", []any{"b", tt.x}, map[string]any{})) == nil, "each, %d bytes", len(tt.x))
	}
}

// TestRenderEachIsRender renders items with templates that keep something from
// one item to the next if they can.
func TestRenderEachIsRender(t *testing.T) {
	for name, template := range map[string]string{
		"assignment":          "{% n = n + 1 %}{{ n }} {{ x }}\n",
		"increment":           "{% n++ %}{{ n }} {{ x }}\n",
		"in a macro":          "{% macro M() %}{% n++ %}{% end %}{{ M() }}{{ n }} {{ x }}\n",
		"in a function":       "{% var f = func() int { n++; return n } %}{{ f() }} {{ x }}\n",
		"address":             "{% var p = &n %}{% *p = *p + 1 %}{{ n }} {{ x }}\n",
		"variable of a file":  "{% import \"_m.cfg\" %}{{ Next() }} {{ x }}\n",
		"field":               "{% s.N++ %}{{ s.N }} {{ x }}\n",
		"rendered":            "{{ render \"_r.cfg\" }}{{ n }} {{ x }}\n",
		"variable of its own": "{% var n = 0 %}{% n++ %}{{ n }} {{ x }}\n",
	} {
		t.Run(name, func(t *testing.T) {
			type pair struct{ N int }
			e := compile(t, files("a.cfg", template, "_r.cfg", "{% n++ %}",
				"_m.cfg", "{% var count = 0 %}{% macro Next() %}{% count++ %}{{ count }}{% end %}"),
				&templating.Options{Vars: map[string]any{"x": "", "n": 0, "s": pair{}}})
			vars := map[string]any{"n": 0, "s": pair{}}
			got, err := e.RenderEach(t.Context(), "a.cfg", "x", []any{"a", "b", "c"}, vars)
			require.NoError(t, err)
			for i, x := range []string{"a", "b", "c"} {
				vars["x"] = x
				if want, err := e.Render(t.Context(), "a.cfg", vars); err != nil || got[i] != want {
					t.Errorf("item %s: %q instead of %q, %v", x, got[i], want, err)
				}
			}
		})
	}
}

func TestRenderEachWithoutOtherVariables(t *testing.T) {
	e := compile(t, files("a.cfg", "{{ x }}"), &templating.Options{Vars: map[string]any{"x": ""}})
	for _, items := range [][]any{{"a"}, {"a", "b"}} {
		if got, err := e.RenderEach(t.Context(), "a.cfg", "x", items, nil); err != nil || len(got) != len(items) {
			t.Errorf("got %q, %v", got, err)
		}
	}
}

// TestAliasOfAFormat: raw is to be the one way out.
func TestAliasOfAFormat(t *testing.T) {
	for _, template := range []string{
		"{% type J = json %}retry-on {{ J(x.(string)) }}",
		"{% var f = func(s string) json { return (json)(s) } %}retry-on {{ f(x.(string)) }}",
		"{%% type J = json; var j = J(x.(string)) %%}retry-on {{ j }}",
		"{% macro M(s json) %}{{ s }}{% end %}retry-on {{ M(x.(string)) }}",
		"{% for _, s := range []json{json(x.(string))} %}retry-on {{ s }}{% end %}",
	} {
		if got, err := render(t, "a b", "haproxy.cfg", template); err == nil {
			t.Errorf("%s: got %q", template, got)
		}
	}
}

// TestSelect: nothing stops a select without cases, and what is shown in one
// has no place.
func TestSelect(t *testing.T) {
	for _, template := range []string{"{% select %}{% default %}retry-on {{ x }}{% end %}", "{% select %}{% end %}"} {
		_, err := templating.Compile(files("a.cfg", template), &templating.Options{Vars: map[string]any{"x": ""}})
		check(t, "", err, "", "select")
	}
}
