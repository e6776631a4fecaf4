package templating_test

import (
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/templating"
)

// Programs with several engines compile them when it suits them. The race
// detector tells.
func TestCompileConcurrently(t *testing.T) {
	files := fstest.MapFS{"haproxy.cfg": {Data: []byte("{% for true %}{% if !false && true %}{% break %}{% end %}{% end %}global\n")}}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			engine, err := templating.Compile(files, nil)
			if assert.NoError(t, err) {
				_, err = engine.RenderTraced(t.Context(), "haproxy.cfg", nil)
				assert.NoError(t, err)
			}
		})
	}
	wg.Wait()
}

// A loop that shows nothing but what is refused writes nothing, so that no bound
// of the output ends it.
func TestEndlessRefusalsEnd(t *testing.T) {
	engine := compile(t, fstest.MapFS{"haproxy.cfg": {Data: []byte("{% for true %}# {{ s }}{% end %}\n")}},
		&templating.Options{Vars: map[string]any{"s": ""}, MaxOutput: 1 << 30})
	_, err := engine.Render(t.Context(), "haproxy.cfg", map[string]any{"s": "a\nb"})
	require.ErrorContains(t, err, "control character")
}

// TestMarkerThatIsNoText: the marker of a raw block that is not UTF-8 is an error.
func TestMarkerThatIsNoText(t *testing.T) {
	_, err := templating.Compile(fstest.MapFS{"haproxy.cfg": {Data: []byte("{% raw \xad %}{{ raw(x) }}\n")}}, nil)
	require.Error(t, err)
	require.NotEmpty(t, templating.Errors(err))
}

// TestCompileBounds compiles what would end the process if Scriggo saw it.
func TestCompileBounds(t *testing.T) {
	tests := []struct{ name, template, refused string }{
		{"a comment that is not closed", "{##", "1:1: comment not terminated"},
		{"a comment in a comment that is not closed", "\n{# {# #} #", "2:1: comment not terminated"},
		{"half of an end at the end", "{%% var y = x %%", "1:15: unexpected %%, expecting %%}"},
		{"half of an end", "{%% var y = x %%x }}", "1:15: unexpected %%"},
		{"a macro of HTML with a tag", `{% macro M html %}<script type="{{ x }}">{% end %}`, "1:1: leave out the type html"},
		{"one that is no macro yet", `{% macro ( html %}<script type="{{ x }}">{% end %}`, "1:1: leave out the type html"},
		{"a block of Markdown with a tag", "{% show itea; using /* a */ markdown\n//b\n%}<style type='{{ x }}'>{% end %}", "leave out the type markdown"},
		{"behind a raw block", "{% raw a %}{% end %}{% end\ra %}{% macro M html %}", "leave out the type html"},
		{"signs", "{{ " + strings.Repeat("!", 1_000_000) + "true }}", "1:3: the code is too long"},
		{"blocks", strings.Repeat("{% if x == `` %}", 1_000_000), "1:1: the file is too long"},

		{"a comment of hashes", "{# ## # {# #} ##}# #", ""},
		{"braces in code", "{{ len(map[string]int{}) }}{{ len([]map[string]int{{}}) }}", ""},
		{"HTML as text", "<script type=\"html\">{{ x }} html %}", ""},
		{"names of formats", "{% macro html %}{% end macro %}{% if x == `html` %}{{ x }}{% end %}{% var css = x %}{{ css }}{% markdown := 1 %}{{ markdown }}", ""},
		{"a raw block of HTML", "{% raw %}{% macro M html %}{%% %%{#{% end %}", ""},
		{"code in a string", "{{ `{% macro M html %}{% macro M html %}` }}{{ \"\\\"{##\" }}{% var c = '{' %}{{ c }}", ""},
		{"a long list", "{% var l = []string{" + strings.Repeat("`a`, ", 10_000) + "} %}{{ len(l) }}", ""},
		{"a long text", "{{ `" + strings.Repeat("a", 200_000) + "` }}", ""},
		{"many statements", "{%% var n = 0\n" + strings.Repeat("n = n + 1\nif n > 3 { n = 0 } else { n++ }\n", 1000) + "show n %%}", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := templating.Compile(files("a.http", tt.template), &templating.Options{Vars: map[string]any{"x": ""}})
			got := ""
			if err != nil {
				got = err.Error()
			}
			require.Equal(t, tt.refused == "", err == nil)
			require.Contains(t, got, tt.refused)
		})
	}
}

// TestCode cuts templates into code and everything else.
func TestCode(t *testing.T) {
	for text, want := range map[string]string{
		"a {{ x }} b {% y %}":                       " x | y ",
		"{# {{ x }} {# #} #}{{ y }}":                " y ",
		"{{ a[\"}}\"] + `{{`}}{%% b // {{ \n c %%}": " a[|] + || b | c ",
		"{% raw %}{{ x }}{% end raw %}{{ y }}":      " raw | end raw | y ",
		"{% raw m %}{% end %}{{ x }}{% end m %}{{":  " raw m | end m |",
		"{{ {{}} }} {{ open":                        " {{}} | open",
	} {
		var got []string
		for start, end := range templating.Code(text) {
			got = append(got, text[start:end])
		}
		require.Equal(t, want, strings.Join(got, "|"), "%s", text)
	}
}
