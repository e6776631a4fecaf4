package render_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing/fstest"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/k8swatch/derive"
	"github.com/hapticsdk/haptic/reconcile/fetch"
	"github.com/hapticsdk/haptic/reconcile/render"
	"github.com/hapticsdk/haptic/templating"
)

// hosted compiles one template with everything that a host gives.
func hosted(text string) *render.Templates {
	layout := dataplane.Layout{Base: "/etc/haproxy"}
	engine, err := templating.Compile(fstest.MapFS{"haproxy.cfg": {Data: []byte(text)}}, &templating.Options{
		Globals: map[string]any{"pathResolver": render.PathResolver{Layout: layout}},
		Vars:    render.HostVars(),
	})
	if err != nil {
		panic(err)
	}
	return &render.Templates{Engine: engine, Layout: layout, Input: func(context.Context) (*render.Input, error) {
		return &render.Input{Vars: render.HostVars()}, nil
	}}
}

func ExampleHostVars() {
	templates := hosted(`frontend web
    bind :80
    errorfile 503 {{ fileRegistry.Register("file", "503.http", "HTTP/1.0 503\r\n\r\nsorry\n") }}
    use_backend %[req.hdr(host),map({{ pathResolver.GetPath("map", "hosts.map") }})]
`)
	rendered, err := templates.Render(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(rendered.Config.Main())
	fmt.Println(rendered.Config.Files()[0].Name)
	// Output:
	// frontend web
	//     bind :80
	//     errorfile 503 /etc/haproxy/general/503.http
	//     use_backend %[req.hdr(host),map(/etc/haproxy/maps/hosts.map)]
	// 503.http
}

func ExamplePathResolver_Path() {
	paths := render.PathResolver{}
	fmt.Println(paths.Path("map", "hosts.map"))
	_, err := paths.Path("file", "../passwd")
	fmt.Println(err != nil)
	// Output:
	// /etc/haproxy/maps/hosts.map <nil>
	// true
}

func ExamplePathResolver_GetPath() {
	fmt.Println(render.PathResolver{}.GetPath("cert", "shop.pem"))
	// Output:
	// /etc/haproxy/ssl/shop.pem
}

func ExampleFileRegistry_Register() {
	// A value can neither add a line to a []string nor a word to a key.
	templates := hosted(`{% var hosts = map[string]string{"shop.example.com": "shop"} %}global
    # {{ fileRegistry.Register("map", "hosts.map", hosts) }}
    # {{ fileRegistry.Register("file", "paths.lst", []string{"/a", "/b"}) }}
`)
	rendered, err := templates.Render(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range rendered.Config.Files() {
		fmt.Printf("%s %s: %q\n", f.Kind, f.Name, f.Content)
	}
	// Output:
	// general paths.lst: "/a\n/b\n"
	// map hosts.map: "shop.example.com shop\n"
}

// A server keeps the name that it has in the deployed configuration.
func ExampleCurrentConfig_Servers() {
	templates := hosted(`backend shop
{% for _, s := range currentConfig.Servers("backend", "shop") %}    server {{ s.Name }} {{ s.Address }}
{% end %}`)
	previous, err := dataplane.NewConfig("backend shop\n    server s7 192.0.2.7:80 check\n")
	if err != nil {
		fmt.Println(err)
		return
	}
	templates.SetPrevious(previous) // such as that of dataplane.Local.Current
	rendered, err := templates.Render(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(rendered.Config.Main())
	// Output:
	// backend shop
	//     server s7 192.0.2.7:80
}

func ExampleCurrentConfig_Section() {
	templates := hosted(`global
{% for _, name := range currentConfig.Sections("resolvers") %}    # {{ name }}: {{ join(currentConfig.Section("resolvers", name).Lines[0], " ") }}
{% end %}    # {{ len(currentConfig.File("map", "hosts.map")) }} bytes
`)
	previous, err := dataplane.NewConfig("resolvers dns\n    nameserver one 192.0.2.53:53\n",
		dataplane.File{Kind: dataplane.Map, Name: "hosts.map", Content: []byte("a b\n")})
	if err != nil {
		fmt.Println(err)
		return
	}
	templates.SetPrevious(previous)
	rendered, err := templates.Render(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(rendered.Config.Main())
	// Output:
	// global
	//     # dns: nameserver one 192.0.2.53:53
	//     # 4 bytes
}

func ExampleTemplates_hTTP() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "192.0.2.0/24") }))
	defer server.Close()
	templates := hosted(`frontend web
    acl blocked src {{ http.Fetch("` + server.URL + `/blocked") }}
`)
	templates.HTTP = &fetch.Store{
		Allow: func(u *url.URL) error { // where templates may fetch from
			if u.Hostname() != "127.0.0.1" {
				return errors.New("not our server")
			}
			return nil
		},
		// OnChange: loop.Trigger. A long-lived controller calls HTTP.Run too.
	}
	rendered, err := templates.Render(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(rendered.Config.Main())
	// The loop tells the templates what was deployed, and they tell the store.
	templates.Settle(rendered.Config, nil)
	for _, r := range templates.HTTP.Resources() {
		fmt.Println(r.Bytes, r.Pending)
	}
	// Output:
	// frontend web
	//     acl blocked src 192.0.2.0/24
	// 12 false
}

func ExamplePostProcessor_Check() {
	fmt.Println(render.PostProcessor{Pattern: "a", Replacement: "b\nc"}.Check())
	// Output:
	// post-processor "a": the replacement "b\nc" has a line feed or another control character
}

func ExampleTemplates_Render() {
	type backend struct{ Name, Address string }
	engine, err := templating.Compile(fstest.MapFS{
		"haproxy.cfg":           {Data: []byte("global\n    maxconn 100\n")},
		"haproxy.d/backend.cfg": {Data: []byte("backend {{ b.Name }}\n    server s1 {{ b.Address }}\n")},
		"maps/hosts.map":        {Data: []byte("{% for h in hosts %}{{ h }} shop\n{% end %}")},
	}, &templating.Options{Vars: map[string]any{"hosts": []string(nil), "b": (*backend)(nil)}})
	if err != nil {
		fmt.Println(err)
		return
	}
	templates := &render.Templates{Engine: engine, Pure: true, Input: func(context.Context) (*render.Input, error) {
		return &render.Input{
			Vars: map[string]any{"hosts": []string{"shop.test"}, "b": (*backend)(nil)},
			Each: map[string]render.Each{"haproxy.d/backend.cfg": {Var: "b", Items: []any{&backend{"shop", "192.0.2.1:80"}}}},
		}, nil
	}}
	rendered, err := templates.Render(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(rendered.Config.Main())
	hosts, _ := rendered.Config.File(dataplane.Map, "hosts.map")
	fmt.Printf("%s", hosts.Content)
	// Output:
	// global
	//     maxconn 100
	// backend shop
	//     server s1 192.0.2.1:80
	// shop.test shop
}

// A variable that is kept in parts is a slice for templates.
func ExampleDeclare() {
	vars := map[string]any{"hosts": derive.OrderedOf([]string{"blog.test", "shop.test"})}
	engine, err := templating.Compile(fstest.MapFS{
		"haproxy.cfg": {Data: []byte("global\n{% for h in hosts %}    # {{ h }}\n{% end %}")},
	}, &templating.Options{Vars: render.Declare(vars)})
	if err != nil {
		fmt.Println(err)
		return
	}
	templates := &render.Templates{Engine: engine, Input: func(context.Context) (*render.Input, error) { return &render.Input{Vars: vars}, nil }}
	rendered, err := templates.Render(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(rendered.Config.Main())
	// Output:
	// global
	//     # blog.test
	//     # shop.test
}

// Templates read a table by calls: only the items whose rows changed are rendered
// again.
func ExampleReads() {
	table, rendered := map[string]string{"a": "1", "b": "1"}, 0
	engine, err := templating.Compile(fstest.MapFS{
		"haproxy.cfg":        {Data: []byte("global\n")},
		"haproxy.d/rows.cfg": {Data: []byte("# {{ key }}: {{ row(key) }}\n")},
	}, &templating.Options{Vars: map[string]any{"key": "", "row": func(string) string { return "" }}})
	if err != nil {
		fmt.Println(err)
		return
	}
	templates := &render.Templates{Engine: engine, Pure: true, Input: func(context.Context) (*render.Input, error) {
		reads := &render.Reads{Vars: []string{"row"}, Same: func(key, revision any) bool { return table[key.(string)] == revision }}
		row := func(key string) string {
			rendered++
			reads.Note(key, table[key])
			return table[key]
		}
		return &render.Input{Vars: map[string]any{"key": "", "row": row}, Reads: reads,
			Each: map[string]render.Each{"haproxy.d/rows.cfg": {Var: "key", Items: []any{"a", "b"}}}}, nil
	}}
	for range 2 {
		made, err := templates.Render(context.Background())
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Print(made.Config.Main())
		fmt.Println(rendered, "rows were read")
		table["b"] = "2"
	}
	// Output:
	// global
	// # a: 1
	// # b: 1
	// 2 rows were read
	// global
	// # a: 1
	// # b: 2
	// 3 rows were read
}
