package dataplane_test

import (
	"context"
	"fmt"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
)

func ExampleClient_Forget() {
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
	ctx, desired := context.Background(), exampleConfig("192.0.2.1:80")
	if _, err := client.Sync(ctx, desired); err != nil {
		fmt.Println(err)
		return
	}
	api.SetFile(dataplane.Map, "stray.map", []byte("/a b\n")) // another process, that led meanwhile
	for range 2 {
		result, err := client.Sync(ctx, desired)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(len(result.Plan.Ops))
		client.Forget() // this one leads again
	}
	// Output:
	// 0
	// 1
}
