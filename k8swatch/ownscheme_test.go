package k8swatch_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
)

// ownScheme has the Route, and nothing of client-go.
func ownScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(routes.GroupVersion().WithKind("Route"), &Route{})
	return s
}

func route(name, host string) *Route {
	r := &Route{}
	r.Namespace, r.Name, r.Spec.Host = "shop", name, host
	return r
}

// sent is what a cluster sends of a route.
func sent(name, host string, weight any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Route",
		"metadata": map[string]any{"namespace": "shop", "name": name}, "spec": map[string]any{"host": host, "weight": weight}}}
}

// TestOwnTypes: custom resources have their Go type from every source, by whatever
// they are read, and client-go's own scheme does not know it.
func TestOwnTypes(t *testing.T) {
	require.Nil(t, k8swatch.TypeOf(routes))
	memory := k8swatchtest.NewSource()
	memory.SetScheme(ownScheme())
	memory.Apply(route("a", "a.test"), sent("b", "b.test", int64(2)))
	static, err := k8swatch.NewStatic(sent("a", "a.test", int64(1)), sent("b", "b.test", int64(2)))
	require.NoError(t, err)
	static.SetScheme(ownScheme())
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(`{apiVersion: example.com/v1, kind: Route, metadata: {namespace: shop, name: a}, spec: {host: a.test}}
---
{apiVersion: example.com/v1, kind: RouteList, items: [{metadata: {namespace: shop, name: b}, spec: {host: b.test}}]}
`), 0o600))
	folder := mustFolder(t, dir, &k8swatch.FolderOptions{Scheme: ownScheme()})
	require.Empty(t, folder.Errors())
	for name, src := range map[string]k8swatch.Source{"memory": memory, "static": static, "folder": folder} {
		t.Run(name, func(t *testing.T) {
			w := watching(t, src, routes, &k8swatch.Options{IndexBy: []string{"spec.host"}}, 2)
			found := k8swatch.Read[*Route](w.Snapshot()).Get("b.test")
			require.Len(t, found, 1)
			require.Equal(t, "b", found[0].Name)
			require.Equal(t, "Route", found[0].Kind)
			_, err := k8swatch.New(src, routes, &k8swatch.Options{IndexBy: []string{"spec.hots"}})
			require.ErrorContains(t, err, "hots")

			one, err := k8swatch.NewSingle[*Route](src, routes, "shop", "a", nil)
			require.NoError(t, err)
			start(t, one, 1)
			a, _ := one.Get()
			require.Equal(t, "a.test", a.Spec.Host)
			_, err = k8swatch.NewSingle[*unstructured.Unstructured](src, routes, "shop", "a", nil)
			require.ErrorContains(t, err, "its objects are *k8swatch_test.Route")

			if meta, ok := src.(k8swatch.MetadataSource); ok {
				cached, err := k8swatch.NewCached[*Route](meta, routes, nil)
				require.NoError(t, err)
				start(t, cached)
				all, err := cached.List(context.Background())
				require.NoError(t, err)
				require.Equal(t, "b.test", all[1].Spec.Host)
			}
		})
	}
}

// TestOwnTypesAreStrict: a field of a manifest that the type does not have is named
// with its line, and so is a value that does not fit.
func TestOwnTypesAreStrict(t *testing.T) {
	for text, want := range map[string]string{
		"apiVersion: example.com/v1\nkind: Route\nmetadata: {name: a}\nspec:\n  host: a.test\n  wieght: 2\n":    `routes.yaml:6: Route: unknown field "spec.wieght"`,
		"apiVersion: example.com/v1\nkind: Route\nmetadata: {name: a}\nspec:\n  host: a.test\n  weight: many\n": `routes.yaml:6: spec.weight: a string does not fit, int64 is needed`,
		"apiVersion: example.com/v1\nkind: Rout\nmetadata: {name: a}\n":                                         `routes.yaml:1: Rout default/a: example.com/v1 has no kind Rout; did you mean Route?`,
	} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "routes.yaml"), []byte(text), 0o600))
		folder := mustFolder(t, dir, &k8swatch.FolderOptions{Scheme: ownScheme()})
		require.Len(t, folder.Errors(), 1)
		require.Contains(t, folder.Errors()[0].Error(), want)
	}
}

// TestOwnTypeDoesNotFit: what a cluster sends and the type cannot hold is left out,
// and said.
func TestOwnTypeDoesNotFit(t *testing.T) {
	src := k8swatchtest.NewSource(sent("good", "a.test", int64(1)), sent("bad", "b.test", "many")) // before the type is known
	src.SetScheme(ownScheme())
	w := watching(t, src, routes, nil, 1)
	require.Equal(t, 1, w.State().Refused)
	require.Equal(t, "shop/good ", names(k8swatch.Read[*Route](w.Snapshot()).List()))
	cached, err := k8swatch.NewCached[*Route](src, routes, nil)
	require.NoError(t, err)
	start(t, cached)
	_, err = cached.Get(context.Background(), "shop", "bad")
	var fetch *k8swatch.FetchError
	require.True(t, errors.As(err, &fetch), err)
	require.ErrorContains(t, err, "weight")
}

// TestOwnTypeOfAnotherVersion: a type that is registered for another version than the
// one that is watched is no type of the objects, and the error says where to look.
func TestOwnTypeOfAnotherVersion(t *testing.T) {
	types := runtime.NewScheme()
	types.AddKnownTypeWithName(schema.GroupVersionKind{Group: routes.Group, Version: "v2", Kind: "Route"}, &Route{})
	src := k8swatchtest.NewSource(sent("a", "a.test", int64(1)))
	src.SetScheme(types)
	const hint = "is its kind registered for example.com/v1 in the scheme of the source"
	_, err := k8swatch.NewSingle[*Route](src, routes, "shop", "a", nil)
	require.ErrorContains(t, err, hint)
	w := mustNew(t, src, routes, nil)
	defer func() { require.Contains(t, recover(), hint) }()
	k8swatch.Read[*Route](w.Snapshot())
}

// TestOwnTypesInTests: a snapshot of objects made by hand has their type.
func TestOwnTypesInTests(t *testing.T) {
	r := route("a", "a.test")
	r.TypeMeta = metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Route"}
	for _, objs := range [][]runtime.Object{{r}, nil} {
		snap := k8swatchtest.Snapshot(t, routes, &k8swatch.Options{IndexBy: []string{"spec.host"}}, objs...)
		require.Len(t, k8swatch.Read[*Route](snap).Get("a.test"), len(objs))
	}
	_, err := k8swatch.NewStatic(route("a", "a.test"))
	require.ErrorContains(t, err, "set its TypeMeta")
}
