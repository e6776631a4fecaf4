package k8swatch_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hapticsdk/haptic/k8swatch"
)

// Route sends requests for a host to a Service.
type Route struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              RouteSpec `json:"spec"`
}

// RouteSpec is the part of a Route that its author writes.
type RouteSpec struct {
	Host   string `json:"host"`
	Weight int64  `json:"weight"`
}

// DeepCopyObject implements [runtime.Object]. A generator such as controller-gen writes
// it for types with pointers, slices and maps.
func (r *Route) DeepCopyObject() runtime.Object {
	c := *r
	r.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c
}

// A watcher of a custom resource reads values of its Go type, here from a folder. A cluster
// takes the types in [k8swatch.ClusterOptions]. Each changed object becomes a line of a map.
func Example_ownType() {
	gvr := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "routes"}
	types := runtime.NewScheme() // of the program alone
	types.AddKnownTypeWithName(gvr.GroupVersion().WithKind("Route"), &Route{})

	dir, err := os.MkdirTemp("", "manifests")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	manifest := "apiVersion: example.com/v1\nkind: Route\nmetadata: {namespace: shop, name: web}\nspec: {host: shop.example.com, weight: 3}\n"
	if err := os.WriteFile(filepath.Join(dir, "routes.yaml"), []byte(manifest), 0o600); err != nil {
		panic(err)
	}
	folder, err := k8swatch.NewFolder(dir, &k8swatch.FolderOptions{Scheme: types,
		OnError: func(err error) { fmt.Println(err) }}) // with file, line and field
	if err != nil {
		panic(err)
	}
	shown := make(chan bool)
	watcher, err := k8swatch.New(folder, gvr, &k8swatch.Options{
		IndexBy:                []string{"spec.host"}, // New refuses a path that Route does not have
		CallOnChangeDuringSync: true,
		OnChange: func(_ context.Context, c k8swatch.Changes) error { // c.More: read all
			now := k8swatch.Read[*Route](c.Snapshot.Resource(gvr))
			for _, o := range c.Objects {
				fmt.Println("#", o)
				if r := now.ByName(o.Namespace, o.Name); r != nil {
					fmt.Println(r.Spec.Host, r.Namespace, r.Spec.Weight)
				}
			}
			close(shown)
			return nil
		},
	})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- watcher.Run(ctx) }() // and folder.Run, which follows the changes
	<-shown
	stop()
	<-done
	// Output:
	// # routes shop/web created
	// shop.example.com shop 3
}
