package k8swatch_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
)

// TestStatusAloneIsNoChange: where the status is ignored, who writes it triggers nothing, by
// an update or by a list after a pause, and readers keep the object that they have.
func TestStatusAloneIsNoChange(t *testing.T) {
	typed := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	untyped := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Route",
		"metadata": map[string]any{"namespace": "shop", "name": "web"}, "spec": map[string]any{"host": "x.test"}}}
	for name, c := range map[string]struct {
		gvr   schema.GroupVersionResource
		obj   runtime.Object
		write func(k8swatch.Object)
	}{
		"typed": {networkingv1.SchemeGroupVersion.WithResource("ingresses"), typed, func(o k8swatch.Object) {
			ing := o.(*networkingv1.Ingress)
			ing.Status.LoadBalancer.Ingress = append(ing.Status.LoadBalancer.Ingress, networkingv1.IngressLoadBalancerIngress{IP: "192.0.2.1"})
			ing.ManagedFields = append(ing.ManagedFields, metav1.ManagedFieldsEntry{Manager: "status"})
		}},
		"unstructured": {schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "routes"}, untyped, func(o k8swatch.Object) {
			o.(*unstructured.Unstructured).Object["status"] = map[string]any{"accepted": o.GetResourceVersion()}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { statusAlone(t, c.gvr, c.obj, c.write) })
		})
	}
}

func statusAlone(t *testing.T, gvr schema.GroupVersionResource, obj runtime.Object, write func(k8swatch.Object)) {
	src, calls := k8swatchtest.NewSource(obj), 0
	w, err := k8swatch.New(src, gvr, &k8swatch.Options{IgnoreFields: []string{"status"}, Debounce: -1,
		OnChange: func(context.Context, k8swatch.Changes) error { calls++; return nil }})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- w.Run(ctx) }()
	_, err = w.WaitForSync(ctx)
	require.NoError(t, err)
	first, before := w.Snapshot().ByName("shop", "web"), w.Snapshot().Revision()
	unchanged := func(what string) {
		synctest.Wait()
		require.Zero(t, calls, what)
		require.Equal(t, before, w.Snapshot().Revision(), what)
		require.Same(t, first, w.Snapshot().ByName("shop", "web"), what)
	}
	require.True(t, src.Edit(gvr, "shop", "web", write))
	unchanged("an update of the status")
	src.Drop()
	require.True(t, src.Edit(gvr, "shop", "web", write))
	require.NoError(t, w.Refresh(ctx))
	unchanged("a list with another status")

	require.True(t, src.Edit(gvr, "shop", "web", func(o k8swatch.Object) { o.SetLabels(map[string]string{"a": "b"}); write(o) }))
	synctest.Wait()
	require.Equal(t, 1, calls, "an update of more than the status")
	require.Equal(t, "b", w.Snapshot().ByName("shop", "web").GetLabels()["a"])
	cancel()
	require.NoError(t, <-ended)
}
