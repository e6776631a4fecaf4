package k8swatch_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
)

// TestSnapshotOfAtOnce: watchers that are read together in any order, while they
// change, never wait for each other for ever.
func TestSnapshotOfAtOnce(t *testing.T) {
	source := k8swatchtest.NewSource()
	ctx, stop := context.WithCancel(t.Context())
	var running, reading sync.WaitGroup
	var watchers []*k8swatch.Watcher
	for _, resource := range []string{"configmaps", "secrets", "services"} {
		w, err := k8swatch.New(source, corev1.SchemeGroupVersion.WithResource(resource), nil)
		require.NoError(t, err)
		running.Go(func() { _ = w.Run(ctx) })
		watchers = append(watchers, w)
	}
	for i := range 4 {
		reading.Go(func() {
			for j := range 100 {
				a, b, c := watchers[(i+j)%3], watchers[(i+j+1)%3], watchers[(i+j+2)%3]
				all := k8swatch.SnapshotOf(a, b, c, a)
				sum := all.Of(a).Revision() + all.Of(b).Revision() + all.Of(c).Revision()
				if all.Revision() != sum {
					t.Errorf("revision %d, and %d of the parts", all.Revision(), sum)
				}
				source.Apply(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: fmt.Sprint(i, j)}})
			}
		})
	}
	reading.Wait()
	stop()
	running.Wait()
}

// ExampleSnapshotOf reads two watchers at one instant, one of which came later.
func ExampleSnapshotOf() {
	source := k8swatchtest.NewSource(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings"}})
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	var watchers []*k8swatch.Watcher
	for _, resource := range []string{"configmaps", "secrets"} {
		w, err := k8swatch.New(source, corev1.SchemeGroupVersion.WithResource(resource), nil)
		if err != nil {
			panic(err)
		}
		wg.Go(func() { _ = w.Run(ctx) })
		if _, err := w.WaitForSync(ctx); err != nil {
			panic(err)
		}
		watchers = append(watchers, w)
	}
	all := k8swatch.SnapshotOf(watchers...)
	fmt.Println(all.Of(watchers[0]).Len(), all.Of(watchers[1]).Len())
	fmt.Println(k8swatch.SnapshotOf(watchers[1]).Of(watchers[0]) == nil)
	stop()
	wg.Wait()
	// Output:
	// 1 0
	// true
}
