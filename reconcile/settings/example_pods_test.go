package settings_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/settings"
)

// ExampleLive_FollowPods deploys to the pods that the settings select.
func ExampleLive_FollowPods() {
	bus := eventbus.New(nil)
	live, err := settings.NewLive(settings.LiveOptions{Bus: bus, Program: settings.ProgramOptions{Namespace: "edge"}, Source: k8swatchtest.NewSource(k8swatchtest.Objects(`
apiVersion: v1
kind: Pod
metadata: {name: haproxy-0, namespace: edge, labels: {app: haproxy}}
status: {podIP: 127.0.0.1, containerStatuses: [{name: dataplane, ready: true, state: {running: {}}}]}
---
apiVersion: v1
kind: Secret
metadata: {name: haproxy-credentials, namespace: edge}
data: {dataplane_username: YWRtaW4=, dataplane_password: c2VjcmV0}
`)...)})
	if err != nil {
		panic(err)
	}
	loop, err := live.NewLoop(reconcile.Options{})
	if err != nil {
		panic(err)
	}
	found := make(chan reconcile.InstancesChanged, 10)
	eventbus.Subscribe(bus, func(_ context.Context, d eventbus.Delivery[reconcile.InstancesChanged]) { found <- d.Event })
	bus.Start()
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = live.Run(ctx) })
	wg.Go(func() { _ = loop.Run(ctx) })
	wg.Go(func() { _ = live.FollowPods(ctx) })
	err = live.ApplyYAML(ctx, "settings.yaml", []byte(`
haproxyConfig:
  template: |
    global
        maxconn 1000
dataplane: {podSelector: {matchLabels: {app: haproxy}}, port: 1}
credentialsSecretRef: {name: haproxy-credentials}
`))
	if err != nil {
		panic(err)
	}
	fmt.Println((<-found).Added)
	stop()
	wg.Wait()
	_ = bus.Close(context.Background())
	// Output: [edge/haproxy-0]
}
