package templating_test

import (
	"context"
	"fmt"
	"testing/fstest"

	"github.com/hapticsdk/haptic/templating"
)

// A library of snippets: who adds a file to the folder changes no template.
func Example_snippets() {
	engine, err := templating.Compile(fstest.MapFS{
		"haproxy.cfg":                  {Data: []byte("{% for _, b := range backends %}\nbackend {{ b.Name }}\n{{ indent(include_all(`backend/*`, b), 4) }}{% end %}")},
		"snippets/backend/10-mode.cfg": {Data: []byte("mode http\n")},
		"snippets/backend/20-note.cfg": {Data: []byte("{% if has(data, `Note`) %}\nhttp-request set-header X-Note \"{{ dig(data, `Note`) }}\"\n{% end %}")},
	}, &templating.Options{Vars: map[string]any{"backends": []backend(nil)}})
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := engine.Render(context.Background(), "haproxy.cfg", map[string]any{
		"backends": []backend{{Name: "shop", Note: `say "hi"`}}})
	fmt.Print(text)
	fmt.Println(err)
	// Output:
	// backend shop
	//     mode http
	//     http-request set-header X-Note "say \"hi\""
	// <nil>
}

// Typed objects are sorted by a path and keep their type; unstructured ones are
// read by one.
func Example_lists() {
	engine, err := templating.Compile(fstest.MapFS{"haproxy.cfg": {Data: []byte(`{% for _, i := range order_by(backends, "Name:desc") %}
# {{ backends[i].Name }}
{% end %}
{% for _, g := range group_by(routes, "spec.class") %}
# {{ g.Key }} {{ len(g.Items) }}
{% end %}
`)}}, &templating.Options{Vars: map[string]any{"backends": []backend(nil), "routes": []any(nil)}})
	if err != nil {
		fmt.Println(err)
		return
	}
	route := func(class string) any { return map[string]any{"spec": map[string]any{"class": class}} }
	text, err := engine.Render(context.Background(), "haproxy.cfg", map[string]any{
		"backends": []backend{{Name: "a"}, {Name: "b"}},
		"routes":   []any{route("public"), route("internal"), route("public")},
	})
	fmt.Print(text)
	fmt.Println(err)
	// Output:
	// # b
	// # a
	// # internal 1
	// # public 2
	// <nil>
}

// A Go function of the host that takes the context of the render.
func ExampleOptions_globals() {
	engine, err := templating.Compile(fstest.MapFS{"haproxy.cfg": {Data: []byte("# {{ lookup(`shop`) }}\n")}}, &templating.Options{
		Globals: map[string]any{
			"lookup": func(ctx context.Context, name string) (string, error) { return name + ".example", ctx.Err() },
		}})
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := engine.Render(context.Background(), "haproxy.cfg", nil)
	fmt.Print(text)
	fmt.Println(err)
	// Output:
	// # shop.example
	// <nil>
}

func ExampleOptions_debug() {
	engine, err := templating.Compile(fstest.MapFS{"haproxy.cfg": {Data: []byte("global\n{% debug(len(words)) %}\n")}}, &templating.Options{
		Vars:  map[string]any{"words": []string(nil)},
		Debug: func(at templating.Origin, value any) { fmt.Printf("%s:%d: %v\n", at.File, at.Line, value) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := engine.Render(context.Background(), "haproxy.cfg", map[string]any{"words": []string{"a", "b"}})
	fmt.Print(text)
	fmt.Println(err)
	// Output:
	// haproxy.cfg:2: 2
	// global
	// <nil>
}

func ExampleWithShared() {
	engine, err := templating.Compile(fstest.MapFS{
		"haproxy.cfg": {Data: []byte("# {{ shared.ComputeIfAbsent(`answer`, func() any { return slow() }) }}\n")},
	}, &templating.Options{Globals: map[string]any{"slow": func() int { fmt.Println("computed"); return 42 }}})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := templating.WithShared(context.Background(), templating.NewShared())
	for range 2 {
		text, err := engine.Render(ctx, "haproxy.cfg", nil)
		fmt.Print(text)
		if err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// computed
	// # 42
	// # 42
}
