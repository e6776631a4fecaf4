package k8swatch_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	yamlnode "go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hapticsdk/haptic/k8swatch"
)

func staticService(namespace, name string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// TestStaticIdentity: who sorts by uid gets one order, whatever was given first.
func TestStaticIdentity(t *testing.T) {
	one, err := k8swatch.NewStatic(staticService("shop", "a"), staticService("shop", "b"))
	require.NoError(t, err)
	two, err := k8swatch.NewStatic(staticService("shop", "b"), staticService("shop", "a"))
	require.NoError(t, err)
	require.Equal(t, two.Objects()[1].GetUID(), one.Objects()[0].GetUID(), "a uid depends on more than kind and name")
	for _, o := range one.Objects() { // as a cluster sends them
		require.NotEmpty(t, o.GetUID())
		require.NotEmpty(t, o.GetResourceVersion())
		require.Equal(t, "Service", o.GetObjectKind().GroupVersionKind().Kind)
	}
	require.NotEqual(t, one.Objects()[1].GetUID(), one.Objects()[0].GetUID(), "a uid depends on more than kind and name")
}

func TestStaticRefuses(t *testing.T) {
	named, err := k8swatch.ParseManifests("web.yaml", []byte("apiVersion: v1\nkind: Service\nmetadata: {name: a, namespace: shop}\n"))
	require.NoError(t, err)
	_, err = k8swatch.NewStatic(staticService("shop", "a"), staticService("shop", ""), nil, named[0], &metav1.Status{})
	for _, want := range []string{"object 1: a Service without a name", "object 2 is nil",
		"web.yaml:1: Service shop/a is defined at object 0 already", "object 4"} {
		require.ErrorContains(t, err, want)
	}
}

// TestDecodeManifest: lines are those of the file in which the manifest stands.
func TestDecodeManifest(t *testing.T) {
	const file = `name: a case
shared: &ports
  - port: 80
fixtures:
  - apiVersion: v1
    kind: Service
    metadata: {name: a}
    spec:
      ports: *ports
  - apiVersion: v1
    kind: Service
    metadata: {name: b}
    spec:
      portz: []
  - {apiVersion: v1, kind: Secret, metadata: {name: c},
     data: {k: "not base64"}}
  - apiVersion: v1
    kind: Service
    kind: Service
    metadata: {name: d}
`
	var root yamlnode.Node
	require.NoError(t, yamlnode.Unmarshal([]byte(file), &root))
	fixtures := root.Content[0].Content[5]
	var got strings.Builder
	for _, node := range fixtures.Content {
		objs, err := k8swatch.DecodeManifest("c.yaml", node)
		if err == nil {
			s := objs[0].(*corev1.Service)
			fmt.Fprintln(&got, s.Namespace, s.Name, s.Spec.Ports[0].Port, s.Annotations[k8swatch.SourceAnnotation])
			continue
		}
		fmt.Fprintln(&got, err)
	}
	want := `default a 80 c.yaml:5
c.yaml:14: Service: unknown field "spec.portz"
c.yaml:16: data.k: the value is not base64
c.yaml:19: not YAML: key "kind" already set in map
`
	require.Equal(t, want, got.String(), "got\n")
}

// TestDecodeManifestIsBounded: aliases of aliases grow without end.
func TestDecodeManifestIsBounded(t *testing.T) {
	file := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := 1; i < 10; i++ {
		file += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	var root yamlnode.Node
	require.NoError(t, yamlnode.Unmarshal([]byte(file), &root))
	require.ErrorContains(t, errOf(k8swatch.DecodeManifest("c.yaml", &root)), "more than")
}

func ExampleNewStatic() {
	src, err := k8swatch.NewStatic(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	services, err := k8swatch.New(src, corev1.SchemeGroupVersion.WithResource("services"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- services.Run(ctx) }()
	fmt.Println(services.WaitForSync(ctx))
	cancel()
	fmt.Println(<-done)
	// Output:
	// 1 <nil>
	// <nil>
}

func ExampleParseManifests() {
	objs, err := k8swatch.ParseManifests("web.yaml", []byte("apiVersion: v1\nkind: Service\nmetadata: {name: web}\n"))
	fmt.Println(objs[0].GetNamespace(), objs[0].GetName(), err)
	_, err = k8swatch.NewStatic(objs[0].(runtime.Object), objs[0])
	fmt.Println(err)
	// Output:
	// default web <nil>
	// k8swatch: web.yaml:1: Service default/web is defined at web.yaml:1 already
}

func ExampleDecodeManifest() {
	var file struct{ Fixture yamlnode.Node }
	_ = yamlnode.Unmarshal([]byte("fixture:\n  apiVersion: v1\n  kind: Service\n  metadata: {nam: web}\n"), &file)
	_, err := k8swatch.DecodeManifest("case.yaml", &file.Fixture)
	fmt.Println(err)
	// Output:
	// case.yaml:4: Service: unknown field "metadata.nam"
}
