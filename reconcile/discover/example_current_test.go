package discover_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/discover"
)

// A controller that starts reads what an earlier one deployed.
func ExampleFollower_Current() {
	api, err := dataplanetest.Start(&dataplanetest.Options{Config: "global\n  maxconn 7\n"})
	if err != nil {
		panic(err)
	}
	defer api.Close()
	loop, err := reconcile.New(reconcile.Options{Renderer: reconcile.RendererFunc(func(context.Context) (*reconcile.Rendered, error) { return nil, nil })})
	if err != nil {
		panic(err)
	}
	follower, err := discover.NewFollower(discover.FollowerOptions{SetTargets: loop.SetTargets})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = follower.Run(ctx) })
	err = follower.Set(discover.Wanted{URLs: []string{api.URL()}, Credentials: discover.Credentials{DataplaneUsername: "admin", DataplanePassword: "secret"}})
	if err != nil {
		panic(err)
	}
	if err := follower.Wait(ctx); err != nil {
		panic(err)
	}
	follower.Look() // such as after a SIGHUP
	deployed, err := follower.Current(ctx)
	fmt.Println(follower.Check(), err)
	fmt.Print(deployed.Main())
	stop()
	wg.Wait()
	// Output:
	// <nil> <nil>
	// global
	//   maxconn 7
}
