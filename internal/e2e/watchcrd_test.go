package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/hapticsdk/haptic/k8swatch"
)

var (
	routes = schema.GroupVersionResource{Group: "e2e.haptic.dev", Version: "v1", Resource: "routes"}
	crds   = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// routeCRD is the definition of the routes.
func routeCRD() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": crds.GroupVersion().String(), "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": routes.GroupResource().String()},
		"spec": map[string]any{
			"group": routes.Group, "scope": "Namespaced",
			"names": map[string]any{"plural": "routes", "singular": "route", "kind": "Route", "listKind": "RouteList"},
			"versions": []any{map[string]any{
				"name": routes.Version, "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object", "x-kubernetes-preserve-unknown-fields": true,
				}},
			}},
		},
	}}
}

// routeAPI installs the routes and writes them.
type routeAPI struct {
	*watchServer
	client *dynamic.DynamicClient
}

func newRouteAPI(t *testing.T) *routeAPI {
	t.Helper()
	r := &routeAPI{watchServer: newWatchServer(t)}
	var err error
	r.client, err = dynamic.NewForConfig(env.cluster.config)
	r.must(err)
	t.Cleanup(func() {
		if err := r.remove(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return r
}

// remove takes the definition away, and the routes with it. It returns when the
// API server does not know them any more.
func (r *routeAPI) remove(ctx context.Context) error {
	name := routes.GroupResource().String()
	if err := r.client.Resource(crds).Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return poll(ctx, patience, func() error {
		_, err := r.client.Resource(crds).Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			err = errors.New("the definition is still there")
		}
		if !apierrors.IsNotFound(err) {
			return err
		}
		_, err = r.client.Resource(routes).List(ctx, metav1.ListOptions{})
		if err == nil {
			err = errors.New("the routes are still there")
		}
		if !apierrors.IsNotFound(err) {
			return err
		}
		return nil
	})
}

// install adds the definition and the named routes.
func (r *routeAPI) install(names ...string) {
	r.t.Helper()
	ctx := r.t.Context()
	_, err := r.client.Resource(crds).Create(ctx, routeCRD(), metav1.CreateOptions{})
	r.must(err)
	for _, name := range names {
		route := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": routes.GroupVersion().String(), "kind": "Route", "spec": map[string]any{"host": name + ".test"},
			"metadata": map[string]any{"namespace": r.ns, "name": name},
		}}
		eventually(r.t, "a route can be made", func() error {
			_, err := r.client.Resource(routes).Namespace(r.ns).Create(ctx, route, metav1.CreateOptions{})
			return err
		})
	}
}

// TestWatchDefinitionsComeAndGo: watchers start when their custom resource is
// installed, see its objects go with it, and start again.
func TestWatchDefinitionsComeAndGo(t *testing.T) {
	r := newRouteAPI(t)
	w := startWatchers[*unstructured.Unstructured](t, r.source, routes, r.ns)
	absent := w.fail(k8swatch.PhaseNotInstalled, k8swatch.ErrNotInstalled, "list", "watch")
	eventually(t, "the absence is found", absent)
	if n, err := w.single.WaitForSync(t.Context()); n != 0 || !errors.Is(err, k8swatch.ErrNotInstalled) {
		t.Errorf("WaitForSync: %d, %v", n, err)
	}
	if _, err := w.cached.List(t.Context()); !errors.Is(err, k8swatch.ErrNotInstalled) {
		t.Errorf("cached: %v", err)
	}
	for i, tale := range []string{"created", "created deleted created"} {
		r.install("one", "two")
		told := k8swatch.Changes{Created: 2 * (i + 1), Deleted: 2 * i}
		r.recovers(t, fmt.Sprint("installed, time ", i+1), w.well(told, tale, "one", "two"))
		before := w.bulk.Snapshot()
		r.must(r.remove(t.Context()))
		eventually(t, "the removal is found", absent)
		eventually(t, "the objects are gone", func() error { return w.hold() })
		if got := named(before); !slices.Equal(got, []string{"one", "two"}) {
			t.Errorf("a snapshot holds %q now", got)
		}
	}
}

// TestWatchDefinitionRemovedUnseen: nobody told the watchers that the objects
// went, so they are still read; what is fetched is an error. Objects of the same
// name under a new definition are others.
func TestWatchDefinitionRemovedUnseen(t *testing.T) {
	r := newRouteAPI(t)
	r.install("one", "two")
	w := startWatchers[*unstructured.Unstructured](t, r.source, routes, r.ns)
	eventually(t, "the routes are known", w.well(k8swatch.Changes{Created: 2}, "created", "one", "two"))

	r.wire.refuse(true)
	r.must(r.remove(t.Context()))
	r.wire.refuse(false)
	eventually(t, "the removal is found", w.fail(k8swatch.PhaseNotInstalled, k8swatch.ErrNotInstalled, "list", "watch"))
	r.must(w.hold("one", "two"))
	all, err := w.cached.List(t.Context())
	if fetch := (*k8swatch.FetchError)(nil); all != nil || !errors.As(err, &fetch) {
		t.Errorf("cached: %v, %v", all, err)
	}
	r.install("one")
	told := k8swatch.Changes{Created: 3, Deleted: 2}
	r.recovers(t, "installed again", w.well(told, "created deleted created", "one"))

	r.wire.refuse(true)
	r.must(r.remove(t.Context()))
	r.install("one", "three")
	r.wire.refuse(false)
	told.Created, told.Deleted = 5, 3
	r.recovers(t, "replaced unseen", w.well(told, "created deleted created deleted created", "one", "three"))
}
