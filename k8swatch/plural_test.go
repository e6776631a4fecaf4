package k8swatch_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
)

// ofKind is a custom resource without a Go type.
func ofKind(kind string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "gateway.networking.k8s.io/v1", "kind": kind,
		"metadata": map[string]any{"namespace": "shop", "name": "a"}}}
}

// definition is the part of a CustomResourceDefinition that tells a plural.
func definition(kind, plural string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": plural + ".gateway.networking.k8s.io"},
		"spec":     map[string]any{"group": "gateway.networking.k8s.io", "names": map[string]any{"kind": kind, "plural": plural}}}}
}

// folderOf is a folder of manifests of the objects.
func folderOf(t *testing.T, objs ...*unstructured.Unstructured) *k8swatch.Folder {
	var text strings.Builder
	for _, o := range objs {
		data, err := o.MarshalJSON()
		require.NoError(t, err)
		text.WriteString("---\n" + string(data) + "\n")
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(text.String()), 0o600))
	folder := mustFolder(t, dir, nil)
	return folder
}

// TestPluralOfAKind: from each source, a watcher of the plural of a custom resource gets its
// objects, whether it is the English one or one that a CustomResourceDefinition tells.
func TestPluralOfAKind(t *testing.T) {
	for _, c := range []struct {
		kind, resource string
		definition     bool
	}{
		{"Gateway", "gateways", false},
		{"Policy", "policies", false},
		{"Mesh", "meshes", false},
		{"Defaults", "defaults", false},
		{"Redis", "redises", false},
		{"Database", "databases", false},
		{"Index", "indexes", false},
		{"Index", "indices", true},
		{"Person", "people", true},
	} {
		t.Run(c.kind+" "+c.resource, func(t *testing.T) {
			objs := []*unstructured.Unstructured{ofKind(c.kind)}
			if c.definition {
				objs = append([]*unstructured.Unstructured{definition(c.kind, c.resource)}, objs...)
			}
			folder := folderOf(t, objs...)
			var all []runtime.Object
			for _, o := range objs {
				all = append(all, o)
			}
			static, err := k8swatch.NewStatic(all...)
			require.NoError(t, err)
			for name, src := range map[string]k8swatch.Source{"folder": folder, "cluster": k8swatchtest.NewSource(all...), "static": static} {
				w := watching(t, src, gatewayAPI(c.resource), nil, 1)
				require.Equal(t, c.kind, w.Snapshot().List()[0].GetObjectKind().GroupVersionKind().Kind, name)
			}
			require.Empty(t, folder.Errors())
		})
	}
}

func gatewayAPI(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "gateway.networking.k8s.io", Version: "v1", Resource: resource}
}

// TestWrongPlural: each source says what is wrong with a plural under which no object can be.
func TestWrongPlural(t *testing.T) {
	for kind, wrong := range map[string]string{"Gateway": "gatewaies", "Route": "route", "Policy": "policys", "Index": "indices"} {
		right := map[string]string{"Gateway": "gateways", "Route": "routes", "Policy": "policies", "Index": "indexes"}[kind]
		t.Run(wrong, func(t *testing.T) {
			folder := folderOf(t, ofKind(kind))
			mustNew(t, folder, gatewayAPI(wrong), nil)
			errs := folder.Errors()
			require.Len(t, errs, 1)
			require.ErrorContains(t, errs[0], "did you mean to watch "+right+"?")

			static, err := k8swatch.NewStatic(ofKind(kind))
			require.NoError(t, err)
			for _, src := range []k8swatch.Source{static, k8swatchtest.NewSource(ofKind(kind))} {
				_, err := k8swatch.New(src, gatewayAPI(wrong), nil)
				var option *k8swatch.OptionError
				require.True(t, errors.As(err, &option), "%v", err)
				require.ErrorContains(t, err, "their plural is "+right+", not "+wrong+": watch "+right+", or add the CustomResourceDefinition that says "+wrong)
			}
			later := k8swatchtest.NewSource()
			mustNew(t, later, gatewayAPI(wrong), nil)
			require.PanicsWithValue(t, "k8swatchtest: there are objects of kind "+kind+" of gateway.networking.k8s.io/v1, and their plural is "+right+", not "+wrong+
				": watch "+right+", or add the CustomResourceDefinition that says "+wrong, func() { later.Apply(ofKind(kind)) })
			later.Apply(ofKind("GatewayClass"))
		})
	}
}

// TestGoTypeOfAGateway: the resource of a Go type is the English plural, too.
func TestGoTypeOfAGateway(t *testing.T) {
	types := runtime.NewScheme()
	types.AddKnownTypeWithName(gatewayAPI("").GroupVersion().WithKind("Gateway"), &Route{})
	src := k8swatchtest.NewSource()
	src.SetScheme(types)
	src.Apply(ofKind("Gateway"))
	w := watching(t, src, gatewayAPI("gateways"), nil, 1)
	require.Equal(t, "a", k8swatch.Read[*Route](w.Snapshot()).List()[0].Name)
}
