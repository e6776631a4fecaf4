package dataplane_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
)

// fenceAfter lets n changes pass.
func fenceAfter(n int) (dataplane.SyncOption, error) {
	lost := errors.New("lost the lead")
	return dataplane.WithFence(func() error {
		if n--; n < 0 {
			return lost
		}
		return nil
	}), lost
}

// TestClientFence has the lead lost before each changing call of a Sync in
// turn: no further one is made, and the next Sync that leads ends well.
func TestClientFence(t *testing.T) {
	t.Parallel()
	for calls := 0; ; calls++ {
		require.Less(t, calls, 50)
		api := dataplanetest.New(t, nil)
		client, err := dataplane.NewClient(api.Endpoint(), nil)
		require.NoError(t, err)
		defer client.Close()
		desired := exampleConfigWithMap(t)
		changing := func() (n int) {
			for _, r := range api.Requests() {
				if r.Method != http.MethodGet {
					n++
				}
			}
			return n
		}
		fence, lost := fenceAfter(calls)
		_, err = client.Sync(t.Context(), desired, fence)
		if err == nil {
			require.Greater(t, calls, 1, "a file and the configuration take calls")
			return
		}
		require.ErrorIs(t, err, lost)
		require.False(t, dataplane.Retryable(err))
		require.Equal(t, calls, changing())
		_, err = client.Sync(t.Context(), desired)
		require.NoError(t, err)
		plan, err := client.DryRun(t.Context(), desired)
		require.NoError(t, err)
		require.True(t, plan.Empty(), "%s", plan)
	}
}

func exampleConfigWithMap(t *testing.T) *dataplane.Config {
	cfg, err := dataplane.NewConfig(`defaults
  mode http
  timeout connect 1s
  timeout client 10s
  timeout server 10s
frontend web
  bind 127.0.0.1:1
  use_backend %[path,map(/etc/haproxy/maps/paths.map)]
backend shop
  server s1 192.0.2.1:80
`, dataplane.File{Kind: dataplane.Map, Name: "paths.map", Content: []byte("/a shop\n")})
	require.NoError(t, err)
	return cfg
}

func TestLocalFence(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	lead := func(text string) {
		fence, lost := fenceAfter(0)
		_, err := h.local.Sync(t.Context(), h.config(text), fence)
		require.ErrorIs(t, err, lost)
	}
	one, two := h.web("server s1 "+h.server("127.0.0.2")), h.web("server s1 "+h.server("127.0.0.3"))
	lead(one)
	stored, err := h.local.Current(t.Context())
	require.NoError(t, err)
	require.Nil(t, stored, "neither started")
	before := h.sync(one)
	lead(two)                                                  // nor changed at runtime
	lead(h.web("timeout server 7s", "server s1 192.0.2.1:80")) // nor reloaded
	after := h.sync(one)
	require.True(t, after.Plan.Empty(), "%s", after.Plan)
	require.Equal(t, before.WorkerPID, after.WorkerPID)
}

func ExampleWithFence() {
	api, err := dataplanetest.Start(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer api.Close()
	leading := func() bool { return false } // such as k8swatch.Election.Leading
	client, err := dataplane.NewClient(api.Endpoint(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	_, err = client.Sync(context.Background(), exampleConfig("192.0.2.1:80"), dataplane.WithFence(func() error {
		if !leading() {
			return errors.New("another process leads")
		}
		return nil
	}))
	fmt.Println(err != nil, api.Version() == 1)
	// Output:
	// true true
}
