package templating_test

import (
	"testing"
	"testing/fstest"

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

// TestJinjaHint: an error where somebody wrote Jinja has the words of Scriggo, the line and
// column, and where to read what to write; and what that says compiles.
func TestJinjaHint(t *testing.T) {
	for _, row := range []struct{ jinja, scriggo, mended string }{
		{`{% for x in items %}# {{ x }}{% endfor %}`, "unexpected EOF, expecting {% end", `{% for x in items %}# {{ x }}{% end %}`},
		{`{% if b %}a{% end %}{% endif %}`, "2:24: undefined: endif", `{% if b %}a{% end %}`},
		{`{% raw %}a{% endraw %}`, "expecting {% end %} or {% end raw %}", `{% raw %}a{% end raw %}`},
		{`{% if b %}a{% elif n > 1 %}c{% end %}`, "unexpected n, expecting %}", `{% if b %}a{% else if n > 1 %}c{% end %}`},
		{`# {{ s | upper }}`, "2:8: invalid operation: s | upper (mismatched types string and func(string) string)", `# {{ upper(s) }}`},
		{`# {{ s|default("y") }}`, "unexpected default", `# {{ coalesce(s, "y") }}`},
		{`# {{ items|length }}`, "undefined: length", `# {{ len(items) }}`},
		{`{% set x = 1 %}# {{ x }}`, "2:8: unexpected x, expecting %}", `{% x := 1 %}# {{ x }}`},
		{"{%- if b -%}\na\n{%- end -%}", "unexpected if, expecting expression", "{% if b %}\na\n{% end %}"},
		{`{% if obj is defined %}{% end %}`, "unexpected is, expecting %}", `{% if obj != nil %}{% end %}`},
		{`{% for x in items %}# {{ loop.index }}{% end %}`, "undefined: loop", `{% for i, x := range items %}# {{ i + 1 }} {{ x }}{% end %}`},
		{`{% if b == True %}{% end %}`, "undefined: True", `{% if b == true %}{% end %}`},
		{`# {{ s ~ "a" }}`, "invalid character U+007E '~'", `# {{ s + "a" }}`},
		{`{% for k, v in m.items() %}# {{ k }}{% end %}`, "unexpected in, expecting := or = or comma", `{% for k, _ := range m %}# {{ k }}{% end %}`},
		{`# {{ s if b else "c" }}`, "unexpected if, expecting }}", `# {% if b %}{{ s }}{% else %}{{ "c" }}{% end %}`},
		{`{% if "a" in items %}{% end %}`, "unexpected in", `{% if items contains "a" %}{% end %}`},
		{`{% include "log" %}`, "unexpected include", `{{ include("log") }}`},
		{`# {{ m['a'] }}`, "cannot use 'a'", `# {{ m["a"] }}`},
	} {
		err := compileJinja(row.jinja)
		require.ErrorContains(t, err, row.scriggo, row.jinja)
		require.ErrorContains(t, err, "haproxy.cfg:2:", row.jinja)
		require.ErrorContains(t, err, "; coming from Jinja? docs/functions.md lists what to write", row.jinja)
		require.NoError(t, compileJinja(row.mended))
	}
}

// TestNoJinjaNoHint: what is wrong otherwise is told in Scriggo's words alone.
func TestNoJinjaNoHint(t *testing.T) {
	for _, text := range []string{
		`# {{ nosuch }}`, `# {{ lower(n) }}`, `# {{ n + s }}`, `{% if b %}`, `{% x := map[string]any{"a": nosuch} %}`, `# {{ items["a"] }}`, `# {{ items[0].nosuch }}`,
		`# {{ lower("a is b", 1) }}`, `# {{ m["a"] + }}`, `{% for x in n.Items %}it's {{ x }} | y ~ z{% end %}`, `{% if b || nosuch %}{% end %}`, `{{ render "no.cfg" }}`, `# {{ lower(s) }`, `{% end %}`,
	} {
		err := compileJinja(text)
		require.Error(t, err, text)
		require.NotContains(t, err.Error(), "Jinja", text)
	}
	require.NoError(t, compileJinja(`{% if not s and n or b %}{# Jinja #}{% end %}{% for x in items %}# {{ x }}{% else %}{% end for %}`))
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
