package settings_test

import (
	"context"
	"fmt"
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
data: {dataplane_username: YWRtaW4=, dataplane_password: c2VjcmV0, validation_username: djE=, validation_password: djE=}
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
