package dataplane_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/haproxyctl"
	"github.com/hapticsdk/haptic/internal/haproxytest"
)

// needHAProxy skips a test where there is no haproxy, but not on CI.
func needHAProxy(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("haproxy"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("haproxy is missing:", err)
		}
		t.Skip("haproxy is missing:", err)
	}
}

const patience = haproxytest.Patience

func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	haproxytest.Eventually(t, what, condition)
}

// host is a running Local with HTTP servers to stand behind it.
type host struct {
	t      testing.TB
	local  *dataplane.Local
	dir    string
	port   int // of the frontend on 127.0.0.1
	tls    int
	held   int // requests under way
	cancel context.CancelFunc
	ended  chan error
	stdout io.Writer // see LocalOptions

	mu     sync.Mutex
	output strings.Builder
}

func newHost(t testing.TB) *host {
	t.Helper()
	needHAProxy(t)
	dir, err := os.MkdirTemp("", "haptic")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o755))
	h := &host{t: t, dir: filepath.Join(dir, "state"), port: localPort(t), tls: localPort(t)}
	h.start()
	t.Cleanup(func() {
		h.stop()
		if t.Failed() {
			h.mu.Lock()
			defer h.mu.Unlock()
			t.Logf("haproxy printed:\n%s", h.output.String())
		}
	})
	return h
}

// start makes a new Local over the folder and runs it.
func (h *host) start() {
	h.t.Helper()
	var err error
	h.local, err = dataplane.NewLocal(dataplane.LocalOptions{Dir: h.dir, Temporary: true, Stdout: h.stdout, Stderr: func(line string) {
		h.mu.Lock()
		defer h.mu.Unlock()
		fmt.Fprintln(&h.output, line)
	}})
	require.NoError(h.t, err)
	h.local.SetGrace(50 * time.Millisecond)
	h.run()
}

// run runs the Local.
func (h *host) run() {
	ctx, cancel := context.WithCancel(context.Background())
	h.cancel, h.ended = cancel, make(chan error, 1)
	local, ended := h.local, h.ended
	go func() { ended <- local.Run(ctx) }()
}

// stop ends Run.
func (h *host) stop() {
	if h.cancel == nil {
		return
	}
	h.cancel()
	h.cancel = nil
	select {
	case err := <-h.ended:
		require.NoError(h.t, err)
	case <-time.After(patience):
		h.t.Error("Run did not end")
	}
}

// localPort is a port of 127.0.0.1 that nobody listens at, and that the kernel
// gives to nobody else as long as the test runs, not to a connection either: a
// socket that does not listen holds it, beside which others can bind to it.
func localPort(t testing.TB) int {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = unix.Close(fd) })
	require.NoError(t, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1))
	require.NoError(t, unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	address, err := unix.Getsockname(fd)
	require.NoError(t, err)
	return address.(*unix.SockaddrInet4).Port
}

// server runs an HTTP server on that loopback address, which answers with its
// own address.
func (h *host) server(ip string) (address string) {
	h.t.Helper()
	return h.serverAt(ip + ":0")
}

func (h *host) serverAt(listen string) (address string) {
	h.t.Helper()
	l, err := net.Listen("tcp", listen)
	require.NoError(h.t, err)
	address = l.Addr().String()
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, address)
	})}
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(l) }()
	h.t.Cleanup(func() { _ = srv.Close(); <-done })
	return address
}

// global is the start of every configuration here.
func (h *host) global() string {
	return fmt.Sprintf(`global
    maxconn 100
    stats socket %s level admin expose-fd listeners
defaults
    mode http
    timeout connect 5m
    timeout check 5m
    timeout client 5m
    timeout server 5m
    option redispatch
`, h.local.RuntimeSocket())
}

// web is a frontend and one backend with the given lines.
func (h *host) web(lines ...string) string {
	return h.global() + fmt.Sprintf("frontend web\n    bind 127.0.0.1:%d\n    default_backend shop\nbackend shop\n", h.port) +
		"    " + strings.Join(lines, "\n    ") + "\n"
}

func (h *host) config(text string, files ...dataplane.File) *dataplane.Config {
	h.t.Helper()
	c, err := dataplane.NewConfig(text, files...)
	require.NoError(h.t, err)
	return c
}

// sync brings the configuration in place, where no other process answers any
// more.
func (h *host) sync(text string, files ...dataplane.File) *dataplane.Result {
	h.t.Helper()
	result := h.syncOnly(text, files...)
	if result.Reloads > 0 && h.held == 0 {
		h.alone()
	}
	return result
}

// alone waits until the workers of before have ended. Until then they may take
// connections, as a reload does not wait for them.
func (h *host) alone() {
	h.t.Helper()
	master := haproxyctl.Master{Path: filepath.Join(h.dir, "run", "master.sock")}
	eventually(h.t, "the old workers have ended", func() bool {
		procs, err := master.Procs(h.t.Context())
		return err == nil && procs.WorkerPID() != 0 && len(procs.Old)+len(procs.Loading) == 0
	})
}

// syncOnly brings the configuration in place.
func (h *host) syncOnly(text string, files ...dataplane.File) *dataplane.Result {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	result, err := h.local.Sync(ctx, h.config(text, files...))
	require.NoError(h.t, err)
	return result
}

// atRuntime syncs and checks that the process stayed and nothing was reloaded.
func (h *host) atRuntime(before *dataplane.Result, text string, files ...dataplane.File) *dataplane.Result {
	h.t.Helper()
	result := h.sync(text, files...)
	require.Empty(h.t, result.Fallback)
	require.Zero(h.t, result.Reloads, "%s", result.Plan)
	require.Equal(h.t, before.WorkerPID, result.WorkerPID)
	require.Equal(h.t, dataplane.ImpactRuntime, result.Plan.Impact())
	return result
}

// get returns status and body of a request through HAProxy on a new connection.
func (h *host) get(hostname, path string) (int, string) {
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	req, err := http.NewRequest(http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d%s", h.port, path), nil)
	require.NoError(h.t, err)
	req.Host = hostname
	resp, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(body)
}

// answers returns who answers n requests.
func (h *host) answers(n int) map[string]int {
	seen := make(map[string]int)
	for range n {
		_, body := h.get("shop.test", "/")
		seen[body]++
	}
	return seen
}

// handshake returns the common name of the certificate for a server name.
func (h *host) handshake(name string) string {
	d := tls.Dialer{Config: &tls.Config{ServerName: name, InsecureSkipVerify: true}} //nolint:gosec // the name is what is tested
	conn, err := d.DialContext(context.Background(), "tcp", fmt.Sprintf("127.0.0.1:%d", h.tls))
	if err != nil {
		return err.Error()
	}
	defer func() { _ = conn.Close() }()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0].Subject.CommonName
}

// processes lists the processes of this test's haproxy: all that name its folder.
func (h *host) processes() []string {
	var pids []string
	dirs, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(h.t, err)
	for _, f := range dirs {
		raw, err := os.ReadFile(f)
		if err == nil && strings.Contains(string(raw), h.dir) {
			pids = append(pids, filepath.Base(filepath.Dir(f)))
		}
	}
	return pids
}

func TestLocalAddressChange(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	one, two := h.server("127.0.0.2"), h.server("127.0.0.3")
	first := h.sync(h.web("server a " + one))
	require.NotZero(t, first.WorkerPID)
	require.Zero(t, first.Reloads)
	_, body := h.get("shop.test", "/")
	require.Equal(t, one, body)

	second := h.atRuntime(first, h.web("server a "+two))
	require.Equal(t, 1, second.Files)
	_, body = h.get("shop.test", "/")
	require.Equal(t, two, body)

	again := h.sync(h.web("server a " + two))
	require.True(t, again.Plan.Empty())
	require.Zero(t, again.Commands+again.Files+again.Reloads)
	require.Equal(t, first.WorkerPID, again.WorkerPID)
}

func TestLocalFailingReload(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	one := h.server("127.0.0.2")
	first := h.sync(h.web("server a " + one))
	result, err := h.local.Sync(t.Context(), h.config(h.web("server a "+one, "bogus keyword")))
	require.ErrorIs(t, err, dataplane.ErrReload)
	var e *dataplane.Error
	require.True(t, errors.As(err, &e))
	require.Equal(t, "haproxy.cfg", e.File)
	require.Equal(t, 16, e.Line)
	require.Contains(t, e.Output, "unknown keyword 'bogus'")
	require.Zero(t, result.Reloads)
	status, body := h.get("shop.test", "/")
	require.Equal(t, 200, status)
	require.Equal(t, one, body)
	current, err := h.local.Current(t.Context())
	require.NoError(t, err)
	require.Equal(t, h.web("server a "+one), current.Main())
	third := h.sync(h.web("server a "+one, "timeout server 7s"))
	require.Equal(t, 1, third.Reloads)
	require.NotEqual(t, first.WorkerPID, third.WorkerPID)
	h.stop()
	require.Empty(t, h.processes())
}

// HAProxy refuses what is broken at different places, by version and by what it
// is: in the worker or in the master. One failure after the other changes
// nothing, runtime changes go on, and the next good configuration is loaded.
func TestLocalFailingReloads(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	one, two := h.server("127.0.0.2"), h.server("127.0.0.3")
	last := h.sync(h.web("server a " + one))
	for i, broken := range []string{"bogus keyword", `timeout server "5s`, "bogus again", "bogus keyword"} {
		result, err := h.local.Sync(t.Context(), h.config(h.web("server a "+one, broken)))
		if result.WorkerPID != 0 { // HAProxy 3.1 and later loads the last good one again after two failures
			last = result
		}
		require.ErrorIs(t, err, dataplane.ErrReload)
		var e *dataplane.Error
		require.True(t, errors.As(err, &e))
		require.Equal(t, "haproxy.cfg", e.File)
		require.Equal(t, 16, e.Line, "%s", e.Output)
		server := []string{two, one}[i%2]
		last = h.atRuntime(last, h.web("server a "+server))
		_, body := h.get("shop.test", "/")
		require.Equal(t, server, body)
	}
	good := h.sync(h.web("server a "+two, "timeout server 7s"))
	require.Equal(t, 1, good.Reloads)
	require.Empty(t, good.Fallback)
	require.NotEqual(t, last.WorkerPID, good.WorkerPID)
	_, body := h.get("shop.test", "/")
	require.Equal(t, two, body)
}
