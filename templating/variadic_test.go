package templating_test

import (
	"fmt"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/templating"
)

type collector struct{ N int }

func (c collector) Strings(s ...string) string { return fmt.Sprint(c.N, len(s), s) }
func (c collector) Values(first string, more ...any) string {
	return fmt.Sprint(c.N, first, len(more), more)
}
func (c *collector) ByPointer(s ...int) string                 { return fmt.Sprint(c.N, len(s), s) }
func (c collector) Times(d ...time.Duration) string            { return fmt.Sprint(len(d), d) }
func (c collector) Either(s ...string) string                  { return fmt.Sprint(len(s), s) }
func (c collector) Texts(more ...fmt.Stringer) (string, error) { return fmt.Sprint(len(more)), nil }

type alone struct{}

func (alone) Either(s string) string { return s }

func (alone) Collect(s ...string) string { return fmt.Sprint(len(s), s) }

type getter interface{ Collect(s ...string) string }

// A method that takes any number of arguments gets those that the template gives,
// and none more.
func TestVariadicMethods(t *testing.T) {
	type nested struct{ C collector }
	c := collector{7}
	values := map[string]any{"x": c, "p": &c, "list": []collector{{1}, {2}}, "byName": map[string]*collector{"a": &c},
		"n": nested{c}, "i": getter(alone{}), "o": alone{}, "d": time.Second}
	opts := &templating.Options{
		Vars: map[string]any{"x": collector{}, "p": &collector{}, "list": []collector{}, "byName": map[string]*collector{},
			"n": nested{}, "i": (*getter)(nil), "o": alone{}, "d": time.Duration(0)},
		Globals: map[string]any{"made": func() collector { return collector{9} }},
	}
	for _, c := range []struct{ template, want string }{
		{`{{ x.Strings() }}`, "7 0 []"},
		{`{{ x.Strings("a") }}`, "7 1 [a]"},
		{`{{ x.Strings("a", "b", "c") }}`, "7 3 [a b c]"},
		{`{{ x.Strings([]string{"a", "b"}...) }}`, "7 2 [a b]"},
		{`{{ x.Values("a") }}`, "7a0 []"},
		{`{{ x.Values("a", 1, "b") }}`, "7a2 [1 b]"},
		{`{{ p.ByPointer(1, 2) }}`, "7 2 [1 2]"},
		{`{% for y in list %}{{ y.Strings("a") }};{% end %}`, "1 1 [a];2 1 [a];"},
		{`{{ byName["a"].Strings("a") }}`, "7 1 [a]"},
		{`{{ n.C.Strings("a") }}`, "7 1 [a]"},
		{`{% var f = i.Collect %}{{ f("a") }}`, "1 [a]"},
		{`{{ made().Strings("a") }}`, "9 1 [a]"},
		{`{{ x.Strings(x.Strings("a"), "b") }}`, "7 2 [7 1 [a] b]"},
		{`{% y := x %}{{ y.Strings("a") }}`, "7 1 [a]"},
		{`{% f := x.Strings %}{{ f("a") }}`, "7 1 [a]"},
		{`{% if x.Strings("a") == "7 1 [a]" %}yes{% end %}`, "yes"},
		{`{% macro M(c any) %}{{ x.Strings("m") }}{% end %}{{ M(1) }}`, "7 1 [m]"},
		{`{% var f = x.Times %}{{ f(d) }}`, "1 [1s]"},
	} {
		t.Run(c.template, func(t *testing.T) {
			engine := compile(t, fstest.MapFS{"a.json": {Data: []byte(c.template)}}, opts)
			text, err := engine.Render(t.Context(), "a.json", values)
			require.NoError(t, err)
			require.Equal(t, c.want, text)
		})
	}
	for _, c := range []struct{ template, want string }{
		{`{{ x.Strings(1) }}`, "string"},
		{`{{ x.Values() }}`, "not enough arguments"},
		{`{{ x.Times(d) }}`, "write {% var f = x.Times %}"},
		{`{{ x.Texts(d) }}`, "write {% var f = x.Texts %}"},
		{`{{ i.Collect("a") }}`, "write {% var f = x.Collect %}"},
		{`{{ i.Collect([]string{"a"}...) }}`, "write {% var f = x.Collect %}"},
		{`{{ x.Either("a") }}`, "write {% var f = x.Either %}"}, // o has another method of that name
	} {
		t.Run(c.template, func(t *testing.T) {
			_, err := templating.Compile(fstest.MapFS{"a.json": {Data: []byte("\n" + c.template)}}, opts)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "a.json:2:")
		})
	}
}
