package templating_test

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/hapticsdk/haptic/templating"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// compile compiles what is right.
func compile(t testing.TB, fsys fs.FS, opts *templating.Options) *templating.Engine {
	t.Helper()
	e, err := templating.Compile(fsys, opts)
	require.NoError(t, err)
	return e
}

// errOf is the error of a call of which nothing else matters.
func errOf[T any](_ T, err error) error { return err }

func files(pairs ...string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		fsys[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return fsys
}

// render compiles the first file as the entry and renders it with x.
func render(t *testing.T, x any, pairs ...string) (string, error) {
	t.Helper()
	e, err := templating.Compile(files(pairs...), &templating.Options{
		Entries: pairs[:1],
		Globals: map[string]any{"quotes": map[string]string{"a": "b"}, "answer": 42},
		Vars:    map[string]any{"x": (*any)(nil)},
	})
	if err != nil {
		return "", err
	}
	got, err := e.Render(t.Context(), pairs[0], map[string]any{"x": x})
	checkTraced(t, e, pairs[0], map[string]any{"x": x}, got, err)
	return got, err
}

// checkTraced checks that a traced render does what the render did.
func checkTraced(t *testing.T, e *templating.Engine, entry string, vars map[string]any, want string, wantErr error) {
	t.Helper()
	traced, err := e.RenderTraced(t.Context(), entry, vars)
	switch {
	case wantErr != nil:
		require.False(t, err == nil && len(traced.Refused) == 0, "traced: %q instead of %v", traced.Text, wantErr)
	case err != nil || len(traced.Refused) > 0 || traced.Text != want:
		t.Errorf("traced: %q, %v, %v\ninstead of %q", traced.Text, err, traced.Refused, want)
	case want != "" && traced.Origin(1).File == "":
		t.Errorf("%q has no origin", want)
	}
}

// spec is what becomes of a template with x, in a haproxy.cfg where no other entry is named.
type spec struct {
	name, entry, template string
	x                     any
	more                  []string // files
	want, refused         string   // part of the error
}

func checkSpecs(t *testing.T, specs []spec) {
	t.Helper()
	for _, r := range specs {
		t.Run(r.name, func(t *testing.T) {
			got, err := render(t, r.x, append([]string{cmp.Or(r.entry, "haproxy.cfg"), r.template}, r.more...)...)
			check(t, got, err, r.want, r.refused)
		})
	}
}

func TestPlaces(t *testing.T) {
	hostile := `a b"c'd\e$f#g`
	tests := []spec{
		{name: "argument", template: "retry-on {{ x }} y", x: hostile, want: `retry-on a\ b\"c\'d\\e$f\#g y`},
		{name: "part of an argument", template: "retry-on a-{{ x }}-b", x: hostile, want: `retry-on a-a\ b\"c\'d\\e$f\#g-b`},
		{name: "double quotes", template: `retry-on "{{ x }}" y`, x: hostile, want: `retry-on "a b\"c'd\\e\$f#g" y`},
		{name: "behind double quotes", template: `retry-on "a" {{ x }}`, x: hostile, want: `retry-on "a" a\ b\"c\'d\\e$f\#g`},
		{name: "escaped quote", template: `retry-on \" {{ x }}`, x: "a b", want: `retry-on \" a\ b`},
		{name: "single quotes", template: `retry-on '{{ x }}'`, x: `a b"c\d$e#f`, want: `retry-on 'a b"c\d$e#f'`},
		{name: "single quote in single quotes", template: `retry-on '{{ x }}'`, x: "a'b", refused: "single quote"},
		{name: "comment", template: "# {{ x }}", x: hostile, want: "# " + hostile},
		{name: "quote in a comment", template: "# it's\nretry-on {{ x }}", x: "a b", want: "# it's\nretry-on a\\ b"},
		{name: "comment behind arguments", template: "retry-on a # '{{ x }}", x: hostile, want: "retry-on a # '" + hostile},
		{name: "line feed", template: "# {{ x }}", x: "a\nb", refused: `control character '\n'`},
		{name: "carriage return", template: "retry-on {{ x }}", x: "a\rb", refused: `control character '\r'`},
		{name: "tab", template: `retry-on "{{ x }}"`, x: "a\tb", refused: `control character '\t'`},
		{name: "NUL", template: "retry-on {{ x }}", x: "a\x00", refused: `control character '\x00'`},
		{name: "DEL", template: "retry-on {{ x }}", x: "a\x7f", refused: `control character '\x7f'`},
		{name: "not UTF-8", template: "retry-on {{ x }}", x: "a\xff", refused: "not UTF-8"},
		{name: "UTF-8", template: "retry-on {{ x }}", x: "grüße 本", want: `retry-on grüße\ 本`},
		{name: "empty", template: "retry-on {{ x }} y", x: "", refused: "with an empty value here"},
		{name: "behind a backslash", template: `retry-on \{{ x }}`, x: "a", refused: "right behind a backslash"},
		{name: "raw", template: "retry-on {{ raw(`a  b # c`) }}", want: "retry-on a  b # c"},
		{name: "raw in a string", template: "unheard-of {{ lower(`raw(X)`) }}", refused: "not plain enough"},
		{name: "length in quotes", template: `http-request set-header X "{{ len(x.(string)) }}" if { path_beg {{ x }} }`, x: "/a b", want: `http-request set-header X "4" if { path_beg /a\ b }`},
		{name: "macro len in quotes", template: `{% macro len(x any) %}" a "{% end %}http-request set-header X "{{ len(x) }}"`, x: "a", refused: "a macro is called len here"},
		{name: "quote in one branch", template: "retry-on {% if x != nil %}\"{% end %}{{ x }}", x: "a", refused: "inside quotes in one branch"},
		{name: "quotes in both branches", template: "retry-on \"{% if x == 1 %}a{% else %}b{% end %}{{ x }}\"", x: "$", want: `retry-on "b\$"`},
		{name: "quote opened in a loop", template: "{% for i := range []int{1,2} %}\"{{ x }}{% end %}", x: "a", refused: "inside quotes in one branch"},
		{name: "lines in a loop", template: "{% for i := range []int{1,2} %}retry-on {{ x }}\n{% end %}", x: "a b", want: "retry-on a\\ b\nretry-on a\\ b\n"},
		{name: "break", template: "{% for i := range []int{1,2} %}\"{% break %}{% end %}{{ x }}", x: "a", refused: "inside quotes in one branch"},
		{name: "switch", template: "{% switch x %}{% case 1 %}'{% default %}b {% end %}{{ x }}", x: "a", refused: "inside quotes in one branch"},
		{name: "several values", template: "{% show x, ` `, x %}", x: "a b", want: `a\ b\ a\ b`},
		{name: "number", template: "{{ x }} {{ 1.5 }} {{ true }} {{ answer }}", x: 12, want: "12 1.5 true 42"},
		{name: "named string", template: "{{ x }}", x: metav1.ConditionStatus("a b"), want: `a\ b`},
		{name: "pointer", template: "{{ x }}", x: new(int32), want: "0"},
		{name: "stringer by pointer", template: "{{ x }}", x: intstr.FromString("a b"), want: `a\ b`},
		{name: "stringer", template: "{{ x }}", x: time.Second, want: "1s"},
		{name: "error", template: "{{ x }}", x: errors.New("a b"), want: `a\ b`},
		{name: "bytes", template: "{{ x }}", x: []byte("a b"), want: `a\ b`},
		{name: "nil", template: "{{ x }}", refused: "the value is nil"},
		{name: "nil pointer", template: "{{ x }}", x: (*string)(nil), refused: "the value is nil"},
		{name: "struct", template: "{{ x }}", x: struct{ A int }{}, refused: "has no text"},
		{name: "raw block", template: "retry-on {% raw %}{{ raw(x) }}{% end raw %} {{ x }}", x: "a b", want: `retry-on {{ raw(x) }} a\ b`},
		{name: "conversion", template: "{{ json(`a`) }}", refused: "raw(...)"},
	}
	checkSpecs(t, tests)
}

func check(t *testing.T, got string, err error, want, refused string) {
	t.Helper()
	var e *templating.Error
	switch {
	case refused == "":
		require.NoError(t, err)
		require.Equal(t, want, got)
	case !errors.As(err, &e) || !strings.Contains(e.Message, refused) || e.Line == 0 || e.Column == 0:
		t.Errorf("got %q, %v, want an error with %q and a position", got, err, refused)
	}
}

func TestOtherKinds(t *testing.T) {
	tests := []spec{
		{name: "key", entry: "a.map", template: "{{ x }} v\n", x: `a"b'c\d$#`, want: "a\"b'c\\d$# v\n"},
		{name: "white space in a key", entry: "a.map", template: "{{ x }} v\n", x: "a b", refused: "ends the key"},
		{name: "white space later in a key", entry: "a.map", template: "x{{ x }} v\n", x: "a b", refused: "ends the key"},
		{name: "number sign first", entry: "a.map", template: "  {{ x }} v\n", x: "#a", refused: "comment"},
		{name: "number sign later", entry: "a.map", template: "x{{ x }} v\n", x: "#a", want: "x#a v\n"},
		{name: "empty key", entry: "a.map", template: "{{ x }} v\n", x: "", refused: "take its place"},
		{name: "value", entry: "a.map", template: "k {{ x }}\n", x: `a b#"`, want: "k a b#\"\n"},
		{name: "second value", entry: "a.map", template: "k a {{ x }}\n", x: "a b", want: "k a a b\n"},
		{name: "line feed in a value", entry: "a.map", template: "k {{ x }}\n", x: "a\nb c", refused: "control character"},
		{name: "comment", entry: "a.map", template: "# {{ x }}\n", x: "a b", want: "# a b\n"},
		{name: "value in one branch", entry: "a.map", template: "k{% if x == 1 %} {% end %}{{ x }}\n", x: "a b", refused: "ends the key"},
		{name: "lines in a loop", entry: "a.map", template: "{% for i := range []int{1,2} %}{{ x }} {{ x }}\n{% end %}", x: "a", want: "a a\na a\n"},
		{name: "crt-list", entry: "l.txt", template: "/c.pem [alpn h2] {{ x }}\n", x: "*.a", want: "/c.pem [alpn h2] *.a\n"},
		{name: "bracket in a crt-list", entry: "l.txt", template: "/c.pem {{ x }}\n", x: "a[b", refused: "brackets"},
		{name: "space in a crt-list", entry: "l.txt", template: "/c.pem {{ x }}\n", x: "a b", refused: "white space"},
		{name: "comment in a crt-list", entry: "l.txt", template: "{{ x }}\n", x: "#a", refused: "comment"},
		{name: "plain", entry: "503.http", template: "It's \"{{ x }}\"\r\n", x: `a b"`, want: "It's \"a b\"\"\r\n"},
		{name: "plain with a line feed", entry: "503.http", template: "{{ x }}", x: "a\nb", refused: "control character"},
	}
	checkSpecs(t, tests)
}

func TestMacrosAndFiles(t *testing.T) {
	const macros = `{% macro Server(name any) %}  retry-on {{ name }}
{% end macro %}{% macro Name(name any) %}{{ name }}{% end macro %}`
	tests := []spec{
		{name: "macro", template: macros + "{{ Server(x) }}", want: "  retry-on a\\ \\\"b\n"},
		{name: "macro in a variable", template: macros + "{% var s = Server(x) %}{{ s }}{{ s }}", want: "  retry-on a\\ \\\"b\n  retry-on a\\ \\\"b\n"},
		{name: "macro in a macro", template: macros + "{% macro Two(x any) %}{{ Server(x) }}{{ Server(1) }}{% end macro %}{{ Two(x) }}", want: "  retry-on a\\ \\\"b\n  retry-on 1\n"},
		{name: "macro in an argument", template: macros + "retry-on {{ Name(x) }}", want: "retry-on a\\ \\\"b"},
		{name: "macro in quotes", template: macros + "retry-on \"{{ Name(x) }}\"", refused: "cannot stand inside quotes"},
		{name: "plain macro in quotes", template: macros + "retry-on \"{{ Name(1) }}\"", want: `retry-on "1"`},
		{name: "indented macro", template: macros + "{{ indent(Server(1), 2) }}", want: "    retry-on 1\n"},
		{name: "using a constant", template: "{% show itea; using %}retry-on {{ `a b` }}{% end using %}", want: "retry-on a\\ b"},
		{name: "using", template: "{% show itea; using %}retry-on {{ x }}{% end using %}", want: "retry-on a\\ \\\"b"},
		{name: "render", template: `{{ render "p.cfg" }}`, more: []string{"p.cfg", "retry-on {{ x }}\n"}, want: "retry-on a\\ \\\"b\n"},
		{name: "render inside quotes", template: `retry-on "{{ render "p.cfg" }}"`, more: []string{"p.cfg", "{{ x }}$"}, want: `retry-on "a \"b$"`},
		{name: "render in a variable", template: `{% var p = render "p.cfg" %}retry-on {{ p }}`, more: []string{"p.cfg", "{{ x }}"}, want: `retry-on a\ \"b`},
		{name: "render inside and outside quotes", template: "{{ render \"p.cfg\" }}\n\"{{ render \"p.cfg\" }}\"", more: []string{"p.cfg", "{{ x }}"}, refused: "inside quotes in one branch"},
		{name: "render that opens a quote", template: "{{ render \"p.cfg\" }}{{ x }}\"", more: []string{"p.cfg", "retry-on \""}, want: `retry-on "a \"b"`},
		{name: "import", template: `{% import "m.cfg" %}{{ Server(x) }}`, more: []string{"m.cfg", macros}, want: "  retry-on a\\ \\\"b\n"},
		{name: "named import", template: `{% import m "m.cfg" %}{{ m.Server(x) }}`, more: []string{"m.cfg", macros}, want: "  retry-on a\\ \\\"b\n"},
		{name: "extends", template: `{% extends "base.cfg" %}{% macro Body %}retry-on {{ x }}{% end macro %}`, more: []string{"base.cfg", "# base\n{{ Body() }}\n"}, want: "# base\nretry-on a\\ \\\"b\n"},
		{name: "optional file", template: `{{ render "p.cfg" default "a b" }} {{ render "q.cfg" default "a b" }}`, more: []string{"p.cfg", "retry-on"}, want: `retry-on a\ b`},
		{name: "default of a value", template: "{{ x default `a` }}", refused: "coalesce"},
		{name: "macro of strings", template: "{% macro A() string %}a b{% end macro %}{{ A() }}", refused: "leave out the type string"},
		{name: "using a string", template: "{% show itea; using string %}a{% end using %}", refused: "leave out the type string"},
		{name: "macro of its own type", template: "{% macro A() json %}a b{% end macro %}{{ A() }}", want: "a b"},
		{name: "no extension", template: `{{ render "p" }}`, more: []string{"p", "a"}, refused: "needs an extension"},
		{name: "missing file", template: `{{ render "p.cfg" }}`, refused: "does not exist"},
		{name: "refused in a macro", template: macros + "{{ Server(`a\nb`) }}", refused: "control character"},
		{name: "refused in a recursive macro", template: "{% macro A(n int) %}{% if n == 0 %}{{ `a\tb` }}{% else %}{{ A(n-1) }}{% end %}{% end macro %}{{ A(3) }}", refused: "control character"},
		{name: "fail in a recursive macro", template: "{% macro A(n int) %}{% if n == 0 %}{{ fail(`no`) }}{% else %}{{ A(n-1) }}{% end %}{% end macro %}{{ A(3) }}", refused: "no"},
		{name: "recursive macro", template: "{% macro A(n int) %}{{ n }}{% if n > 0 %}{{ A(n-1) }}{% end %}{% end macro %}{{ A(3) }}{{ A(200) != `` }}", want: "3210true"},
		{name: "endless recursion", template: "{% macro A(n int) %}{{ A(n+1) }}{% end macro %}{{ A(1) }}", refused: "deep"},
		{name: "endless recursion of a function", template: "{% var f func(int) int %}{% f = func(n int) int { return f(n+1) } %}{{ f(1) }}", refused: "deep"},
		{name: "recursive function", template: "{% var f func(int) int %}{% f = func(n int) int { if n == 0 { return 0 }; return 1 + f(n-1) } %}{{ f(50) }}", want: "50"},
		{name: "endless recursion of imported macros", template: `{% import "r.cfg" %}{{ A() }}`, more: []string{"r.cfg", "{% macro A() %}{{ B() }}{% end macro %}{% macro B() %}{{ A() }}{% end macro %}"}, refused: "deep"},
		{name: "return in a macro", template: "{% macro A(n int) %}a{% if n == 0 %}{% return %}{% end %}b{% end macro %}{{ A(0) }}{{ A(1) }}", want: "aab"},
	}
	for i := range tests {
		tests[i].x = `a "b`
	}
	checkSpecs(t, tests)
}

// TestVariablesInMacros reads a variable of the host in macros and nowhere
// else, each way that a macro can come about.
func TestVariablesInMacros(t *testing.T) {
	for _, template := range []string{
		"{% macro A() %}{{ n }}{% end %}{{ A() }}",
		"{% macro A() %}{{ n }}{% end %}{% macro B() %}{{ A() }}{% end %}{{ B() }}",
		"{% macro A(i int) %}{% if i > 0 %}{{ A(i-1) }}{% else %}{{ n }}{% end %}{% end %}{{ A(1) }}",
		"{% var f = func() int { return n } %}{{ f() }}",
		"{% if true %}{% var f = func() int { return func() int { return n }() } %}{{ f() }}{% end %}",
		`{% import "m.cfg" %}{{ M() }}`,
		`{% import "m.cfg" %}{{ F() }}`,
		`{% import "m.cfg" %}{{ U() }}`,
		`{% extends "b.cfg" %}{% macro Body() %}{% var f = func() int { return n } %}{{ f() }}{% end %}`,
		`{% extends "b.cfg" %}{% macro Body() %}{{ n }}{% end %}`,
		`{% extends "c.cfg" %}{% macro Body() %}{% end %}`,
		`{{ render "p.cfg" }}`,
		`{{ render "q.cfg" }}`,
		`{% var a = render "q.cfg" %}{{ a }}`,
		`{% macro A() %}{{ render "q.cfg" }}{% end %}{{ A() }}`,
		"{% show itea; using %}{{ n }}{% end using %}",
		"{% macro A() %}{% show itea; using %}{{ n }}{% end using %}{% end %}{{ A() }}",
		"{% macro A() %}{{ fixed[0] }}{% end %}{{ A() }}",
	} {
		t.Run(template, func(t *testing.T) {
			e := compile(t, files("a.cfg", template,
				"m.cfg", "{% macro M() %}{{ n }}{% end %}{% macro F() %}{% var f = func() int { return n } %}{{ f() }}{% end %}{% macro U() %}{% show itea; using %}{{ n }}{% end using %}{% end %}",
				"b.cfg", "{{ Body() }}", "c.cfg", "{% macro A() %}{{ n }}{% end %}{{ A() }}{{ Body() }}",
				"p.cfg", "{{ n }}", "q.cfg", "{% macro Q() %}{{ n }}{% end %}{{ Q() }}"), &templating.Options{
				Entries: []string{"a.cfg"}, Vars: map[string]any{"n": 0}, Globals: map[string]any{"fixed": []int{7}}})
			if out, err := e.Render(t.Context(), "a.cfg", map[string]any{"n": 7}); err != nil || out != "7" {
				t.Errorf("got %q, %v", out, err)
			}
		})
	}
}

func TestPositions(t *testing.T) {
	var nilHost *host
	tests := []struct {
		name, template string
		file           string
		line, column   int
		message        string
	}{
		{"syntax", "a\n  {{ x + }}\n", "haproxy.cfg", 2, 10, "unexpected"},
		{"type", "a\n\n{{ nothing }}", "haproxy.cfg", 3, 4, "undefined: nothing"},
		{"type of a field", "{% for _, h := range hosts %}\n  {{ h.Nme }}{% end %}", "haproxy.cfg", 2, 7, "h.Nme undefined"},
		{"refused", "ä {{ 1 }} {{ \"a\" + \"\\n\" }}", "haproxy.cfg", 1, 14, "control character"},
		{"refused in a file", "a\n{{ render \"p.cfg\" }}", "p.cfg", 2, 4, "control character"},
		{"nil pointer", "a\n{% if true %}\n  {{ nilHost.Name }}\n{% end %}", "haproxy.cfg", 3, 6, "nil pointer"},
		{"nil pointer in a method", "a\n  b {{ nilHost.Title() }}", "haproxy.cfg", 2, 8, "nil pointer"},
		{"nil pointer in a function", "a {{ title(nilHost) }}", "haproxy.cfg", 1, 6, "nil pointer"},
		{"panic in a function", "\n{{ boom() }}", "haproxy.cfg", 2, 4, "boom"},
		{"error of a function", "\n{{ wrong() }}", "haproxy.cfg", 2, 4, "EOF-like"},
		{"index", "\n\n{% var l = []string{} %}\n{{ l[len(l)] }}", "haproxy.cfg", 4, 4, "index out of range"},
		{"fail", "{% if true %}\n{{ fail(\"no backend\") }}{% end %}", "haproxy.cfg", 2, 4, "no backend"},
		{"dig", "{{ dig(obj, `spec.rules[0].hst`) }}", "haproxy.cfg", 1, 4, `spec.rules.0.hst: no field "hst", there is host`},
		{"assignment", "a\n{% var s = wrong() %}{{ s }}", "haproxy.cfg", 2, 0, "EOF-like"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fsys := files("haproxy.cfg", tt.template, "p.cfg", "\n{{ `a\tb` }}")
			_, err := func() (string, error) {
				e, err := templating.Compile(fsys, &templating.Options{
					Entries: []string{"haproxy.cfg"},
					Globals: map[string]any{
						"title": func(h *host) string { return h.Name }, "boom": func() string { panic("boom") },
						"wrong": func() (string, error) { return "", errWrong },
					},
					Vars: map[string]any{"x": 0, "hosts": []host(nil), "nilHost": nilHost, "obj": map[string]any(nil)},
				})
				if err != nil {
					return "", err
				}
				obj := map[string]any{"spec": map[string]any{"rules": []any{map[string]any{"host": "a"}}}}
				return e.Render(t.Context(), "haproxy.cfg", map[string]any{"x": 1, "hosts": []host{{}}, "nilHost": nilHost, "obj": obj})
			}()
			var e *templating.Error
			require.ErrorAs(t, err, &e)
			if e.File != tt.file || e.Line != tt.line || tt.column > 0 && e.Column != tt.column || !strings.Contains(e.Message, tt.message) {
				t.Errorf("got %s:%d:%d: %s\nwant %s:%d:%d: %s", e.File, e.Line, e.Column, e.Message, tt.file, tt.line, tt.column, tt.message)
			}
			require.Equal(t, strings.Split(string(fsys[tt.file].Data), "\n")[tt.line-1], e.Text)
			require.False(t, strings.Contains(tt.message, "EOF-like") && !errors.Is(err, errWrong), "the cause is lost")
		})
	}
}

var errWrong = errors.New("EOF-like")

type host struct{ Name string }

func (h *host) Title() string { return strings.ToUpper(h.Name) }

func TestCompileReportsAllEntries(t *testing.T) {
	_, err := templating.Compile(files("a.cfg", "{{ x }}", "b.map", "ok", "c.cfg", "{% if %}", "sub/d.cfg", "\"\\{{ 1 }}\n'\\{{ 2 }}'", "_e.cfg", "{{ y }}"), nil)
	joined, ok := err.(interface{ Unwrap() []error })
	require.True(t, ok, "got %v", err)
	var got []string
	for _, err := range joined.Unwrap() {
		var e *templating.Error
		require.ErrorAs(t, err, &e)
		got = append(got, fmt.Sprintf("%s:%d", e.File, e.Line))
	}
	require.Equal(t, "a.cfg:1 c.cfg:1 sub/d.cfg:1", strings.Join(got, " "))
	require.ErrorIs(t, errOf(templating.Compile(files("a.cfg", ""), &templating.Options{Entries: []string{"b.cfg"}})), fs.ErrNotExist, "missing entry")
}

func TestOptions(t *testing.T) {
	tests := []struct {
		name string
		opts templating.Options
		want string
	}{
		{"nil variable", templating.Options{Vars: map[string]any{"x": nil}}, `variable "x": nil has no type`},
		{"twice", templating.Options{Vars: map[string]any{"x": 1}, Globals: map[string]any{"x": 1}}, "also a global"},
		{"name", templating.Options{Vars: map[string]any{"a b": 1}}, "not a name"},
		{"nil global", templating.Options{Globals: map[string]any{"x": nil}}, `global "x": nil has no type`},
		{"nil function", templating.Options{Globals: map[string]any{"x": (func())(nil)}}, "a nil function"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.ErrorContains(t, errOf(templating.Compile(files("a.cfg", ""), &tt.opts)), tt.want)
		})
	}
	require.Error(t, errOf(templating.Compile(nil, nil)), "no file system: no error")
}

func TestVariables(t *testing.T) {
	e := compile(t, files("a.cfg", "{{ n }} {{ s }} {{ any }}"), &templating.Options{
		Vars: map[string]any{"n": 0, "s": (*string)(nil), "any": (*fmt.Stringer)(nil)}})
	s := "b"
	tests := []struct {
		name string
		vars map[string]any
		want string
	}{
		{"good", map[string]any{"n": 1, "s": &s, "any": time.Second}, ""},
		{"missing", map[string]any{"n": 1, "s": &s}, "variable any is missing: fmt.Stringer wanted"},
		{"wrong type", map[string]any{"n": "1", "s": &s, "any": time.Second}, "variable n is a string: int wanted"},
		{"wrong interface", map[string]any{"n": 1, "s": &s, "any": "x"}, "variable any is a string: fmt.Stringer wanted"},
		{"nil number", map[string]any{"n": nil, "s": &s, "any": time.Second}, "variable n is a <nil>: int wanted"},
		{"unknown", map[string]any{"n": 1, "s": &s, "any": time.Second, "m": 1}, "variable m is not declared, only: any, n, s"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, err := e.Render(t.Context(), "a.cfg", tt.vars)
			switch {
			case tt.want == "" && (err != nil || out != "1 b 1s"):
				t.Errorf("got %q, %v", out, err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
	if _, err := e.Render(t.Context(), "b.cfg", nil); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "a.cfg") {
		t.Errorf("unknown entry: %v", err)
	}
}
