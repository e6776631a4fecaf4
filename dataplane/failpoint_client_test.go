package dataplane_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
)

// killedClient deploys with a client that dies at its n-th changing request. It
// reports false where there are fewer.
func killedClient(t *testing.T, s *site, config *dataplane.Config, n int, after bool) (where string, killed bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	wire := &http.Transport{}
	defer wire.CloseIdleConnections()
	way := &severed{cut: &cut{n: n, end: cancel}, next: wire, after: after, dies: true}
	client := s.client(t, &dataplane.ClientOptions{HTTPClient: &http.Client{Transport: way}, Attempts: 1})
	_, err := client.Sync(ctx, config)
	requests, killed := way.reached()
	if !killed {
		require.NoError(t, err)
		return "", false
	}
	if err == nil {
		// It had done all that matters. What it acknowledges must be there.
		plan, err := s.client(t, nil).DryRun(t.Context(), config)
		require.NoError(t, err)
		for _, op := range plan.Ops { // its mark may have stayed
			require.Equal(t, "process", op.Kind, "%s", plan)
		}
	}
	return fmt.Sprintf("killed at %s, after: %v", requests[n], after), true
}

// TestClientKilledAtEachRequest ends a Client before and after each request
// that changes something. A new one gets to where the old one was going, or
// back to where it came from, whatever HAProxy and the API have by then.
func TestClientKilledAtEachRequest(t *testing.T) {
	t.Parallel()
	needHAProxy(t)
	w, archives := crashWorld(t)
	t.Run("on the way to", func(t *testing.T) {
		for _, way := range crashes {
			t.Run(way.name, func(t *testing.T) {
				t.Parallel()
				server := dataplanetest.New(t, &dataplanetest.Options{HAProxy: siteHAProxy(t)})
				s := &site{Server: server, endpoint: server.Endpoint(), real: true}
				p := sitePlace(t, s)
				c := &clientCrash{contract: contract{world: w, place: p, states: map[string][]string{}}}
				from, _ := w.render(t, archives[way.from], p)
				to, _ := w.render(t, archives[way.to], p)
				other, _ := w.render(t, archives["sections"], p)
				for _, config := range []*dataplane.Config{to, from} {
					for _, next := range []*dataplane.Config{other, config} {
						_, err := p.Sync(t.Context(), next)
						require.NoError(t, err)
					}
					c.states[config.Hash()] = c.state(t)
				}
				cutAt(t, 3, func(n int) bool {
					where, killed := killedClient(t, s, to, n, false)
					if killed {
						c.gets(t, p.anew(), to, where)
					}
					c.gets(t, p.anew(), from, where)
					if killed {
						where, _ = killedClient(t, s, to, n, true)
						c.gets(t, p.anew(), from, where)
					}
					return killed
				})
			})
		}
	})
}

type clientCrash struct{ contract }

// gets checks that a client gets to a configuration, with at most one reload,
// and that what it acknowledges is there.
func (c *clientCrash) gets(t *testing.T, by deployer, config *dataplane.Config, where string) {
	t.Helper()
	result, err := by.Sync(t.Context(), config)
	require.NoError(t, err, where)
	require.LessOrEqual(t, result.Reloads, 1, where)
	want := strings.Join(c.states[config.Hash()], "\n")
	got := strings.Join(c.state(t), "\n")
	require.Equal(t, want, got, "%s: %s", where, result)
	c.isStored(t, config)
	again, err := by.Sync(t.Context(), config)
	require.NoError(t, err)
	require.True(t, again.Plan.Empty(), "%s: %s", where, again.Plan)
	require.Zero(t, again.Reloads+again.Commands+again.Files, where)
}

// TestClientSecondWriterAnywhere has somebody else write between any two
// requests of a Client. The Client gets its own way whenever that happens, and
// never writes over what it has not read: what is written after its last push
// stays until its next Sync.
func TestClientSecondWriterAnywhere(t *testing.T) {
	t.Parallel()
	const theirs = "\nbackend theirs\n  server x 192.0.2.99:80\n"
	kept, replaced := 0, 0
	for k, again := 0, true; again; k++ {
		server := dataplanetest.New(t, nil)
		s := &site{Server: server, endpoint: server.Endpoint()}
		d := newDesired(t, s)
		wire := &http.Transport{}
		transport := &severed{cut: &cut{n: never}, next: wire}
		client := s.client(t, &dataplane.ClientOptions{HTTPClient: &http.Client{Transport: transport}})
		syncSite(t, client, d.config(t))

		d.s1, d.mapText, d.certificate = "127.0.0.8:8 weight 10", "/a other\n", siteCertificate(t, "a.test")
		var written int64
		from := transport.all
		transport.between = func(n int) {
			if n == from+k {
				s.Write(s.Raw() + theirs)
				written = s.Version()
			}
		}
		result := syncSite(t, client, d.config(t))
		transport.between = nil
		if again = written != 0; again {
			require.Contains(t, s.Raw(), "server s1 127.0.0.8:8 weight 10", "ours is lost, %d: %s", k, result)
			if s.Version() == written {
				kept++
				require.Contains(t, s.Raw(), "backend theirs", "theirs is lost, %d: %s", k, result)
			} else {
				replaced++
				require.NotContains(t, s.Raw(), "backend theirs", "%d: %s", k, result)
			}
		}
		require.Equal(t, d.mapText, s.file(dataplane.Map, "m.map"), k)

		last := syncSite(t, client, d.config(t))
		require.NotContains(t, s.Raw(), "backend theirs", k)
		require.LessOrEqual(t, last.Reloads, 1)
		address, _ := s.LoadedServer("b", "s1")
		require.Equal(t, "127.0.0.8:8", address, k)
		plan, err := s.client(t, nil).DryRun(t.Context(), d.config(t))
		require.NoError(t, err)
		require.True(t, plan.Empty(), "%d: %s", k, plan)
		wire.CloseIdleConnections()
		server.Close()
	}
	require.NotZero(t, kept, "some wrote last")
	require.NotZero(t, replaced, "some were read in time")
}
