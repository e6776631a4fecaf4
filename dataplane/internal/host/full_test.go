package host

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
)

// A full disk keeps no address from HAProxy. Nothing half-written is left, and the next
// Sync stores what was told.
func TestSyncOnAFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root mounts")
	}
	dir := newDir(t)
	require.NoError(t, os.Mkdir(dir, 0o755))
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m,mode=755"); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	s := &site{t, newHost(t, Options{Dir: dir}), dir}
	running(t, s.Host)
	good := s.text("one", "server a 192.0.2.1:80")
	first := s.sync(good)
	fill := filepath.Join(dir, "fill")
	require.ErrorIs(t, os.WriteFile(fill, make([]byte, 2<<20), 0o600), unix.ENOSPC)
	before := s.hidden()

	out, err := s.Sync(t.Context(), parse(t, s.text("two", "server a 192.0.2.2:80")), change.Limits{})
	require.ErrorIs(t, err, unix.ENOSPC)
	require.ErrorContains(t, err, "haproxy.cfg")
	require.NotZero(t, out.Commands)
	require.Contains(t, s.ask("show servers state shop"), "192.0.2.2")
	require.Equal(t, good, s.read("haproxy.cfg"))
	require.Equal(t, before, s.hidden())
	require.Equal(t, "one", s.body())

	require.NoError(t, os.Remove(fill))
	out = s.sync(s.text("one", "server a 192.0.2.2:80"))
	require.Zero(t, out.Reloads+out.Commands)
	require.Equal(t, first.WorkerPID, out.WorkerPID)
}
