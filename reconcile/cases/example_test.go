package cases_test

import (
	"context"
	"fmt"
	"testing/fstest"

	corev1 "k8s.io/api/core/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/cases"
	"github.com/hapticsdk/haptic/reconcile/render"
	"github.com/hapticsdk/haptic/templating"
)

func ExampleRunner_Run() {
	templates := fstest.MapFS{
		"haproxy.cfg": {Data: []byte("global\n{% for s in services %}\nbackend {{ s.Name }}\n    server s1 {{ s.Spec.ClusterIP }}:80\n{% end %}\n")},
		"cases/services.yaml": {Data: []byte(`
name: a Service has a backend
fixtures:
- {apiVersion: v1, kind: Service, metadata: {name: web}, spec: {clusterIP: 192.0.2.1}}
assertions:
- {type: contains, pattern: ^backend web$}
- {type: contains, pattern: 'server s1 192\.0\.2\.7:80', description: its address}
`)}}
	engine, err := templating.Compile(cases.Without(templates), &templating.Options{Vars: map[string]any{"services": []*corev1.Service(nil)}})
	if err != nil {
		fmt.Println(err)
		return
	}
	runner := &cases.Runner{Renderer: func(ctx context.Context, in *cases.Input) (reconcile.Renderer, error) {
		services, err := k8swatch.New(in.Source, corev1.SchemeGroupVersion.WithResource("services"), nil)
		if err != nil {
			return nil, err
		}
		watchers := k8swatch.NewGroup(nil)
		if err := watchers.Add(services); err != nil {
			return nil, err
		}
		if err := in.Sync(ctx, watchers); err != nil {
			return nil, err
		}
		return &render.Templates{Engine: engine, Input: func(context.Context) (*render.Input, error) {
			return &render.Input{Vars: map[string]any{"services": k8swatch.Read[*corev1.Service](services.Snapshot()).List()}}, nil
		}}, nil
	}}
	folder, _ := templates.Sub(cases.Folder)
	cases, err := cases.Read(folder)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(runner.Run(context.Background(), cases))
	// Output:
	// FAIL  a Service has a backend
	//     services.yaml:7: its address (contains haproxy.cfg /server s1 192\.0\.2\.7:80/): no match in haproxy.cfg
	// 1 case: 0 passed, 1 failed
}

func ExampleParse() {
	_, err := cases.Parse("web.yaml", []byte(`name: routing
assertions:
- {type: contains, patern: backend}
- {type: match_count, pattern: (, expected: many}
`))
	fmt.Println(err)
	// Output:
	// web.yaml:3:20: assertions[0].patern: case "routing": unknown key; did you mean pattern?
	// web.yaml:4:32: assertions[1].pattern: case "routing": error parsing regexp: missing closing ): `(?m)(`
	// web.yaml:4:45: assertions[1].expected: case "routing": "many" is not a count: write how many matches are expected, 0 or more
}

func ExampleRunner_Check() {
	runner := &cases.Runner{Renderer: func(context.Context, *cases.Input) (reconcile.Renderer, error) {
		return fixed("global\n    maxconn 100\n"), nil
	}}
	cases, _ := cases.Parse("c.yaml", []byte("name: a limit\nassertions:\n- {type: contains, pattern: maxconn 200}\n"))
	fmt.Println(runner.Check(context.Background(), cases))
	// Output:
	// 1 case: 0 passed, 1 failed
	// FAIL  a limit
	//     c.yaml:3: contains haproxy.cfg /maxconn 200/: no match in haproxy.cfg
}

func ExampleRead() {
	found, err := cases.Read(fstest.MapFS{"hosts.yaml": {Data: []byte(`
name: nothing at all is valid
assertions:
- type: haproxy_valid
`)}})
	fmt.Println(err)
	for _, c := range found {
		fmt.Println(c.File, c.Name)
	}
	// Output:
	// <nil>
	// hosts.yaml nothing at all is valid
}

// fixed renders the same configuration each time.
func fixed(text string) reconcile.Renderer {
	return reconcile.RendererFunc(func(context.Context) (*reconcile.Rendered, error) {
		cfg, err := dataplane.NewConfig(text)
		return &reconcile.Rendered{Config: cfg}, err
	})
}

func ExampleWithout() {
	folder := fstest.MapFS{"haproxy.cfg": {Data: []byte("global\n")}, "cases/hosts.yaml": {Data: []byte("name: hosts\n")}}
	engine, err := templating.Compile(cases.Without(folder), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(engine.Entries())
	// Output: [haproxy.cfg]
}

func ExampleCheckNames() {
	fmt.Println(cases.CheckNames([]cases.Case{{Name: "hosts", File: "a.yaml", Line: 1}, {Name: "hosts", File: "b.yaml", Line: 3}}))
	// Output: b.yaml:3:1: case "hosts": there is one of this name at a.yaml:1
}
