package templating_test

import (
	"context"
	"errors"
	"fmt"
	"testing/fstest"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// The name of a file says what HAProxy reads it for.
func ExampleKindOf() {
	fmt.Println(templating.KindOf("paths_reg.map") == templating.RegMap, templating.KindOf("503.http") == templating.Plain)
	// Output: true true
}

// A value belongs to the objects in its exported fields.
func ExampleOwnersOf() {
	type backend struct {
		Name    string
		Service *corev1.Service
	}
	b := backend{"web", &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"}}}
	fmt.Println(templating.OwnersOf(b)[0] == any(b.Service))
	// Output: true
}

// An editor finds the code of a template.
func ExampleCode() {
	text := "backend {{ name }} {# not this #}"
	for from, to := range templating.Code(text) {
		fmt.Printf("%q\n", text[from:to])
	}
	// Output: " name "
}

// A validator complains about line 3 of the output: who is to blame?
func ExampleEngine_RenderTraced() {
	engine, err := templating.Compile(fstest.MapFS{
		"haproxy.cfg":  {Data: []byte("# made\n{% for _, ing := range ingresses %}\n{{ render \"_backend.cfg\" }}\n{% end %}\n")},
		"_backend.cfg": {Data: []byte("backend all\n  balance nonsense\n")},
	}, &templating.Options{Vars: map[string]any{"ingresses": []*networkingv1.Ingress(nil)}})
	if err != nil {
		fmt.Println(err)
		return
	}
	shop := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	traced, err := engine.RenderTraced(context.Background(), "haproxy.cfg", map[string]any{"ingresses": []*networkingv1.Ingress{shop}})
	if err != nil {
		fmt.Println(err)
		return
	}
	at := traced.Origin(3)
	fmt.Printf("%s:%d:%d: %s\n", at.File, at.Line, at.Column, at.Text)
	fmt.Println("ingress", at.Owners[0].(*networkingv1.Ingress).Name)
	// Output:
	// _backend.cfg:2:3:   balance nonsense
	// ingress web
}

// One render reports every value that is refused, and whose it is.
func ExampleErrors() {
	engine, err := templating.Compile(fstest.MapFS{
		"hosts.map": {Data: []byte("{% for _, ing := range ingresses %}\n{{ ing.Spec.Rules[0].Host }} {{ ing.Name }}\n{% end %}\n")},
	}, &templating.Options{Vars: map[string]any{"ingresses": []*networkingv1.Ingress(nil)}})
	if err != nil {
		fmt.Println(err)
		return
	}
	var list []*networkingv1.Ingress
	for name, host := range map[string]string{"good": "good.example", "evil": "evil.example b_admin\n#"} {
		list = append(list, &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
			Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{Host: host}}}})
	}
	_, err = engine.Render(context.Background(), "hosts.map", map[string]any{"ingresses": list})
	for _, e := range templating.Errors(err) {
		fmt.Println(e.Line, e.Owners[0].(*networkingv1.Ingress).Name)
	}
	fmt.Println(errors.As(err, new(*templating.Error)))
	// Output:
	// 2 evil
	// true
}

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
