package settings_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
	"github.com/hapticsdk/haptic/reconcile/settings"
)

// hear sends what becomes of settings on a channel.
func hear(bus *eventbus.Bus) <-chan string {
	heard := make(chan string, 10)
	eventbus.Subscribe(bus, func(context.Context, eventbus.Delivery[settings.Applied]) {
		heard <- "in use"
	})
	eventbus.Subscribe(bus, func(_ context.Context, d eventbus.Delivery[settings.Invalid]) {
		var wrong settings.Errors
		if errors.As(d.Event.Err, &wrong) {
			heard <- fmt.Sprintf("line %d: %s", wrong[0].Line, wrong[0].Message)
		}
	})
	bus.Start()
	return heard
}

// A file is read now and whenever it changes. What is wrong in it is reported, and
// the settings before stay in use.
func ExampleLive_FollowFile() {
	dir, err := os.MkdirTemp("", "settings-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "settings.yaml")
	write := func(text string) { // in one step, as most editors do
		if err := errors.Join(os.WriteFile(file+".new", []byte(text), 0o600), os.Rename(file+".new", file)); err != nil {
			panic(err)
		}
	}
	write("haproxyConfig: {template: \"global\\n    maxconn 1000\\n\"}\n")

	bus := eventbus.New(nil)
	heard := hear(bus)
	live, err := settings.NewLive(settings.LiveOptions{Source: k8swatchtest.NewSource(), Bus: bus})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = live.Run(ctx) })
	wg.Go(func() {
		if err := live.FollowFile(ctx, file); err != nil { // its folder cannot be watched
			panic(err)
		}
	})
	fmt.Println(<-heard)
	write("haproxyConfg: {template: \"global\\n\"}\n")
	fmt.Println(<-heard)
	rendered, err := live.Render(ctx) // as the loop of Live.NewLoop does
	if err != nil {
		panic(err)
	}
	fmt.Print(rendered.Config.Main())
	stop()
	wg.Wait()
	_ = bus.Close(context.Background())
	// Output:
	// in use
	// line 1: unknown key; did you mean haproxyConfig?
	// global
	//     maxconn 1000
}

// The same from a ConfigMap, whose key is settings.yaml: one that is not there is
// no error, but reported until it comes.
func ExampleLive_FollowConfigMap() {
	bus := eventbus.New(nil)
	heard := hear(bus)
	source := k8swatchtest.NewSource() // a k8swatch.Cluster in a controller
	live, err := settings.NewLive(settings.LiveOptions{Source: source, Bus: bus})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = live.Run(ctx) })
	wg.Go(func() {
		if err := live.FollowConfigMap(ctx, "haptic", "settings"); err != nil {
			panic(err)
		}
	})
	fmt.Println(<-heard)
	source.Apply(&corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "haptic", Name: "settings"},
		Data:       map[string]string{settings.ConfigMapKey: "haproxyConfig: {template: \"global\\n\"}\n"},
	})
	fmt.Println(<-heard)
	fmt.Println(strings.TrimSpace(live.Program().Settings().HAProxyConfig.Template))
	stop()
	wg.Wait()
	_ = bus.Close(context.Background())
	// Output:
	// line 0: it does not exist
	// in use
	// global
}
