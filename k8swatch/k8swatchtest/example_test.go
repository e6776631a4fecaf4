package k8swatchtest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
)

var services = corev1.SchemeGroupVersion.WithResource("services")

const service = `
apiVersion: v1
kind: Service
metadata: {namespace: shop, name: web}
spec: {ports: [{port: 80}]}
`

const cart = `
apiVersion: v1
kind: Service
metadata: {namespace: shop, name: cart}
`

// A watcher runs over a cluster in memory, which is changed while it does.
func ExampleNewSource() {
	src := k8swatchtest.NewSource(k8swatchtest.Objects(service)...)
	changes := make(chan k8swatch.Changes)
	w, err := k8swatch.New(src, services, &k8swatch.Options{Debounce: time.Millisecond,
		OnChange: func(_ context.Context, c k8swatch.Changes) error { changes <- c; return nil }})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- w.Run(ctx) }()
	n, err := w.WaitForSync(ctx)
	fmt.Println(n, err)

	src.Apply(k8swatchtest.Objects(cart)...)
	fmt.Println((<-changes).Created, w.Snapshot().Len())

	src.Delete(k8swatchtest.Objects(service)...)
	fmt.Println((<-changes).Deleted, w.Snapshot().Len())

	stop()
	fmt.Println(<-ended)
	// Output:
	// 1 <nil>
	// 1 2
	// 1 1
	// <nil>
}

// A watcher goes on over a cluster that is away for a while, and catches up.
func ExampleSource_Partition() {
	src := k8swatchtest.NewSource(k8swatchtest.Objects(service)...)
	changes := make(chan k8swatch.Changes)
	w, err := k8swatch.New(src, services, &k8swatch.Options{
		OnChange: func(_ context.Context, c k8swatch.Changes) error { changes <- c; return nil }})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- w.Run(ctx) }()
	_, err = w.WaitForSync(ctx)
	fmt.Println(w.Snapshot().Len(), err)

	src.Partition() // connection refused
	src.Apply(k8swatchtest.Objects(cart)...)
	fmt.Println(w.Snapshot().Len(), "while it is away")
	src.Restore()
	fmt.Println((<-changes).Created, w.Snapshot().Len())

	stop()
	<-ended
	// Output:
	// 1 <nil>
	// 1 while it is away
	// 1 2
}

// What reads a snapshot is tested with one that no watcher made.
func ExampleSnapshot() {
	test := func(t *testing.T) {
		s := k8swatchtest.Snapshot(t, services, nil, k8swatchtest.Objects(service)...)
		if svc := k8swatch.Read[*corev1.Service](s).GetSingle("shop", "web"); svc == nil || svc.Spec.Ports[0].Port != 80 {
			t.Errorf("%+v", svc)
		}
	}
	_ = test
}
