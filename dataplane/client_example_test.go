package dataplane_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
)

func exampleConfig(server string) *dataplane.Config {
	config, err := dataplane.NewConfig(`defaults
  mode http
  timeout connect 1s
  timeout client 10s
  timeout server 10s
backend shop
  server s1 ` + server + `
`)
	if err != nil {
		log.Fatal(err)
	}
	return config
}

// The first Sync replaces what is there, which takes a reload. The second one
// changes an address, which does not. The third has nothing to do.
func ExampleClient_Sync() {
	api, err := dataplanetest.Start(nil) // in production: http://haproxy-pod:5555
	if err != nil {
		log.Fatal(err)
	}
	defer api.Close()
	client, err := dataplane.NewClient(dataplane.Endpoint{
		Name: "haproxy-0", URL: api.URL(), Username: "admin", Password: "secret",
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	for _, server := range []string{"192.0.2.1:80", "192.0.2.2:80", "192.0.2.2:80"} {
		result, err := client.Sync(context.Background(), exampleConfig(server))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s; %d reloads, %d commands\n", result.Plan.Summary(), result.Reloads, result.Commands)
	}
	// Output:
	// 1 to create, 0 to update, 1 to delete; one reload; 1 reloads, 0 commands
	// 0 to create, 1 to update, 0 to delete; runtime, no reload; 0 reloads, 1 commands
	// no changes; 0 reloads, 0 commands
}

func ExampleClient_DryRun() {
	api, err := dataplanetest.Start(&dataplanetest.Options{Config: exampleConfig("192.0.2.1:80").Main()})
	if err != nil {
		log.Fatal(err)
	}
	defer api.Close()
	client, err := dataplane.NewClient(api.Endpoint(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	plan, err := client.DryRun(context.Background(), exampleConfig("192.0.2.2:80"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(plan)
	// Output:
	// ~ server s1 in backend shop (runtime)
	//     address: 192.0.2.1:80 -> 192.0.2.2:80
	// Plan: 0 to create, 1 to update, 0 to delete; runtime, no reload.
}

func ExampleNewClient() {
	client, err := dataplane.NewClient(dataplane.Endpoint{
		URL:      "unix:///run/dataplaneapi.sock",
		Username: "admin",
		Password: "from a Secret",
	}, &dataplane.ClientOptions{Layout: dataplane.Layout{Base: "/usr/local/etc/haproxy"}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(client.Name())
	fmt.Println(client.Layout().Path(dataplane.Map, "hosts.map"))
	// Output:
	// unix:///run/dataplaneapi.sock
	// /usr/local/etc/haproxy/maps/hosts.map
}

// Errors say where and what, and whether trying again can help.
func ExampleSync() {
	api, err := dataplanetest.Start(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer api.Close()
	config, err := dataplane.NewConfig("global\n.if feature(LUA)\n  maxconn 10\n.endif\n")
	if err != nil {
		log.Fatal(err)
	}

	_, err = dataplane.Sync(context.Background(), api.Endpoint(), config, nil)
	fmt.Println(errors.Is(err, dataplane.ErrUnsupported), dataplane.Retryable(err))
	fmt.Println(err)
	// Output:
	// true false
	// test: check: haproxy.cfg:2: not supported: .if feature(LUA): the Dataplane API loses what conditional blocks hold
}

func ExampleDryRun() {
	api, err := dataplanetest.Start(&dataplanetest.Options{Config: exampleConfig("192.0.2.1:80").Main()})
	if err != nil {
		log.Fatal(err)
	}
	defer api.Close()
	plan, err := dataplane.DryRun(context.Background(), api.Endpoint(), exampleConfig("192.0.2.1:80"), nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(plan)
	// Output: No changes.
}

func ExampleEndpoint() {
	e := dataplane.Endpoint{Name: "haproxy-0", URL: "https://192.0.2.1:5555", Username: "admin", Password: "hunter2"}
	fmt.Println(e)
	// Output: haproxy-0 (https://192.0.2.1:5555) as admin
}

// An endpoint that somebody else configures as well: their sections stay.
func ExampleClientOptions_shared() {
	api, err := dataplanetest.Start(&dataplanetest.Options{Config: "backend theirs\n  server s1 192.0.2.1:80\n"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer api.Close()
	config, err := dataplane.NewConfig("backend ours\n  server s1 198.51.100.1:80\n")
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := dataplane.Sync(context.Background(), api.Endpoint(), config, &dataplane.ClientOptions{Shared: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(result.Plan)
	fmt.Println(strings.Contains(api.Raw(), "backend theirs"))
	// Output:
	// + backend ours (reload: HAProxy reads new sections only at a reload)
	// Plan: 1 to create, 0 to update, 0 to delete; one reload.
	// true
}
