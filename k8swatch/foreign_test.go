package k8swatch_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
)

// TestForeignSourceAnnotation: an object of a cluster cannot name the file of somebody
// else in the errors about it, whichever way it comes; one of a folder names its own
// (TestFolderObjects).
func TestForeignSourceAnnotation(t *testing.T) {
	lie := map[string]string{k8swatch.SourceAnnotation: "/etc/passwd:1", "kept": "yes"}
	secrets := corev1.SchemeGroupVersion.WithResource("secrets")
	widgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	widget := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget"}}
	widget.SetNamespace("ns")
	widget.SetName("a")
	widget.SetAnnotations(lie)
	for name, c := range map[string]struct {
		gvr schema.GroupVersionResource
		obj runtime.Object
	}{
		"typed":   {secrets, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", Annotations: lie}}},
		"untyped": {widgets, widget},
	} {
		t.Run(name, func(t *testing.T) {
			src := k8swatchtest.NewSource(c.obj)
			w := mustNew(t, src, c.gvr, nil)
			start(t, w)
			synced(t, w, 1)
			honest(t, w.Snapshot().ByName("ns", "a"))
		})
	}
	t.Run("fetched", func(t *testing.T) {
		src := k8swatchtest.NewSource(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", Annotations: lie}})
		cached, err := k8swatch.NewCached[*corev1.Secret](src, secrets, nil)
		require.NoError(t, err)
		start(t, cached)
		require.NoError(t, errOf(cached.WaitForSync(soon(t))))
		honest(t, cached.Metadata().ByName("ns", "a"))
		got, err := cached.List(soon(t))
		require.NoError(t, err)
		honest(t, got[0])
	})
}

func honest(t *testing.T, o k8swatch.Object) {
	t.Helper()
	if a := o.GetAnnotations(); len(a) != 1 || a["kept"] != "yes" {
		t.Errorf("annotations %v", a)
	}
}
