package k8swatch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
)

// laden has an annotation that is kept, and two that are not: only a folder may tell the file of an object.
var laden = map[string]string{k8swatch.SourceAnnotation: "/etc/passwd:1", "kubectl.kubernetes.io/last-applied-configuration": "{}", "kept": "yes"}

// kinds make an object of each kind with everything that can be ignored.
var kinds = map[string]struct {
	gvr  schema.GroupVersionResource
	make func(hosts ...string) k8swatch.Object
}{
	"typed": {ingresses, func(hosts ...string) k8swatch.Object {
		i := ingress("shop", "web", hosts...)
		i.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: "192.0.2.1"}}
		return i
	}},
	"unstructured": {routes, func(hosts ...string) k8swatch.Object {
		var rules []any
		for _, h := range hosts {
			rules = append(rules, map[string]any{"host": h})
		}
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Route", "metadata": map[string]any{"namespace": "shop", "name": "web"},
			"spec": map[string]any{"rules": rules}, "status": map[string]any{"ip": "192.0.2.1"}}}
	}},
}

// TestIgnoredFields: what is ignored is dropped, once, whichever way an object comes, and so is what
// nobody needs. The object of the caller stays as it is.
func TestIgnoredFields(t *testing.T) {
	for name, c := range kinds {
		for _, noStream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, NoWatchList=%v", name, noStream), func(t *testing.T) {
				given := c.make("a.test", "b.test", "c.test")
				given.SetAnnotations(maps.Clone(laden))
				given.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubectl"}})
				src := k8swatchtest.NewSource(given)
				w := watching(t, src, c.gvr, &k8swatch.Options{IgnoreFields: []string{"status", "spec.rules[0]"}, NoWatchList: noStream}, 1)
				hosts := func() []string {
					stored := w.Snapshot().ByName("shop", "web")
					require.Empty(t, stored.GetManagedFields())
					text, err := json.Marshal(stored)
					require.NoError(t, err)
					require.NotContains(t, string(text), "192.0.2.1")
					return regexp.MustCompile(`[a-f]\.test`).FindAllString(string(text), -1)
				}
				require.Equal(t, []string{"b.test", "c.test"}, hosts())
				require.Equal(t, map[string]string{"kept": "yes"}, w.Snapshot().ByName("shop", "web").GetAnnotations())
				require.NotEmpty(t, given.GetManagedFields())
				src.Apply(c.make("d.test", "e.test", "f.test"))
				eventually(t, "the change is stored", func() bool { return w.Snapshot().Revision() == 2 })
				require.Equal(t, []string{"e.test", "f.test"}, hosts())
			})
		}
	}
}

// TestFetchedAnnotations: an object that is fetched cannot name the file of somebody else either.
func TestFetchedAnnotations(t *testing.T) {
	s := secret("shop", "a", "1")
	s.Annotations = laden
	c := mustCached[*corev1.Secret](t, k8swatchtest.NewSource(s), secrets, nil)
	start(t, c, 1)
	got, err := c.List(soon(t))
	require.NoError(t, err)
	for _, o := range []k8swatch.Object{c.Metadata().ByName("shop", "a"), got[0]} {
		require.Equal(t, map[string]string{"kept": "yes"}, o.GetAnnotations())
	}
}

// TestStatusAloneIsNoChange: where the status is ignored, who writes it triggers nothing, by
// an update or by a list after a pause, and readers keep the object that they have.
func TestStatusAloneIsNoChange(t *testing.T) {
	for name, write := range map[string]func(k8swatch.Object){
		"typed": func(o k8swatch.Object) {
			ing := o.(*networkingv1.Ingress)
			ing.Status.LoadBalancer.Ingress = append(ing.Status.LoadBalancer.Ingress, networkingv1.IngressLoadBalancerIngress{IP: "192.0.2.1"})
			ing.ManagedFields = append(ing.ManagedFields, metav1.ManagedFieldsEntry{Manager: "status"})
		},
		"unstructured": func(o k8swatch.Object) {
			o.(*unstructured.Unstructured).Object["status"] = map[string]any{"accepted": o.GetResourceVersion()}
		},
	} {
		bubble(t, name, func(t *testing.T) {
			gvr, calls := kinds[name].gvr, 0
			src := k8swatchtest.NewSource(kinds[name].make("x.test"))
			w := watching(t, src, gvr, &k8swatch.Options{IgnoreFields: []string{"status"}, Debounce: -1,
				OnChange: func(context.Context, k8swatch.Changes) error { calls++; return nil }}, 1)
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
			require.NoError(t, w.Refresh(t.Context()))
			unchanged("a list with another status")

			require.True(t, src.Edit(gvr, "shop", "web", func(o k8swatch.Object) { o.SetLabels(map[string]string{"a": "b"}); write(o) }))
			synctest.Wait()
			require.Equal(t, 1, calls, "an update of more than the status")
			require.Equal(t, "b", w.Snapshot().ByName("shop", "web").GetLabels()["a"])
		})
	}
}
