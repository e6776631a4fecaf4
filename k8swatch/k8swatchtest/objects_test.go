package k8swatchtest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
)

const manifests = `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {namespace: shop, name: web}
spec: {rules: [{host: shop.test}]}
---
# nothing but a remark
---
apiVersion: example.com/v1
kind: Route
metadata: {namespace: shop, name: r}
`

func TestObjects(t *testing.T) {
	objs := k8swatchtest.Objects(manifests)
	require.Len(t, objs, 2)
	if i, ok := objs[0].(*networkingv1.Ingress); !ok || i.Spec.Rules[0].Host != "shop.test" {
		t.Errorf("%T %v", objs[0], objs[0])
	}
	if _, ok := objs[1].(*unstructured.Unstructured); !ok {
		t.Errorf("%T", objs[1])
	}
	for name, tt := range map[string]struct{ text, want string }{
		"no YAML":       {"a: [", "manifests:1:"},
		"unknown field": {manifests + "---\napiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {portz: []}\n", "portz"},
		"no kind":       {"metadata: {name: a}\n", "manifests:1:"},
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, tt.want) {
					t.Errorf("%s: panic %q, want %q", name, got, tt.want)
				}
			}()
			k8swatchtest.Objects(tt.text)
		}()
	}
}

func ExampleObjects() {
	src := k8swatchtest.NewSource(k8swatchtest.Objects(`
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {namespace: shop, name: web, labels: {team: a}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {namespace: shop, name: api, labels: {team: a}}
`)...)
	src.Edit(ingresses, "shop", "api", func(o k8swatch.Object) { o.SetLabels(map[string]string{"team": "b"}) })
	for _, o := range src.List(ingresses) {
		fmt.Println(o.GetName(), o.GetLabels()["team"])
	}
	// Output:
	// api b
	// web a
}
