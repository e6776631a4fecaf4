package dataplane_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
)

// A change that takes a reload is left for later.
func ExampleWithoutReload() {
	api, err := dataplanetest.Start(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer api.Close()
	client, err := dataplane.NewClient(api.Endpoint(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	result, err := client.Sync(context.Background(), exampleConfig("192.0.2.1:80"), dataplane.WithoutReload())
	fmt.Println(result.Reloads, result.Left.Impact(), err)
	// Output: 0 reload <nil>
}

// The process has a change at once. One push stores several of them.
func ExampleStoreLater() {
	api, err := dataplanetest.Start(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer api.Close()
	client, err := dataplane.NewClient(api.Endpoint(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	ctx := context.Background()
	if _, err := client.Sync(ctx, exampleConfig("192.0.2.1:80")); err != nil {
		log.Fatal(err)
	}
	before := api.Version()
	if _, err := client.Sync(ctx, exampleConfig("192.0.2.2:80"), dataplane.StoreLater()); err != nil {
		log.Fatal(err)
	}
	if err := client.Store(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println("pushes:", api.Version()-before, "reloads:", len(api.Reloads())-1)
	// Output: pushes: 1 reloads: 0
}

// A fake of an instance learns what it may do.
func ExampleLimitsOf() {
	limits := dataplane.LimitsOf(dataplane.WithoutReload())
	fmt.Println(limits.WithoutReload, limits.StoreLater, limits.Fence == nil)
	// Output: true false true
}

// Both checks are for probes: a HAProxy that was not started yet does not serve.
func ExampleLocal_Serving() {
	local, err := dataplane.NewLocal(dataplane.LocalOptions{Dir: os.TempDir() + "/haptic-example"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(errors.Is(local.Serving(), dataplane.ErrNotRunning), local.MasterAnswers())
	// Output: true <nil>
}

// haproxy -c runs under the same account as the HAProxy that serves.
func ExampleDefaultUser() {
	user := dataplane.DefaultUser()
	fmt.Println(user == "" || user == "haproxy")
	// Output: true
}
