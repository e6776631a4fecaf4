package dataplane_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/haproxyctl"
)

// attached is a Local over a HAProxy that the test runs itself.
func attached(t testing.TB) *host {
	t.Helper()
	needHAProxy(t)
	dir, err := os.MkdirTemp("", "haptic")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	h := &host{t: t, dir: dir, port: localPort(t)}
	h.attach()

	// Not there yet: nothing is written.
	_, err = h.local.Sync(t.Context(), h.config(h.web("server a 192.0.2.1:80")))
	require.ErrorIs(t, err, dataplane.ErrNotRunning)
	require.Empty(t, h.leftovers())

	cfg := filepath.Join(dir, "haproxy.cfg")
	require.NoError(t, os.WriteFile(cfg, []byte(h.web("server a 192.0.2.1:80")), 0o644))
	cmd := exec.Command("haproxy", "-W", "-S", filepath.Join(dir, "run", "master.sock")+",level,admin", "-f", cfg)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		require.NoError(t, syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL))
		require.Error(t, cmd.Wait())
	})
	master := haproxyctl.Master{Path: filepath.Join(dir, "run", "master.sock")}
	eventually(t, "the master answers", func() bool {
		procs, err := master.Procs(t.Context())
		return err == nil && procs.WorkerPID() != 0
	})
	return h
}

func (h *host) attach() {
	var err error
	h.local, err = dataplane.NewLocal(dataplane.LocalOptions{Dir: h.dir, NoStart: true, User: "root"})
	require.NoError(h.t, err)
}

func TestLocalAttached(t *testing.T) {
	t.Parallel()
	h := attached(t)
	one, two := h.server("127.0.0.2"), h.server("127.0.0.3")
	first := h.sync(h.web("server a " + one))
	require.Zero(t, first.Reloads)
	_, body := h.get("shop.test", "/")
	require.Equal(t, one, body)
	second := h.sync(h.web("server a "+one, "timeout server 7s"))
	require.Equal(t, 1, second.Reloads)
	require.NotEqual(t, first.WorkerPID, second.WorkerPID)

	// It has no output of that HAProxy, and asks another for the words.
	_, err := h.local.Sync(t.Context(), h.config(h.web("server a "+one, "bogus")))
	require.ErrorIs(t, err, dataplane.ErrReload)
	require.ErrorContains(t, err, "unknown keyword 'bogus'")
	h.atRuntime(second, h.web("server a "+two, "timeout server 7s"))
}

// Somebody else's reload is over before a Sync begins with its own.
func TestLocalAttachedWhileItReloads(t *testing.T) {
	t.Parallel()
	h := attached(t)
	one, two := h.server("127.0.0.2"), h.server("127.0.0.3")
	var more strings.Builder // so that it takes a while
	for i := range 2000 {
		fmt.Fprintf(&more, "backend more_%d\n    server a 192.0.2.1:80\n", i)
	}
	h.sync(h.web("server a "+one) + more.String())
	master := haproxyctl.Master{Path: filepath.Join(h.dir, "run", "master.sock")}
	for i, text := range []string{h.web("server a "+one, "timeout server 7s"), h.web("server a "+two, "timeout server 7s")} {
		before, err := master.Procs(t.Context())
		require.NoError(t, err)
		require.NoError(t, syscall.Kill(before.MasterPID, syscall.SIGUSR2))
		var result *dataplane.Result
		eventually(t, "the master answers", func() bool {
			result, err = h.local.Sync(t.Context(), h.config(text+more.String()))
			require.True(t, err == nil || dataplane.Retryable(err), "%v", err)
			return err == nil
		})
		eventually(t, "both reloads are over", func() bool {
			procs, err := master.Procs(t.Context())
			return err == nil && procs.Reloaded(before)
		})
		h.alone()
		_, body := h.get("shop.test", "/")
		require.Equal(t, []string{one, two}[i], body, "%s", result)
	}
}

// A controller that dies between a command and the writing of the files leaves
// a mark, and the next one reloads.
func TestLocalAttachedHalfDone(t *testing.T) {
	t.Parallel()
	h := attached(t)
	one, two := h.server("127.0.0.2"), h.server("127.0.0.3")
	h.sync(h.web("server a " + one))
	h.ask("set server shop/a addr " + strings.Replace(two, ":", " port ", 1))
	require.NoError(t, os.WriteFile(filepath.Join(h.dir, "run", "half-done"), nil, 0o600))
	h.attach()
	result := h.sync(h.web("server a " + one))
	require.Equal(t, 1, result.Reloads)
	require.Contains(t, result.Fallback, "half done")
	_, body := h.get("shop.test", "/")
	require.Equal(t, one, body)
	again := h.sync(h.web("server a " + one))
	require.Zero(t, again.Reloads)
}

// HAProxy runs unprivileged when this process is root, and may bind to low
// ports all the same.
func TestLocalRunsUnprivileged(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		if os.Getenv("CI") == "true" {
			t.Fatal("CI must run as root")
		}
		t.Skip("only root can choose an account")
	}
	h := newHost(t)
	h.port = 81
	for {
		_, body := h.get("free", "/")
		if strings.Contains(body, "refused") {
			break
		}
		h.port++
	}
	result := h.sync(h.web("server a " + h.server("127.0.0.2")))
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", result.WorkerPID))
	require.NoError(t, err)
	require.NotContains(t, string(status), "Uid:\t0\t")
	require.Contains(t, string(status), "CapEff:\t0000000000000400\n", "CAP_NET_BIND_SERVICE and nothing else")
	code, _ := h.get("shop.test", "/")
	require.Equal(t, 200, code)
}

func TestNewLocalRefuses(t *testing.T) {
	t.Parallel()
	for want, opts := range map[string]dataplane.LocalOptions{
		"no folder":            {},
		"the path of a socket": {Dir: "/" + strings.Repeat("x", 100)},
	} {
		_, err := dataplane.NewLocal(opts)
		require.ErrorContains(t, err, want)
	}
	if os.Geteuid() == 0 {
		_, err := dataplane.NewLocal(dataplane.LocalOptions{Dir: "/tmp/x", User: "no-such-account"})
		require.ErrorContains(t, err, "no-such-account")

		// A folder that the account cannot reach is said before HAProxy fails.
		needHAProxy(t)
		closed := filepath.Join(t.TempDir(), "closed")
		require.NoError(t, os.Mkdir(closed, 0o700))
		local, err := dataplane.NewLocal(dataplane.LocalOptions{Dir: filepath.Join(closed, "state")})
		require.NoError(t, err)
		err = local.Run(t.Context())
		require.ErrorIs(t, err, os.ErrPermission)
	}
}

// Run does not take the sockets of a HAProxy away that another program started.
func TestLocalRunRefusesForeignHAProxy(t *testing.T) {
	t.Parallel()
	h := attached(t)
	one := h.server("127.0.0.2")
	h.sync(h.web("server a " + one))
	own, err := dataplane.NewLocal(dataplane.LocalOptions{Dir: h.dir, User: "root"})
	require.NoError(t, err)
	err = own.Run(t.Context())
	require.ErrorIs(t, err, dataplane.ErrBusy)
	require.ErrorContains(t, err, "another program started")

	h.sync(h.web("server a "+one, "timeout server 7s")) // its sockets are still there
	_, body := h.get("shop.test", "/")
	require.Equal(t, one, body)
}
