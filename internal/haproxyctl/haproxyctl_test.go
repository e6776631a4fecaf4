package haproxyctl

import (
	"bufio"
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// listen serves one connection at a time on a unix socket.
func listen(t *testing.T, serve func(net.Conn)) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serve(conn)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return path
}

// stats answers as the stats socket does in interactive mode.
func stats(conn net.Conn) {
	r := bufio.NewScanner(conn)
	say := func(s string) { _, _ = conn.Write([]byte(s)) }
	for r.Scan() {
		switch command := r.Text(); {
		case command == "prompt", command == "quiet":
			say("\n> ")
		case command == "del server b/s":
			say("Server deleted.\n> ") // without an empty line
		case command == "two lines":
			say("one\ntwo\n\n> ")
		case command == "dies":
			return
		case strings.HasSuffix(command, " <<"):
			var lines []string
			for r.Scan() && r.Text() != "" {
				say("+ ")
				lines = append(lines, r.Text())
			}
			say("+ Got " + strings.Join(lines, ",") + "\n\n> ")
		default:
			say("Unknown command: " + command + "\n\n> ")
		}
	}
}

func TestConn(t *testing.T) {
	ctx := t.Context()
	conn, err := Dial(ctx, listen(t, stats))
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	answers, err := conn.Batch(ctx, []string{"quiet", "two lines", "del server b/s", "what"})
	require.NoError(t, err)
	require.Equal(t, []string{"", "one\ntwo", "Server deleted.", "Unknown command: what"}, answers)

	many := make([]string, 3000)
	for i := range many {
		many[i] = "quiet"
	}
	answers, err = conn.Batch(ctx, many)
	require.NoError(t, err)
	require.Len(t, answers, len(many))

	answer, err := conn.ExecPayload(ctx, "set it", []byte("a\n\n \r\nb\r\nc"))
	require.NoError(t, err)
	require.Equal(t, "Got a,b,c", answer)

	_, err = conn.Exec(ctx, "dies")
	require.Error(t, err)
}

func TestConnRefusesWhatIsNoCommand(t *testing.T) {
	conn, err := Dial(t.Context(), listen(t, stats))
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	for _, command := range []string{"", " ", "a\nb", "a;b", "a <<", strings.Repeat("x", MaxPayload+1)} {
		_, err := conn.Exec(t.Context(), command)
		require.ErrorIs(t, err, ErrCommand)
		_, err = conn.ExecPayload(t.Context(), command, nil)
		require.ErrorIs(t, err, ErrCommand)
	}
	_, err = conn.ExecPayload(t.Context(), "set", []byte(strings.Repeat("x", MaxPayload)))
	require.ErrorIs(t, err, ErrCommand)
	answer, err := conn.Exec(t.Context(), "quiet")
	require.NoError(t, err, "nothing of it was sent")
	require.Empty(t, answer)
}

func TestConnHeedsTheContext(t *testing.T) {
	silent := make(chan struct{})
	path := listen(t, func(conn net.Conn) {
		buf := make([]byte, 64)
		_, _ = conn.Read(buf)
		close(silent)
		_, _ = conn.Read(buf) // until the other side goes
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-silent; cancel() }()
	_, err := Dial(ctx, path)
	require.ErrorIs(t, err, context.Canceled)
	_, err = Dial(ctx, path)
	require.ErrorIs(t, err, context.Canceled)
}

const procs26 = `#<PID>          <type>          <reloads>       <uptime>        <version>
1162            master          5 [failed: 2]   0d00h02m07s     2.5-dev13
# workers
1271            worker          1               0d00h00m00s     2.5-dev13
# old workers
1233            worker          3               0d00h00m43s     2.0-dev3-6019f6-289
# programs
1244            foo             0               0d00h00m00s     -

`

func TestMaster(t *testing.T) {
	asked := make(chan string, 2)
	path := listen(t, func(conn net.Conn) {
		line, _ := bufio.NewReader(conn).ReadString('\n')
		asked <- line
		if line == "show proc\n" {
			_, _ = conn.Write([]byte(procs26))
		}
	})
	m := Master{Path: path}
	p, err := m.Procs(t.Context())
	require.NoError(t, err)
	require.Equal(t, Procs{MasterPID: 1162, Reloads: 5, Failed: 2, Version: "2.5-dev13",
		Workers: []Proc{{1271, 1}}, Old: []Proc{{1233, 3}}}, p)
	require.Equal(t, 1271, p.WorkerPID())
	answer, err := m.Reload(t.Context())
	require.NoError(t, err)
	require.Empty(t, answer)
	require.Equal(t, "show proc\n", <-asked)
	require.Equal(t, "reload\n", <-asked)

	_, err = Master{Path: path + "x"}.Procs(t.Context())
	var opErr *net.OpError
	require.True(t, errors.As(err, &opErr))
}

func TestParseProcsErrors(t *testing.T) {
	for _, answer := range []string{"", "Unknown command", "# workers\n12 worker 0 0d 2.6\n", "x master 0 0d 2.6", "1 master x 0d 2.6", "1 master"} {
		_, err := ParseProcs(answer)
		require.Error(t, err, answer)
	}
	p, err := ParseProcs("7 master 0 [failed: x] 0d 2.6\n")
	require.NoError(t, err)
	require.Zero(t, p.WorkerPID())
}

func FuzzParseProcs(f *testing.F) {
	f.Add(procs26)
	f.Add("1 master 0 [failed: 1] 0d 3.2")
	f.Fuzz(func(t *testing.T, answer string) {
		p, err := ParseProcs(answer)
		if err == nil && p.MasterPID <= 0 {
			t.Errorf("no master in %+v", p)
		}
		if err != nil && p.MasterPID != 0 {
			t.Errorf("an error with a result: %+v", p)
		}
	})
}

func FuzzPlain(f *testing.F) {
	f.Add("a b")
	f.Add("/x/y.map")
	f.Fuzz(func(t *testing.T, word string) {
		if Plain(word) && (check(word) != nil || strings.ContainsAny(word, " \t\\\"'#<>;")) {
			t.Errorf("%q is not plain", word)
		}
	})
}
