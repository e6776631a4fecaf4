package k8swatch_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
)

// TestSet: members come and go while others run; what is read is of one instant.
func TestSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := k8swatchtest.NewSource()
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		var set k8swatch.Set
		start := func(resource string) *k8swatch.Watcher {
			w, err := k8swatch.New(source, schema.GroupVersionResource{Version: "v1", Resource: resource}, nil)
			require.NoError(t, err)
			require.NoError(t, set.Add(w))
			require.ErrorIs(t, set.Add(w), k8swatch.ErrInGroup)
			wg.Go(func() { _ = w.Run(ctx) })
			_, err = w.WaitForSync(ctx)
			require.NoError(t, err)
			return w
		}
		maps := start("configmaps")
		secrets := start("secrets")
		require.ErrorIs(t, set.Add(secrets), k8swatch.ErrStarted)
		require.ErrorIs(t, k8swatch.NewGroup(nil).Add(secrets), k8swatch.ErrStarted)

		source.Apply(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b"}})
		synctest.Wait()
		all := set.Snapshot(maps, secrets, maps)
		require.Equal(t, 1, all.Of(maps).Len())
		require.Equal(t, 0, all.Of(secrets).Len())
		require.EqualValues(t, 1, all.Revision())

		set.Remove(maps)
		all = set.Snapshot(maps, secrets)
		require.Nil(t, all.Of(maps))
		require.NotNil(t, all.Of(secrets))
		stop()
		wg.Wait()
	})
}

// TestSetSnapshotsAtOnce: sets that are read in any order, while members change,
// never wait for each other for ever.
func TestSetSnapshotsAtOnce(t *testing.T) {
	source := k8swatchtest.NewSource()
	ctx, stop := context.WithCancel(t.Context())
	var set k8swatch.Set
	var running, reading sync.WaitGroup
	var watchers []*k8swatch.Watcher
	for _, resource := range []string{"configmaps", "secrets", "services"} {
		w, err := k8swatch.New(source, schema.GroupVersionResource{Version: "v1", Resource: resource}, nil)
		require.NoError(t, err)
		require.NoError(t, set.Add(w))
		running.Go(func() { _ = w.Run(ctx) })
		watchers = append(watchers, w)
	}
	for i := range 4 {
		reading.Go(func() {
			for j := range 100 {
				a, b, c := watchers[(i+j)%3], watchers[(i+j+1)%3], watchers[(i+j+2)%3]
				_ = set.Snapshot(a, b, c)
				source.Apply(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: fmt.Sprint(i, j)}})
			}
		})
	}
	reading.Wait()
	stop()
	running.Wait()
}

// ExampleSet reads two watchers at one instant, one of which came later.
func ExampleSet() {
	source := k8swatchtest.NewSource(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings"}})
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	var set k8swatch.Set
	var watchers []*k8swatch.Watcher
	for _, resource := range []string{"configmaps", "secrets"} {
		w, err := k8swatch.New(source, corev1.SchemeGroupVersion.WithResource(resource), nil)
		if err != nil {
			panic(err)
		}
		if err := set.Add(w); err != nil {
			panic(err)
		}
		wg.Go(func() { _ = w.Run(ctx) })
		if _, err := w.WaitForSync(ctx); err != nil {
			panic(err)
		}
		watchers = append(watchers, w)
	}
	all := set.Snapshot(watchers...)
	fmt.Println(all.Of(watchers[0]).Len(), all.Of(watchers[1]).Len())
	set.Remove(watchers[0])
	stop()
	wg.Wait()
	// Output: 1 0
}

// A member that is taken out goes on, but is in no snapshot of the set any more.
func ExampleSet_Remove() {
	source := k8swatchtest.NewSource(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings"}})
	w, err := k8swatch.New(source, corev1.SchemeGroupVersion.WithResource("configmaps"), nil)
	if err != nil {
		panic(err)
	}
	var set k8swatch.Set
	if err := set.Add(w); err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- w.Run(ctx) }()
	if _, err := w.WaitForSync(ctx); err != nil {
		panic(err)
	}
	fmt.Println(set.Snapshot(w).Of(w).Len(), "in the set")

	set.Remove(w)
	fmt.Println(set.Snapshot(w).Of(w) == nil, w.Snapshot().Len())
	stop()
	<-done
	// Output:
	// 1 in the set
	// true 1
}
