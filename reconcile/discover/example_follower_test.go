package discover_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/discover"
)

// A fleet: the pods with a label in one namespace, opened with a Secret.
func ExampleFollower() {
	cluster := k8swatchtest.NewSource(k8swatchtest.Objects(`
apiVersion: v1
kind: Pod
metadata: {name: haproxy-0, namespace: edge, labels: {app: haproxy}}
status: {podIP: 192.0.2.7, containerStatuses: [{name: dataplane, ready: true, state: {running: {}}}]}
---
apiVersion: v1
kind: Secret
metadata: {name: haptic-credentials, namespace: edge}
data: {dataplane_username: YWRtaW4=, dataplane_password: c2VjcmV0}
`)...)
	loop, err := reconcile.New(reconcile.Options{Renderer: reconcile.RendererFunc(func(context.Context) (*reconcile.Rendered, error) { return nil, nil })})
	if err != nil {
		panic(err)
	}
	follower, err := discover.NewFollower(discover.FollowerOptions{Source: cluster, SetTargets: loop.SetTargets})
	if err != nil {
		panic(err)
	}
	err = follower.Set(discover.Wanted{Selector: "app=haproxy", Pods: discover.PodOptions{Namespace: "edge"}, Secret: "edge/" + discover.DefaultSecret})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = follower.Run(ctx) }) // beside loop.Run
	err = follower.Wait(ctx)
	fmt.Println(loop.State().Instances[0].Name, follower.Credentials().Source, err)
	stop()
	wg.Wait()
	// Output: edge/haproxy-0 Secret edge/haptic-credentials <nil>
}
