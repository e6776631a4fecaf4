package k8swatch

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/internal/rendering"
)

// TestReadInARender: a Reader has what the render of its context is to have, under the
// keys that this has, and the render is told of what it read.
func TestReadInARender(t *testing.T) {
	object := func(name, app string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{"app": app}}}
	}
	snapshot, err := NewSnapshot(corev1.SchemeGroupVersion.WithResource("configmaps"), &Options{IndexBy: []string{"metadata.labels.app"}},
		object("a", "x"), object("b", "x"), object("c", "x"), object("d", "y"))
	require.NoError(t, err)
	rule := &rendering.Rule{Stand: func(obj any) (any, bool) {
		switch obj.(Object).GetName() {
		case "b": // it has no earlier version
			return nil, false
		case "c":
			return object("c", "y"), true
		}
		return obj, true
	}}
	read := &rendering.Read{}
	ctx := rendering.WithRead(rendering.WithRule(t.Context(), rule), read)
	r := Read[*corev1.ConfigMap](ctx, snapshot)
	names := func(all []*corev1.ConfigMap) (names []string) {
		for _, o := range all {
			names = append(names, o.Name+"="+o.Labels["app"])
		}
		return names
	}
	require.Equal(t, []string{"a=x", "c=y", "d=y"}, names(r.List()))
	require.Equal(t, []string{"a=x"}, names(r.Get("x")), "c was not found under x before")
	require.Equal(t, "a", r.GetSingle("x").Name)
	Read[Object](ctx, snapshot)
	require.Len(t, slices.Collect(read.All()), 3, "once, however often it is read")

	for name, whole := range map[string]context.Context{"no render": t.Context(), "a rule for nothing": rendering.WithRule(t.Context(), &rendering.Rule{})} {
		require.Len(t, Read[*corev1.ConfigMap](whole, snapshot).Get("x"), 3, name)
	}
}
