package dataplanetest_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
)

// In a test, New(t, nil) does the same and closes the server at its end.
func ExampleStart() {
	s, err := dataplanetest.Start(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()

	config, err := dataplane.NewConfig("defaults\n  mode http\nbackend shop\n  server s1 192.0.2.1:80\n")
	if err != nil {
		log.Fatal(err)
	}
	result, err := dataplane.Sync(context.Background(), s.Endpoint(), config, nil)
	if err != nil {
		log.Fatal(err)
	}
	address, state := s.LoadedServer("shop", "s1")
	fmt.Println(result.Reloads, "reload,", len(s.Reloads()), "seen")
	fmt.Println("s1 is", address, state)
	// Output:
	// 1 reload, 1 seen
	// s1 is 192.0.2.1:80 ready
}

func ExampleServer_Fail() {
	s, err := dataplanetest.Start(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	s.Fail(dataplanetest.Fault{Method: "GET", Path: "/info", Status: 401})

	config, err := dataplane.NewConfig("global\n  maxconn 10\n")
	if err != nil {
		log.Fatal(err)
	}
	_, err = dataplane.DryRun(context.Background(), s.Endpoint(), config, nil)
	fmt.Println(err)
	fmt.Println(errors.Is(err, dataplane.ErrUnauthorized), dataplane.Retryable(err))
	// Output:
	// test: probe: not authorised (status 401): a fault that the test asked for
	// true false
}

func ExampleServer_FailReload() {
	s, err := dataplanetest.Start(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	s.FailReload("cannot bind socket (Address already in use) [0.0.0.0:80]")

	config, err := dataplane.NewConfig("frontend f\n  bind :80\n")
	if err != nil {
		log.Fatal(err)
	}
	_, err = dataplane.Sync(context.Background(), s.Endpoint(), config, nil)
	fmt.Println(err)
	fmt.Println("stored:", strings.Contains(s.Raw(), "bind :80"))
	// Output:
	// test: reload: reload failed (status 400): Reload failed: cannot bind socket (Address already in use) [0.0.0.0:80]
	// stored: false
}

// A second Sync of the same configuration is one request.
func ExampleServer_Requests() {
	s, err := dataplanetest.Start(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	client, err := dataplane.NewClient(s.Endpoint(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	config, err := dataplane.NewConfig("global\n  maxconn 10\n")
	if err != nil {
		log.Fatal(err)
	}
	before := 0
	for range 2 {
		before = len(s.Requests())
		if _, err := client.Sync(context.Background(), config); err != nil {
			log.Fatal(err)
		}
	}
	for _, r := range s.Requests()[before:] {
		fmt.Println(r.Method, r.Path, r.Status)
	}
	// Output:
	// GET /info 200
}

// An operator puts a server into maintenance.
func ExampleServer_Runtime() {
	const text = "defaults\n  mode http\nbackend shop\n  server s1 192.0.2.1:80\n"
	s, err := dataplanetest.Start(&dataplanetest.Options{Config: text})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	fmt.Println(s.Runtime("set server shop/nobody state maint"))
	s.Runtime("set server shop/s1 state maint")
	fmt.Println(s.LoadedServer("shop", "s1"))
	// Output:
	// No such server.
	// 192.0.2.1:80 maint
}

// Another client writes between the moment when a client reads and the moment
// when it pushes: the push is refused with 409, and the client begins anew.
func ExampleServer_WriteBehind() {
	const text = "defaults\n  mode http\nbackend shop\n  server s1 192.0.2.1:80\n"
	s, err := dataplanetest.Start(&dataplanetest.Options{Config: text})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	s.WriteBehind(text + "backend other\n  server s1 192.0.2.9:80\n")

	config, err := dataplane.NewConfig(strings.Replace(text, "192.0.2.1", "192.0.2.7", 1))
	if err != nil {
		log.Fatal(err)
	}
	if _, err := dataplane.Sync(context.Background(), s.Endpoint(), config, nil); err != nil {
		log.Fatal(err)
	}
	for _, r := range s.Requests() {
		if r.Method == "POST" && strings.HasSuffix(r.Path, "/raw") {
			fmt.Println(r.Status)
		}
	}
	fmt.Println(strings.Contains(s.Raw(), "192.0.2.7"), strings.Contains(s.Raw(), "other"))
	// Output:
	// 409
	// 201
	// true false
}

// Another client writes: the next Sync sees it by the version and puts its own
// configuration back.
func ExampleServer_Write() {
	s, err := dataplanetest.Start(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	client, err := dataplane.NewClient(s.Endpoint(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	config, err := dataplane.NewConfig("defaults\n  mode http\nbackend shop\n  server s1 192.0.2.1:80\n")
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		result, err := client.Sync(context.Background(), config)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(result.Plan.Summary(), strings.Contains(s.Raw(), "192.0.2.9"))
		s.Write(strings.Replace(s.Raw(), "192.0.2.1", "192.0.2.9", 1))
		fmt.Println("version", s.Version(), strings.Contains(s.Raw(), "192.0.2.9"))
	}
	// Output:
	// 1 to create, 1 to update, 1 to delete; one reload false
	// version 3 true
	// 0 to create, 1 to update, 0 to delete; nothing that runs changes false
	// version 5 true
}

// A file is removed behind the API: a client that looks finds it out.
func ExampleServer_SetFile() {
	s, err := dataplanetest.Start(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	config, err := dataplane.NewConfig("global\n  maxconn 10\n",
		dataplane.File{Kind: dataplane.General, Name: "error.http", Content: []byte("HTTP/1.0 503 Later\r\n\r\n")})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := dataplane.Sync(context.Background(), s.Endpoint(), config, nil); err != nil {
		log.Fatal(err)
	}
	s.SetFile(dataplane.General, "error.http", nil)
	plan, err := dataplane.DryRun(context.Background(), s.Endpoint(), config, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(plan)
	// Output:
	// + general error.http (none)
	// Plan: 1 to create, 0 to update, 0 to delete; nothing that runs changes.
}
