package templating_test

import (
	"context"
	"errors"
	"fmt"
	"testing/fstest"

	"github.com/hapticsdk/haptic/templating"
)

type backend struct {
	Name    string
	Servers []string
	Note    string
}

func ExampleEngine_Render() {
	templates := fstest.MapFS{
		"haproxy.cfg": {Data: []byte(`{% for _, b := range backends %}
# {{ b.Note }}
backend {{ b.Name }}
  http-request set-header X-Note "{{ b.Note }}"
{% for i, s := range b.Servers %}
  server s{{ i }} {{ s }}
{% end for %}
{% end for %}
`)},
	}
	engine, err := templating.Compile(templates, &templating.Options{
		Vars: map[string]any{"backends": []backend(nil)},
	})
	if err != nil {
		panic(err)
	}
	text, err := engine.Render(context.Background(), "haproxy.cfg", map[string]any{
		"backends": []backend{{Name: "shop", Servers: []string{"10.0.0.1:80"}, Note: `say "hi" to $HOME`}},
	})
	if err != nil {
		panic(err)
	}
	fmt.Print(text)
	// Output:
	// # say "hi" to $HOME
	// backend shop
	//   http-request set-header X-Note "say \"hi\" to \$HOME"
	//   server s0 10.0.0.1:80
}

func ExampleEngine_Render_refused() {
	engine, err := templating.Compile(fstest.MapFS{
		"hosts.map": {Data: []byte("{{ host }} shop\n")},
	}, &templating.Options{Vars: map[string]any{"host": ""}})
	if err != nil {
		panic(err)
	}
	_, err = engine.Render(context.Background(), "hosts.map", map[string]any{"host": "a.example x\nb.example"})
	fmt.Println(err)
	// Output:
	// hosts.map:1:4: refused in the key of a map entry: "a.example x\nb.example": control character '\n'
	// 	{{ host }} shop
}

func ExampleCompile() {
	_, err := templating.Compile(fstest.MapFS{
		"haproxy.cfg": {Data: []byte("global\nbackend {{ first.Nmae }}\n")},
	}, &templating.Options{Vars: map[string]any{"first": backend{}}})
	var e *templating.Error
	if errors.As(err, &e) {
		fmt.Println(e.File, e.Line, e.Message)
	}
	// Output:
	// haproxy.cfg 2 first.Nmae undefined (type templating_test.backend has no field or method Nmae)
}

func ExampleEngine_Entries() {
	engine, err := templating.Compile(fstest.MapFS{
		"haproxy.cfg": {Data: []byte(`{{ render "_backends.cfg" }}`)},
		"hosts.map":   {},
		// Not an entry, because of its name.
		"_backends.cfg": {Data: []byte("backend shop\n")},
	}, nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(engine.Entries())
	// Output:
	// [haproxy.cfg hosts.map]
}

func ExampleEngine_Uses() {
	engine, err := templating.Compile(fstest.MapFS{
		"hosts.map": {Data: []byte("{% for h in hosts %}{{ h }} {{ h }}\n{% end %}")},
	}, &templating.Options{Vars: map[string]any{"hosts": []string(nil), "certificates": []string(nil)}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(engine.Uses("hosts.map"))
	// Output:
	// [hosts]
}

func ExampleEngine_RenderEach() {
	type backend struct{ Name, Address string }
	engine, err := templating.Compile(fstest.MapFS{
		"backend.cfg": {Data: []byte("backend {{ b.Name }}\n    server s1 {{ b.Address }}\n")},
	}, &templating.Options{Vars: map[string]any{"b": (*backend)(nil)}})
	if err != nil {
		fmt.Println(err)
		return
	}
	texts, err := engine.RenderEach(context.Background(), "backend.cfg", "b", []any{
		&backend{"shop", "192.0.2.1:80"}, &backend{"blog", "192.0.2.2:80"},
	}, map[string]any{"b": (*backend)(nil)})
	fmt.Printf("%q %v\n", texts, err)
	// Output:
	// ["backend shop\n    server s1 192.0.2.1:80\n" "backend blog\n    server s1 192.0.2.2:80\n"] <nil>
}
