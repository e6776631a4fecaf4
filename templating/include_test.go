package templating_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/templating"
)

// renderWith compiles files, of which the first is rendered, with x and a
// variable n of the type int.
func renderWith(t *testing.T, x any, pairs ...string) (string, error) {
	t.Helper()
	e, err := templating.Compile(files(pairs...), &templating.Options{
		Entries: pairs[:1],
		Vars:    map[string]any{"x": (*any)(nil), "n": 0},
	})
	if err != nil {
		return "", err
	}
	return e.Render(t.Context(), pairs[0], map[string]any{"x": x, "n": 7})
}

func TestInclude(t *testing.T) {
	const server = "  retry-on {{ dig(data, `name`) }} {{ n }}\n"
	tests := []struct {
		name, template string
		more           []string
		want, refused  string
	}{
		{name: "by a name made at run time", template: "{{ include(`ser` + `ver`, x) }}", more: []string{"snippets/server.cfg", server}, want: "  retry-on a\\ b 7\n"},
		{name: "data of another type", template: "{{ include(`s`, n) }}", more: []string{"snippets/s.cfg", "{{ data }}"}, want: "7"},
		{name: "no data", template: "{{ include(`s`) }}", more: []string{"snippets/s.cfg", "{% if data == nil %}none{% end %}"}, want: "none"},
		{name: "nobody includes it", template: "{% if data == nil %}none{% end %}", want: "none"},
		{name: "in a folder", template: "{{ include(`team/s`) }}", more: []string{"snippets/team/s.cfg", "a"}, want: "a"},
		{name: "in a variable", template: "{% var s = include(`s`, `a b`) %}retry-on {{ s }}", more: []string{"snippets/s.cfg", "{{ data }}"}, want: `retry-on a\ b`},
		{name: "indented", template: "{{ indent(include(`server`, x), 2) }}", more: []string{"snippets/server.cfg", server}, want: "    retry-on a\\ b 7\n"},
		{name: "inside quotes", template: "retry-on \"{{ include(`s`, `a b`) }}\"", more: []string{"snippets/s.cfg", "{{ data }}"}, refused: "cannot stand inside quotes"},
		{name: "plain inside quotes", template: "retry-on \"{{ include(`s`, `ab`) }}\"", more: []string{"snippets/s.cfg", "{{ data }}"}, want: `retry-on "ab"`},
		{name: "quotes in a snippet", template: "{{ include(`s`, `a $b`) }}", more: []string{"snippets/s.cfg", "retry-on \"{{ data }}\"\n"}, want: "retry-on \"a \\$b\"\n"},
		{name: "in a loop", template: "{% for _, i := range []int{1, 2} %}{{ include(`s`, i) }}{% end %}", more: []string{"snippets/s.cfg", "{{ data }}."}, want: "1.2."},
		{name: "from a macro", template: "{% macro A(v any) %}{{ include(`s`, v) }}{% end %}{{ A(1) }}", more: []string{"snippets/s.cfg", "{{ data }}"}, want: "1"},
		{name: "from an imported macro", template: "{% import `m.cfg` %}{{ A(1) }}", more: []string{"m.cfg", "{% macro A(v any) %}{{ include(`s`, v) }}{% end %}", "snippets/s.cfg", "{{ data }}"}, want: "1"},
		{name: "from a rendered file", template: "{{ render `p.cfg` }}", more: []string{"p.cfg", "{{ include(`s`, 1) }}", "snippets/s.cfg", "{{ data }}"}, want: "1"},
		{name: "from a file that extends", template: "{% extends `base.cfg` %}{% macro Body() %}{{ include(`s`, 1) }}{% end %}", more: []string{"base.cfg", "# b\n{{ Body() }}{{ include(`s`, 2) }}\n", "snippets/s.cfg", "{{ data }}"}, want: "# b\n12\n"},
		{name: "one in another", template: "{{ include(`a`, 1) }}", more: []string{"snippets/a.cfg", "{{ data }}{{ include(`b`, 2) }}{{ data }}", "snippets/b.cfg", "({{ data }})"}, want: "1(2)1"},
		{name: "one that renders and imports", template: "{{ render `p.cfg` }}{{ include(`a`, 1) }}", more: []string{"p.cfg", "p{{ n }}", "m.cfg", "{% macro M() %}m{{ n }}{% end %}", "snippets/a.cfg", "{% import `/m.cfg` %}{{ render `/p.cfg` }}{{ M() }}"}, want: "p7p7m7"},
		{name: "rendered by its path", template: "{{ render `snippets/a.cfg` }}{{ include(`a`, 1) }}", more: []string{"snippets/a.cfg", "{% if data == nil %}nil{% else %}{{ data }}{% end %}"}, want: "nil1"},
		{name: "text at the end, and snippets", template: "{{ include(`a`) }}\nend", more: []string{"snippets/a.cfg", "s"}, want: "s\nend"},
		{name: "line feeds at the end, and snippets", template: "{{ include(`a`) }}\n\n", more: []string{"snippets/a.cfg", "s"}, want: "s\n\n"},
		{name: "a comment at the end, and snippets", template: "{{ include(`a`) }}\n{# c #}", more: []string{"snippets/a.cfg", "s"}, want: "s\n"},

		{name: "all", template: "{{ include_all(`b-*`, 1) }}", more: []string{"snippets/b-2.cfg", "two {{ data }}", "snippets/b-1.cfg", "one {{ data }}\n", "snippets/c.cfg", "c", "snippets/b-3.cfg", ""}, want: "one 1\ntwo 1\n"},
		{name: "none of them", template: "a{{ include_all(`b-*`) }}b", more: []string{"snippets/c.cfg", "c"}, want: "ab"},
		{name: "no snippets at all", template: "a{{ include_all(`b-*`) }}b", want: "ab"},
		{name: "not those in folders", template: "{{ include_all(`*`) }}{{ include_all(`t/*`) }}", more: []string{"snippets/t/c.cfg", "c", "snippets/d.cfg", "d"}, want: "d\nc\n"},
		{name: "by a list", template: "{% for _, s := range glob_match(templateSnippets, `b-*`) %}{{ s }}:{{ include(s) }} {% end %}", more: []string{"snippets/b-2.cfg", "two", "snippets/b-1.cfg", "one", "snippets/c.cfg", "c"}, want: "b-1:one b-2:two "},

		{name: "not there", template: "{{ include(`s`) }}", more: []string{"snippets/a.cfg", ""}, refused: `include: no snippet "s" for this kind of file, there is a`},
		{name: "of another kind", template: "{{ include(`s`) }}", more: []string{"snippets/s.map", ""}, refused: `no snippet "s" for this kind of file, there is none`},
		{name: "bad pattern", template: "{{ include_all(`b[`) }}", refused: "include_all: pattern"},
		{name: "itself", template: "{{ include(`a`) }}", more: []string{"snippets/a.cfg", "{{ include(`a`) }}"}, refused: "snippets that include each other: a > a"},
		{name: "each other", template: "{{ include(`a`) }}", more: []string{"snippets/a.cfg", "{{ include(`b`) }}", "snippets/b.cfg", "{{ include_all(`a`) }}"}, refused: "snippets that include each other: a > b > a"},
		{name: "two data", template: "{{ include(`a`, 1, 2) }}", more: []string{"snippets/a.cfg", ""}, refused: "one value for data wanted, not 2"},
		{name: "open quote", template: "{{ include(`a`, 1) }}", more: []string{"snippets/a.cfg", "retry-on \"a"}, refused: "must close its quotes"},
		{name: "misspelt variable in a snippet", template: "{{ include(`a`) }}", more: []string{"snippets/a.cfg", "\n{{ m }}"}, refused: "undefined: m"},
		{name: "not used, so not compiled", template: "a", more: []string{"snippets/a.cfg", "{{ m }}"}, want: "a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := renderWith(t, map[string]any{"name": "a b"}, append([]string{"haproxy.cfg", tt.template}, tt.more...)...)
			check(t, got, err, tt.want, tt.refused)
		})
	}
}

// TestIncludePositions looks at where errors in snippets are said to be.
func TestIncludePositions(t *testing.T) {
	tests := []struct{ name, snippet, file, message string }{
		{"refused value", "a\n  {{ data }}\n", "snippets/s.cfg:2:6", "control character"},
		{"function that fails", "a\n{{ fail(`no`) }}\n", "snippets/s.cfg:2:4", "no"},
		{"path", "a\n\n{{ digString(x, `name.x`) }}\n", "snippets/s.cfg:3:4", "name.x: cannot look into a string"},
		{"misspelt", "a\n{{ y }}\n", "snippets/s.cfg:2:4", "undefined: y"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := renderWith(t, map[string]any{"name": "a"}, "haproxy.cfg", "# first\n{{ include(`s`, `a\nb`) }}", "snippets/s.cfg", tt.snippet)
			var e *templating.Error
			if !errors.As(err, &e) || fmt.Sprintf("%s:%d:%d", e.File, e.Line, e.Column) != tt.file || !strings.Contains(e.Message, tt.message) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestIncludeBounds(t *testing.T) {
	e := compile(t, files("a.cfg", "{% for true %}{{ include(`s`) }}{% end %}", "snippets/s.cfg", "0123456789",
		"b.cfg", "{% for true %}{% var _ = include(`s`) %}{% end %}",
		"c.cfg", "{{ include(`loop`) }}", "snippets/loop.cfg", "{% for true %}{% end %}"), &templating.Options{MaxOutput: 1000})
	for _, entry := range []string{"a.cfg", "b.cfg"} {
		require.ErrorIs(t, errOf(e.Render(t.Context(), entry, nil)), templating.ErrTooLarge, entry)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go cancel()
	require.ErrorIs(t, errOf(e.Render(ctx, "c.cfg", nil)), context.Canceled, "loop")
}

func TestIncludeKinds(t *testing.T) {
	e := compile(t, files(
		"a.map", "{{ include_all(`*`, `k`) }}", "snippets/hosts.map", "{{ data }} v",
		"b.cfg", "{{ include_all(`*`, `a b`) }}", "snippets/more.cfg", "retry-on {{ data }}\n",
		"c.http", "{{ include_all(`*`, `a b`) }}", "snippets/x.http", "{{ data }}", "snippets/y.http", "!",
		"snippets/more.map", "more map\n",
	), nil)
	require.Equal(t, "a.map b.cfg c.http", strings.Join(e.Entries(), " "))
	for entry, want := range map[string]string{"a.map": "k v\nmore map\n", "b.cfg": "retry-on a\\ b\n", "c.http": "a b!"} {
		if got, err := e.Render(t.Context(), entry, nil); got != want || err != nil {
			t.Errorf("%s: got %q, %v, want %q", entry, got, err, want)
		}
	}
}

func TestIncludeOptions(t *testing.T) {
	// The host has a variable of the name.
	e := compile(t, files("a.cfg", "{{ include(`s`) }}", "b.cfg", "{{ include(`s`, 1) }}", "snippets/s.cfg", "{{ data }} {{ shared }}"),
		&templating.Options{Vars: map[string]any{"data": ""}, Globals: map[string]any{"shared": []byte("own")}})
	got, err := e.Render(t.Context(), "a.cfg", map[string]any{"data": "mine"})
	check(t, got, err, "mine own", "")
	got, err = e.Render(t.Context(), "b.cfg", map[string]any{"data": "mine"})
	check(t, got, err, "", "the host has a variable data of its own")

	for name, more := range map[string][]string{
		"a snippet of the same name as snippets/a.cfg": {"snippets/a.cfg", "", "snippets/a.inc", ""},
		"a snippet needs a name and an extension":      {"snippets/a", ""},
	} {
		_, err := templating.Compile(files(append([]string{"a.cfg", ""}, more...)...), nil)
		require.ErrorContains(t, err, name)
	}
	require.ErrorContains(t, errOf(templating.Compile(brokenFolder{}, &templating.Options{Entries: []string{"a.cfg"}})), "broken", "folder that cannot be read")
}

type brokenFolder struct{}

func (brokenFolder) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("broken")}
}

func TestIncludeEachAndTraced(t *testing.T) {
	e := compile(t, files("b.cfg", "backend {{ x.Name }}\n{{ include_all(`*`, x.Note) }}", "snippets/n.cfg", "# one\n    # {{ data }} {{ x.Name }}\n"),
		&templating.Options{Vars: map[string]any{"x": (*eachThing)(nil)}})
	vars := map[string]any{"x": (*eachThing)(nil)}
	texts, err := e.RenderEach(t.Context(), "b.cfg", "x", []any{&eachThing{"a", "n"}, &eachThing{"b", "m"}}, vars)
	require.NoError(t, err)
	require.Equal(t, strings.Join([]string{"backend a\n# one\n    # n a\n", "backend b\n# one\n    # m b\n"}, "|"), strings.Join(texts, "|"))
	traced, err := e.RenderTraced(t.Context(), "b.cfg", map[string]any{"x": &eachThing{"a", "n"}})
	require.NoError(t, err)
	require.Equal(t, texts[0], traced.Text)
	for line, want := range map[int]string{1: "b.cfg:1", 2: "snippets/n.cfg:1", 3: "snippets/n.cfg:2"} {
		if at := traced.Origin(line); fmt.Sprintf("%s:%d", at.File, at.Line) != want {
			t.Errorf("line %d is from %s:%d, want %s", line, at.File, at.Line, want)
		}
	}
}
