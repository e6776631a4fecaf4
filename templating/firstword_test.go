package templating_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/templating"
)

// TestFirstWords puts the first word of a line together of values that are no
// keywords themselves.
func TestFirstWords(t *testing.T) {
	const letters = "{% for _, c := range split(x, ``) %}{{ c }}{% end %}"
	const keyword = "what a line is"
	for _, tt := range []struct{ name, template, x, refused string }{
		{"letters", letters + " evil", "backend", keyword},
		{"letters behind a line", "global\n" + letters + " a", "lua-load", keyword},
		{"indented", "global\n  " + letters + " a", "lua-load", keyword},
		{"letters of a condition", letters + " TRUE", ".if", keyword},
		{"beginning of the template's", "{{ x }}ckend a", "ba", keyword},
		{"end of it", "backen{{ x }} a", "d", keyword},
		{"middle of it", "bac{{ x }}nd a", "ke", keyword},
		{"one letter", "{{ x }}erver s 192.0.2.1", "s", keyword},
		{"behind no", "no {{ x }}{{ x }}g", "lo", ""},
		{"behind default", "default ser{{ x }} s", "ver", keyword},
		{"no of letters", letters + " option httplog", "no", keyword},
		{"quoted", `"{{ x }}kend" a`, "bac", keyword},
		{"quoted in part", `b"ac"'{{ x }}' a`, "kend", keyword},
		{"behind a tab", "\t{{ x }}kend a", "bac", keyword},
		{"without more", "back{{ x }}", "end", keyword},
		{"several shows", "{% show x, `kend` %} a", "bac", keyword},
		{"by branches", "{% if x != `` %}{{ x }}{% else %}b{% end %}ackend a", "b", keyword},
		{"in a rendered file", "global\n{{ render `_r.cfg` }}", "ba", keyword},
		{"in an included file", "global\n{{ include(`a`) }}", "ba", keyword},
		{"in an included file by its name", "global\n{{ include(lower(`A`)) }}", "ba", keyword},
		{"in all included files", "global\n{{ include_all(`*`) }}", "ba", keyword},
		{"line of a macro", "{% macro M() %}global\n" + letters + " a\n{% end %}{{ M() }}", "backend", keyword},
		{"macro", "{% macro M() %}" + letters + " a\n{% end %}{{ M() }}", "backend", "condition"},
		{"text of a macro by a variable", "{% macro M() %}" + letters + " a\n{% end %}{% var m = M() %}{{ m }}", "backend", "condition"},
		{"indented macro", "{% macro M() %}" + letters + " a\n{% end %}{{ indent(M(), 2) }}", "backend", "condition"},
		{"macro and text", "{% macro M() %}" + letters + "{% end %}{{ M() }}kend a", "bac", keyword},
		{"macros", "{% macro M() %}" + letters + "{% end %}{{ M() }}{{ M() }} a", "ba", ""},

		{"no keyword", "{{ x }}{{ x }} a", "ser", ""},
		{"a part of one alone", "[{{ x }}]", "backend-a", ""},
		{"not at the start", "server {{ x }}{{ x }} 192.0.2.1", "log", ""},
		{"in another line", "global\n#{{ x }}\nbackend a", "backend", ""},
		{"name of a macro", "{% macro M(a, b any) %}{{ a }}_{{ b }}{% end %}default_backend {{ M(`default`, x) }}", "server", ""},
		{"name of an included file", "default_backend {{ include(`n`) }}\n", "server", ""},
		{"raw", "{{ raw(x) }}kend a", "bac", ""},
		{"macros with lines of their own", "{% macro M() %}server a\n{% end %}{{ M() }}{{ M() }}", "a", ""},
		{"text of a macro in a variable", "{% macro M() %}server a\n{% end %}{% macro N(x string) %}{{ x }}-a{% end %}{% var m = M() %}{{ m }}{{ m }}", "a", ""},
		{"nothing", "{{ x }}backend a", "", ""},
		{"spaces", "{% if x == `` %} {% end %}backend a", "", ""},
	} {
		t.Run(strings.ReplaceAll(tt.name, " ", "_"), func(t *testing.T) {
			e := compile(t, files("haproxy.cfg", tt.template, "_r.cfg", "{{ x }}ckend a", "snippets/a.cfg", "{{ x }}ckend a", "snippets/n.cfg", "{{ x }}-n"),
				&templating.Options{Vars: map[string]any{"x": ""}})
			vars := map[string]any{"x": tt.x}
			got, err := e.Render(t.Context(), "haproxy.cfg", vars)
			if tt.refused == "" {
				require.NoError(t, err)
				return
			}
			check(t, got, err, "", tt.refused)
			checkTraced(t, e, "haproxy.cfg", vars, got, err)
			if texts, err := e.RenderEach(t.Context(), "haproxy.cfg", "x", []any{"", tt.x}, nil); err == nil {
				t.Errorf("each: got %q", texts)
			}
		})
	}
}

// TestFirstWordsHaveOwners: who made the word is left out, not all.
func TestFirstWordsHaveOwners(t *testing.T) {
	all, _ := manyObjects(3)
	all[1].Name = "erver"
	e := compileFailing(t, "{% for _, ing := range ings %}s{{ ing.Name }} a\n{% end %}")
	_, err := e.Render(t.Context(), "a.cfg", map[string]any{"ings": all, "ing": all[0]})
	if own := templating.Errors(err); len(own) != 1 || !strings.Contains(own[0].Error(), "shop/erver") {
		t.Errorf("got %v", err)
	}
}
