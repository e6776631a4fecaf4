package templating_test

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/templating"
)

// compileJinja compiles haproxy.cfg, with a file to import and a snippet.
func compileJinja(text string) error {
	_, err := templating.Compile(fstest.MapFS{
		"haproxy.cfg": {Data: []byte("global\n" + text + "\n")}, "snippets/log.cfg": {Data: []byte("log\n")}, "x.cfg": {Data: []byte("{% macro Y %}y{% end %}")}},
		&templating.Options{Entries: []string{"haproxy.cfg"}, Vars: map[string]any{"items": []string{}, "s": "", "n": 1, "b": true, "m": map[string]any{}, "obj": (*any)(nil)}})
	return err
}

// TestJinjaSaysWhatToWrite: an error where somebody wrote Jinja has the words of
// Scriggo, the line and column, and what to write; and that compiles.
func TestJinjaSaysWhatToWrite(t *testing.T) {
	for _, row := range []struct{ jinja, scriggo, hint, mended string }{
		{`{% for x in items %}# {{ x }}{% endfor %}`, "haproxy.cfg:2:33: ", "haproxy.cfg:2:33: endfor ends nothing; coming from Jinja, write {% end %}", `{% for x in items %}# {{ x }}{% end %}`},
		{`{% if b %}a{%  endif  %}`, "2:16: ", "haproxy.cfg:2:16: endif ends nothing; coming from Jinja, write {% end %}", ""},
		{`{% if b %}a{% end %}{% endif %}`, "2:24: undefined: endif", "write {% end %}", ""},
		{`{% raw %}a{% endraw %}`, "expecting {% end %} or {% end raw %}", "endraw ends nothing", `{% raw %}a{% end raw %}`},
		{`{% if b %}a{% elif n > 1 %}c{% end %}`, "unexpected n, expecting %}", "write {% else if n > 1 %}", `{% if b %}a{% else if n > 1 %}c{% end %}`},
		{`# {{ s | upper }}`, "2:8: invalid operation: s | upper (mismatched types string and func(string) string)", "write upper(s)", `# {{ upper(s) }}`},
		{`# {{ s|default("y") }}`, "unexpected default", `write coalesce(s, "y")`, `# {{ coalesce(s, "y") }}`},
		{`# {{ s | default('y') }}`, "unexpected default", `write coalesce(s, "y")`, ""},
		{`# {{ items | join(",") }}`, "not enough arguments in call to join", `write join(items, ",")`, `# {{ join(items, ",") }}`},
		{`# {{ items|length }}`, "undefined: length", `write len(items)`, `# {{ len(items) }}`},
		{`# {{ s | urlize }}`, "undefined: urlize", `write urlize(s), and a macro urlize: there is no such function`, ""},
		{`# {{ items | join }}`, "mismatched types", `write join(items, "")`, `# {{ join(items, "") }}`},
		{`{% for x in items | sort %}# {{ x }}{% end %}`, "mismatched types", "write sort(items)", `{% for x in sort(items) %}# {{ x }}{% end %}`},
		{`{% set x = 1 %}# {{ x }}`, "2:8: unexpected x, expecting %}", "write {% x := 1 %}", `{% x := 1 %}# {{ x }}`},
		{"{%- if b -%}\na\n{%- end -%}", "unexpected if, expecting expression", `without "-"`, "{% if b %}\na\n{% end %}"},
		{`# {{- s -}}`, "unexpected }}", `without "-"`, ""},
		{`{% if obj is defined %}{% end %}`, "unexpected is, expecting %}", "write obj != nil", `{% if obj != nil %}{% end %}`},
		{`{% if obj is not none %}{% end %}`, "unexpected is", "write obj != nil", ""},
		{`{% if obj is none %}{% end %}`, "unexpected is", "write obj == nil", `{% if obj == nil %}{% end %}`},
		{`{% for x in items %}# {{ loop.index }}{% end %}`, "undefined: loop", "write {% for i, x := range list %}", `{% for i, x := range items %}# {{ i + 1 }} {{ x }}{% end %}`},
		{`{% if obj == None %}{% end %}`, "undefined: None", "write nil", `{% if obj == nil %}{% end %}`},
		{`{% if b == True %}{% end %}`, "undefined: True", "write true", `{% if b == true %}{% end %}`},
		{`# {{ s ~ "a" }}`, "invalid character U+007E '~'", `write s + "a"`, `# {{ s + "a" }}`},
		{`{% for k, v in m.items() %}# {{ k }}{% end %}`, "unexpected in, expecting := or = or comma", "write {% for k, v := range m %}", `{% for k, _ := range m %}# {{ k }}{% end %}`},
		{`# {{ s if b else "c" }}`, "unexpected if, expecting }}", `write {% if b %}{{ s }}{% else %}{{ "c" }}{% end %}`, `# {% if b %}{{ s }}{% else %}{{ "c" }}{% end %}`},
		{`{% if "a" in items %}{% end %}`, "unexpected in", `write items contains "a"`, `{% if items contains "a" %}{% end %}`},
		{`{% if "a" not in items %}{% end %}`, "unexpected not", `write items not contains "a"`, `{% if items not contains "a" %}{% end %}`},
		{`{% include "log" %}`, "unexpected include", `write {{ include("log") }}`, `{{ include("log") }}`},
		{`{% include "x.cfg" %}`, "unexpected include", `write {{ render "x.cfg" }}`, `{{ render "x.cfg" }}`},
		{`{% macro f(a) %}# {{ a }}{% end %}`, "undefined: a", "write {% macro f(a string) %}", `{% macro f(a string) %}# {{ a }}{% end %}{{ f("a") }}`},
		{`# {{ m['a'] }}`, "cannot use 'a'", `write "a" with double quotes`, `# {{ m["a"] }}`},
	} {
		err := compileJinja(row.jinja)
		require.ErrorContains(t, err, row.scriggo, row.jinja)
		require.ErrorContains(t, err, row.hint, row.jinja)
		require.ErrorContains(t, err, "haproxy.cfg:2:", row.jinja)
		require.ErrorContains(t, err, "; coming from Jinja, write ", row.jinja)
		if row.mended != "" {
			require.NoError(t, compileJinja(row.mended))
		}
	}
}

// TestFunctionsOfHintsExist: what a hint calls by name is there.
func TestFunctionsOfHintsExist(t *testing.T) {
	for _, name := range strings.Fields("has coalesce len tostring raw include join sortedKeys") {
		err := compileJinja("# {{ " + name + "(nosuch) }}")
		require.ErrorContains(t, err, "nosuch", name)
		require.NotContains(t, err.Error(), "undefined: "+name)
	}
}

// TestNoJinjaNoHint: what is wrong otherwise is told in Scriggo's words alone.
func TestNoJinjaNoHint(t *testing.T) {
	for _, text := range []string{
		`# {{ nosuch }}`, `# {{ lower(n) }}`, `# {{ n | s }}`, `# {{ n + s }}`, `{% if b %}`, `{% if b %}{# {% endif %} #}`, `{% for x in nosuch %}{% end %}`,
		`{% x := map[string]any{"a": nosuch} %}`, `# {{ items["a"] }}`, `# {{ items[0].nosuch }}`, `# {{ items[1.5] }}`,
		`# {{ lower("a is b", 1) }}`, `# {{ lower("a//b", 1) }}`, `# {{ lower("None", 1) }}`, `# {{ lower("[1, 2]", 1) }}`,
		`# {{ m["a"] + }}`, `{{ render "no.cfg" }}`, `# {{ lower(s) }`, "{{ n | s }}\n# {{ len(items|", `{% end %}`, `# {{ "a|upper" + n }}`,
	} {
		require.NotContains(t, func() string { err := compileJinja(text); require.Error(t, err, text); return err.Error() }(), "Jinja", text)
	}
	require.NoError(t, compileJinja(`{% if not s and n or b %}{# Jinja #}{% end %}{% for x in items %}# {{ x }}{% else %}{% end for %}`))
	require.NotContains(t, compileJinja(`{% if b %}{% endif %}`).Error(), "EOF", "which follows")
	require.Regexp(t, `(?s)endraw ends nothing.*unexpected EOF`, compileJinja(`{% raw %}{% endraw %}`).Error(), "by line")
	require.LessOrEqual(t, len(templating.Errors(compileJinja(strings.Repeat("{% if b %}{% endif %}", 100)))), 21)
}

// TestAcceptedWithAnotherMeaning holds what docs/functions.md says of what both
// languages take.
func TestAcceptedWithAnotherMeaning(t *testing.T) {
	for text, want := range map[string]string{
		`# {{- n }}`:                         "# -7\n",
		`# {{ 'a' }}`:                        "# 97\n",
		`# {{ n / 2 }} {{ n | 8 }}`:          "# 3 15\n",
		`{% for x in m %}# {{ x }}{% end %}`: "# key\n",
		`{% x := 1 %}{% for y in items %}{% x = 2 %}{% end %}# {{ x }}`:                   "# 2\n",
		`{% x := 1 %}{% if true %}{% x := 2 %}{% if x == 2 %}{% end %}{% end %}# {{ x }}`: "# 1\n",
		"{% if true %}\n# a\n{% end %}\n# b":                                              "# a\n# b\n",
		`# {{ len("ä") }}`:                                                                "# 2\n",
	} {
		vars := map[string]any{"n": 7, "m": map[string]any{"key": "value"}, "items": []string{"a"}}
		engine := compile(t, fstest.MapFS{"haproxy.cfg": {Data: []byte(text + "\n")}}, &templating.Options{Vars: vars})
		got, err := engine.Render(t.Context(), "haproxy.cfg", vars)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
}

// TestHintsAreBounded: what to write costs little, whatever the template is.
func TestHintsAreBounded(t *testing.T) {
	for name, text := range map[string]string{
		"a long text in code": `# {{ s | "` + strings.Repeat("a|b ", 1<<18) + `" }}`,
		"no end of code":      `# {{ s | upper(` + strings.Repeat("( ' ", 1<<13),
		"ends in a comment":   `{% if b %}` + strings.Repeat("{# {% endif %} #}", 1<<16),
		"ends":                strings.Repeat("{% if b %}{% endif %}", 1<<12),
	} {
		before := time.Now()
		require.Error(t, compileJinja(text), name)
		require.Less(t, time.Since(before), 10*time.Second, name)
	}
}
