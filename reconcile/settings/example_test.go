package settings_test

import (
	"context"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/settings"
)

const exampleSettings = `
watchedResources:
  services: {apiVersion: v1, resources: services}
haproxyConfig:
  template: |
    {% for svc in resources.services.List() %}
    backend {{ svc.Namespace }}_{{ svc.Name }}
    {% end %}
`

// ExampleParse reports all that is wrong, each with its line.
func ExampleParse() {
	_, err := settings.Parse("settings.yaml", []byte(`
watchedResource: {}
haproxyConfig: {template: global}
reconcile: {debounceInterval: 500}
`))
	fmt.Println(err)
	// Output:
	// settings.yaml:2:1: watchedResource: unknown key; did you mean watchedResources?
	// settings.yaml:4:31: reconcile.debounceInterval: a duration with its unit wanted, such as 500ms or 2s, in place of 500
}

// ExampleParseProgram reports a mistake in a template with its line in the
// settings.
func ExampleParseProgram() {
	text := strings.Replace(exampleSettings, "svc.Name }}", "svc.Nmae }}", 1)
	_, err := settings.ParseProgram("settings.yaml", []byte(text), nil)
	fmt.Println(err)
	// Output:
	// settings.yaml:7:39: haproxyConfig.template: svc.Nmae undefined (type *v1.Service has no field or method Nmae)
}

// ExampleNewProgram compiles settings that were made in Go.
func ExampleNewProgram() {
	program, err := settings.NewProgram(&settings.Settings{
		HAProxyConfig: settings.Template{Template: "global\n    maxconn {{ limit() }}\n"},
	}, &settings.ProgramOptions{Globals: map[string]any{"limit": func() int { return 1000 }}})
	if err != nil {
		panic(err)
	}
	rendered, err := program.Render(context.Background(), nil)
	if err != nil {
		panic(err)
	}
	fmt.Print(rendered.Config.Main())
	// Output:
	// global
	//     maxconn 1000
}

// ExampleFromConfigMap reads settings from the key settings.yaml.
func ExampleFromConfigMap() {
	settings, err := settings.FromConfigMap(&corev1.ConfigMap{Data: map[string]string{
		settings.ConfigMapKey: "haproxyConfig: {template: global}\ndataplane: {port: 5556}\n",
	}})
	if err != nil {
		panic(err)
	}
	fmt.Println(settings.Dataplane.Port, settings.Defaulted().Reconcile["minDeploymentInterval"].Duration)
	// Output: 5556 2s
}

// ExampleSchema is for editors: settings.schema.json has the same text.
func ExampleSchema() {
	fmt.Println(strings.Contains(string(settings.Schema()), "https://json-schema.org/draft/2020-12/schema"))
	// Output: true
}

// ExampleLive applies settings, and others that do not compile: those before
// stay in use.
func ExampleLive() {
	source := k8swatchtest.NewSource(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}})
	houseRules := func(context.Context, string, *settings.Settings) error { return nil }
	live, err := settings.NewLive(settings.LiveOptions{Source: source, Check: houseRules})
	if err != nil {
		panic(err)
	}
	// The loop that renders with the settings in use; here it is only asked for one
	// render.
	loop, err := live.NewLoop(reconcile.Options{Validator: reconcile.ValidatorFunc(func(context.Context, *dataplane.Config) error { return nil })})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = live.Run(ctx) })

	fmt.Println(live.ApplyYAML(ctx, "settings.yaml", []byte(exampleSettings)))
	fmt.Println(live.ApplyYAML(ctx, "settings.yaml", []byte("maps: {}\n")))
	if _, err := loop.Once(ctx); err != nil {
		panic(err)
	}
	fmt.Print(strings.TrimSpace(loop.Validated().Main()))
	stop()
	wg.Wait()
	// Output:
	// <nil>
	// settings.yaml:1:1: haproxyConfig: missing
	// backend shop_web
}
