package render

import (
	"context"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/templating"
)

func TestTemplatesSayWhatFileTheyAre(t *testing.T) {
	files := fstest.MapFS{
		"haproxy.cfg":         {Data: []byte("global\n")},
		"maps/hosts.map":      {Data: []byte("a b\n")},
		"crt-lists/certs.txt": {Data: []byte("# none\n")},
		"general/503.http":    {Data: []byte("HTTP/1.0 503\r\n\r\n")},
	}
	compile := func() *Templates {
		engine, err := templating.Compile(files, nil)
		require.NoError(t, err)
		return &Templates{Engine: engine, Input: func(context.Context) (*Input, error) { return &Input{}, nil }}
	}
	templates := compile()
	require.NoError(t, templates.Check())
	rendered, err := templates.Render(t.Context())
	require.NoError(t, err)
	require.Equal(t, "global\n", rendered.Config.Main())
	for kind, name := range map[dataplane.FileKind]string{dataplane.Map: "hosts.map", dataplane.CRTList: "certs.txt", dataplane.General: "503.http"} {
		_, ok := rendered.Config.File(kind, name)
		require.True(t, ok, "%s %s", kind, name)
	}

	delete(files, "haproxy.cfg")
	files["maps/a.b.map"] = &fstest.MapFile{Data: []byte("x")}
	files["elsewhere/x.txt"] = &fstest.MapFile{Data: []byte("x")}
	err = compile().Check()
	require.ErrorContains(t, err, "template haproxy.cfg: missing")
	require.ErrorContains(t, err, "template maps/a.b.map:")
	require.ErrorContains(t, err, "template elsewhere/x.txt:")
}

// TestTemplatesThatMisbehave leave what is deployed alone and name the line.
func TestTemplatesThatMisbehave(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"loops for ever":     {"global\n{% for %}{% end %}\n", "deadline exceeded"}, // no line: it is stopped wherever it is
		"prints without end": {"global\n{% for %}0123456789012345678901234567890123456789012345678901234567890123456789{% end %}\n", "too large"},
		"panics":             {"global\n{% var s []string %}{{ s[3] }}\n", "out of range"},
		"fails":              {"global\n{{ fail(\"no such thing\") }}\n", "no such thing"},
		"injects":            {"global\n# {{ hostile }}\n", "control character"},
	} {
		t.Run(name, func(t *testing.T) {
			engine, err := templating.Compile(fstest.MapFS{"haproxy.cfg": {Data: []byte(c.text)}},
				&templating.Options{MaxOutput: 1 << 20, Globals: map[string]any{"hostile": "x\nbackend evil"}})
			require.NoError(t, err)
			target := &fakeTarget{name: "one"}
			timeout := time.Minute
			if name == "loops for ever" {
				timeout = time.Second
			}
			loop, err := reconcile.New(reconcile.Options{
				Renderer: &Templates{Engine: engine, Input: func(context.Context) (*Input, error) { return &Input{}, nil }},
				Targets:  []reconcile.Target{target}, RenderTimeout: timeout,
			})
			require.NoError(t, err)
			_, err = loop.Once(t.Context())
			require.ErrorContains(t, err, "haproxy.cfg:")
			require.ErrorContains(t, err, c.want)
			var where *templating.Error
			require.ErrorAs(t, err, &where)
			require.True(t, where.Line == 2 || where.Line == 0 && name == "loops for ever", "line %d", where.Line)
			require.Empty(t, target.texts())
		})
	}
}

// TestTemplatesRenderWhatChanged counts, with a function that every template
// calls, what is rendered again.
func TestTemplatesRenderWhatChanged(t *testing.T) {
	type backend struct{ Name string }
	renders := map[string]int{}
	engine, err := templating.Compile(fstest.MapFS{
		"haproxy.cfg":           {Data: []byte("{% count(`main`) %}global # {{ title }}\n")},
		"haproxy.d/backend.cfg": {Data: []byte("{% count(`backend`) %}backend {{ b.Name }} # {{ suffix }}\n")},
		"maps/hosts.map":        {Data: []byte("{% count(`hosts`) %}{% for h in hosts %}{{ h }} x\n{% end %}")},
	}, &templating.Options{
		Globals: map[string]any{"count": func(what string) { renders[what]++ }},
		Vars:    map[string]any{"title": "", "suffix": "", "hosts": []string(nil), "b": (*backend)(nil)},
	})
	require.NoError(t, err)
	in := &Input{Vars: map[string]any{"title": "one", "suffix": "s", "hosts": []string{"a.test"}, "b": (*backend)(nil)}}
	web, shop := &backend{"web"}, &backend{"shop"}
	templates := &Templates{Engine: engine, Input: func(context.Context) (*Input, error) { return in, nil }, Pure: true}
	render := func(items ...any) *dataplane.Config {
		in.Each = map[string]Each{"haproxy.d/backend.cfg": {Var: "b", Items: items}}
		clear(renders)
		rendered, err := templates.Render(t.Context())
		require.NoError(t, err)
		fresh, err := (&Templates{Engine: engine, Input: templates.Input}).Render(t.Context())
		require.NoError(t, err)
		for what, n := range map[string]int{"main": 1, "hosts": 1, "backend": len(items)} {
			renders[what] -= n // those of the fresh one
		}
		require.Equal(t, fresh.Config.Hash(), rendered.Config.Hash(), "what is remembered is what would be rendered")
		return rendered.Config
	}
	all := func(main, hosts, backends int) map[string]int {
		return map[string]int{"main": main, "hosts": hosts, "backend": backends}
	}

	require.Equal(t, "global # one\nbackend web # s\nbackend shop # s\n", render(web, shop).Main())
	require.Equal(t, all(1, 1, 2), renders, "the first time")
	render(web, shop)
	require.Equal(t, all(0, 0, 0), renders, "nothing changed")
	require.Equal(t, "global # one\nbackend shop # s\nbackend web # s\n", render(shop, web).Main())
	require.Equal(t, all(0, 0, 0), renders, "another order")
	render(&backend{"new"}, web)
	require.Equal(t, all(0, 0, 1), renders, "one item is new, one has gone")
	render(shop, web)
	require.Equal(t, all(0, 0, 1), renders, "what has gone is forgotten")
	in.Vars["title"] = "two"
	render(shop, web)
	require.Equal(t, all(1, 0, 0), renders, "a variable of one entry")
	in.Vars["hosts"] = []string{"b.test"}
	render(shop, web)
	require.Equal(t, all(0, 1, 0), renders, "a slice stored elsewhere")
	in.Vars["suffix"] = "other"
	render(shop, web)
	require.Equal(t, all(0, 0, 2), renders, "a variable that all items use")

	templates.Pure = false
	render(web, shop)
	render(web, shop)
	require.Equal(t, all(1, 1, 2), renders, "without the promise everything is rendered each time")

	in.Each = map[string]Each{"haproxy.d/backend.cfg": {Var: "b", Items: []any{[]string{"x"}}}}
	_, err = templates.Render(t.Context())
	require.ErrorContains(t, err, "cannot be compared")
	in.Each = map[string]Each{"haproxy.d/nope.cfg": {Var: "b"}}
	_, err = templates.Render(t.Context())
	require.ErrorContains(t, err, "haproxy.d/nope.cfg: missing")
}

func TestSameValue(t *testing.T) {
	list, other := []string{"a"}, []string{"a"}
	m := map[string]int{}
	p := &struct{ x int }{1}
	for _, c := range []struct {
		a, b any
		want bool
	}{
		{1, 1, true}, {1, 2, false}, {1, int64(1), false}, {nil, nil, true}, {nil, 1, false},
		{list, list, true}, {list, other, false}, {list, list[:0], false},
		{m, m, true}, {m, map[string]int{}, false}, {p, p, true}, {p, &struct{ x int }{1}, false},
		{struct{ s string }{"a"}, struct{ s string }{"a"}, true},
		{struct{ s []string }{list}, struct{ s []string }{list}, true}, {struct{ s []string }{list}, struct{ s []string }{other}, false},
		{struct{ v any }{list}, struct{ v any }{list}, true}, {struct{ v any }{list}, struct{ v any }{nil}, false}, {struct{ v any }{1}, struct{ v any }{2}, false},
		{struct{ f func() }{}, struct{ f func() }{}, false},
		{func() {}, func() {}, false},
	} {
		require.Equal(t, c.want, sameValue(c.a, c.b), "%v %v", c.a, c.b)
	}
}

// TestTextsBeginOnTheirOwnLine: what an entry or an item begins with must not
// become part of the last line of the one before it.
func TestTextsBeginOnTheirOwnLine(t *testing.T) {
	engine, err := templating.Compile(fstest.MapFS{
		"haproxy.cfg":           {Data: []byte("global # the end")},
		"haproxy.d/backend.cfg": {Data: []byte("backend {{ b }} # it's")},
		"haproxy.d/last.cfg":    {Data: []byte("backend last\n")},
		"maps/hosts.map":        {Data: []byte("{{ b }} x")},
		"general/hosts.json":    {Data: []byte("[{{ b }}]")},
		"haproxy.d/a.cfg":       {Data: []byte("")},
	}, &templating.Options{Vars: map[string]any{"b": ""}})
	require.NoError(t, err)
	each := Each{Var: "b", Items: []any{"one", "two"}}
	for _, pure := range []bool{false, true} {
		templates := &Templates{Engine: engine, Pure: pure, Input: func(context.Context) (*Input, error) {
			return &Input{Vars: map[string]any{"b": ""}, Each: map[string]Each{"haproxy.d/backend.cfg": each, "maps/hosts.map": each, "general/hosts.json": each}}, nil
		}}
		for range 2 {
			rendered, err := templates.Render(t.Context())
			require.NoError(t, err)
			require.Equal(t, "global # the end\nbackend one # it's\nbackend two # it's\nbackend last\n", rendered.Config.Main())
			hosts, _ := rendered.Config.File(dataplane.Map, "hosts.map")
			require.Equal(t, "one x\ntwo x", string(hosts.Content))
			plain, _ := rendered.Config.File(dataplane.General, "hosts.json")
			require.Equal(t, "[one][two]", string(plain.Content))
		}
	}
}

// TestMissingFieldsAreNamed: what a user forgot is an error that says so, and no panic.
func TestMissingFieldsAreNamed(t *testing.T) {
	engine, err := templating.Compile(fstest.MapFS{"haproxy.cfg": {Data: []byte("global\n")}}, nil)
	require.NoError(t, err)
	for want, templates := range map[string]*Templates{
		"render: Templates.Input is missing: it gives the templates their variables": {Engine: engine},
		"render: Templates.Engine is missing: templating.Compile makes it":           {Input: func(context.Context) (*Input, error) { return &Input{}, nil }},
		"render: Templates.Input returned no Input":                                  {Engine: engine, Input: func(context.Context) (*Input, error) { return nil, nil }},
	} {
		_, err := templates.Render(t.Context())
		require.EqualError(t, err, want)
	}
	for _, templates := range []*Templates{{}, nil} {
		require.EqualError(t, templates.Check(), "render: Templates.Engine is missing: templating.Compile makes it")
		_, err := templates.Render(t.Context())
		require.EqualError(t, err, "render: Templates.Engine is missing: templating.Compile makes it")
	}
}
