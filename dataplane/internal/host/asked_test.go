package host

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane/internal/config"
)

// withoutSocket drops the stats socket of a text.
func withoutSocket(text string) string {
	first, rest, _ := strings.Cut(text, "\n")
	_, rest, _ = strings.Cut(rest, "\n")
	return first + "\n" + rest
}

// A HAProxy whose configuration has no stats socket serves, although the file of one
// that it had before is left, and while its master is busy with a reload.
func TestAskedWithoutStatsSocket(t *testing.T) {
	t.Parallel()
	s, _ := started(t)
	s.sync(s.text("first"))
	s.sync(withoutSocket(s.text("second")))
	eventually(t, "the old worker is gone", func() bool { procs, err := s.master.Procs(t.Context()); return err == nil && len(procs.Old) == 0 })
	require.NoError(t, s.asked(t.Context()))
	if err := os.Remove(s.RuntimeSocket()); err != nil {
		require.ErrorIs(t, err, os.ErrNotExist)
	}
	procs, err := s.master.Procs(t.Context())
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(procs.MasterPID, syscall.SIGSTOP)) // up to 3.0 it answers nothing while it loads
	err = s.asked(t.Context())
	require.NoError(t, syscall.Kill(procs.MasterPID, syscall.SIGCONT))
	require.NoError(t, err)
	require.Equal(t, "second", s.body())
}

// From 3.1 on the worker of before serves while the next one loads.
func TestAskedWhileAWorkerLoads(t *testing.T) {
	t.Parallel()
	h := newHost(t, Options{Dir: newDir(t)})
	require.NoError(t, os.MkdirAll(filepath.Dir(h.opts.MasterSocket), 0o755))
	l, err := net.Listen("unix", h.opts.MasterSocket)
	require.NoError(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.ReadAll(conn)
			_, _ = fmt.Fprint(conn, "#<PID> <type> <reloads> <uptime> <version>\n5 master 1 0d00h01m00s 3.2.0\n# workers\n8 worker 0 0d00h00m01s 3.2.0\n# old workers\n6 worker 1 0d00h01m00s 3.2.0\n\n")
			_ = conn.Close()
		}
	})
	require.NoError(t, h.asked(t.Context()))
	require.NoError(t, l.Close())
	wg.Wait()
}

// Of processes that are all stopped, none is said to be missing.
func TestAskedOfOneThatIsStopped(t *testing.T) {
	t.Parallel()
	s, _ := started(t)
	s.sync(s.text("first"))
	procs, err := s.master.Procs(t.Context())
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(-procs.MasterPID, syscall.SIGSTOP))
	err = s.asked(t.Context())
	require.NoError(t, syscall.Kill(-procs.MasterPID, syscall.SIGCONT))
	require.ErrorIs(t, err, config.ErrSilent)
	require.ErrorContains(t, err, "neither its worker nor its master answers")
}

// Beside a HAProxy of another program, Serving knows that it is not there, and nothing
// any more when Run has ended.
func TestServingBesideAnother(t *testing.T) {
	t.Parallel()
	s := &site{TB: t, dir: newDir(t)}
	s.again()
	err := s.asked(t.Context())
	require.ErrorIs(t, err, config.ErrNotRunning)
	require.ErrorContains(t, err, "no HAProxy listens on the master socket")
	s = attached(t)
	stop := running(t, s.Host)
	eventually(t, "it serves", func() bool { return s.Serving() == nil })
	stop()
	require.ErrorIs(t, s.Serving(), config.ErrNotRunning)
}

// The cause that is said is the last one, and one silence is one event.
func TestHeardTheLastCause(t *testing.T) {
	t.Parallel()
	var kinds []string
	s := &status{tell: func(e ProcessEvent) { kinds = append(kinds, e.Kind) }}
	h := &Host{}
	h.status.tell = s.tell
	h.status.heard(1, errors.New("stopped"), nil)
	h.status.heard(1, errors.New("gone"), nil)
	require.EqualError(t, h.Serving(), "gone")
	h.status.heard(1, nil, nil)
	require.Equal(t, []string{Silent, Answers}, kinds)
}
