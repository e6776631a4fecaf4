package k8swatchtest_test

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
)

// servicesOf is what a watcher asks a source with.
func servicesOf(src *k8swatchtest.Source) cache.ListerWatcherWithContext {
	lw, err := src.ListWatch(services, "", nil)
	if err != nil {
		panic(err)
	}
	return lw
}

// watchFrom watches all objects there are, and then what becomes of them.
func watchFrom(lw cache.ListerWatcherWithContext, opts metav1.ListOptions) watch.Interface {
	w, err := lw.WatchWithContext(context.Background(), opts)
	if err != nil {
		panic(err)
	}
	return w
}

// A watcher goes on where it was when its watch ends.
func ExampleSource_Drop() {
	src := k8swatchtest.NewSource(k8swatchtest.Objects(service)...)
	changes := make(chan k8swatch.Changes)
	w, err := k8swatch.New(src, services, &k8swatch.Options{
		OnChange: func(_ context.Context, c k8swatch.Changes) error { changes <- c; return nil }})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- w.Run(ctx) }()
	if _, err := w.WaitForSync(ctx); err != nil {
		panic(err)
	}

	src.Drop()
	src.Apply(k8swatchtest.Objects(cart)...)
	fmt.Println((<-changes).Created, "created")
	stop()
	<-ended
	// Output: 1 created
}

// Who was away while the history was compacted cannot go on from where it was.
func ExampleSource_Compact() {
	src := k8swatchtest.NewSource(k8swatchtest.Objects(service)...)
	lw := servicesOf(src)
	list, err := lw.ListWithContext(context.Background(), metav1.ListOptions{})
	if err != nil {
		panic(err)
	}
	version := list.(metav1.ListInterface).GetResourceVersion()

	src.Compact()
	_, err = lw.WatchWithContext(context.Background(), metav1.ListOptions{ResourceVersion: version})
	fmt.Println(apierrors.IsResourceExpired(err))
	// Output: true
}

// A bookmark tells who watches one resource that the others have moved on.
func ExampleSource_Bookmark() {
	src := k8swatchtest.NewSource(k8swatchtest.Objects(service)...)
	w := watchFrom(servicesOf(src), metav1.ListOptions{AllowWatchBookmarks: true})
	defer w.Stop()
	fmt.Println((<-w.ResultChan()).Type)

	src.Apply(ingress("web", nil))
	src.Bookmark()
	e := <-w.ResultChan()
	fmt.Println(e.Type, e.Object.(metav1.Object).GetResourceVersion())
	// Output:
	// ADDED
	// BOOKMARK 3
}

// A streaming list of which nobody says that it is complete.
func ExampleSource_EatBookmarks() {
	src := k8swatchtest.NewSource(k8swatchtest.Objects(service)...)
	stream := func() {
		initial := true
		w := watchFrom(servicesOf(src), metav1.ListOptions{SendInitialEvents: &initial})
		defer w.Stop()
		first := <-w.ResultChan()
		src.Apply(k8swatchtest.Objects(cart)...)
		second := <-w.ResultChan()
		fmt.Println(first.Type, second.Type)
	}
	stream()
	src.Delete(k8swatchtest.Objects(cart)...)
	src.EatBookmarks(true)
	stream()
	// Output:
	// ADDED BOOKMARK
	// ADDED ADDED
}

func ExampleSource_Restore() {
	src := k8swatchtest.NewSource(k8swatchtest.Objects(service)...)
	lw := servicesOf(src)
	src.Partition()
	_, err := lw.ListWithContext(context.Background(), metav1.ListOptions{})
	fmt.Println(errors.Is(err, syscall.ECONNREFUSED))

	src.Restore()
	_, err = lw.ListWithContext(context.Background(), metav1.ListOptions{})
	fmt.Println(err)
	// Output:
	// true
	// <nil>
}

// A Role that lacks a verb.
func ExampleSource_Forbid() {
	src := k8swatchtest.NewSource(k8swatchtest.Objects(service)...)
	lw := servicesOf(src)
	src.Forbid(services, "watch")
	_, err := lw.ListWithContext(context.Background(), metav1.ListOptions{})
	fmt.Println(err)
	_, err = lw.WatchWithContext(context.Background(), metav1.ListOptions{})
	fmt.Println(err)
	// Output:
	// <nil>
	// services is forbidden: cannot watch resource "services"
}

// The Role is mended.
func ExampleSource_Allow() {
	src := k8swatchtest.NewSource(k8swatchtest.Objects(service)...)
	src.Forbid(services) // all verbs
	lw := servicesOf(src)
	_, err := lw.ListWithContext(context.Background(), metav1.ListOptions{})
	fmt.Println(err)

	src.Allow(services)
	_, err = lw.ListWithContext(context.Background(), metav1.ListOptions{})
	fmt.Println(err)
	// Output:
	// services is forbidden: cannot list resource "services"
	// <nil>
}

// The definition of a custom resource is deleted, and its objects with it.
func ExampleSource_Uninstall() {
	src := k8swatchtest.NewSource(k8swatchtest.Objects(service)...)
	lw := servicesOf(src)
	w := watchFrom(lw, metav1.ListOptions{})
	src.Uninstall(services)
	for e := range w.ResultChan() { // which ends
		fmt.Println(e.Type)
	}
	_, err := lw.ListWithContext(context.Background(), metav1.ListOptions{})
	fmt.Println(apierrors.IsNotFound(err))
	// Output:
	// ADDED
	// DELETED
	// true
}

// A custom resource that is installed after the controller has begun.
func ExampleSource_Install() {
	src := k8swatchtest.NewSource()
	src.Uninstall(services)
	synced := make(chan int, 1)
	w, err := k8swatch.New(src, services, &k8swatch.Options{OnSyncComplete: func(count int) { synced <- count }})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- w.Run(ctx) }()
	_, err = w.WaitForSync(ctx)
	fmt.Println(errors.Is(err, k8swatch.ErrNotInstalled))

	src.Install(services) // without objects
	fmt.Println(<-synced)
	stop()
	<-ended
	// Output:
	// true
	// 0
}

// A server that is overloaded in the middle of a list.
func ExampleSource_OnRequest() {
	src := k8swatchtest.NewSource(append(k8swatchtest.Objects(service), k8swatchtest.Objects(cart)...)...)
	src.OnRequest(func(_ context.Context, r k8swatchtest.Request) error {
		if r.Verb == "list" && r.Continue {
			return apierrors.NewTooManyRequests("later", 1)
		}
		return nil
	})
	lw := servicesOf(src)
	page, err := lw.ListWithContext(context.Background(), metav1.ListOptions{Limit: 1})
	fmt.Println(err)
	rest := metav1.ListOptions{Limit: 1, Continue: page.(metav1.ListInterface).GetContinue()}
	_, err = lw.ListWithContext(context.Background(), rest)
	fmt.Println(apierrors.IsTooManyRequests(err))
	// Output:
	// <nil>
	// true
}
