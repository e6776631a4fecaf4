package k8swatch

import (
	"fmt"
	"maps"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"
)

// TestObjectsShareStrings: equal labels and annotations of two objects are one
// string in memory, and say the same as before.
func TestObjectsShareStrings(t *testing.T) {
	in := testIntakeOf(t, ingressResource)
	for i := range 2 {
		obj := decodedIngress(t, i)
		want := maps.Clone(obj.Annotations)
		delete(want, lastApplied)
		labels := maps.Clone(obj.Labels)
		_ = in.Add(obj)
		require.True(t, maps.Equal(obj.Annotations, want), "object %d: labels %v, annotations %v", i, obj.Labels, obj.Annotations)
		require.True(t, maps.Equal(obj.Labels, labels), "object %d: labels %v, annotations %v", i, obj.Labels, obj.Annotations)
	}
	r := Read[*networkingv1.Ingress](in.now())
	a, b := r.GetSingle("team-0", "app-0"), r.GetSingle("team-1", "app-1")
	for what, pair := range map[string][2]string{
		"label":      {a.Labels["app.kubernetes.io/part-of"], b.Labels["app.kubernetes.io/part-of"]},
		"annotation": {a.Annotations["haproxy.org/load-balance"], b.Annotations["haproxy.org/load-balance"]},
	} {
		if x, y := pair[0], pair[1]; x == "" || x != y || unsafe.StringData(x) != unsafe.StringData(y) {
			t.Errorf("%s: %q and %q are not one string", what, x, y)
		}
	}
}

// TestSharedStringsAreBounded: labels that are all different take no room for ever.
func TestSharedStringsAreBounded(t *testing.T) {
	in := testIntakeOf(t, ingressResource)
	for i := range 2 * maxShared {
		in.share(map[string]string{"app": fmt.Sprint("app-", i)})
	}
	require.LessOrEqual(t, len(in.shared), maxShared)
}
