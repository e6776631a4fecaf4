package fetch_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/hapticsdk/haptic/reconcile/fetch"
)

// A renderer of one's own uses the store without Templates.
func ExampleStore_Begin() {
	content := "one"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, content) }))
	defer server.Close()
	store := &fetch.Store{}
	render := store.Begin(context.Background(), nil)
	fmt.Println(render.Fetch(server.URL))
	fmt.Println(render.FetchWith(server.URL, map[string]any{"interval": "10s"}))
	store.Settle(render, nil) // deployed
	fmt.Println(store.Resources()[0].Pending)
	// Output:
	// one
	// one
	// false
}

func ExampleStore_Settle() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "bad") }))
	defer server.Close()
	store := &fetch.Store{}
	render := store.Begin(context.Background(), nil)
	render.Fetch(server.URL)
	// There is no older version that another render could use.
	fmt.Println(store.Settle(render, errors.New("not valid")))
	// Output:
	// false
}

// A renderer that remembers texts asks whether what it fetched is still the same.
func ExampleStore_Revision() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "one") }))
	defer server.Close()
	store := &fetch.Store{}
	noted := map[any]any{}
	store.Begin(context.Background(), func(key, revision any) { noted[key] = revision }).Fetch(server.URL)
	next := store.Begin(context.Background(), nil)
	for key, revision := range noted {
		fmt.Println(store.Revision(next, key) == revision)
	}
	// Output:
	// true
}

func ExampleStore_Run() {
	store := &fetch.Store{}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	fmt.Println(store.Run(ctx))
	// Output:
	// <nil>
}
