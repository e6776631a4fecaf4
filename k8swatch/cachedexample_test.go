package k8swatch_test

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
)

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
