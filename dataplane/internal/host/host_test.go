package host

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/internal/haproxyctl"
	"github.com/hapticsdk/haptic/internal/haproxytest"
)

const patience = haproxytest.Patience

func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	haproxytest.Eventually(t, what, condition)
}

// site is a Host with a HAProxy, whose frontend listens on a unix socket.
type site struct {
	testing.TB
	*Host
	dir string
}

// newDir makes a folder whose path is short enough for sockets, and which every
// account may enter.
func newDir(t testing.TB) string {
	t.Helper()
	if _, err := exec.LookPath("haproxy"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("haproxy is missing:", err)
		}
		t.Skip("haproxy is missing:", err)
	}
	dir, err := os.MkdirTemp("", "host")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o755))
	return filepath.Join(dir, "d")
}

func newHost(t testing.TB, o Options) *Host {
	t.Helper()
	h, err := New(o)
	require.NoError(t, err)
	h.orphans = patience
	return h
}

// running runs a Host until the test ends or the function is called.
func running(t testing.TB, h *Host) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx) }()
	stopped := false
	stop = func() {
		if cancel(); !stopped {
			stopped = true
			require.NoError(t, <-ended)
		}
	}
	t.Cleanup(stop)
	return stop
}

// started is a Host that runs HAProxy.
func started(t testing.TB) (s *site, stop func()) {
	t.Helper()
	dir := newDir(t)
	h := newHost(t, Options{Dir: dir})
	return &site{t, h, dir}, running(t, h)
}

// attached is a Host beside a HAProxy that the test runs.
func attached(t testing.TB) *site {
	t.Helper()
	s := &site{TB: t, dir: newDir(t)}
	require.NoError(t, os.MkdirAll(filepath.Join(s.dir, "run"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "haproxy.cfg"), []byte(s.text("first")), 0o644))
	cmd := exec.Command("haproxy", "-W", "-S", filepath.Join(s.dir, "run", "master.sock")+",level,admin", "-f", filepath.Join(s.dir, "haproxy.cfg"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		require.NoError(t, syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL))
		require.Error(t, cmd.Wait())
	})
	s.again()
	eventually(t, "the master answers", func() bool {
		procs, err := s.master.Procs(t.Context())
		return err == nil && procs.WorkerPID() != 0
	})
	return s
}

// again is a new process beside the same HAProxy.
func (s *site) again() { s.Host = newHost(s, Options{Dir: s.dir, NoStart: true, User: "root"}) }

// text is a configuration that answers with that body.
func (s *site) text(body string, lines ...string) string {
	return fmt.Sprintf(`global
    stats socket %[1]s/run/haproxy.sock level admin expose-fd listeners
defaults
    mode http
    timeout connect 5m
    timeout client 5m
    timeout server 5m
frontend web
    bind unix@%[1]s/run/web.sock
    http-request return status 200 content-type text/plain string %[2]s
backend shop
    balance roundrobin
    %[3]s
`, s.dir, body, strings.Join(lines, "\n    "))
}

func parse(t testing.TB, text string, files ...config.File) *config.Config {
	t.Helper()
	c, err := config.New(text, files...)
	require.NoError(t, err)
	return c
}

func (s *site) sync(text string, files ...config.File) *change.Outcome {
	s.Helper()
	out, err := s.Sync(s.Context(), parse(s, text, files...), change.Limits{})
	require.NoError(s, err)
	require.Equal(s, parse(s, text, files...).Hash(), out.Hash)
	return out
}

// body is what HAProxy answers on a new connection.
func (s *site) body() string {
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(s.dir, "run", "web.sock"))
	}}}
	resp, err := client.Get("http://haproxy/")
	if err != nil {
		return err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	body, _ := io.ReadAll(resp.Body)
	return string(body)
}

// ask sends a command to the worker.
func (s *site) ask(command string) string {
	s.Helper()
	conn, err := haproxyctl.Dial(s.Context(), s.RuntimeSocket())
	require.NoError(s, err)
	defer func() { _ = conn.Close() }()
	answer, err := conn.Exec(s.Context(), command)
	require.NoError(s, err)
	return answer
}

func (s *site) stored() *config.Config {
	s.Helper()
	c, err := s.Current(s.Context())
	require.NoError(s, err)
	return c
}

func (s *site) write(name, content string) {
	s.Helper()
	require.NoError(s, os.MkdirAll(filepath.Dir(filepath.Join(s.dir, name)), 0o755))
	require.NoError(s, os.WriteFile(filepath.Join(s.dir, name), []byte(content), 0o644))
}

func (s *site) read(name string) string {
	s.Helper()
	raw, err := os.ReadFile(filepath.Join(s.dir, name))
	require.NoError(s, err)
	return string(raw)
}

// hidden lists what the store keeps, without its numbers.
func (s *site) hidden() []string {
	s.Helper()
	entries, err := os.ReadDir(s.dir)
	require.NoError(s, err)
	var names []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			names = append(names, strings.TrimRight(e.Name(), "0123456789"))
		}
	}
	return names
}
