package dataplane_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
)

// What there is behind an endpoint says whether a change takes a reload.
func ExampleClient_Probe() {
	api, err := dataplanetest.Start(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer api.Close()
	client, err := dataplane.NewClient(api.Endpoint(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	target, err := client.Probe(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("HAProxy %s, Dataplane API %s\n", target.Version, target.API)
	// Output: HAProxy 3.2, Dataplane API 3.2
}

// Current needs no HAProxy that runs. Before the first Sync nothing is stored.
func ExampleLocal_Current() {
	dir, err := os.MkdirTemp("", "haptic-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	local, err := dataplane.NewLocal(dataplane.LocalOptions{Dir: dir, Temporary: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		current, err := local.Current(context.Background())
		switch {
		case err != nil:
			fmt.Println(err)
			return
		case current == nil:
			fmt.Println("nothing is stored")
		default:
			fmt.Print(current.Main())
		}
		// Somebody puts a configuration there, such as a backup.
		if err := os.WriteFile(local.Layout().ConfigPath(), []byte("global\n    maxconn 100\n"), 0o600); err != nil {
			fmt.Println(err)
			return
		}
	}
	// Output:
	// nothing is stored
	// global
	//     maxconn 100
}

// CheckFolder is for the start of a program, before anything else runs.
func ExampleLocal_CheckFolder() {
	dir, err := os.MkdirTemp("", "haptic-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	local, err := dataplane.NewLocal(dataplane.LocalOptions{Dir: dir})
	if err != nil {
		fmt.Println(err)
		return
	}
	switch err := local.CheckFolder(); {
	case errors.Is(err, dataplane.ErrBusy):
		fmt.Println("another controller runs here:", err)
	case err != nil:
		fmt.Println(err)
	default:
		fmt.Println("the folder is free")
	}
	// Output: the folder is free
}
