package k8swatch_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hapticsdk/haptic/internal/rendering"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
)

// viewOf is a view of synced watchers.
func viewOf(t testing.TB, src *k8swatchtest.Source, watchers ...*k8swatch.Watcher) *k8swatch.View {
	ctx, stop := context.WithCancel(t.Context())
	group, done := k8swatch.NewGroup(nil), make(chan error)
	require.NoError(t, group.Add(watchers...))
	go func() { done <- group.Run(ctx) }()
	t.Cleanup(func() { stop(); require.NoError(t, <-done) })
	_, err := group.WaitForSync(ctx)
	require.NoError(t, err)
	return k8swatch.NewView(group.Snapshot)
}

func labelled(name, app string) *corev1.Service {
	s := service("shop", name)
	s.Labels = map[string]string{"app": app}
	return s
}

// TestView: a view has other objects in place of some, under the keys that these have.
func TestView(t *testing.T) {
	src := k8swatchtest.NewSource(labelled("a", "x"), labelled("b", "x"), labelled("c", "x"), labelled("d", "y"))
	w := mustNew(t, src, services, &k8swatch.Options{IndexBy: []string{"metadata.labels.app"}})
	view := viewOf(t, src, w)
	names := func(keys ...string) (text string) {
		for _, s := range k8swatch.Read[*corev1.Service](view.Snapshot().Of(w)).Get(keys...) {
			text += s.Name + "=" + s.Labels["app"] + " "
		}
		return strings.TrimSpace(text)
	}
	require.Equal(t, "a=x b=x c=x d=y", names(), "nothing is shown yet")

	newest := view.Newest()
	key := func(name string) rendering.Key {
		return rendering.Key{APIVersion: "v1", Kind: "Service", Namespace: "shop", Name: name}
	}
	earlier := newest.Get(key("c")).(*corev1.Service).DeepCopy()
	earlier.Labels = map[string]string{"app": "y"}
	view.Show(newest.With(map[rendering.Key]any{key("b"): nil, key("c"): earlier, key("gone"): earlier}))
	require.Equal(t, []string{"a=x c=y d=y", "a=x", "c=y d=y"}, []string{names(), names("x"), names("y")})
	require.Nil(t, view.Snapshot().Of(w).ByName("shop", "b"))
	require.Len(t, slices.Collect(newest.All()), 4, "the objects of before stay")
	require.NotEqual(t, k8swatch.Revision(0), view.Snapshot().Of(w).Revision())
	require.NotEqual(t, newest.(interface {
		Of(*k8swatch.Watcher) *k8swatch.Snapshot
	}).Of(w).Revision(), view.Snapshot().Of(w).Revision())
	require.Same(t, view.Snapshot().Of(w), view.Snapshot().Resource(services))

	require.Nil(t, view.In(k8swatch.SnapshotOf(w)).Of(w).ByName("shop", "b"))
	view.Show(newest)
	require.Equal(t, "a=x b=x c=x", names("x"))
	require.NotNil(t, view.In(k8swatch.SnapshotOf(w)).Of(w).ByName("shop", "b"))
}

// TestViewOfUntypedObjects: kinds of one name are told apart.
func TestViewOfUntypedObjects(t *testing.T) {
	object := func(group, text string) runtime.Object {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": group + "/v1", "kind": "Site", "text": text, "metadata": map[string]any{"namespace": "shop", "name": "a"}}}
	}
	src := k8swatchtest.NewSource(object("one.test", "1"), object("two.test", "2"))
	var watchers []*k8swatch.Watcher
	for _, group := range []string{"one.test", "two.test"} {
		gvr := services
		gvr.Group, gvr.Version, gvr.Resource = group, "v1", "sites"
		w := mustNew(t, src, gvr, nil)
		watchers = append(watchers, w)
	}
	view := viewOf(t, src, watchers...)
	newest, other := view.Newest(), object("two.test", "earlier")
	view.Show(newest.With(map[rendering.Key]any{{APIVersion: "two.test/v1", Kind: "Site", Namespace: "shop", Name: "a"}: other}))
	var texts []string
	for _, w := range watchers {
		texts = append(texts, view.Snapshot().Of(w).ByName("shop", "a").(*unstructured.Unstructured).Object["text"].(string))
	}
	require.Equal(t, []string{"1", "earlier"}, texts)
}

func ExampleView() {
	src := k8swatchtest.NewSource(service("shop", "web"))
	w, err := k8swatch.New(src, services, nil)
	if err != nil {
		panic(err)
	}
	view := k8swatch.NewView(func() *k8swatch.GroupSnapshot { return k8swatch.SnapshotOf(w) })
	fmt.Println(view.Snapshot().Of(w).Len()) // the loop chooses the instant: reconcile.Options.View
	view.Show(view.Newest())
	// Output: 0
}
