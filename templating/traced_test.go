package templating_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/templating"
)

// oddStore is a variable of the host with methods and fields of all sorts.
type oddStore struct {
	One func() *corev1.ConfigMap
	In  *hostStore
	M   map[string]func() string
}

func (s *oddStore) List() []*corev1.ConfigMap         { return []*corev1.ConfigMap{s.In.one} }
func (s *oddStore) Get(...string) []*corev1.ConfigMap { return s.List() }
func (s *oddStore) Void()                             {}
func (s *oddStore) Any() any                          { return "x" }
func (s *oddStore) Nil() *corev1.ConfigMap            { return nil }
func (s *oddStore) F() func() string                  { return func() string { return "f" } }
func (s *oddStore) N() int                            { return 1 }
func (s *oddStore) P() *int                           { n := 1; return &n }
func (s *oddStore) Boom() string                      { panic("boom") }

// TestATracedTemplateIsTheTemplate: what compiles and renders does so traced, whatever it
// does with variables and with what the host returns.
func TestATracedTemplateIsTheTemplate(t *testing.T) {
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "conf"}, Data: map[string]string{"k": "v"}}
	vars := map[string]any{"store": &oddStore{In: &hostStore{config}, One: func() *corev1.ConfigMap { return config }, M: map[string]func() string{"a": func() string { return "m" }}}}
	for _, body := range []string{
		`{% var string2 = "x" %}{{ string(string2) }}`,
		`{% if true %}{% var string = "x" %}{{ string }}{% end %}{% x := make([]string, 2) %}{{ len(x) }}`,
		`{% if true %}{% var int = "x" %}{{ int }}{% end %}{% x := new(int) %}{{ *x }}`,
		`{% if true %}{% var error = "x" %}{{ error }}{% end %}{% var e error %}{{ e == nil }}`,
		`{% if true %}{% var len = "x" %}{{ len }}{% end %}{{ len("abc") }}`,
		`{% if true %}{% var nil = "x" %}{{ nil }}{% end %}{% var p *int = nil %}{{ p == nil }}`,
		`{% if true %}{% var iota = "x" %}{{ iota }}{% end %}{% const a = iota %}{{ a }}`,
		`{% if true %}{% var true = "x" %}{{ true }}{% end %}{% if true %}y{% end %}`,
		`{% type T int %}{% var x T = 3 %}{{ int(x) }}`,
		`{% type T struct{ A, B string } %}{% if true %}{% var A = 1 %}{{ A }}{% end %}{% x := T{A: "q"} %}{{ x.A }}`,
		`{% type T int %}{% if true %}{% var T = 1 %}{{ T }}{% end %}{% x := make([]T, 3) %}{{ len(x) }}`,
		`{% macro M(a string) %}{{ a }}{% end %}{% if true %}{% var M = "z" %}{{ M }}{% end %}{{ M("x") }}`,
		`{% macro M(a string) %}{{ a }}{% end %}{% if true %}{% var M = "z" %}{{ M }}{% end %}{% f := M %}{{ f("x") }}`,
		`{% store.Void() %}x`,
		`{{ store.F()() }}`,
		`{{ store.One().Data["k"] }}`,
		`{{ store.In.One("x").Data["k"] }}`,
		`{{ store.M["a"]() }}`,
		`{% x := []string{"a"} %}{{ store.Get(x...)[0].Name }}`,
		`{% for i := 0; i < store.N(); i++ %}{{ i }}{% end %}`,
		`{% for i := store.N(); i < 3; i++ %}{{ i }}{% end %}`,
		`{% for i in store.List() %}{{ i.Name }}{% end %}`,
		`{% for i, v := range store.List() %}{{ i }}{{ v.Name }}{% end %}`,
		`{% for range store.List() %}a{% end %}`,
		`{% var i int %}{% var v any %}{% for i = range store.List() %}{{ i }}{% end %}{{ v == nil }}`,
		`{% switch store.N() %}{% case 1 %}a{% case store.N() + 2 %}b{% end %}`,
		`{% switch x := store.N(); x %}{% case 1 %}{{ x }}{% fallthrough %}{% case 2 %}b{% end %}`,
		`{% switch v := store.Any().(type) %}{% case string %}{{ v }}{% case int %}{{ v }}{% end %}`,
		`{% if v, ok := store.Any().(string); ok %}{{ v }}{% end %}`,
		`{% v, ok := store.Any().(string) %}{{ v }}{{ ok }}`,
		`{% v, ok := store.List()[0].Data["k"] %}{{ v }}{{ ok }}`,
		`{% var v, ok = store.List()[0].Data["k"] %}{{ v }}{{ ok }}`,
		`{% if v, ok := store.List()[0].Data["k"]; ok %}{{ v }}{% end %}`,
		`{{ *store.P() }}`,
		`{% p := &store.List()[0].Data %}{{ len(*p) }}`,
		`{% x := 1 %}{% p := &x %}{% *p = store.N() %}{{ x }}`,
		`{% x := 1 %}{% x += store.N() %}{{ x }}{% x++ %}{{ x }}`,
		`{% m := map[string]int{} %}{% m["a"] = store.N() %}{% m["a"] += 2 %}{% m["a"]++ %}{{ m["a"] }}`,
		`{% a, b := 1, store.N() %}{% a, b = b, a %}{{ a }}{{ b }}`,
		`{% var a, b = 1, store.N() %}{{ a }}{{ b }}`,
		`{% const c = 3 %}{{ c + store.N() }}`,
		`{% f := func() string { return store.List()[0].Name } %}{{ f() }}`,
		`{% f := func(store int) int { return store } %}{{ f(1) }}{{ store.N() }}`,
		`{% defer store.Void() %}x`,
		`{% s := store %}{{ s.N() }}`,
		`{% f := store.N %}{{ f() }}`,
		`{{ store.Nil() == nil }}`,
		`{{ store.Nil() == nil || store.Nil().Name == "" }}`,
		`{% x := store.Nil() == nil and store.N() == 1 %}{{ x }}`,
		`{% if not (store.Nil() != nil) %}a{% end %}`,
		`{{ []int{store.N(), 2}[0] }}`,
		`{{ map[string]int{"a": store.N()}["a"] }}`,
		`{% x := []*int{store.P()} %}{{ *x[0] }}`,
		`{{ "abc"[store.N():] }}`,
		`{{ store.List()[store.N()-1:][0].Name }}`,
		`{% goto_ := 1 %}{{ goto_ }}`,
		`{%% x := store.List(); y := x[0].Name; show y %%}`,
		`{%% if store.N() == 1 { show store.List()[0].Name } else { show "x", store.N() } %%}`,
		`{% show store.N(), store.List()[0].Name %}`,
		`{% show itea; using %}{{ store.N() }}{% end using %}`,
		`{% var u = itea; using %}{{ store.N() }}{% end using %}{{ u }}`,
		`{% show indent(itea, store.N()); using %}a{% end using %}`,
		`{% macro m(a ...string) %}{{ len(a) }}{% end %}{{ m("a", store.List()[0].Name) }}`,
		`{% macro m(_ string, a int) %}{{ a }}{% end %}{{ m("a", store.N()) }}`,
		`{% macro m(int) %}a{% end %}{{ m(store.N()) }}`,
		`{% macro m %}{% if store.N() == 1 %}{% return %}{% end %}x{% end %}{{ m() }}`,
		`{% raw %}{{ store }}{% end raw %}`,
		`{% import "_lib.cfg" %}{{ L("x") }}{{ V }}`,
		`{% import lib "_lib.cfg" %}{{ lib.L("x") }}{{ lib.V }}`,
		`{% import lib "_lib.cfg" %}{% if true %}{% lib := "z" %}{{ lib }}{% end %}{{ lib.L("x") }}{{ lib.V }}`,
		`{{ render "_part.cfg" }}`,
		`{% x := render "_part.cfg" %}{{ x }}`,
		`{{ render "_part.cfg" default "y" }}`,
		`{% x := render "_no.cfg" default "y" %}{{ x }}`,
		`EXT{% extends "_base.cfg" %}{% macro Body %}{{ store.N() }}{{ W }}{% end %}{% var W = "x" %}`,
		`{% var a struct{ X int } %}{% a.X = store.N() %}{{ a.X }}`,
		`{% ch := make(chan int, 2) %}{% ch <- store.N() %}{{ <-ch }}`,
		`{% var f func() int %}{% f = store.N %}{{ f() }}`,
		`{{ func() int { return store.N() }() }}`,
		`{{ interface{}(store.N()) == nil }}`,
		`{{ any(store.N()).(int) }}`,
		`{{ min(store.N(), 2) }}`,
		`{{ append([]int{}, store.N())[0] }}`,
		`{{ len(append([]*int{}, store.P())) }}`,
		`{% x := struct{A int}{store.N()} %}{{ x.A }}`,
		`{{ "a" contains store.List()[0].Name }}`,
		`{% var v = store.Any() %}{% if v != nil %}{{ v.(string) }}{% end %}`,
		`{% x := 3 %}{% if x := store.N(); x == 1 %}{{ x }}{% end %}{{ x }}`,
		`{% for r in store.List() %}{% r := r %}{{ r.Name }}{% end %}`,
		`{% store := store.N() %}{{ store }}`,
		`{% if true %}{% store := store.N() %}{{ store }}{% end %}{{ store.N() }}`,
		`{% for k in store.List()[0].Data %}{{ k }}{% else %}x{% end %}`,
		`{{ store.Boom() }}`,
		`{{ 1 << 3 }}{{ 1.5 }}{{ 'a' }}`,
		`{% x := 1 << store.N() %}{{ x }}`,
		`{% var x float64 = 1 << 3 %}{{ x }}`,
		`{% var u, w = itea, "x"; using %}{{ store.N() }}{% end using %}{{ u }}{{ w }}`,
		`{% x, y := dig(store, "In"), 1 %}{{ y }}{{ x == nil }}`,
		`{% f := func() (int, error) { return 1, nil } %}{% a, b := f() %}{{ a }}{{ b == nil }}`,
		`{% g := func(a int, b ...int) int { return a } %}{{ g(store.N()) }}{{ g(store.N(), store.N()) }}`,
		`{% type S string %}{% var s S = "x" %}{{ string(s) }}{{ S("y") == s }}`,
		`{% m := map[string]*int{} %}{% delete(m, store.List()[0].Name) %}{{ len(m) }}`,
		`{% copy([]int{1}, []int{store.N()}) %}x`,
		`{% print(store.N()) %}x`,
		`{% panic(store.List()[0].Name) %}x`,
		`{% close(make(chan int)) %}x`,
		`{% f := upper %}{{ f("x") }}{% g := f %}{{ g("x") }}`,
		`{% f := upper %}{% apply := func(f func(string) string) string { return f("x") } %}{{ apply(f) }}`,
		`{% f := store.N %}{% apply := func(f func() int) int { return f() } %}{{ apply(f) }}`,
		`{% f := func() int { return 1 } %}{% apply := func(f func() int) int { return f() } %}{{ apply(f) }}`,
		`{% macro M(a string) %}{{ a }}{% end %}{% f := M %}{% apply := func(f macro(string) html) string { return "x" } %}{{ f("x") }}`,
		`{% macro M(a string) %}{{ a }}{% end %}{% f := M %}{% g := f %}{{ g("x") }}`,
		`{% f := func(a ...string) int { return len(a) } %}{% g := f %}{{ g("x") }}`,
		`{% type S struct{ A int } %}{% a := S{1} %}{% b := a %}{{ b.A }}`,
		`{% type S struct{ A int } %}{% a := []S{{1}} %}{% for x in a %}{{ x.A }}{% end %}{% p := &a[0] %}{{ p.A }}`,
		`{% type S struct{ A int } %}{% m := map[S]S{} %}{% a := S{1} %}{% m[a] = a %}{{ m[a].A }}`,
		`{% ch := make(chan int, 2) %}{% c2 := ch %}{% c2 <- 2 %}{{ <-ch }}`,
		`{% x := 3 %}{% p := &x %}{% q := p %}{% *q = 4 %}{{ x }}`,
		`{% if true %}{% upper := func(s string) string { return s } %}{{ upper("a") }}{% end %}{% m := map[string]any{"u": upper("x")} %}{{ len(m) }}`,
		`{% if true %}{% title := 1 %}{{ title }}{% end %}{% f := func(f func(string) string) string { return f("x") } %}{{ f(lower) }}`,
	} {
		e, err := templating.Compile(fstest.MapFS{"haproxy.cfg": {Data: []byte(strings.TrimPrefix("# "+body+"\n", "# EXT"))},
			"_lib.cfg":  {Data: []byte(`{% var V = "v" %}{% macro L(a string) %}{{ a }}{% end %}`)},
			"_part.cfg": {Data: []byte(`{% k := store.List()[0].Name %}{{ k }}`)},
			"_base.cfg": {Data: []byte("# {{ Body() }}")},
		}, &templating.Options{Vars: map[string]any{"store": (*oddStore)(nil)}})
		if err != nil {
			t.Errorf("%s: %v", body, err)
			continue
		}
		text, err1 := e.Render(t.Context(), "haproxy.cfg", vars)
		traced, err2 := e.RenderTraced(t.Context(), "haproxy.cfg", vars)
		if (err1 == nil) != (err2 == nil) || err1 == nil && traced.Text != text || len(traced.Refused) > 0 {
			t.Errorf("%s: plain %q, %v; traced %q, %v %v", body, text, err1, traced.Text, err2, traced.Refused)
		}
	}
}

// TestLinesAreNamedWithoutUses: where it cannot be told of which variables statements are
// made, here as a variable has the name of a type, lines are named, and what loops say.
func TestLinesAreNamedWithoutUses(t *testing.T) {
	e := compile(t, fstest.MapFS{"haproxy.cfg": {Data: []byte("{% import \"lib.cfg\" %}\n{% if true %}{% string := 1 %}{{ string }}{% end %}\n" +
		"{% for r in routes %}\n{% list := make([]string, 1) %}\n# {{ len(list) }} {{ r.spec.to }}\n{% end %}\n")}, "lib.cfg": {Data: []byte("{% macro M %}{% end %}")}},
		&templating.Options{Entries: []string{"haproxy.cfg"}, Vars: map[string]any{"routes": []map[string]any(nil)}})
	traced, err := e.RenderTraced(t.Context(), "haproxy.cfg", map[string]any{"routes": []map[string]any{manifest("Route", "web", map[string]any{"to": "x"})}})
	require.NoError(t, err)
	require.Equal(t, "1\n# 1 x\n", strings.TrimLeft(traced.Text, "\n"))
	o := traced.Origin(strings.Count(traced.Text, "\n"))
	require.Equal(t, 5, o.Line)
	require.Equal(t, "[web]", strings.TrimSpace(named(o.Owners)))
}
