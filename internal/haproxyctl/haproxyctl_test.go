package haproxyctl

import (
	"bufio"
	"context"
	"errors"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
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

// One who does not answer is there, one whose socket is left over is not.
func TestAbsent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	dial := func() error {
		conn, err := Dial(t.Context(), path)
		if err == nil {
			_ = conn.Close()
		}
		return err
	}
	require.True(t, Absent(dial()), "no socket")
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	left.SetUnlinkOnClose(false)
	require.NoError(t, left.Close())
	require.True(t, Absent(dial()), "a socket that somebody left")

	path = listen(t, func(net.Conn) {})
	err = dial()
	require.Error(t, err)
	require.False(t, Absent(err), "%v", err)
	require.False(t, Absent(nil))
}

const procsCommand = "show proc;show startup-logs"

const procs26 = `#<PID>          <type>          <reloads>       <uptime>        <version>
1162            master          5 [failed: 2]   0d00h02m07s     2.5-dev13
# workers
1271            worker          1               0d00h00m00s     2.5-dev13
# old workers
1233            worker          3               0d00h00m43s     2.0-dev3-6019f6-289
# programs
1244            foo             0               0d00h00m00s     -

`

// answers is a master that gives these answers, and notes what it is asked.
func answers(t *testing.T, byCommand map[string]string) (m *Master, asked func() []string) {
	var mu sync.Mutex
	var commands []string
	path := listen(t, func(conn net.Conn) {
		line, _ := bufio.NewReader(conn).ReadString('\n')
		line = strings.TrimSuffix(line, "\n")
		mu.Lock()
		defer mu.Unlock()
		commands = append(commands, line)
		_, _ = conn.Write([]byte(byCommand[line]))
	})
	return &Master{Path: path}, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(commands)
	}
}

func TestMaster(t *testing.T) {
	m, asked := answers(t, map[string]string{procsCommand: procs26 + "Unknown command, but maybe one of these:\n  show proc\n"})
	p, err := m.Procs(t.Context())
	require.NoError(t, err)
	require.Equal(t, Procs{MasterPID: 1162, Reloads: 5, Version: "2.5-dev13",
		Workers: []Proc{{1271, 1}}, Old: []Proc{{1233, 3}}}, p)
	require.Equal(t, 1271, p.WorkerPID())
	outcome, words, err := m.Reload(t.Context())
	require.NoError(t, err)
	require.Equal(t, Unknown, outcome)
	require.Empty(t, words)
	require.Equal(t, []string{procsCommand, "reload"}, asked())

	_, err = (&Master{Path: m.Path + "x"}).Procs(t.Context())
	var opErr *net.OpError
	require.True(t, errors.As(err, &opErr))
}

// Who serves, where HAProxy 3.1 and later list workers that do not.
func TestMasterWhoServes(t *testing.T) {
	const (
		success  = "[NOTICE]   (7) : Initializing new worker (20)\n[NOTICE]   (7) : Loading success.\n\n"
		failure  = "[NOTICE]   (7) : Initializing new worker (20)\n[ALERT]    (20) : config : x\n[WARNING]  (7) : Failed to load worker (20) exited with code 1 (Exit)\n\n"
		atOnce   = "[ALERT]    (7) : config : x\n[WARNING]  (7) : config : Master failed to parse new configuration and can't start a new worker.\n\n"
		under    = "[NOTICE]   (7) : Initializing new worker (20)\n\n"
		misleads = "[NOTICE]   (20) : Loading success.\n[NOTICE]   (7) : config : parsing [/h.cfg:1]: 'Loading success.'\n" + under
		fresh    = "20 worker 0 0d 3.2.26-1\n"
		old      = "# old workers\n9 worker 3 0d 3.2.26-1\n10 worker 1 0d 3.2.26-1\n"
	)
	nine, ten, twenty := Proc{9, 3}, Proc{10, 1}, Proc{20, 0}
	for name, c := range map[string]struct {
		procs, logs           string
		serves, loads, leaves []Proc
	}{
		"a start":                    {fresh, under, nil, []Proc{twenty}, nil},
		"a start without any word":   {fresh, "\n", nil, []Proc{twenty}, nil},
		"words that mislead":         {fresh, misleads, nil, []Proc{twenty}, nil},
		"the end of a start":         {fresh, success, []Proc{twenty}, nil, nil},
		"a reload":                   {fresh + old, under, nil, []Proc{twenty}, []Proc{nine, ten}},
		"the end of a reload":        {fresh + old, success, []Proc{twenty}, nil, []Proc{nine, ten}},
		"a reload about to fail":     {fresh + old, failure, nil, []Proc{twenty}, []Proc{nine, ten}},
		"a reload that failed":       {old, failure, []Proc{ten}, nil, []Proc{nine}},
		"one that failed at once":    {old, atOnce, []Proc{ten}, nil, []Proc{nine}},
		"a worker that ended after":  {old, success, nil, nil, []Proc{nine, ten}},
		"the only worker that ended": {"", success, nil, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			procs := "#<PID> <type> <reloads> <uptime> <version>\n7 master 4 [failed: 0] 0d 3.2.26-1\n# workers\n" + c.procs + "\n"
			m, _ := answers(t, map[string]string{procsCommand: procs + c.logs})
			p, err := m.Procs(t.Context())
			require.NoError(t, err)
			require.Equal(t, c.serves, p.Workers)
			require.Equal(t, c.loads, p.Loading)
			require.ElementsMatch(t, c.leaves, p.Old)
			require.Equal(t, len(c.loads) == 0, p.Reloaded(Procs{Reloads: 3}))
			require.False(t, p.Reloaded(Procs{Reloads: 4}))
		})
	}
}

func TestLoadsInWorker(t *testing.T) {
	for version, want := range map[string]bool{"2.6.12-1+deb12u4": false, "3.0.11-1+deb13u3": false, "3.1-dev5-ab12": true,
		"3.1.0": true, "3.2.26-1": true, "3.10.1": true, "4.0.0": true, "": false, "x": false, "3": false, "-": false} {
		require.Equal(t, want, loadsInWorker(version), version)
	}
}

func TestMasterReload(t *testing.T) {
	for answer, want := range map[string]struct {
		outcome Outcome
		words   []string
	}{
		"": {Unknown, nil},
		"Success=1\n--\n[NOTICE]   (7) : Loading success.\n\n":               {Loaded, []string{"[NOTICE]   (7) : Loading success."}},
		"Success=0\n--\n[ALERT]    (8) : config : x\n[WARNING]  (7) : y\n\n": {Failed, []string{"[ALERT]    (8) : config : x", "[WARNING]  (7) : y"}},
		"Success=0\n": {Failed, nil},
		"Success=0\n--\nAnother reload is still in progress.\n\n": {Busy, nil},
	} {
		m, _ := answers(t, map[string]string{"reload": answer})
		outcome, words, err := m.Reload(t.Context())
		require.NoError(t, err)
		require.Equal(t, want.outcome, outcome, answer)
		require.Equal(t, want.words, words, answer)
	}
}

func TestReloadFailed(t *testing.T) {
	for line, want := range map[string]bool{
		"[WARNING]  (7) : Loading failure!":                                    true,
		"[WARNING]  (7) : Failed to load worker (8) exited with code 1 (Exit)": true,
		"[WARNING]  (7) : config : Master failed to parse new configuration and can't start a new worker. Already running worker will be kept.": true,
		"[NOTICE]   (7) : Loading success.": false,
	} {
		require.Equal(t, want, ReloadFailed(line), line)
	}
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
