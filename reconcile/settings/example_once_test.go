package settings_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/settings"
)

// A preflight: what would the settings of a ConfigMap change at the pods of now?
func ExampleLive_FindPods() {
	live, err := settings.NewLive(settings.LiveOptions{Program: settings.ProgramOptions{Namespace: "edge"}, Source: k8swatchtest.NewSource(k8swatchtest.Objects(`
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: edge}
data:
  settings.yaml: |
    haproxyConfig: {template: "global\n"}
    dataplane: {podSelector: {matchLabels: {app: haproxy}}}
---
apiVersion: v1
kind: Secret
metadata: {name: haptic-credentials, namespace: edge}
data: {dataplane_username: YWRtaW4=, dataplane_password: c2VjcmV0}
`)...)})
	if err != nil {
		panic(err)
	}
	loop, err := live.NewLoop(reconcile.Options{})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = live.Run(ctx) })
	defer wg.Wait()
	defer stop()
	if err = live.ApplyConfigMap(ctx, "edge", "settings"); err == nil { // or ApplyFile
		err = live.FindPods(ctx)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	outcomes, err := loop.Preview(ctx)
	fmt.Println(outcomes, err)
	// Output: no HAProxy is found: no pod of namespace edge with the labels app=haproxy has a container dataplane that is ready
}

// running runs a Live until stop is called.
func running(source *k8swatchtest.Source) (live *settings.Live, stop func()) {
	live, err := settings.NewLive(settings.LiveOptions{Source: source, Program: settings.ProgramOptions{Namespace: "edge"}})
	if err != nil {
		panic(err)
	}
	if _, err = live.NewLoop(reconcile.Options{}); err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = live.Run(ctx) })
	wg.Go(func() { _ = live.FollowPods(ctx) })
	return live, func() { cancel(); wg.Wait() }
}

// What is wrong in a file is an error with its line.
func ExampleLive_ApplyFile() {
	dir, err := os.MkdirTemp("", "settings-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "settings.yaml")
	if err := os.WriteFile(file, []byte("haproxyConfig:\n  template: |\n    {{ nobody }}\n"), 0o600); err != nil {
		panic(err)
	}
	live, stop := running(k8swatchtest.NewSource())
	defer stop()
	err = live.ApplyFile(context.Background(), file)
	fmt.Println(strings.ReplaceAll(err.Error(), dir, "DIR"))
	// Output: DIR/settings.yaml:3:8: haproxyConfig.template: undefined: nobody
}

// A ConfigMap that is not there is an error.
func ExampleLive_ApplyConfigMap() {
	live, stop := running(k8swatchtest.NewSource())
	defer stop()
	fmt.Println(live.ApplyConfigMap(context.Background(), "edge", "settings"))
	// Output: settings ConfigMap edge/settings: it does not exist
}

// A loop that begins after AwaitPods renders with what is deployed as currentConfig.
func ExampleLive_AwaitPods() {
	live, stop := running(k8swatchtest.NewSource())
	defer stop()
	ctx := context.Background()
	if err := live.ApplyYAML(ctx, "settings.yaml", []byte("haproxyConfig: {template: \"global\\n\"}")); err != nil { // beside it: FollowFile
		panic(err)
	}
	if live.AwaitPods(ctx) == nil { // and then loop.Run(ctx)
		fmt.Println("nothing is deployed")
	}
	// Output: nothing is deployed
}
