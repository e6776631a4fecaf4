package dataplane

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/internal/haproxyctl"
)

// A Sync waits for a Run that is busy with a start as long as that takes, and
// not at all long for one that does not run.
func TestLocalWaitsForRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := NewLocal(LocalOptions{Dir: "/nowhere", User: "root"})
		require.NoError(t, err)
		start := time.Now()
		require.ErrorIs(t, l.hand(t.Context(), startRequest{}), ErrNotRunning)
		require.Equal(t, waitForRun, time.Since(start))

		l.runs.Add(1)
		go func() { time.Sleep(time.Minute); <-l.requests }()
		require.NoError(t, l.hand(t.Context(), startRequest{}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, l.hand(ctx, startRequest{}), context.DeadlineExceeded)
	})
}

// logged keeps what is logged.
type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *logged) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.buf.String(), text)
}

// Run tries what is stored before it takes a request, and after a start that
// failed no earlier than the files of before are back.
func TestLocalStartsWhatIsStored(t *testing.T) {
	for range 20 {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, mainFile), []byte("global\n"), 0o600))
		synctest.Test(t, func(t *testing.T) {
			log := &logged{}
			starts := func() int { return log.count("haproxy does not start") }
			l, err := NewLocal(LocalOptions{Dir: dir, User: "root", Binary: filepath.Join(dir, "none"), Logger: slog.New(slog.NewTextHandler(log, nil))})
			require.NoError(t, err)
			settled := make(chan struct{})
			replied := make(chan int, 1)
			go func() {
				reply := l.ask(t.Context(), startRequest{start: true, settled: settled})
				require.ErrorIs(t, reply.err, ErrNotRunning)
				replied <- starts()
			}()
			synctest.Wait() // the request is there first
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- l.Run(ctx) }()
			before := <-replied
			require.NotZero(t, before)
			time.Sleep(time.Hour)
			require.Equal(t, before, starts(), "what is stored may be what has failed")
			close(settled)
			time.Sleep(time.Minute)
			require.Greater(t, starts(), before+5)
			cancel()
			require.NoError(t, <-ended)
		})
	}
}

// serveLines answers each line that comes in at a socket, as a prompt does if
// there is one.
func serveLines(t *testing.T, at, prompt string, answer func(line string) string) {
	l, err := net.Listen("unix", at)
	require.NoError(t, err)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer func() { _ = conn.Close() }()
				for lines := bufio.NewScanner(conn); lines.Scan(); {
					_, _ = fmt.Fprint(conn, answer(lines.Text()), prompt)
				}
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); all.Wait() })
}

// An old worker that still accepts on the stats socket is waited for as long as
// the master has it. Where there is none, the socket is that of somebody else.
func TestLocalDialsTheWorker(t *testing.T) {
	const alone, both = "7 master 1 0d 2.6\n# workers\n2 worker 0 0d 2.6\n", "7 master 1 0d 2.6\n# workers\n2 worker 0 0d 2.6\n# old workers\n1 worker 1 0d 2.6\n"
	for name, c := range map[string]struct {
		procs string
		from  int // the answer that comes from the worker
		err   error
		asks  int
	}{
		"at once":        {alone, 1, nil, 1},
		"an old one":     {both, 10, nil, 10},
		"somebody else":  {alone, 40, errAnotherWorker, 2},
		"the last of it": {alone, 2, nil, 2},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := NewLocal(LocalOptions{Dir: t.TempDir(), User: "root", MasterSocket: filepath.Join(t.TempDir(), "m"), RuntimeSocket: filepath.Join(t.TempDir(), "s")})
			require.NoError(t, err)
			asks := 0
			serveLines(t, l.opts.RuntimeSocket, "\n> ", func(line string) string {
				if line != "show info" {
					return ""
				}
				asks++
				if asks < c.from {
					return "Pid: 1\n"
				}
				return "Pid: 2\nHard_maxconn: 5\n"
			})
			serveLines(t, l.opts.MasterSocket, "", func(string) string { return c.procs })
			conn, info, err := l.dialWorker(t.Context(), 2)
			if err == nil {
				require.NoError(t, conn.Close())
				require.Equal(t, "2", infoField(info, "Pid"))
			}
			require.ErrorIs(t, err, c.err)
			require.Equal(t, c.asks, asks)
		})
	}
}

// Whoever listens on the master socket is there, whether it answers or not.
func TestLocalAwaitsNobody(t *testing.T) {
	dir := t.TempDir()
	l, err := NewLocal(LocalOptions{Dir: dir, User: "root", MasterSocket: filepath.Join(dir, "m")})
	require.NoError(t, err)
	require.NoError(t, l.awaitNobody(t.Context(), 0), "no socket")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: l.opts.MasterSocket, Net: "unix"})
	require.NoError(t, err)
	listener.SetUnlinkOnClose(false)
	dumb := make(chan struct{})
	go func() {
		defer close(dumb)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
	require.ErrorIs(t, l.awaitNobody(t.Context(), 0), ErrBusy)
	require.NoError(t, listener.Close())
	<-dumb
	require.NoError(t, l.awaitNobody(t.Context(), 0), "a socket that a killed one left")
}

// A process that stalls while it changes an address is not one that does not
// change it.
func TestLocalWaitsForAddress(t *testing.T) {
	const head = "1\n# srv_id srv_name srv_addr srv_op_state srv_admin_state srv_uweight srv_port\n"
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			here, there := net.Pipe()
			served := make(chan struct{})
			go func() {
				defer close(served)
				n := 0
				for lines := bufio.NewScanner(there); lines.Scan(); n++ {
					port := 2
					if n == 0 {
						time.Sleep(2 * waitForAddress)
						port = 1
					}
					_, _ = fmt.Fprintf(there, "%s1 s 192.0.2.1 2 0 1 %d\n\n> ", head, port)
				}
			}()
			a := &applier{conn: &haproxyctl.Conn{Conn: here}}
			states, err := a.await(t.Context(), "b", func(s serverStates) bool { return s["s"].port == "2" })
			require.NoError(t, err)
			require.Equal(t, "2", states["s"].port)
			states, err = a.await(t.Context(), "b", func(s serverStates) bool { return false })
			require.NoError(t, err)
			require.Equal(t, "2", states["s"].port)
			require.NoError(t, here.Close())
			<-served
		})
	}
}
