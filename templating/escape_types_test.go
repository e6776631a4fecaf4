package templating_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/templating"
)

type namedText string

func (s namedText) String() string { return "named " + string(s) }

// TestTypes renders values of all types, once where the type of the
// variable is known and once where it is any, in every kind of place: what comes
// out is the same, and so is the error.
func TestTypes(t *testing.T) {
	s := "a b"
	for _, x := range []any{"", "a", "a b", "-f", "100%", "if", "a\nb", "../x", "unix@/x", "$A", 0, -1, 8080, int8(-8), int16(16), int32(-32), int64(1 << 40),
		uint(7), uint8(8), uint64(1 << 63), 1.5, -2.5, true, namedText("a"), time.Second, -time.Second, []byte("a b"), &s, (*string)(nil), templating.Raw("a b")} {
		for _, l := range linesWithPlaces {
			known, knownErr := renderAs(t, l.line, x, x)
			unknown, unknownErr := renderAs(t, l.line, (*any)(nil), x)
			require.Equal(t, unknown, known, "%s with %T %v", l.line, x, x)
			require.Equal(t, fmt.Sprint(unknownErr), fmt.Sprint(knownErr), "%s with %T %v", l.line, x, x)
		}
	}
}

func renderAs(t *testing.T, template string, declared, x any) (string, error) {
	t.Helper()
	if v := reflect.ValueOf(x); v.Kind() == reflect.Pointer && declared != nil && reflect.TypeOf(declared) == v.Type() {
		declared = reflect.Zero(v.Type()).Interface()
	}
	e := compile(t, files("a.cfg", template), &templating.Options{Vars: map[string]any{"x": declared}})
	return e.Render(t.Context(), "a.cfg", map[string]any{"x": x})
}

// TestTypesInEveryStatement has strings and numbers where a template may show
// them: what is known of their types must not go to another one.
func TestTypesInEveryStatement(t *testing.T) {
	const templates = `{% import "_m.cfg" %}{% macro M(s string, n int) %}{{ s }}:{{ n }}{% end %}{% show x, 1, x, N %}
retry-on {{ x }}{{ N }}{{ M(x, N) }} {{ render "_r.cfg" }} {% show x, render "_r.cfg", N %} {{ Other(x) }}
{% for i, c := range []string{x, "d e"} %}{{ i }}{{ c }}{{ c + x }}{{ len(c) }}{% end %}{{ "const ant" }}{{ 7 }}
{% if y := x; y != "" %}{{ y }}{% var x = N %}{{ x }}{% end %}{{ raw(x) }}{% if true %}{% var int = func(s string) string { return s + "3" } %}{{ int("") }}{{ len(x) }}{% end %}
{% switch v := A.(type) %}{% case int %}{{ v }}{% case string %}{{ v }}{% end %}{{ A }}{{ A.(int) }}`
	e := compile(t, files("haproxy.cfg", templates, "_r.cfg", "{{ x }}{{ N }}", "_m.cfg", "{% macro Other(s string) %}{{ s }}{{ len(s) }}{% end %}"),
		&templating.Options{Globals: map[string]any{"N": 5}, Vars: map[string]any{"x": "", "A": (*any)(nil)}})
	got, err := e.Render(t.Context(), "haproxy.cfg", map[string]any{"x": "a b", "A": 9})
	want := `a\ b1a\ b5
retry-on a\ b5a\ b:5 a\ b5 a\ ba\ b55 a\ b3
0a\ ba\ ba\ b31d\ ed\ ea\ b3const\ ant7
a\ b5a b33
999`
	check(t, got, err, want, "")
	traced, err := e.RenderTraced(t.Context(), "haproxy.cfg", map[string]any{"x": "a b", "A": 9})
	check(t, traced.Text, err, want, "")
}
