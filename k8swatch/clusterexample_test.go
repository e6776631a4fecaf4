package k8swatch_test

import (
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hapticsdk/haptic/k8swatch"
)

// A cluster is read from a kubeconfig or, with nil, from the service account of
// the pod. Nothing is sent before a watcher runs.
func ExampleNewCluster() {
	dir, err := os.MkdirTemp("", "kubeconfig")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	kubeconfig := filepath.Join(dir, "config")
	err = os.WriteFile(kubeconfig, []byte(`
apiVersion: v1
kind: Config
current-context: shop
clusters: [{name: main, cluster: {server: "https://127.0.0.1:6443"}}]
users: [{name: reader}]
contexts: [{name: shop, context: {cluster: main, user: reader, namespace: shop}}]
`), 0o600)
	if err != nil {
		panic(err)
	}
	cluster, err := k8swatch.NewCluster(&k8swatch.ClusterOptions{Kubeconfig: kubeconfig})
	if err != nil {
		panic(err)
	}
	defer cluster.Close()
	fmt.Println(cluster.RESTConfig().Host)
	// Output: https://127.0.0.1:6443
}

// What the scheme of client-go does not know is unstructured.
func ExampleTypeOf() {
	fmt.Println(k8swatch.TypeOf(corev1.SchemeGroupVersion.WithResource("secrets")))
	fmt.Println(k8swatch.TypeOf(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "routes"}))
	// Output:
	// *v1.Secret
	// <nil>
}
