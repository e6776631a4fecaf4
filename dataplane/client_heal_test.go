package dataplane_test

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
)

// From HAProxy 3.1 on a master whose last load failed does not hand its unix
// sockets to the next worker: a second failure must not leave nobody there.
func TestClientKeepsSockets(t *testing.T) {
	t.Parallel()
	s := &site{real: true, Server: dataplanetest.New(t, &dataplanetest.Options{HAProxy: siteHAProxy(t)})}
	s.endpoint = s.Endpoint()
	d := newDesired(t, s)
	client := s.client(t, nil)
	good := d.config(t)
	syncSite(t, client, good)
	// Not a port that is taken, for which HAProxy waits a while.
	d.bind = "  bind unix@" + s.Layout().Path(dataplane.General, "missing/x.sock") + "\n"
	for range 4 {
		_, err := client.Sync(t.Context(), d.config(t))
		require.ErrorIs(t, err, dataplane.ErrReload)
		conn, err := net.Dial("unix", s.Layout().Path(dataplane.General, "f.sock"))
		require.NoError(t, err)
		_ = conn.Close()
	}
	r := syncSite(t, client, good)
	require.True(t, r.Plan.Empty(), "%s", r.Plan)
	require.Zero(t, r.Reloads)
	d.bind, d.global = "", "  nbthread 2\n"
	require.Equal(t, 1, syncSite(t, client, d.config(t)).Reloads)
}
