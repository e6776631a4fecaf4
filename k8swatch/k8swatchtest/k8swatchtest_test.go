package k8swatchtest_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ingresses = networkingv1.SchemeGroupVersion.WithResource("ingresses")

func ingress(name string, labels map[string]string) *networkingv1.Ingress {
	return &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: labels}}
}

// next returns the kind and the name of the next event.
func next(t *testing.T, w watch.Interface) string {
	t.Helper()
	e, ok := <-w.ResultChan()
	if !ok {
		return "end"
	}
	if e.Type == watch.Error {
		return fmt.Sprint("ERROR ", apierrors.ReasonForError(apierrors.FromObject(e.Object)))
	}
	m, err := meta.Accessor(e.Object)
	require.NoError(t, err)
	return string(e.Type) + " " + m.GetName()
}

func TestSourceWatch(t *testing.T) {
	src := k8swatchtest.NewSource(ingress("a", nil))
	lw, err := src.ListWatch(ingresses, "", func(o *metav1.ListOptions) { o.LabelSelector = "!hidden" })
	require.NoError(t, err)
	list, err := lw.ListWithContext(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	items, _ := meta.ExtractList(list)
	require.Len(t, items, 1, "listed")
	m, _ := meta.ListAccessor(list)

	// What comes between the list and the watch is not lost.
	src.Apply(ingress("b", nil))
	w, err := lw.WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: m.GetResourceVersion()})
	require.NoError(t, err)
	defer w.Stop()
	src.Apply(ingress("a", map[string]string{"x": "y"}))
	src.Apply(ingress("a", map[string]string{"hidden": ""})) // leaves the selection
	src.Apply(ingress("a", map[string]string{"hidden": "still"}))
	src.Apply(ingress("a", nil)) // and comes back
	require.False(t, src.Delete(ingress("c", nil)), "Delete does not tell what was there")
	require.True(t, src.Delete(ingress("b", nil)), "Delete does not tell what was there")
	for _, want := range []string{"ADDED b", "MODIFIED a", "DELETED a", "ADDED a", "DELETED b"} {
		require.Equal(t, want, next(t, w))
	}
}

// TestUninstall: the objects go first, told to those who watch, then the
// resource; the next one of that name has no history.
func TestUninstall(t *testing.T) {
	src := k8swatchtest.NewSource(ingress("a", nil), ingress("b", nil), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "s"}})
	watching := func(gvr schema.GroupVersionResource, from string) watch.Interface {
		t.Helper()
		lw, err := src.ListWatch(gvr, "", nil)
		require.NoError(t, err)
		w, err := lw.WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: from})
		require.NoError(t, err)
		t.Cleanup(w.Stop)
		return w
	}
	services := corev1.SchemeGroupVersion.WithResource("services")
	last := src.List(services)[0].GetResourceVersion()
	w, other := watching(ingresses, last), watching(services, last)
	uid := src.List(ingresses)[0].GetUID()
	src.Uninstall(ingresses)
	for _, want := range []string{"DELETED a", "DELETED b", "end"} {
		require.Equal(t, want, next(t, w))
	}
	require.False(t, src.Delete(ingress("a", nil)), "an object is left")
	require.False(t, src.Edit(ingresses, "shop", "a", func(k8swatch.Object) {}), "an object is left")
	func() {
		defer func() {
			if recover() == nil {
				t.Error("an object can be applied")
			}
		}()
		src.Apply(ingress("a", nil))
	}()
	src.Apply(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "t"}})
	require.Equal(t, "ADDED t", next(t, other), "watch of another resource")

	src.Install(ingresses)
	require.Empty(t, src.List(ingresses))
	src.Apply(ingress("a", nil))
	require.NotEqual(t, uid, src.List(ingresses)[0].GetUID(), "an object has the uid that one of the same name had before")
	lw, err := src.ListWatch(ingresses, "", nil)
	require.NoError(t, err)
	if _, err := lw.WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: last}); !apierrors.IsResourceExpired(err) {
		t.Errorf("a watch from before: %v", err)
	}
}

// TestApplyConverts: an unstructured object of a known kind is typed, as a
// watcher expects it; the caller's object is left alone.
func TestApplyConverts(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": map[string]any{"namespace": "shop", "name": "a"},
	}}
	snap := k8swatchtest.Snapshot(t, ingresses, nil, u)
	require.NotNil(t, k8swatch.Read[*networkingv1.Ingress](snap).GetSingle("shop", "a"), "snapshot %v, object", snap.List())
	require.Empty(t, u.GetResourceVersion(), "snapshot %v, object", snap.List())
	for name, obj := range map[string]*unstructured.Unstructured{
		"no kind": {Object: map[string]any{}},
		"no name": {Object: map[string]any{"apiVersion": "v1", "kind": "Service"}},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			k8swatchtest.NewSource(obj)
		}()
	}
}
