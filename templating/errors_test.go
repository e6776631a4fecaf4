package templating_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/hapticsdk/haptic/templating"
)

// positions prints errors as "file:line:column [owners]".
func positions(err error) string {
	var all []string
	for _, e := range templating.Errors(err) {
		all = append(all, fmt.Sprintf("%s:%d:%d%s", e.File, e.Line, e.Column, named(e.Owners)))
	}
	return strings.Join(all, ", ")
}

// TestErrorsHaveOwners has everything that can go wrong in a render go wrong
// while an Ingress is rendered.
func TestErrorsHaveOwners(t *testing.T) {
	errOfHost := errors.New("of the host")
	functions := map[string]any{
		"panics": func(string) string { panic("oops") },
		"fails":  func(string) (string, error) { return "", errOfHost },
		"hostile": func(name string) string {
			if name == "b" {
				return "b\nserver evil 192.0.2.1:80"
			}
			return name
		},
	}
	tests := []struct {
		name, entry, template string
		want                  string // positions of all errors
		message               string
		is                    error
	}{
		{name: "one refused", template: "{% for _, ing := range ings %}\n{{ hostile(ing.Name) }}\n{% end %}",
			want: "a.cfg:2:4 [b]", message: `a.cfg:2:4: refused in an argument: "b\nserver evil 192.0.2.1:80": control character '\n' (Ingress shop/b)`},
		{name: "several refused", template: "{% for _, ing := range ings %}\n{{ `\t` }} {{ hostile(ing.Name) }}\n{% end %}{{ nilText }}",
			want: "a.cfg:2:4 [a], a.cfg:2:4 [b], a.cfg:2:14 [b], a.cfg:3:13"},
		{name: "in a macro", template: "{% macro M(s string) %}\n{{ hostile(s) }}{% end %}{% for _, ing := range ings %}{{ M(ing.Name) }}{% end %}",
			want: "a.cfg:2:4 [b]"},
		{name: "what lacks a value", template: "{% macro M(s string) %}\"{{ s }}{% if s == `a` %}\"{% end %}{% end %}" +
			"{% for _, ing := range ings %}\nretry-on {{ indent(M(hostile(ing.Name)), 1) }}{% end %}",
			want: "a.cfg:1:28 [b]"},
		{name: "in a rendered file", template: "{% for _, ing := range ings %}{% owner(ing.Name) %}{{ render `_p.cfg` }}{% end %}",
			want: "_p.cfg:2:4 [a a], _p.cfg:2:4 [b b]"},
		{name: "fail", template: "{% for _, ing := range ings %}\n{% if ing.Name == `b` %}{{ fail(`no`) }}{% end %}{% end %}",
			want: "a.cfg:2:28 [b]", message: "a.cfg:2:28: no (Ingress shop/b)"},
		{name: "fail behind a refused value", template: "{% for _, ing := range ings %}\n{{ hostile(ing.Name) }}{% end %}{{ fail(`no`) }}",
			want: "a.cfg:2:4 [b], a.cfg:2:36"},
		{name: "error of a function", template: "{% for _, ing := range ings %}\n{{ fails(ing.Name) }}{% end %}",
			want: "a.cfg:2:4 [a], a.cfg:2:4 [b]", is: errOfHost},
		{name: "panic", template: "{% for _, ing := range ings %}\n{{ panics(ing.Name) }}{% end %}", want: "a.cfg:2:4 [a], a.cfg:2:4 [b]", message: "oops"},
		{name: "nil pointer", template: "{% for _, ing := range ings %}\n{{ *ing.Spec.IngressClassName }}{% end %}", want: "a.cfg:2:4 [a], a.cfg:2:4 [b]"},
		{name: "index", template: "{% for _, ing := range ings %}\n{{ ing.Spec.Rules[0].Host }}{% end %}", want: "a.cfg:2:4 [a], a.cfg:2:4 [b]"},
		{name: "behind a macro", template: "{% macro M() %}m{% end %}\n{% if string(M()) + fail(`no`) == `` %}{% end %}", want: "a.cfg:2:4"},
		{name: "too large", template: "{% for _, ing := range ings %}\n{% for true %}{{ ing.Name }}{% end %}{% end %}", want: "a.cfg:2:18 [a], a.cfg:2:18 [b]", is: templating.ErrTooLarge},
		{name: "too deep", template: "{% macro M(i int) %}\n{{ M(i) }}{% end %}{% for _, ing := range ings %}{{ M(1) }}{% end %}", want: "a.cfg:2:4 [a], a.cfg:2:4 [b]"},
		{name: "line of a map", entry: "a.map", template: "{% for _, ing := range ings %}\n  {{ ing.Name }} {{ sprintf(`%09000d%09000d`, 1, 1) }}\n{% end %}", want: "a.map:2:6 [a], a.map:2:6 [b]"},
		{name: "owned", template: "{% for _, s := range sites %}\n{{ fail(s.Name) }}{% end %}", want: "a.cfg:2:4 [a b]"},
		{name: "variable", template: "{% for _, w := range []string{`w`} %}\n{{ fail(w + ing.Name) }}{% end %}", want: "a.cfg:2:4 [a]"},
		{name: "changed by the first run", template: "{% n = n + 1 %}{% if n > 1 %}changed{% else %}{{ fail(`no`) }}{% end %}", want: "a.cfg:1:50"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.entry == "" {
				tt.entry = "a.cfg"
			}
			e := compile(t, files(tt.entry, tt.template, "_p.cfg", "\n{{ `\t` }}"), &templating.Options{
				Globals: functions, MaxOutput: 1 << 16,
				Vars: map[string]any{"ings": []*networkingv1.Ingress(nil), "sites": []*hostSite(nil), "nilText": (*string)(nil),
					"ing": (*networkingv1.Ingress)(nil), "n": 0}})
			a, b := ingress("a"), ingress("b")
			vars := map[string]any{"ings": []*networkingv1.Ingress{a, b}, "sites": []*hostSite{{"x", []any{a, b}}}, "nilText": (*string)(nil),
				"ing": (*networkingv1.Ingress)(nil), "n": 0}
			if strings.Contains(tt.template, "ing.Name)") && !strings.Contains(tt.template, ", ing :=") {
				vars["ing"] = a
			}
			var err error
			synctest.Test(t, func(t *testing.T) { // where no time passes, however slow the machine is
				_, err = e.Render(t.Context(), tt.entry, vars)
			})
			require.Equal(t, tt.want, positions(err))
			require.ErrorContains(t, err, tt.message)
			require.False(t, tt.is != nil && !errors.Is(err, tt.is), "got %v, want %q, %v", err, tt.message, tt.is)
			var first *templating.Error
			require.ErrorAs(t, err, &first)
			require.Same(t, templating.Errors(err)[0], first)
		})
	}
}

// TestRefusedValuesAreLeftOut checks what a traced render makes of values that
// are refused.
func TestRefusedValuesAreLeftOut(t *testing.T) {
	e := compileTraced(t, "a.cfg", "{% for _, ing := range ings %}\nserver {{ ing.Name }} {{ ing.Spec.IngressClassName }}!\n{% end %}{{ fail(`end`) }}never")
	vars := tracedVars()
	vars["ings"] = []*networkingv1.Ingress{ingress("a\n"), ingress("b")}
	traced, err := e.RenderTraced(t.Context(), "a.cfg", vars)
	require.Equal(t, "server  !\nserver b !\n", traced.Text)
	require.Equal(t, "a.cfg:3:13", positions(err))
	var got []error
	for _, e := range traced.Refused {
		got = append(got, e)
	}
	require.Equal(t, "a.cfg:2:11 [a\n], a.cfg:2:26 [a\n], a.cfg:2:26 [b]", positions(errors.Join(got...)))
	if text := traced.Refused[0].Error(); !strings.Contains(text, `("Ingress shop/a\n")`) || strings.Count(text, "\n") != 1 {
		t.Errorf("%q", text)
	}
	if o := traced.Origin(2); o.Line != 2 || named(o.Owners) != " [b]" || o.Text != "server {{ ing.Name }} {{ ing.Spec.IngressClassName }}!" {
		t.Errorf("%+v", o)
	}
	for _, line := range []int{-1, 0, 3, 99} {
		require.Empty(t, traced.Origin(line).File, "line %d", line)
	}
}

func TestManyRefused(t *testing.T) {
	e := compileTraced(t, "a.cfg", "{% for i := 0; i < 5000; i++ %}{% owner(i) %}{{ `\t` }}{% end %}")
	_, err := e.Render(t.Context(), "a.cfg", tracedVars())
	require.Equal(t, 1000, len(templating.Errors(err)))
	if text := err.Error(); !strings.Contains(text, "and 980 more") || strings.Count(text, "refused in") != 20 {
		t.Errorf("%s", text)
	}
}

func TestRenderEachNamesItems(t *testing.T) {
	e := compile(t, files("a.cfg", "server {{ ing.Name }} {{ all.Name }}\n"), &templating.Options{
		Vars: map[string]any{"ing": (*networkingv1.Ingress)(nil), "all": (*networkingv1.Ingress)(nil), "zzz": (*networkingv1.Ingress)(nil)}})
	items := []any{ingress("a"), ingress("b\n"), ingress("c"), ingress("\td")}
	vars := map[string]any{"all": ingress("all"), "zzz": ingress("zzz")}
	texts, err := e.RenderEach(t.Context(), "a.cfg", "ing", items, vars)
	require.Nil(t, texts)
	require.Equal(t, "a.cfg:1:11 [all b\n], a.cfg:1:11 [all \td]", positions(err))
	vars["ing"] = items[3]
	traced, err := e.RenderTraced(t.Context(), "a.cfg", vars)
	if err != nil || len(traced.Refused) != 1 || !slices.Contains(traced.Refused[0].Owners, items[3]) {
		t.Errorf("%v, %v", err, traced.Refused)
	}
}

// TestSecondRunDiffers has functions that do not fail again when the render is
// traced.
func TestSecondRunDiffers(t *testing.T) {
	for name, want := range map[string]string{
		"{{ once() }}": "a.cfg:0:0", "\n{{ hostile() }}": "a.cfg:2:4", "{{ stopping() }}": "a.cfg:0:0",
	} {
		runs := 0
		ctx, cancel := context.WithCancel(t.Context())
		e := compile(t, files("a.cfg", name), &templating.Options{Globals: map[string]any{
			"once": func() (string, error) {
				if runs++; runs == 1 {
					return "", errors.New("once")
				}
				return "", nil
			},
			"hostile": func() string {
				if runs++; runs == 1 {
					return "\n"
				}
				return ""
			},
			"stopping": func() (string, error) {
				if runs++; runs > 1 {
					cancel()
				}
				return "", errors.New("stopping")
			},
		}})
		require.Equal(t, want, positions(errOf(e.Render(ctx, "a.cfg", nil))), name)
		require.Equal(t, 2, runs, name)
		cancel()
	}
}

func TestTracedWithoutARender(t *testing.T) {
	e := compileTraced(t, "a.cfg", "x")
	traced, err := e.RenderTraced(t.Context(), "b.cfg", tracedVars())
	if !errors.Is(err, fs.ErrNotExist) || traced == nil || traced.Text != "" {
		t.Errorf("no entry: %v, %v", traced, err)
	}
	require.Len(t, templating.Errors(errOf(e.RenderTraced(t.Context(), "a.cfg", nil))), 1, "no variables")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, errOf(e.RenderTraced(ctx, "a.cfg", tracedVars())), context.Canceled, "cancelled")
}

// TestStopped checks that a traced render of an endless template ends with its
// context as the render does.
func TestStopped(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	e := compile(t, files("a.cfg", "a\n{% stop() %}{% for true %}{% end %}"),
		&templating.Options{Globals: map[string]any{"stop": stop}})
	traced, err := e.RenderTraced(ctx, "a.cfg", nil)
	if !errors.Is(err, context.Canceled) || traced.Text != "a\n" || traced.Origin(1).Line != 1 {
		t.Errorf("got %q, %v", traced.Text, err)
	}
}

// TestTracedConcurrently renders one engine from many goroutines, also for the
// first time.
func TestTracedConcurrently(t *testing.T) {
	e := compileTraced(t, "a.cfg", "{% macro M(s string) %}m {{ s }}\n{% end %}{% for _, ing := range ings %}{{ M(ing.Name) }}{% end %}")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			vars := tracedVars()
			name := fmt.Sprint("i", i)
			vars["ings"] = []*networkingv1.Ingress{ingress(name)}
			traced, err := e.RenderTraced(t.Context(), "a.cfg", vars)
			if err != nil || traced.Text != "m "+name+"\n" || named(traced.Origin(1).Owners) != " ["+name+"]" {
				t.Errorf("%q, %v", traced.Text, err)
			}
			vars["ings"] = []*networkingv1.Ingress{ingress(name + "\t")}
			if _, err := e.Render(t.Context(), "a.cfg", vars); positions(err) != "a.cfg:1:29 ["+name+"\t]" {
				t.Error(positions(err))
			}
		})
	}
	wg.Wait()
}

func TestErrors(t *testing.T) {
	a, b := &templating.Error{File: "a"}, &templating.Error{File: "b"}
	err := fmt.Errorf("around: %w", errors.Join(a, errors.New("other"), fmt.Errorf("in: %w", b)))
	require.Equal(t, []*templating.Error{a, b}, templating.Errors(err))
	require.Nil(t, templating.Errors(nil))
}
