package k8swatch_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hapticsdk/haptic/internal/rendering"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/derive"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
)

func ExampleFeed() {
	src := k8swatchtest.NewSource(service("shop", "web"))
	w, err := k8swatch.New(src, services, nil)
	if err != nil {
		panic(err)
	}
	graph := derive.New()
	var view *k8swatch.View
	group := k8swatch.NewGroup(&k8swatch.GroupOptions{OnChange: func(_ context.Context, c k8swatch.Changes) error { view.Changed(c); return nil }})
	if err := group.Add(w); err != nil {
		panic(err)
	}
	view = k8swatch.NewView(group.Snapshot)
	feed := k8swatch.NewFeed(graph, view)
	in := k8swatch.Input[*corev1.Service](feed, "Service", w)
	names := derive.Each("names", in.Collection, func(_ *derive.Reads, name types.NamespacedName, _ *corev1.Service, _ string) (string, bool) {
		return name.String(), true
	})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- group.Run(ctx) }()
	if _, err := group.WaitForSync(ctx); err != nil {
		panic(err)
	}
	feed.Fill() // before each run: sets what changed
	if err := errors.Join(graph.Run(ctx), graph.Commit()); err != nil {
		panic(err)
	}
	fmt.Println(slices.Collect(maps.Values(maps.Collect(names.All()))), feed.Left().Len())
	view.Reread() // after a refresh of the group, as at the begin of a term
	stop()
	<-done
	// Output: [shop/web] 0
}

// TestFeed: after whatever changes, with whatever held back, and with or without commits, the
// inputs have the objects of the snapshot.
func TestFeed(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) { feedOf(t, seed) })
	}
}

func feedOf(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 3))
	src := k8swatchtest.NewSource()
	w := mustNew(t, src, services, nil)
	graph := derive.New()
	var view *k8swatch.View
	group := k8swatch.NewGroup(&k8swatch.GroupOptions{Debounce: -1, OnChange: func(_ context.Context, c k8swatch.Changes) error { view.Changed(c); return nil }})
	require.NoError(t, group.Add(w))
	view = k8swatch.NewView(group.Snapshot)
	feed := k8swatch.NewFeed(graph, view)
	in := k8swatch.Input[*corev1.Service](feed, "Service", w)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- group.Run(ctx) }()
	_, err := group.WaitForSync(ctx)
	require.NoError(t, err)
	for step := range 60 {
		for range r.IntN(4) {
			change(src, fmt.Sprint("s", r.IntN(8)), r.IntN(3) == 0, step)
		}
		held := map[rendering.Key]any{}
		out := fmt.Sprint("s", r.IntN(8))
		if r.IntN(3) == 0 {
			held[rendering.Key{Kind: "Service", Namespace: "shop", Name: out}] = nil
		} else {
			out = ""
		}
		if r.IntN(10) == 0 {
			view.Reread()
		}
		view.Show(view.Newest().With(held))
		snapshot := feed.Fill()
		want := map[string]*corev1.Service{}
		for s := range k8swatch.Read[*corev1.Service](snapshot.Of(w)).All() {
			want[s.Name] = s
		}
		got := map[string]*corev1.Service{}
		for name, s := range in.All() {
			got[name.Name] = s
		}
		require.Equal(t, want, got, "seed %d, step %d", seed, step)
		require.NotContains(t, want, out)
		require.LessOrEqual(t, feed.Left().Len(), 1)
		require.NoError(t, graph.Run(ctx))
		if r.IntN(3) > 0 {
			require.NoError(t, graph.Commit())
		}
	}
	stop()
	require.NoError(t, <-done)
}

// change puts or deletes a Service, and waits until the watcher has it.
func change(src *k8swatchtest.Source, name string, gone bool, step int) {
	s := service("shop", name)
	if s.Annotations = map[string]string{"step": fmt.Sprint(step)}; gone {
		src.Delete(s)
	} else {
		src.Apply(s)
	}
	synctest.Wait()
}
