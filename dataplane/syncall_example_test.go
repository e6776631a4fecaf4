package dataplane_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
)

// One configuration for all the HAProxy pods of a controller, one of which is
// not there.
func ExampleSyncAll() {
	api, err := dataplanetest.Start(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer api.Close()

	var pods []*dataplane.Client
	for _, e := range []dataplane.Endpoint{
		{Name: "haproxy-0", URL: api.URL(), Username: "admin", Password: "secret"},
		{Name: "haproxy-1", URL: "http://127.0.0.1:1", Username: "admin", Password: "secret"},
	} {
		pod, err := dataplane.NewClient(e, &dataplane.ClientOptions{Attempts: 1})
		if err != nil {
			fmt.Println(err)
			return
		}
		defer pod.Close()
		pods = append(pods, pod)
	}
	desired := exampleConfig("192.0.2.1:80")
	for _, o := range dataplane.SyncAll(context.Background(), dataplane.DeployTo(desired, pods...), nil) {
		var failed *dataplane.Error
		switch {
		case o.Err == nil:
			fmt.Printf("%s: done with %d reload\n", o.Endpoint, o.Result.Reloads)
		case errors.As(o.Err, &failed):
			fmt.Printf("%s: %s failed, worth a retry: %v\n", o.Endpoint, failed.Stage, dataplane.Retryable(o.Err))
		}
	}
	// Output:
	// haproxy-0: done with 1 reload
	// haproxy-1: probe failed, worth a retry: true
}

// HAProxies whose files lie elsewhere get a configuration of their own.
func ExampleDeployTo() {
	var pods []*dataplane.Client // all alike
	for _, name := range []string{"haproxy-0", "haproxy-1"} {
		pod, err := dataplane.NewClient(dataplane.Endpoint{Name: name, URL: "http://192.0.2.1:5555"}, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		pods = append(pods, pod)
	}
	local, err := dataplane.NewLocal(dataplane.LocalOptions{Dir: "/var/lib/mycontroller"})
	if err != nil {
		fmt.Println(err)
		return
	}
	deployments := dataplane.DeployTo(exampleConfig("192.0.2.1:80"), pods...)
	deployments = append(deployments, dataplane.Deployment{To: local, Desired: exampleConfig("192.0.2.2:80")})
	for _, d := range deployments {
		server := d.Desired.Main()[strings.LastIndex(d.Desired.Main(), " ")+1:]
		fmt.Println(d.To.Name(), strings.TrimSpace(server))
	}
	// Output:
	// haproxy-0 192.0.2.1:80
	// haproxy-1 192.0.2.1:80
	// local 192.0.2.2:80
}

// Who does not care which endpoint failed takes all errors as one, in which each
// names its endpoint.
func ExampleOutcomes_Err() {
	outcomes := dataplane.Outcomes{
		{Endpoint: "haproxy-0"},
		{Endpoint: "haproxy-1", Err: &dataplane.Error{Endpoint: "haproxy-1", Stage: "reload", Err: dataplane.ErrReload}},
	}
	fmt.Println(outcomes.Err())
	fmt.Println(outcomes[:1].Err())
	// Output:
	// haproxy-1: reload: reload failed
	// <nil>
}
