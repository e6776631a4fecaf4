package templating_test

import (
	"strings"
	"testing"

	"github.com/hapticsdk/haptic/templating"
)

// TestCompileBounds compiles what would end the process, or take minutes, if
// Scriggo saw it.
func TestCompileBounds(t *testing.T) {
	deep := func(open, inner, end string) string {
		return strings.Repeat(open, 50_000) + inner + strings.Repeat(end, 50_000)
	}
	tests := []struct{ name, template, refused string }{
		{"a comment that is not closed", "{##", "1:1: comment not terminated"},
		{"a comment in a comment that is not closed", "\n{# {# #} #", "2:1: comment not terminated"},
		{"half of an end at the end", "{%% var y = x %%", "1:15: unexpected %%, expecting %%}"},
		{"half of an end", "{%% var y = x %%x }}", "1:15: unexpected %%"},
		{"a macro of HTML with a tag", `{% macro M html %}<script type="{{ x }}">{% end %}`, "1:12: leave out the type html"},
		{"one that is no macro yet", `{% macro ( html %}<script type="{{ x }}">{% end %}`, "1:12: leave out the type html"},
		{"a block of Markdown with a tag", "{% show itea; using /* a */ markdown\n//b\n%}<style type='{{ x }}'>{% end %}", "leave out the type markdown"},
		{"behind a raw block", "{% raw a %}{% end %}{% end\ra %}{% macro M html %}", "leave out the type html"},
		{"parentheses", "{{ " + deep("(", "x", ")") + " }}", "brackets and blocks lie too deep"},
		{"calls", "{{ " + deep("lower(x, ", "x", ")") + " }}", "brackets and blocks lie too deep"},
		{"blocks", deep("{% if x == `` %}", "", "{% end %}"), "brackets and blocks lie too deep"},
		{"alternatives", "{% if x == `` %}" + deep("{% else if x == `` %}", "", "") + "{% end %}", "brackets and blocks lie too deep"},
		{"texts", deep("{% show itea; using %}", "", "{% end %}"), "brackets and blocks lie too deep"},
		{"functions", "{% var f = " + deep("func() any { return ", "1", "}") + " %}", "brackets and blocks lie too deep"},
		{"operators", "{{ x" + deep(" + x", "", "") + " }}", "the statement is too long"},
		{"operators over lines", "{{ x" + deep(" +\n x", "", "") + " }}", "the statement is too long"},
		{"signs", "{{ " + deep("!", "", "") + "true }}", "the statement is too long"},
		{"types", "{% var a " + deep("map[string]", "int", "") + " %}", "the statement is too long"},
		{"calls of calls", "{{ x" + deep("(1, 2)", "", "") + " }}", "the statement is too long"},

		{"a comment of hashes", "{# ## # {# #} ##}# #", ""},
		{"braces in code", "{{ len(map[string]int{}) }}{{ len([]map[string]int{{}}) }}", ""},
		{"HTML as text", "<script type=\"html\">{{ x }} html %}", ""},
		{"names of formats", "{% macro html %}{% end macro %}{% if x == `html` %}{{ x }}{% end %}{% var css = x %}{{ css }}{% markdown := 1 %}{{ markdown }}", ""},
		{"a raw block of HTML", "{% raw %}{% macro M html %}{%% %%{#{% end %}", ""},
		{"code in a string", "{{ `{% macro M html %}{% macro M html %}` }}{{ \"\\\"{##\" }}{% var c = '{' %}{{ c }}", ""},
		{"a long list", "{% var l = []string{" + strings.Repeat("`a`, ", 10_000) + "} %}{{ len(l) }}", ""},
		{"many statements", "{%% var n = 0\n" + strings.Repeat("n = n + 1\nif n > 3 { n = 0 } else { n++ }\n", 1000) + "show n %%}", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := templating.Compile(files("a.http", tt.template), &templating.Options{Vars: map[string]any{"x": ""}})
			got := ""
			if err != nil {
				got = err.Error()
			}
			if (tt.refused == "") != (err == nil) || !strings.Contains(got, tt.refused) {
				t.Errorf("got %.200s, want %q", got, tt.refused)
			}
		})
	}
}
