package templating_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/open2b/scriggo/native"
	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/templating"
)

func TestFirstSeen(t *testing.T) {
	e := compile(t, files(
		"a.http", "{% for _, w := range words %}{% if first_seen(`w`, w) %}{{ w }}{% end %}{% end %}{{ first_seen(`a`, `bc`) }} {{ first_seen(`ab`, `c`) }} {{ first_seen(`ab`, `c`) }}",
		"b.http", "{{ first_seen(words) }}", "c.cfg", "retry-on {{ first_seen(`x`) }}\n{{ first_seen(`x`) }}",
	), &templating.Options{Vars: map[string]any{"words": []string(nil)}})
	vars := map[string]any{"words": []string{"x", "y", "x"}}
	for range 2 { // each render begins anew
		got, err := e.Render(t.Context(), "a.http", vars)
		check(t, got, err, "xytrue true false", "")
	}
	_, err := e.Render(t.Context(), "b.http", vars)
	check(t, "", err, "", "first_seen: argument 1: a value of type []string has no text")

	items := []any{[]string{"x"}, []string{"x"}} // each item is a render
	texts, err := e.RenderEach(t.Context(), "c.cfg", "words", items, vars)
	require.NoError(t, err)
	require.Equal(t, "retry-on true\nfalse|retry-on true\nfalse", strings.Join(texts, "|"))
}

func TestShared(t *testing.T) {
	tests := []struct{ name, template, want, refused string }{
		{"computed once", "{% var f = func() any { return count() } %}{{ shared.ComputeIfAbsent(`a`, f) }}{{ shared.ComputeIfAbsent(`a`, f) }}{{ shared.Get(`a`) }}", "111", ""},
		{"a macro", "{% macro M() %}m{{ count() }}{% end %}{{ shared.ComputeIfAbsent(`a`, M) }}{{ shared.ComputeIfAbsent(`a`, M) }}", "m1m1", ""},
		{"a typed function", "{{ shared.ComputeIfAbsent(`a`, func() []string { return []string{`x`} }).([]string)[0] }}", "x", ""},
		{"absent", "{{ shared.Get(`a`) == nil }}", "true", ""},
		{"one needs another", "{{ shared.ComputeIfAbsent(`a`, func() any { return tostring(shared.ComputeIfAbsent(`b`, func() any { return 1 })) + `!` }) }}", "1!", ""},
		{"fails", "{{ shared.ComputeIfAbsent(`a`, func() any { return fail(`no`) }) }}", "", "no"},
		{"itself", "{% var f func() any %}{% f = func() any { return shared.ComputeIfAbsent(`a`, f) } %}{{ f() }}", "", "values that need each other: a > a"},
		{"each other", "{% var f, g func() any %}{% f = func() any { return shared.ComputeIfAbsent(`b`, g) } %}{% g = func() any { return shared.ComputeIfAbsent(`a`, f) } %}{{ g() }}", "", "values that need each other: a > b > a"},
		{"not a function", "{{ shared.ComputeIfAbsent(`a`, 1) }}", "", `shared.ComputeIfAbsent: "a": compute is a int: give a function without parameters and with one result`},
		{"a function with parameters", "{{ shared.ComputeIfAbsent(`a`, func(n int) int { return n }) }}", "", "compute is a func(int) int"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := 0
			e := compile(t, files("a.http", tt.template), &templating.Options{Globals: map[string]any{"count": func() int { n++; return n }}})
			got, err := e.Render(t.Context(), "a.http", nil)
			check(t, got, err, tt.want, tt.refused)
		})
	}
}

// TestSharedConcurrently renders entries of one reconciliation at once.
func TestSharedConcurrently(t *testing.T) {
	var calls atomic.Int32
	e := compile(t, files("a.http", "{{ shared.ComputeIfAbsent(`k`, func() any { return slow() }) }}", "b.http", "{{ shared.Get(`k`) }}"),
		&templating.Options{Globals: map[string]any{"slow": func() int { return int(calls.Add(1)) }}})
	ctx := templating.WithShared(t.Context(), templating.NewShared())
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if got, err := e.Render(ctx, "a.http", nil); got != "1" || err != nil {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	wg.Wait()
	got, err := e.Render(ctx, "b.http", nil)
	check(t, got, err, "1", "")
	if got, err := e.Render(t.Context(), "a.http", nil); got != "2" || err != nil {
		t.Errorf("another reconciliation: got %q, %v", got, err)
	}
}

// TestSharedByTwoConcurrently has two renders of which each computes what the other one needs.
func TestSharedByTwoConcurrently(t *testing.T) {
	const text = "{{ shared.ComputeIfAbsent(`%s`, func() any { return shared.ComputeIfAbsent(`%s`, func() any { return count() }) }) }}"
	computed := 0
	e := compile(t, files("a.http", fmt.Sprintf(text, "a", "b"), "b.http", fmt.Sprintf(text, "b", "a")),
		&templating.Options{Globals: map[string]any{"count": func() int { computed++; return 7 }}})
	ctx := templating.WithShared(t.Context(), templating.NewShared())
	var wg sync.WaitGroup
	for _, name := range []string{"a.http", "b.http"} {
		wg.Go(func() {
			got, err := e.Render(ctx, name, nil)
			check(t, got, err, "7", "")
		})
	}
	wg.Wait()
	require.Equal(t, 1, computed, "computed")
}

func TestSharedWaitEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		e := compile(t, files("a.http", "{{ shared.ComputeIfAbsent(`a`, func() any { return block() }) }}"),
			&templating.Options{Globals: map[string]any{"block": func() int { <-release; return 1 }}})
		shared := templating.WithShared(t.Context(), templating.NewShared())
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = e.Render(shared, "a.http", nil) })
		synctest.Wait()
		ctx, cancel := context.WithCancel(shared)
		var waited error
		wg.Go(func() { _, waited = e.Render(ctx, "a.http", nil) })
		synctest.Wait()
		cancel()
		synctest.Wait()
		require.ErrorIs(t, waited, context.Canceled)
		close(release)
		wg.Wait()
	})
}

func TestDebug(t *testing.T) {
	var got []string
	e := compile(t, files("a.cfg", "retry-on a\n  {% debug(x, 2) %}\n{{ render `_p.cfg` }}{% for _, i := range seq(2) %}{% debug(i) %}{% end %}{% macro M() %}{% debug(`m`) %}{% end %}{{ M() }}", "_p.cfg", "{% debug(`p`) %}"),
		&templating.Options{Vars: map[string]any{"x": ""}, Debug: func(at templating.Origin, v any) {
			got = append(got, fmt.Sprintf("%s:%d:%d %v", at.File, at.Line, at.Column, v))
		}})
	text, err := e.Render(t.Context(), "a.cfg", map[string]any{"x": "a\nb"})
	check(t, text, err, "retry-on a\n", "")
	require.Equal(t, "a.cfg:2:6 a\nb|a.cfg:2:6 2|_p.cfg:1:4 p|a.cfg:3:55 0|a.cfg:3:55 1|a.cfg:3:93 m", strings.Join(got, "|"))
	for _, opts := range map[string]*templating.Options{
		"no hook":          nil,
		"the host's debug": {Globals: map[string]any{"debug": func(v any) string { return "" }}},
	} {
		e := compile(t, files("a.cfg", "retry-on a{% debug(1) %}"), opts)
		text, err = e.Render(t.Context(), "a.cfg", nil)
		check(t, text, err, "retry-on a", "")
	}
}

type hostKey struct{}

// TestHostFunctions calls Go functions that take a context or Scriggo's Env.
func TestHostFunctions(t *testing.T) {
	e := compile(t, files("a.http", "{{ value(`a`) }} {{ all(1, 2) }} {{ none() }} {{ env() }}", "b.http", "\n{{ value(`fail`) }}"), &templating.Options{Globals: map[string]any{
		"value": func(ctx context.Context, s string) (string, error) {
			if s == "fail" {
				return "", hostError("no " + s)
			}
			return s + ctx.Value(hostKey{}).(string), nil
		},
		"all":  func(ctx context.Context, n ...int) int { return len(n) },
		"none": func(ctx context.Context) bool { return ctx.Err() == nil },
		"env":  func(env native.Env) string { return env.CallPath() },
	}})
	ctx := context.WithValue(t.Context(), hostKey{}, "!")
	got, err := e.Render(ctx, "a.http", nil)
	check(t, got, err, "a! 2 true a.http", "")
	_, err = e.Render(ctx, "b.http", nil)
	check(t, "", err, "", "no fail")
	require.ErrorIs(t, err, hostError("no fail"), "the cause is lost")
}

type hostError string

func (e hostError) Error() string { return string(e) }
