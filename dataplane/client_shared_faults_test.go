package dataplane_test

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
)

const sharedApp = `
frontend ours
  bind unix@DIR/ours.sock
  default_backend app

backend app
  server s1 127.0.0.1:1001
`

// sharedFake is an endpoint without a haproxy on which both have deployed.
func sharedFake(t *testing.T, o *dataplane.ClientOptions) (*site, *dataplane.Client) {
	s := fakeSite(t, nil)
	sharedSite(t, s)
	if o == nil {
		o = &dataplane.ClientOptions{}
	}
	o.Shared = true
	client := s.client(t, o)
	syncSite(t, client, ourConfig(t, s, sharedApp))
	return s, client
}

// changedApp takes a reload.
var changedApp = strings.Replace(sharedApp, "  default_backend", "  http-request deny if { path /x }\n  default_backend", 1)

// A second writer gets in between at each call of a Sync in turn: no update of
// either is lost.
func TestClientSharedSecondWriter(t *testing.T) {
	t.Parallel()
	for skip, late := 0, false; !late; skip++ {
		wire := &http.Transport{}
		way := &severed{cut: &cut{n: never}, next: wire}
		s, client := sharedFake(t, &dataplane.ClientOptions{Attempts: 5, HTTPClient: &http.Client{Transport: way}})
		first := way.all
		late = true
		way.between = func(all int) {
			if all == first+skip {
				late = false
				s.Write(strings.Replace(s.Raw(), "X-Theirs yes", "X-Theirs again", 1))
			}
		}
		require.NoError(t, errOf(client.Sync(t.Context(), ourConfig(t, s, changedApp))), "call %d", skip)
		way.between = nil
		require.Equal(t, !late, strings.Contains(s.Raw(), "X-Theirs again"), "call %d", skip)
		require.NoError(t, errOf(client.Sync(t.Context(), ourConfig(t, s, changedApp))), "call %d", skip)
		require.Equal(t, !late, strings.Contains(s.Raw(), "X-Theirs again"), "call %d", skip)
		require.Contains(t, s.Raw(), "path /x", "call %d", skip)
		require.True(t, !late || skip > 5)
		wire.CloseIdleConnections()
	}
}

func errOf(_ *dataplane.Result, err error) error { return err }

// Whatever happens to the push, both owners keep what is theirs, and in the end a
// Sync gets there.
func TestClientSharedFaults(t *testing.T) {
	t.Parallel()
	const push = "configuration/raw"
	for name, c := range map[string]struct {
		fault dataplanetest.Fault
		err   error // nil: the Sync gets over it
	}{
		"too many requests":   {fault: dataplanetest.Fault{Method: "POST", Path: push, Status: 429}},
		"version is stale":    {fault: dataplanetest.Fault{Method: "POST", Path: push, Status: 409}},
		"reading fails":       {fault: dataplanetest.Fault{Method: "GET", Path: push, Status: 503}},
		"collides for long":   {fault: dataplanetest.Fault{Method: "POST", Path: push, Status: 409, Times: 3}, err: dataplane.ErrConflict},
		"is done but cut":     {fault: dataplanetest.Fault{Method: "POST", Path: push, Cut: true}},
		"is dropped":          {fault: dataplanetest.Fault{Method: "POST", Path: push, Drop: true}},
		"is refused":          {fault: dataplanetest.Fault{Method: "POST", Path: push, Status: 400}, err: dataplane.ErrInvalid},
		"ledger is not taken": {fault: dataplanetest.Fault{Method: "PUT", Path: "haptic-ledger", Status: 500}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, client := sharedFake(t, nil)
			s.Fail(c.fault)
			_, err := client.Sync(t.Context(), ourConfig(t, s, changedApp))
			require.ErrorIs(t, err, c.err)
			require.NoError(t, errOf(client.Sync(t.Context(), ourConfig(t, s, changedApp))))
			require.Contains(t, s.Raw(), "path /x")
			requireTheirs(t, s)
		})
	}
}

// Who loses the lead before a change does not leave a transaction open either.
func TestClientSharedFence(t *testing.T) {
	t.Parallel()
	for changes := 0; ; changes++ {
		require.Less(t, changes, 60)
		s, client := sharedFake(t, nil)
		fence, lost := fenceAfter(changes)
		_, err := client.Sync(t.Context(), ourConfig(t, s, changedApp), fence)
		if err == nil {
			require.Greater(t, changes, 2)
			return
		}
		require.ErrorIs(t, err, lost, "change %d", changes)
		require.NoError(t, errOf(client.Sync(t.Context(), ourConfig(t, s, changedApp))), "change %d", changes)
		require.Contains(t, s.Raw(), "path /x", "change %d", changes)
		requireTheirs(t, s)
	}
}

// A reload that fails leaves both as they were.
func TestClientSharedFailedReload(t *testing.T) {
	t.Parallel()
	sites(t, func(t *testing.T, s *site) {
		sharedSite(t, s)
		client := s.client(t, &dataplane.ClientOptions{Shared: true, ReloadTimeout: s.reloadTimeout()})
		syncSite(t, client, ourConfig(t, s, sharedApp))
		before, pid := s.stored(t), s.WorkerPID()
		taken, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", localPort(t)))
		require.NoError(t, err)
		defer func() { _ = taken.Close() }()
		if !s.real {
			s.FailReload("cannot bind socket")
		}
		bad := strings.Replace(sharedApp, "  default_backend", "  bind "+taken.Addr().String()+"\n  default_backend", 1)
		_, err = client.Sync(t.Context(), ourConfig(t, s, bad))
		require.ErrorIs(t, err, dataplane.ErrReload)
		require.Equal(t, before, s.stored(t))
		require.Equal(t, pid, s.WorkerPID())
		requireTheirs(t, s)
		syncSite(t, client, ourConfig(t, s, sharedApp))
		require.NoError(t, taken.Close())
		syncSite(t, client, ourConfig(t, s, bad))
	})
}

// Files of the other owner stay, ours go when they are not wanted any more, and
// a Client that starts anew knows which is which.
func TestClientSharedFiles(t *testing.T) {
	t.Parallel()
	sites(t, func(t *testing.T, s *site) {
		sharedSite(t, s)
		if !s.foreign {
			s.SetFile(dataplane.Map, "theirs.map", []byte("a b\n"))
		}
		options := &dataplane.ClientOptions{Shared: true}
		ours := dataplane.File{Kind: dataplane.Map, Name: "ours.map", Content: []byte("/a a\n")}
		text := strings.Replace(sharedApp, "  default_backend", "  http-request set-header X %[path,map("+s.Layout().Path(dataplane.Map, "ours.map")+")]\n  default_backend", 1)
		syncSite(t, s.client(t, options), ourConfig(t, s, text, ours))
		require.NotEmpty(t, s.file(dataplane.Map, "ours.map"))
		syncSite(t, s.client(t, options), ourConfig(t, s, "\nbackend app\n  server s1 127.0.0.1:1001\n"))
		require.Empty(t, s.file(dataplane.Map, "ours.map"))
		require.NotContains(t, s.stored(t), "frontend ours")
		if !s.foreign {
			require.NotEmpty(t, s.file(dataplane.Map, "theirs.map"))
		}
		requireTheirs(t, s)
	})
}
