package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hapticsdk/haptic/internal/watchtest"
	"github.com/hapticsdk/haptic/k8swatch"
)

var (
	routes = watchtest.Routes
	crds   = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// routeCRD is the definition of routes.
func routeCRD(routes schema.GroupVersionResource) *unstructured.Unstructured {
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

// Install adds the definition and the named routes.
func (s *watchServer) Install(ctx context.Context, names ...string) error {
	if _, err := s.dynamic.Resource(crds).Create(ctx, routeCRD(routes), metav1.CreateOptions{}); err != nil {
		return err
	}
	for _, name := range names {
		err := poll(ctx, patience, func() error { // the API server says 404 for a while
			_, err := s.dynamic.Resource(routes).Namespace(s.ns).Create(ctx, watchtest.Route(s.ns, name), metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) { // a call that failed may have been carried out
				err = nil
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Uninstall takes the definition away, and the routes with it.
func (s *watchServer) Uninstall(ctx context.Context) error {
	name := routes.GroupResource().String()
	if err := s.dynamic.Resource(crds).Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return poll(ctx, patience, func() error {
		_, err := s.dynamic.Resource(crds).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			_, err = s.dynamic.Resource(routes).List(ctx, metav1.ListOptions{})
		}
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err == nil:
			return errors.New("the API server still knows the routes")
		}
		return err
	})
}

// newRouteServer is a server on which the test may install the routes.
func newRouteServer(t *testing.T) *watchServer {
	t.Helper()
	s := newWatchServer(t)
	t.Cleanup(func() {
		if err := s.Uninstall(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestWatchDefinitionsComeAndGo: watchers start when their custom resource is
// installed, see its objects go with it, and start again.
func TestWatchDefinitionsComeAndGo(t *testing.T) {
	s := newRouteServer(t)
	w := startWatchers[*unstructured.Unstructured](t, s.source, routes, s.ns, false)
	absent := w.fail(k8swatch.PhaseNotInstalled, k8swatch.ErrNotInstalled, "list", "watch")
	eventually(t, "the absence is found", absent)
	if n, err := w.single.WaitForSync(t.Context()); n != 0 || !errors.Is(err, k8swatch.ErrNotInstalled) {
		t.Errorf("WaitForSync: %d, %v", n, err)
	}
	if _, err := w.cached.List(t.Context()); !errors.Is(err, k8swatch.ErrNotInstalled) {
		t.Errorf("cached: %v", err)
	}
	for i, tale := range []string{"created", "created deleted created"} {
		s.must(s.Install(t.Context(), "one", "two"))
		told := k8swatch.Changes{Created: 2 * (i + 1), Deleted: 2 * i}
		s.recovers(t, fmt.Sprint("installed, time ", i+1), w.well(told, tale, "one", "two"))
		before := w.bulk.Snapshot()
		s.must(s.Uninstall(t.Context()))
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
	s := newRouteServer(t)
	s.must(s.Install(t.Context(), "one", "two"))
	w := startWatchers[*unstructured.Unstructured](t, s.source, routes, s.ns, false)
	eventually(t, "the routes are known", w.well(k8swatch.Changes{Created: 2}, "created", "one", "two"))

	s.wire.refuse(true)
	s.must(s.Uninstall(t.Context()))
	s.wire.refuse(false)
	eventually(t, "the removal is found", w.fail(k8swatch.PhaseNotInstalled, k8swatch.ErrNotInstalled, "list", "watch"))
	s.must(w.hold("one", "two"))
	all, err := w.cached.List(t.Context())
	if fetch := (*k8swatch.FetchError)(nil); all != nil || !errors.As(err, &fetch) {
		t.Errorf("cached: %v, %v", all, err)
	}
	s.must(s.Install(t.Context(), "one"))
	told := k8swatch.Changes{Created: 3, Deleted: 2}
	s.recovers(t, "installed again", w.well(told, "created deleted created", "one"))

	s.wire.refuse(true)
	s.must(s.Uninstall(t.Context()))
	s.must(s.Install(t.Context(), "one", "three"))
	s.wire.refuse(false)
	told.Created, told.Deleted = 5, 3
	s.recovers(t, "replaced unseen", w.well(told, "created deleted created deleted created", "one", "three"))
}

// typedRoute is a route as a Go type, in no scheme but that of the test.
type typedRoute struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Host string `json:"host"`
	} `json:"spec"`
}

// DeepCopyObject implements runtime.Object.
func (r *typedRoute) DeepCopyObject() runtime.Object {
	c := *r
	r.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c
}

// TestWatchOwnType: custom resources of a cluster are values of their Go type, from
// lists and from a stream, held, single and fetched.
func TestWatchOwnType(t *testing.T) {
	for _, lists := range []bool{true, false} {
		t.Run(fmt.Sprint("lists ", lists), func(t *testing.T) {
			s := newRouteServer(t)
			s.must(s.Install(t.Context(), "one"))
			types := runtime.NewScheme()
			types.AddKnownTypeWithName(routes.GroupVersion().WithKind("Route"), &typedRoute{})
			w := startWatchers[*typedRoute](t, s.connect(apiToken, &k8swatch.ClusterOptions{Scheme: types}), routes, s.ns, lists)
			eventually(t, "the route is known", w.well(k8swatch.Changes{Created: 1}, "created", "one"))
			_, err := s.dynamic.Resource(routes).Namespace(s.ns).Create(t.Context(), watchtest.Route(s.ns, "two"), metav1.CreateOptions{})
			s.must(err)
			eventually(t, "another is known", w.well(k8swatch.Changes{Created: 2}, "created", "one", "two"))
			two := k8swatch.Read[*typedRoute](w.bulk.Snapshot()).ByName(s.ns, "two")
			one, _ := w.single.Get()
			fetched, err := w.cached.Get(t.Context(), s.ns, "two")
			if err != nil || len(fetched) != 1 || two.Spec.Host != "two.test" || one.Spec.Host != "one.test" || fetched[0].Spec.Host != "two.test" {
				t.Errorf("%+v, %+v, %+v, %v", two, one, fetched, err)
			}
			if two.Kind != "Route" || len(two.ManagedFields) > 0 {
				t.Errorf("not as others are: %+v", two)
			}
		})
	}
}

// TestRoutesExample: examples/routes says that its resource is not installed, and
// prints what comes once it is.
func TestRoutesExample(t *testing.T) {
	s := newWatchServer(t)
	p, err := startProcess("routes", []string{"KUBECONFIG=" + env.cluster.kubeconfig}, binary("routes"))
	s.must(err)
	t.Cleanup(p.kill)
	said := func(words ...string) func() error {
		return func() error {
			for _, w := range words {
				if !strings.Contains(p.out.String(), w) {
					return fmt.Errorf("%q is not in\n%s", w, p.out.tail())
				}
			}
			return p.ended()
		}
	}
	eventually(t, "it says what it waits for", said("waiting", "routes.example.com"))
	gvr := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "routes"}
	t.Cleanup(func() {
		_ = s.dynamic.Resource(crds).Delete(context.Background(), gvr.GroupResource().String(), metav1.DeleteOptions{})
	})
	_, err = s.dynamic.Resource(crds).Create(t.Context(), routeCRD(gvr), metav1.CreateOptions{})
	s.must(err)
	route := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Route",
		"metadata": map[string]any{"namespace": s.ns, "name": "web"}, "spec": map[string]any{"host": "shop.test", "service": "web", "port": int64(8080)}}}
	s.must(poll(t.Context(), patience, func() error {
		_, err := s.dynamic.Resource(gvr).Namespace(s.ns).Create(t.Context(), route, metav1.CreateOptions{})
		return err
	}))
	eventually(t, "it prints the route", said("routes "+s.ns+"/web created", "shop.test "+s.ns+"_web_8080"))
}
