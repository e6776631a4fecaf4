package templating_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/hapticsdk/haptic/templating"
)

// failing is what goes wrong for Ingresses whose names end in "7".
var failing = map[string]string{
	"fail":                   "{% if bad(ing.Name) %}{{ fail(`no`) }}{% end %}",
	"a function that fails":  "{{ fails(ing.Name) }}",
	"a function that panics": "{{ panics(ing.Name) }}",
	"a callback":             "{{ call(func() string { if bad(ing.Name) { fail(`no`) }; return ing.Name }) }}",
	"refused":                "{% if bad(ing.Name) %}{{ `\t` }}{% end %}",
	"a nil pointer":          "{% if bad(ing.Name) %}{{ *ing.Spec.IngressClassName }}{% end %}",
	"an index":               "{% if bad(ing.Name) %}{{ ing.Spec.Rules[0].Host }}{% end %}",
	"in a macro":             "{{ M(ing.Name) }}",
	"in a method":            "{{ host.Check(ing.Name) }}",
	"fail, and its sequel":   "{% if bad(ing.Name) %}{% fail(`no`) %}{{ *ing.Spec.IngressClassName }}{{ `\t` }}{% end %}",
}

type failingHost struct{}

func (failingHost) Check(name string) string {
	if isBad(name) {
		panic("no")
	}
	return name
}

func isBad(name string) bool { return strings.HasSuffix(name, "7") }

func compileFailing(tb testing.TB, template string) *templating.Engine {
	return compileWith(tb, template, isBad)
}

// compileWith compiles a template that asks bad which names are.
func compileWith(tb testing.TB, template string, bad func(string) bool) *templating.Engine {
	e, err := templating.Compile(files("a.cfg", "{% macro M(s string) %}{% if bad(s) %}{{ fail(`no`) }}{% end %}{{ s }}{% end %}"+template), &templating.Options{
		Globals: map[string]any{
			"bad": bad, "call": func(f func() string) string { return f() }, "host": failingHost{},
			"fails": func(name string) (string, error) {
				if isBad(name) {
					return "", errors.New("no")
				}
				return name, nil
			},
			"panics": func(name string) string {
				if isBad(name) {
					panic("no")
				}
				return name
			},
		},
		Vars: map[string]any{"ings": []*networkingv1.Ingress(nil), "ing": (*networkingv1.Ingress)(nil)}})
	require.NoError(tb, err)
	return e
}

func manyObjects(n int) (all []*networkingv1.Ingress, items []any) {
	for i := range n {
		ing := ingress(fmt.Sprint("i", i))
		all, items = append(all, ing), append(items, ing)
	}
	return all, items
}

// TestAllThatFails: one render finds each object for which it fails, and only
// these.
func TestAllThatFails(t *testing.T) {
	const n = 500
	all, items := manyObjects(n)
	check := func(t *testing.T, err error) {
		t.Helper()
		var got, want []string
		for _, e := range templating.Errors(err) {
			require.NotZero(t, e.Line, "no position")
			require.NotEmpty(t, e.Text, "no position")
			got = append(got, strings.TrimSpace(named(e.Owners)))
		}
		for i := 7; i < n; i += 10 {
			want = append(want, fmt.Sprintf("[i%d]", i))
		}
		slices.Sort(got)
		slices.Sort(want)
		require.True(t, slices.Equal(got, want), "got %d errors, want %d: %v", len(got), len(want), err)
	}
	for name, body := range failing {
		// In a bubble no time passes, however slow the machine is.
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for _, loop := range []string{
					"{% for _, ing := range ings %}\n" + body + "\n{% end %}",
					"{% for ing in ings %}" + body + "{% end %}",
					"{% for i := 0; i < len(ings); i++ %}{% for _, ing := range ings[i:i+1] %}" + body + "{% end %}{% end %}",
				} {
					_, err := compileFailing(t, loop).Render(t.Context(), "a.cfg", map[string]any{"ings": all, "ing": (*networkingv1.Ingress)(nil)})
					check(t, err)
				}
				_, err := compileFailing(t, body+"\n").RenderEach(t.Context(), "a.cfg", "ing", items, map[string]any{"ings": all})
				check(t, err)
			})
		})
	}
}

// TestFailuresOutsideOfLoops end the search: they are nobody's fault.
func TestFailuresOutsideOfLoops(t *testing.T) {
	all, _ := manyObjects(20)
	vars := map[string]any{"ings": all, "ing": (*networkingv1.Ingress)(nil)}
	for template, want := range map[string]int{
		"{% fail(`a`) %}{% for ing in ings %}{{ fails(ing.Name) }}{% end %}":                         1,
		"{% for ing in ings %}{{ fails(ing.Name) }}{% end %}{% fail(`a`) %}":                         3,
		"{% for i := 0; i < 3; i++ %}{{ fail(`a`) }}{% end %}":                                       1,
		"{% for i := 0; i < 20; i++ %}{% owner(ings[i]) %}{{ *ing.Spec.IngressClassName }}{% end %}": 1,
		"{% for i := 0; i < 20; i++ %}{% owner(ings[i]) %}{{ fails(ings[i].Name) }}{% end %}":        2,
	} {
		require.Len(t, templating.Errors(errOf(compileFailing(t, template).Render(t.Context(), "a.cfg", vars))), want, template)
	}
}

// overdue is a context whose deadline is over once end is called.
type overdue struct {
	context.Context
	once sync.Once
	done chan struct{}
}

func (o *overdue) end()                  { o.once.Do(func() { close(o.done) }) }
func (o *overdue) Done() <-chan struct{} { return o.done }

func (o *overdue) Err() error {
	select {
	case <-o.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// TestTimeOuts: a template that does not end fails as a whole, named by its line. Its
// time is over when it has come there, and in the other cases after a while.
func TestTimeOuts(t *testing.T) {
	const endless = "{% if bad(ing.Name) %}{% for true %}{% end %}{% end %}"
	all, items := manyObjects(16)
	for name, c := range map[string]struct {
		template, want string
		each           bool
	}{
		"loop":               {template: "{% for _, ing := range ings %}\n" + endless + "{% end %}", want: "a.cfg:2:26"},
		"loop within a loop": {template: "{% for _, ing := range ings %}\n{% for _, x := range []string{`x`} %}" + endless + "{% end %}{% end %}", want: "a.cfg:2:63"},
		"each":               {template: endless, want: "a.cfg:1:105", each: true},
		"outside":            {template: "{% for true %}{% end %}", want: "a.cfg:1:83"},
		"outside, each":      {template: "{% for true %}{% end %}", want: "a.cfg:1:83", each: true},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := &overdue{Context: t.Context(), done: make(chan struct{})}
			e := compileWith(t, c.template, func(name string) bool {
				if isBad(name) {
					ctx.end()
				}
				return isBad(name)
			})
			vars := map[string]any{"ings": all, "ing": (*networkingv1.Ingress)(nil)}
			if !strings.Contains(c.template, "bad(") {
				defer time.AfterFunc(300*time.Millisecond, ctx.end).Stop()
			}
			start := time.Now()
			var err error
			if c.each {
				_, err = e.RenderEach(ctx, "a.cfg", "ing", items, vars)
			} else {
				_, err = e.Render(ctx, "a.cfg", vars)
			}
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorContains(t, err, "stopped: ")
			require.Equal(t, c.want, positions(err))
			require.LessOrEqual(t, time.Since(start), time.Minute, "took")
		})
	}
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(20*time.Millisecond, cancel)
		_, err := compileFailing(t, "{% for _, ing := range ings %}"+endless+"{% end %}").Render(ctx, "a.cfg",
			map[string]any{"ings": all, "ing": (*networkingv1.Ingress)(nil)})
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, "a.cfg:0:0", positions(err))
	})
}

// brief is n, or a part of it with -short: CI runs each benchmark once.
func brief(n int) int {
	if testing.Short() {
		return n / 50
	}
	return n
}
