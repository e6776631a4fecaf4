package dataplane_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
)

// TestClientRealAPIKilled ends the real Dataplane API, or the Client, at each request
// that changes something, of a Sync that tells the process and of the Store after it.
// The API that is started again, or the successor of the Client, loses no change: all is
// served and stored, with one reload at most.
func TestClientRealAPIKilled(t *testing.T) {
	t.Parallel()
	binary := os.Getenv("DATAPLANEAPI_BIN")
	if binary == "" || haproxyMinor(t) < 300 {
		t.Skip("there is no Dataplane API that can tell HAProxy servers")
	}
	for _, clientDies := range []bool{false, true} {
		t.Run(fmt.Sprintf("the client %v", clientDies), func(t *testing.T) {
			t.Parallel()
			server := dataplanetest.New(t, &dataplanetest.Options{HAProxy: siteHAProxy(t)})
			endpoint, api := startDataplaneAPI(t, binary, server)
			s := &site{Server: server, endpoint: endpoint, real: true, foreign: true}
			d := newDesired(t, s)
			syncSite(t, s.client(t, nil), d.config(t))
			try := 0
			for _, after := range []bool{false, true} {
				for n, killed := 0, true; killed; n++ {
					try++
					way := &severed{cut: &cut{n: never}, next: &http.Transport{DisableKeepAlives: true}, after: after, dies: clientDies}
					client := s.client(t, &dataplane.ClientOptions{HTTPClient: &http.Client{Transport: way}, Attempts: 1})
					syncSite(t, client, d.config(t))
					d.s1, d.mapText = fmt.Sprintf("127.0.0.%d:1003 weight 20", 1+try), fmt.Sprintf("/a a\n/n %d\n", try)
					ctx, cancel := context.WithCancel(t.Context())
					way.cut = &cut{n: n, end: api.kill}
					if clientDies {
						way.end = cancel
					}
					if _, err := client.Sync(ctx, d.config(t), dataplane.StoreLater()); err == nil {
						_ = client.Store(ctx)
					}
					cancel()
					var requests []string
					requests, killed = way.reached()
					where := fmt.Sprintf("%v, after %v", requests, after)
					switch {
					case killed && clientDies:
						client = s.client(t, nil)
					case killed:
						api.start(t)
					}
					r, err := client.Sync(t.Context(), d.config(t), dataplane.StoreLater())
					require.NoError(t, err, where)
					require.LessOrEqual(t, r.Reloads, 1, where)
					require.Equal(t, []string{fmt.Sprintf("127.0.0.%d:1003", 1+try)}, s.serves(t), where)
					require.Equal(t, fmt.Sprint(try), s.LoadedMap("m.map")["/n"], where)
					require.NoError(t, client.Store(t.Context()), where)
					require.Contains(t, s.stored(t), "server s1 "+d.s1, where)
					require.Equal(t, d.mapText, s.file(dataplane.Map, "m.map"), where)
					require.NotContains(t, s.Runtime("show servers state b"), "haptic-", where)
					plan, err := s.client(t, nil).DryRun(t.Context(), d.config(t))
					require.NoError(t, err, where)
					require.True(t, plan.Empty(), "%s: %s", where, plan)
				}
			}
		})
	}
}
