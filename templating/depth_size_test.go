package templating_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/hapticsdk/haptic/templating"
)

// TestSizes makes values that grow without end.
func TestSizes(t *testing.T) {
	tests := []struct {
		name, template, compile string
	}{
		{name: "a text", template: "{% var s = x %}{% for true %}{% s = s + s %}{% end %}"},
		{name: "a text, by +=", template: "{%% s := x\n for { s += s } %%}"},
		{name: "a text, in the head of the loop", template: "{%% for s := x; true; s = s + s { } %%}"},
		{name: "a text, through another variable", template: "{%% s := x\n for { u := s + s\n s = u } %%}"},
		{name: "two at once", template: "{%% s, u := x, x\n for { s, u = u + s, s + u } %%}"},
		{name: "in a macro", template: "{% macro M %}{% var s = x %}{% for true %}{% s = s + s %}{% end %}{% end macro %}{{ M() }}"},
		{name: "a list", template: "{%% l := []string{x}\n for { l = append(l, l...) } %%}"},
		{name: "an element of a list", template: "{%% l := []string{x}\n for { l[0] = l[0] + l[0] } %%}"},
		{name: "an element, by +=", template: "{%% l := []string{x}\n for { l[len(l)-1] += l[0] } %%}"},
		{name: "an entry of a map", template: "{%% m := map[string]string{x: x}\n for { m[x] = m[x] + m[x] } %%}"},
		{name: "what a list gets", template: "{%% l := []string{x}\n for { l = append(l, l[len(l)-1] + l[len(l)-1]) } %%}"},
		{name: "a list in another", template: "{%% l := []any{x}\n for { l = []any{l[0].(string) + l[0].(string)} } %%}"},
		{name: "what a pointer leads to", template: "{%% s := x\n p := &s\n for { *p = *p + *p } %%}"},
		{name: "an argument of a macro", template: "{% macro M(s string) %}{{ M(s + s) }}{% end %}{{ M(x) }}"},
		{name: "an argument of any type", template: "{% macro M(s any) %}{{ M(s.(string) + s.(string)) }}{% end %}{{ M(x) }}"},
		{name: "an argument of a function", template: "{%% var f func(s string) string\n f = func(s string) string { return f(s + s) }\n show f(x) %%}"},
		{name: "calls of a macro", template: "{% macro M(s string) %}{{ M(s) }}{% end %}{{ M(x) }}"},
		{name: "calls of macros through a variable", template: "{% var m any %}{% macro M(s string) %}{% var f = m.(func(string) string) %}{{ f(s) }}{% end %}{% m = func(s string) string { return tostring(M(s)) } %}{{ M(x) }}"},
		{name: "calls of a function", template: "{%% var f func(s string) string\n f = func(s string) string { return f(s) }\n show f(x) %%}"},
		{name: "in what is computed", template: "{% var f = func() any { var s = x; for { s = s + s }; return s } %}{{ shared.ComputeIfAbsent(`k`, f).(string) }}"},
		{name: "replace in what is computed", template: "{% var f = func() any { var s = x; for { s = replace(s, `a`, `aaaaaaaaaaaaaaaa`) }; return s } %}{{ shared.ComputeIfAbsent(`k`, f).(string) }}"},
		{name: "a result", template: "{%% f := func(s string) string { return s + s }\n s := x\n for { s = f(s) } %%}"},
		{name: "where len is another", template: "{%% len := 1\n l := []string{x}\n for { l = append(l, l...)\n len = len + 1 } %%}"},
		{name: "make", template: "{% var n = 1 << 40 %}{{ len(make([]int, n)) }}"},
		{name: "make with a capacity", template: "{{ len(make([]int, 0, 1<<40)) }}"},
		{name: "replace", template: "{% var s = x %}{% for true %}{% s = replace(s, `a`, `aaaaaaaaaaaaaaaa`) %}{% end %}"},
		{name: "join", template: "{%% s := x\n for { s = join([]string{s, s, s, s}, s) } %%}"},
		{name: "indent", template: "{%% s := \"a\\n\"\n for { s = tostring(indent(s, 1024)) + s } %%}"},
		{name: "an array", template: "{% var a [1 << 40]int %}{{ len(a) }}", compile: "1:10: the length of an array"},
		{name: "an array in a function", template: "{% var f = func(a [2000]int) int { return 1 } %}{{ f(nil) }}", compile: "the length of an array"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e, err := templating.Compile(files("a.http", tt.template), &templating.Options{Vars: map[string]any{"x": ""}})
			if tt.compile != "" || err != nil {
				if tt.compile == "" || err == nil || !strings.Contains(err.Error(), tt.compile) {
					t.Fatalf("got %v, want %q", err, tt.compile)
				}
				return
			}
			_, err = e.Render(t.Context(), "a.http", map[string]any{"x": "aaaaaaaaaaaaaaaa"})
			var at *templating.Error
			large := errors.Is(err, templating.ErrTooLarge)
			if !large || !errors.As(err, &at) || at.Line == 0 {
				t.Errorf("got %.300v", err)
			}
		})
	}
}

// TestSizesOfArrays checks that small ones are what they were.
func TestSizesOfArrays(t *testing.T) {
	got, err := renderWith(t, nil, "a.http", "{%% a := [2]string{`a`, `b`}\n b := [...]int{1, 2, 3}\n l := make([]int, 2, 3)\n m := map[string]int{}\n for i := range l { m[a[i]] = i + b[i]\n a[i] = a[i] + `x` }\n show a[0], len(m), len(l), m[`b`] %%}")
	check(t, got, err, "ax223", "")
}
