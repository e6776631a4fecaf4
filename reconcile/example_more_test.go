package reconcile_test

import (
	"context"
	"fmt"
	"testing/fstest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/templating"
)

// fixed renders the same configuration each time.
func fixed(text string) reconcile.Renderer {
	return reconcile.RendererFunc(func(context.Context) (*reconcile.Rendered, error) {
		cfg, err := dataplane.NewConfig(text)
		return &reconcile.Rendered{Config: cfg}, err
	})
}

func ExampleLoop_Run() {
	bus := eventbus.New(nil)
	ctx, cancel := context.WithCancel(context.Background())
	eventbus.Subscribe(bus, func(_ context.Context, d eventbus.Delivery[reconcile.InstanceDeployed]) {
		fmt.Println(d.Event.Instance, "has configuration", d.Event.ID)
		cancel()
	})
	bus.Start()
	loop, err := reconcile.New(reconcile.Options{
		Renderer: fixed("global\n    maxconn 100\n"),
		Targets:  []reconcile.Target{&printer{}},
		Bus:      bus,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	loop.Trigger("start")
	_ = loop.Run(ctx) // until the context ends
	_ = bus.Close(context.Background())
	fmt.Println("ready:", loop.State().Validated != "")
	// Output:
	// printer has configuration 1
	// ready: true
}

func ExampleLoop_Preview() {
	loop, err := reconcile.New(reconcile.Options{
		Renderer: fixed("global\n    maxconn 100\n"),
		Targets:  []reconcile.Target{&printer{}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	outcomes, err := loop.Preview(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(outcomes[0].Plan)
	// Output:
	// + global (reload: HAProxy reads new sections only at a reload)
	// Plan: 1 to create, 0 to update, 0 to delete; one reload.
}

func ExamplePodEndpoints() {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "lb", Name: "haproxy-0"},
		Status: corev1.PodStatus{PodIP: "192.0.2.7", ContainerStatuses: []corev1.ContainerStatus{
			{Name: "dataplane", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
		}},
	}
	credentials := reconcile.Credentials{DataplaneUsername: "admin", DataplanePassword: "secret"}
	instances := reconcile.PodEndpoints([]*corev1.Pod{pod}, credentials, reconcile.PodOptions{})
	fmt.Println(instances[0].Name, instances[0].URL)

	// Clients makes targets of them, and keeps a client while nothing changes.
	var clients reconcile.Clients
	targets, err := clients.Targets(instances)
	fmt.Println(len(targets), err)
	// Output:
	// lb/haproxy-0 http://192.0.2.7:5555
	// 1 <nil>
}

func ExampleCredentialsFromEnv() {
	env := map[string]string{"HAPTIC_DATAPLANE_USERNAME": "admin", "HAPTIC_DATAPLANE_PASSWORD": "secret"}
	credentials, err := reconcile.CredentialsFromEnv(func(key string) string { return env[key] })
	fmt.Println(credentials, err)
	// Output:
	// credentials (secret) <nil>
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
	templates := &reconcile.Templates{Engine: engine, Pure: true, Input: func(context.Context) (*reconcile.Input, error) {
		return &reconcile.Input{
			Vars: map[string]any{"hosts": []string{"shop.test"}, "b": (*backend)(nil)},
			Each: map[string]reconcile.Each{"haproxy.d/backend.cfg": {Var: "b", Items: []any{&backend{"shop", "192.0.2.1:80"}}}},
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

func ExampleLoop_Once() {
	target := &printer{}
	loop, err := reconcile.New(reconcile.Options{Renderer: fixed("global\n    maxconn 100\n"), Targets: []reconcile.Target{target}})
	if err != nil {
		fmt.Println(err)
		return
	}
	outcomes, err := loop.Once(context.Background())
	fmt.Println(outcomes[0].Instance, outcomes[0].Plan.Summary(), err)
	// Output:
	// printer 1 to create, 0 to update, 0 to delete; one reload <nil>
}
