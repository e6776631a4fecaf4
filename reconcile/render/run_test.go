package render

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/templating"
)

// site is a set of templates, rendered with the variables of the host.
func site(t *testing.T, files map[string]string, vars map[string]any, in *Input) *Templates {
	t.Helper()
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	all := HostVars()
	for name, v := range vars {
		all[name] = v
	}
	layout := dataplane.Layout{Base: "/srv/haproxy"}
	engine, err := templating.Compile(fsys, &templating.Options{Vars: all,
		Globals: map[string]any{"pathResolver": PathResolver{Layout: layout}}})
	require.NoError(t, err)
	if in == nil {
		in = &Input{}
	}
	in.Vars = all
	return &Templates{Engine: engine, Layout: layout, Input: func(context.Context) (*Input, error) { return in, nil }}
}

func mustRender(t *testing.T, templates *Templates) *dataplane.Config {
	t.Helper()
	rendered, err := templates.Render(t.Context())
	require.NoError(t, err)
	return rendered.Config
}

func TestPaths(t *testing.T) {
	for _, c := range []struct{ call, want string }{
		{`pathResolver.GetPath("map", "hosts.map")`, "/srv/haproxy/maps/hosts.map"},
		{`pathResolver.GetPath("cert", "shop.pem")`, "/srv/haproxy/ssl/shop.pem"},
		{`pathResolver.GetPath("ca", "shop.pem")`, "/srv/haproxy/general/shop.pem"},
		{`pathResolver.GetPath("crt-list", "certs.txt")`, "/srv/haproxy/general/certs.txt"},
		{`pathResolver.GetPath("file", "503.http")`, "/srv/haproxy/general/503.http"},
		{`pathResolver.GetPath("page", "503.http")`, `error: "page" is no kind of file`},
		{`pathResolver.GetPath("hosts.map", "map")`, "/srv/haproxy/maps/hosts.map"}, // the name first
		{`pathResolver.GetPath("503.http", "page")`, `error: and neither is "page"`},
		{`pathResolver.GetPath("ca", "file")`, "/srv/haproxy/general/file"}, // a file of the name of a kind
		{`pathResolver.GetPath("file", "../../etc/passwd")`, "error: only letters"},
		{`pathResolver.GetPath("map", "a b.map")`, "error: only letters"},
		{`pathResolver.GetPath("map", "hosts.txt")`, "error: must end in .map"},
		{`pathResolver.GetPath("file", "")`, "error: the name is empty"},
		{`pathResolver.GetPath("file", "x.http\n")`, "error: only letters"},
	} {
		rendered, err := site(t, map[string]string{"haproxy.cfg": "global\n  # {{ " + c.call + " }}\n"}, nil, nil).Render(t.Context())
		if want, wrong := strings.CutPrefix(c.want, "error: "); wrong {
			var at *templating.Error
			require.ErrorAs(t, err, &at, c.call)
			require.Equal(t, 2, at.Line, c.call)
			require.ErrorContains(t, err, want)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, "global\n  # "+c.want+"\n", rendered.Config.Main())
	}
}

func TestRegister(t *testing.T) {
	for name, c := range map[string]struct{ call, kind, file, content, err string }{
		"a text":             {call: `"file", "a.http", "x\ny"`, kind: "general", file: "a.http", content: "x\ny"},
		"what a macro wrote": {call: `"file", "a.http", text()`, kind: "general", file: "a.http", content: "macro 1\n"},
		"a map of a macro":   {call: `"map", "a.map", text()`, kind: "map", file: "a.map", content: "macro 1\n"},
		"a map of raw":       {call: `"map", "a.map", raw("a b\nc d\n")`, kind: "map", file: "a.map", content: "a b\nc d\n"},
		"a map of one line":  {call: `"map", "a.map", "a b\n"`, kind: "map", file: "a.map", content: "a b\n"},
		"raw":                {call: `"file", "a.http", raw("x")`, kind: "general", file: "a.http", content: "x"},
		"raw expressions":    {call: `"map", "a_reg.map", raw(".* b\n")`, kind: "map", file: "a_reg.map", content: ".* b\n"},
		"a macro of a value": {call: `"map", "a.map", value("a.b-c")`, kind: "map", file: "a.map", content: "a.b-c"},
		"bytes":              {call: `"cert", "a.pem", []byte("x")`, kind: "certificate", file: "a.pem", content: "x"},
		"lines":              {call: `"crt-list", "a.txt", []string{"a b", "c"}`, kind: "crt-list", file: "a.txt", content: "a b\nc\n"},
		"no lines":           {call: `"map", "a.map", []string{}`, kind: "map", file: "a.map"},
		"a map":              {call: `"map", "a.map", map[string]string{"b": "2 3", "a": ""}`, kind: "map", file: "a.map", content: "a\nb 2 3\n"},
		"twice the same":     {call: `"file", "a.http", "x") + fileRegistry.Register("file", "a.http", "x"`, kind: "general", file: "a.http", content: "x"},

		"two contents":                      {call: `"file", "a.http", "x") + fileRegistry.Register("file", "a.http", "y"`, err: `general "a.http": template haproxy.cfg makes another content`},
		"two kinds of one path":             {call: `"file", "a.pem", "x") + fileRegistry.Register("ca", "a.pem", "x"`, err: "another kind of file"},
		"one of the input":                  {call: `"file", "given.http", "y"`, err: "than the input made"},
		"one of an entry":                   {call: `"map", "entry.map", "a b\n"`, err: "template maps/entry.map makes another content, or another kind of file, than template haproxy.cfg"},
		"an unknown kind":                   {call: `"page", "a.http", "x"`, err: "no kind of file"},
		"a folder":                          {call: `"file", "../a.http", "x"`, err: "only letters"},
		"a map, a string of two lines":      {call: `"map", "a.map", "a b\nc d\n"`, err: "one line only"},
		"a map, bytes of two lines":         {call: `"map", "a.map", []byte("a b\nc d")`, err: "one line only"},
		"a crt-list, a string of two lines": {call: `"crt-list", "a.txt", "a\nb"`, err: "one line only"},
		"no content":                        {call: `"file", "a.http", 7`, err: "not a int"},
		"nil":                               {call: `"file", "a.http", nil`, err: "not a <nil>"},
		"a line feed in a line":             {call: `"map", "a.map", []string{"a b\nc d"}`, err: `control character '\n'`},
		"a key of two words":                {call: `"map", "a.map", map[string]string{"a b": "c"}`, err: "white space"},
		"a key that comments":               {call: `"map", "a.map", map[string]string{"#a": "c"}`, err: "cannot start with"},
		"a value of two lines":              {call: `"map", "a.map", map[string]string{"a": "b\nc"}`, err: "control character"},
		"entries for no map":                {call: `"file", "a.http", map[string]string{"a": "b"}`, err: "content of a map"},
		"a NUL in a map":                    {call: `"map", "a.map", "a b\x00\n"`, err: "line 1 has the control character"},
		"a macro of values for haproxy.cfg": {call: `"map", "a.map", value("a b")`, err: "by a template of its own"},
		"a macro of quotes":                 {call: `"map", "a.map", quoted("a b")`, err: "by a template of its own"},
		"a map of regular expressions":      {call: `"map", "a_reg.map", map[string]string{".*": "b"}`, err: "not escaped for a map of regular expressions"},
		"a list of regular expressions":     {call: `"file", "a_reg.lst", []string{".*"}`, err: "not escaped for a list of regular expressions"},
		"a log-format string":               {call: `"file", "a_lf.html", "%[env(HOME)]"`, err: "not escaped for a log-format string"},
		"of no known use":                   {call: `"file", "a.dat", "x"`, err: "of no known use"},
		"an option in a crt-list":           {call: `"crt-list", "a.txt", []string{"/c/a.pem [ca-file /x] h"}`, err: "has brackets"},
		"a path that leads up":              {call: `"crt-list", "a.txt", []string{"/c/../a.pem"}`, err: "two dots"},
		"a line too long":                   {call: `"map", "a.map", long`, err: "16384 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			text := "global\n{% macro text() %}macro {{ 1 }}\n{% end %}{% macro value(x string) %}{{ x }}{% end %}{% macro quoted(x string) %}'{{ x }}'{% end %}\n# {{ fileRegistry.Register(" + c.call + ") }}\n"
			in := &Input{Files: []dataplane.File{{Kind: dataplane.General, Name: "given.http", Content: []byte("x")}}}
			templates := site(t, map[string]string{"haproxy.cfg": text, "maps/entry.map": "a c\n"},
				map[string]any{"long": strings.Repeat("a", 16383) + "\n"}, in)
			rendered, err := templates.Render(t.Context())
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				var conflict *FileConflictError
				var at *templating.Error
				require.ErrorAs(t, err, &at)
				if errors.As(err, &conflict) && conflict.Other == "template maps/entry.map" { // which is rendered later
					require.Equal(t, "maps/entry.map", at.File)
				} else {
					require.Equal(t, 4, at.Line)
				}
				return
			}
			require.NoError(t, err)
			f, ok := rendered.Config.File(dataplane.FileKind(c.kind), c.file)
			require.True(t, ok)
			require.Equal(t, c.content, string(f.Content))
			require.Len(t, rendered.Config.Files(), 3)
		})
	}
}

func TestRegisterWhatIsThereAlready(t *testing.T) {
	in := &Input{Files: []dataplane.File{{Kind: dataplane.General, Name: "given.http", Content: []byte("x")}}}
	cfg := mustRender(t, site(t, map[string]string{
		"haproxy.cfg":    "global # {{ fileRegistry.Register(\"file\", \"given.http\", \"x\") }} {{ fileRegistry.Register(\"map\", \"entry.map\", \"a b\\n\") }}\n",
		"maps/entry.map": "a b\n",
	}, nil, in))
	require.Len(t, cfg.Files(), 2)
	require.Equal(t, "global # /srv/haproxy/general/given.http /srv/haproxy/maps/entry.map\n", cfg.Main())
}

// TestRememberedTextsKeepTheirFiles: with Pure, what is not rendered again must
// still have its files, and one that goes takes its file with it.
func TestRememberedTextsKeepTheirFiles(t *testing.T) {
	type backend struct{ Name, Page string }
	in := &Input{}
	templates := site(t, map[string]string{
		"haproxy.cfg":     "global\n# {{ fileRegistry.Register(\"file\", \"main.http\", \"main\") }}\n",
		"haproxy.d/b.cfg": "backend {{ b.Name }}\n  errorfile 503 {{ fileRegistry.Register(\"file\", b.Name + \".http\", b.Page) }}\n",
	}, map[string]any{"b": (*backend)(nil)}, in)
	templates.Pure = true
	render := func(items ...any) (*dataplane.Config, error) {
		in.Each = map[string]Each{"haproxy.d/b.cfg": {Var: "b", Items: items}}
		rendered, err := templates.Render(t.Context())
		if err != nil {
			return nil, err
		}
		fresh := &Templates{Engine: templates.Engine, Layout: templates.Layout, Input: templates.Input}
		again, err := fresh.Render(t.Context())
		require.NoError(t, err)
		require.Equal(t, again.Config.Hash(), rendered.Config.Hash(), "what is remembered is what would be rendered")
		return rendered.Config, nil
	}

	one, two := &backend{"one", "1"}, &backend{"two", "2"}
	cfg, err := render(one, two)
	require.NoError(t, err)
	require.Len(t, cfg.Files(), 3)
	cfg, err = render(two)
	require.NoError(t, err)
	require.Len(t, cfg.Files(), 2)
	_, gone := cfg.File(dataplane.General, "one.http")
	require.False(t, gone)

	rendered, err := templates.Render(t.Context())
	require.NoError(t, err)
	origin, err := rendered.Origins.Origin(t.Context(), dataplane.Position{Kind: dataplane.General, Name: "two.http", Line: 1})
	require.NoError(t, err)
	require.Equal(t, reconcile.Origin{TemplateLine: reconcile.TemplateLine{File: "haproxy.d/b.cfg"}, Owners: []any{two}}, origin, "what a file was registered for")

	// A new item in conflict with one that is remembered.
	_, err = render(two, &backend{"two", "3"})
	var conflict *FileConflictError
	require.ErrorAs(t, err, &conflict)
	require.Equal(t, "template haproxy.d/b.cfg", conflict.First)
	// And one that is remembered in conflict with one rendered before it.
	_, err = render(&backend{"two", "3"}, two)
	require.ErrorAs(t, err, &conflict)
	cfg, err = render(one, two)
	require.NoError(t, err)
	require.Len(t, cfg.Files(), 3)
}

// TestPureEntriesOfTheHost counts what is rendered again.
func TestPureEntriesOfTheHost(t *testing.T) {
	type backend struct{ Name string }
	renders := map[string]int{}
	in := &Input{}
	fsys := fstest.MapFS{
		"haproxy.cfg":     {Data: []byte("{% count(`main`) %}global\n")},
		"haproxy.d/b.cfg": {Data: []byte("{% count(b.Name) %}backend {{ b.Name }}\n{% for _, s := range currentConfig.Servers(`backend`, b.Name) %}  server {{ s.Name }} {{ s.Address }}\n{% end %}  server new 192.0.2.1:80\n")},
	}
	vars := HostVars()
	vars["b"] = (*backend)(nil)
	engine, err := templating.Compile(fsys, &templating.Options{Vars: vars, Globals: map[string]any{"count": func(s string) { renders[s]++ }}})
	require.NoError(t, err)
	in.Vars = vars
	templates := &Templates{Engine: engine, Pure: true, Input: func(context.Context) (*Input, error) { return in, nil }}
	in.Each = map[string]Each{"haproxy.d/b.cfg": {Var: "b", Items: []any{&backend{"one"}, &backend{"two"}}}}
	render := func() map[string]int {
		clear(renders)
		mustRender(t, templates)
		return renders
	}
	config := func(text string) *dataplane.Config {
		cfg, err := dataplane.NewConfig(text)
		require.NoError(t, err)
		return cfg
	}
	require.Equal(t, map[string]int{"main": 1, "one": 1, "two": 1}, render())
	require.Empty(t, render())
	templates.SetPrevious(config("backend one\n  server a 192.0.2.7:80\n"))
	require.Equal(t, map[string]int{"one": 1, "two": 1}, render(), "there is one now")
	require.Empty(t, render())
	templates.SetPrevious(config("backend one\n  server a 192.0.2.7:80\nbackend two\n  server b 192.0.2.8:80\n"))
	require.Equal(t, map[string]int{"two": 1}, render(), "only what it asked for counts")
	templates.SetPrevious(config("global\n  maxconn 7\nbackend one\n  server a 192.0.2.7:80\nbackend two\n  server b 192.0.2.8:80\n"))
	require.Empty(t, render())
	templates.SetPrevious(nil)
	require.Equal(t, map[string]int{"one": 1, "two": 1}, render())
}

// TestSlotsSettle: a template that keeps the slots of the deployed configuration
// comes to rest, and an older deployment that ends late does not move it.
func TestSlotsSettle(t *testing.T) {
	addresses := []string{"192.0.2.1:80"}
	in := &Input{}
	templates := site(t, map[string]string{"haproxy.cfg": `{% var held = map[string]string{} %}{% for _, s := range currentConfig.Servers("backend", "web") %}{% held[s.Address] = s.Name %}{% end %}backend web
{% for i, a := range addresses %}  server {{ coalesce(held[a], sprintf("s%d", i)) }} {{ a }}
{% end %}`}, map[string]any{"addresses": []string(nil)}, in)
	render := func() *dataplane.Config {
		in.Vars["addresses"] = addresses
		return mustRender(t, templates)
	}
	first := render()
	require.Equal(t, "backend web\n  server s0 192.0.2.1:80\n", first.Main())
	require.False(t, templates.Settle(first, nil))
	addresses = []string{"192.0.2.2:80", "192.0.2.1:80"}
	second := render()
	require.Contains(t, second.Main(), "server s0 192.0.2.1:80")
	templates.Settle(second, nil)
	require.Equal(t, second.Hash(), render().Hash(), "a fixed point")
	templates.Settle(first, nil) // of an instance that was slow
	require.Equal(t, second.Hash(), render().Hash())
	other, err := dataplane.NewConfig("backend web\n  server s9 192.0.2.1:80\n")
	require.NoError(t, err)
	templates.Settle(other, nil) // that nobody rendered
	require.Equal(t, second.Hash(), render().Hash())
	templates.SetPrevious(other)
	require.Contains(t, render().Main(), "server s9 192.0.2.1:80")
}
