package dataplane_test

import (
	"bufio"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

// between listens at one socket and serves each connection together with one to
// another socket.
func between(t *testing.T, listen, target string, serve func(conn, to *net.UnixConn)) (stop func()) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: listen, Net: "unix"})
	require.NoError(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.AcceptUnix()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer func() { _ = conn.Close() }()
				to, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: target, Net: "unix"})
				if err != nil {
					return
				}
				defer func() { _ = to.Close() }()
				serve(conn, to)
			})
		}
	})
	return func() { _ = l.Close(); wg.Wait() }
}

// liar passes commands on to HAProxy, but for those that start with a word of
// it, to which it answers itself.
func liar(t *testing.T, listen, target string, lies map[string]string) {
	t.Cleanup(between(t, listen, target, func(conn, to *net.UnixConn) {
		_ = to.SetDeadline(time.Now().Add(2 * patience))
		liesTo(bufio.NewReader(conn), conn, to, bufio.NewReader(to), lies)
	}))
}

// liesTo takes one command after the other.
func liesTo(commands *bufio.Reader, replies, to io.Writer, answers *bufio.Reader, lies map[string]string) {
	for {
		text, err := commands.ReadString('\n')
		if err != nil {
			return
		}
		if strings.HasSuffix(text, "<<\n") {
			for line := ""; line != "\n"; {
				if line, err = commands.ReadString('\n'); err != nil {
					return
				}
				text += line
			}
		}
		lie := false
		for prefix, answer := range lies {
			if strings.HasPrefix(text, prefix) {
				lie = true
				_, err = io.WriteString(replies, answer+"\n\n> ")
			}
		}
		if !lie {
			if _, err = io.WriteString(to, text); err == nil {
				err = passAnswer(answers, replies)
			}
		}
		if err != nil {
			return
		}
	}
}

// passAnswer copies an answer with the prompt that ends it.
func passAnswer(from *bufio.Reader, to io.Writer) error {
	var answer strings.Builder
	for !strings.HasSuffix(answer.String(), "\n> ") {
		b, err := from.ReadByte()
		if err != nil {
			return err
		}
		answer.WriteByte(b)
	}
	_, err := io.WriteString(to, answer.String())
	return err
}

// A command that HAProxy says to have carried out, and that shows no effect when
// it is read back, is followed by a reload.
func TestLocalBelievesNoAnswer(t *testing.T) {
	t.Parallel()
	servers := serverCases(newUpstreams(t))
	for name, c := range map[string]struct {
		runtimeCase
		lies map[string]string
	}{
		"weight":     {servers["server update weight"], map[string]string{"set server b/s weight": ""}},
		"address":    {servers["server update address"], map[string]string{"set server b/s addr": "no need to change"}},
		"state":      {servers["server update state"], map[string]string{"set server b/s state": ""}},
		"new server": {servers["server create"], map[string]string{"add server": "New server registered.", "set server b/t": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.NotNil(t, c.before, "no such case")
			h := newHost(t)
			real, via := h.local.RuntimeSocket(), h.dir+"/via.sock"
			text, fs := c.before(h)
			h.sync(text, fs...)
			h.stop()

			liar(t, via, real, c.lies)
			local, err := dataplane.NewLocal(dataplane.LocalOptions{Dir: h.dir, Temporary: true, RuntimeSocket: via})
			require.NoError(t, err)
			h.local = local
			h.run()
			sync := func(b blueprint) *dataplane.Result {
				text, fs := b(h)
				return h.sync(strings.ReplaceAll(text, via, real), fs...)
			}
			before := sync(c.before)
			result := sync(c.after)
			require.Equal(t, dataplane.ImpactRuntime, result.Plan.Impact())
			require.NotEmpty(t, result.Fallback)
			require.Equal(t, 1, result.Reloads)
			require.NotEqual(t, before.WorkerPID, result.WorkerPID)
			h.asFresh(c.after)
		})
	}
}
