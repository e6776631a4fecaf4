package k8swatch_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
)

// Watch ingresses, indexed by host, and read them with their type.
func ExampleNew() {
	src := k8swatchtest.NewSource(ingress("shop", "web", "shop.test", "www.shop.test"), ingress("blog", "web", "blog.test"))

	w, err := k8swatch.New(src, networkingv1.SchemeGroupVersion.WithResource("ingresses"), &k8swatch.Options{
		IndexBy:      []string{"spec.rules[*].host"},
		IgnoreFields: []string{"status"},
	})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- w.Run(ctx) }()

	n, err := w.WaitForSync(ctx)
	fmt.Println(n, err)
	ingresses := k8swatch.Read[*networkingv1.Ingress](w.Snapshot())
	for _, i := range ingresses.Get("www.shop.test") {
		fmt.Println(i.Namespace, i.Name)
	}
	stop()
	fmt.Println(<-done)
	// Output:
	// 2 <nil>
	// shop web
	// <nil>
}

// OnChange says which objects changed, and has the state that they lead to.
func ExampleOptions() {
	src := k8swatchtest.NewSource()
	changes := make(chan k8swatch.Changes)
	w, err := k8swatch.New(src, ingresses, &k8swatch.Options{
		OnChange: func(ctx context.Context, c k8swatch.Changes) error {
			select {
			case changes <- c:
			case <-ctx.Done():
			}
			return nil
		},
	})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- w.Run(ctx) }()
	if _, err := w.WaitForSync(ctx); err != nil {
		panic(err)
	}
	src.Apply(ingress("shop", "web", "shop.test"))
	c := <-changes
	fmt.Printf("%s, from revision %d to %d\n", c, c.From, c.To)
	for _, o := range c.Objects { // complete: c.More is 0
		now := c.Snapshot.Of(o.Watcher).ByName(o.Namespace, o.Name)
		fmt.Println(o, "now", now.(*networkingv1.Ingress).Spec.Rules[0].Host)
	}
	stop()
	<-done
	// Output:
	// 1 created, from revision 0 to 1
	// ingresses shop/web created now shop.test
}

// Who is called more often than it works adds up what it was told.
func ExampleChanges_And() {
	src := k8swatchtest.NewSource()
	var due k8swatch.Changes
	told := make(chan bool)
	w, err := k8swatch.New(src, ingresses, &k8swatch.Options{Debounce: -1,
		OnChange: func(_ context.Context, c k8swatch.Changes) error {
			due = due.And(c)
			told <- true
			return nil
		}})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- w.Run(ctx) }()
	if _, err := w.WaitForSync(ctx); err != nil {
		panic(err)
	}
	for _, host := range []string{"shop.test", "www.shop.test"} {
		src.Apply(ingress("shop", "web", host))
		<-told
	}
	fmt.Println(due, due.Objects)
	w.ForceSync() // calls OnChange though nothing changed
	<-told
	fmt.Println(due.To, due.Snapshot.Revision())
	stop()
	<-done
	// Output:
	// 1 created, 1 modified [ingresses shop/web created]
	// 2 2
}

// A folder of manifests is a source like any other.
func ExampleNewFolder() {
	dir, err := os.MkdirTemp("", "manifests")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	manifest := "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: web}\nspec:\n  rulez: []\n"
	if err := os.WriteFile(filepath.Join(dir, "web.yaml"), []byte(manifest), 0o600); err != nil {
		panic(err)
	}

	folder, err := k8swatch.NewFolder(dir, nil)
	if err != nil {
		panic(err)
	}
	for _, err := range folder.Errors() {
		m := err.(*k8swatch.ManifestError)
		fmt.Printf("%s:%d: %v\n", filepath.Base(m.File), m.Line, m.Err)
	}
	// Output: web.yaml:5: Ingress: unknown field "spec.rulez"
}

// A group reads all of its watchers at one instant.
func ExampleGroup() {
	src := k8swatchtest.NewSource(ingress("shop", "web", "shop.test"), service("shop", "web"))
	in, err := k8swatch.New(src, ingresses, nil)
	if err != nil {
		panic(err)
	}
	svc, err := k8swatch.New(src, services, nil)
	if err != nil {
		panic(err)
	}
	g := k8swatch.NewGroup(nil)
	if err := g.Add(in, svc); err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- g.Run(ctx) }()
	if _, err := g.WaitForSync(ctx); err != nil {
		panic(err)
	}
	snap := g.Snapshot()
	fmt.Println(snap.Of(in).Len(), snap.Resource(services).Len())
	stop()
	<-done
	// Output: 1 1
}

// A new leader reads everything again before it deploys: a watch may have missed what the
// leader before has deployed.
func ExampleGroup_Refresh() {
	src := k8swatchtest.NewSource()
	svc, err := k8swatch.New(src, services, nil)
	if err != nil {
		panic(err)
	}
	g := k8swatch.NewGroup(nil)
	if err := g.Add(svc); err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- g.Run(ctx) }()
	if _, err := g.WaitForSync(ctx); err != nil {
		panic(err)
	}
	src.Apply(service("shop", "web"))
	if err := g.Refresh(ctx); err != nil { // best with a time-out
		panic(err)
	}
	fmt.Println(svc.Snapshot().Len())
	stop()
	<-done
	// Output: 1
}

// NewSnapshot is a store without a watcher.
func ExampleNewSnapshot() {
	snap, err := k8swatch.NewSnapshot(ingresses, &k8swatch.Options{IndexBy: []string{"metadata.namespace", "spec.rules[*].host"}},
		ingress("shop", "web", "shop.test"), ingress("shop", "api", "api.shop.test"))
	if err != nil {
		panic(err)
	}
	for o := range snap.All() {
		fmt.Println(o.GetName())
	}
	fmt.Println(len(snap.Get("shop")), len(snap.Get("shop", "shop.test")))
	// Output:
	// api
	// web
	// 2 1
}

// Only look-ups of these keys have another answer now.
func ExampleSnapshot_ChangedSince() {
	src := k8swatchtest.NewSource(ingress("shop", "web", "shop.test"), ingress("blog", "web", "blog.test"))
	changed := make(chan struct{})
	w, err := k8swatch.New(src, ingresses, &k8swatch.Options{IndexBy: []string{"metadata.namespace", "spec.rules[*].host"}, Debounce: -1,
		OnChange: func(context.Context, k8swatch.Changes) error { close(changed); return nil }})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- w.Run(ctx) }()
	if _, err := w.WaitForSync(ctx); err != nil {
		panic(err)
	}
	before := w.Snapshot()
	src.Apply(ingress("shop", "web", "new.test"))
	<-changed
	fmt.Println(w.Snapshot().ChangedSince(before))
	stop()
	<-done
	// Output: [[shop shop.test] [shop new.test]] true
}

// Work that only one of several replicas may do.
func ExampleElection() {
	e, err := k8swatch.NewElection(&k8swatch.ElectionOptions{
		Client: fake.NewClientset().CoordinationV1(), Namespace: "haptic", Name: "controller", Identity: "pod-1", Logger: quiet,
	})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	err = e.Run(ctx, func(term context.Context) {
		fmt.Println("leading:", e.Leading()) // ask before each call that changes something
		stop()
		<-term.Done()
	})
	fmt.Println(err, e.Leading())
	// Output:
	// leading: true
	// <nil> false
}

func ExampleRead() {
	slices := discoveryv1.SchemeGroupVersion.WithResource("endpointslices")
	snapshot, err := k8swatch.NewSnapshot(slices, &k8swatch.Options{
		IndexBy: []string{"metadata.namespace", "metadata.labels['kubernetes.io/service-name']"},
	}, &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: "web-x7k2p", Labels: map[string]string{"kubernetes.io/service-name": "web"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.1"}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	reader := k8swatch.Read[*discoveryv1.EndpointSlice](snapshot)
	for _, slice := range reader.Get("shop", "web") {
		fmt.Println(slice.Name, slice.Endpoints[0].Addresses)
	}
	// Output:
	// web-x7k2p [192.0.2.1]
}

// A program that finds something deployed waits until it knows what the manifests say.
func ExampleFolder_WaitForKnown() {
	dir, err := os.MkdirTemp("", "manifests")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "web.yaml"), []byte("kind: Servic"), 0o600); err != nil {
		panic(err)
	}
	folder, err := k8swatch.NewFolder(dir, nil)
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer stop()
	fmt.Println(folder.WaitForKnown(ctx))
	// Output: context deadline exceeded
}

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

// All Secrets of a cluster, of which few are ever read.
func ExampleNewCached() {
	tls := secret("shop", "web-tls", "s3cret")
	tls.Labels = map[string]string{"role": "tls"}
	src := k8swatchtest.NewSource(tls, secret("shop", "database", "s3cret"))

	c, err := k8swatch.NewCached[*corev1.Secret](src, secrets, &k8swatch.CachedOptions{
		IndexBy: []string{"metadata.labels['role']", "metadata.name"},
	})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- c.Run(ctx) }()

	found, err := c.Get(ctx, "tls") // waits for the initial sync, then fetches
	fmt.Println(len(found), found[0].Name, err)
	fmt.Println(c.Metadata().Len(), "known,", c.Stats().Fetches, "fetched")

	src.Forbid(secrets, "get")
	_, err = c.Get(ctx)
	var fetch *k8swatch.FetchError
	fmt.Println(errors.As(err, &fetch), fetch.Name)
	stop()
	fmt.Println(<-done)
	// Output:
	// 1 web-tls <nil>
	// 2 known, 1 fetched
	// true database
	// <nil>
}

// List is for what is small enough to be in memory as a whole.
func ExampleCached_List() {
	src := k8swatchtest.NewSource(secret("shop", "a", "1"), secret("shop", "b", "2"), secret("blog", "c", "3"))
	c, err := k8swatch.NewCached[*corev1.Secret](src, secrets, &k8swatch.CachedOptions{Namespace: "shop"})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- c.Run(ctx) }()

	src.Forbid(secrets, "get")
	_, err = c.List(ctx)
	fmt.Println(err)

	src.Allow(secrets)
	all, err := c.List(ctx) // complete, or an error
	fmt.Println(len(all), err)
	stop()
	<-done
	// Output:
	// cannot get secrets shop/a: secrets is forbidden: cannot get resource "secrets"
	// 2 <nil>
}
