package dataplane_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

// A HAProxy that Run starts again while a Sync writes has loaded the files of
// before: Sync does not take it for one with the new ones.
func TestLocalStartedMeanwhile(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	one, two := h.server("127.0.0.2"), h.server("127.0.0.3")
	h.sync(h.web("server a " + one))
	h.stop()
	taken, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", h.port))
	require.NoError(t, err)
	h.start() // and fails for now
	eventually(t, "it was tried", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return strings.Contains(h.output.String(), "Address already in use")
	})
	var once sync.Once
	h.local.SetFailpoint(func(string) {
		once.Do(func() {
			require.NoError(t, taken.Close())
			eventually(t, "it serves again", func() bool { _, body := h.get("shop.test", "/"); return body == one })
		})
	})
	result := h.sync(h.web("server a " + two))
	_, body := h.get("shop.test", "/")
	require.Equal(t, two, body, "%s", result)
	require.Equal(t, 1, result.Reloads)
	h.atRuntime(result, h.web("server a "+one))
}

// A HAProxy that ended, and that a Sync could not start with what is desired,
// comes back with what is stored, without another Sync.
func TestLocalComesBackAfterAFailedStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	needHAProxy(t)
	h := newHost(t)
	h.stop()
	// A HAProxy that does not start as long as a file lies there.
	real, err := exec.LookPath("haproxy")
	require.NoError(t, err)
	blocked, script := filepath.Join(h.dir, "general", "blocked"), filepath.Join(dir, "haproxy")
	require.NoError(t, os.Chmod(dir, 0o755))
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755))
	require.NoError(t, os.WriteFile(script, fmt.Appendf(nil, "#!/bin/sh\n[ -e %s ] && { echo '[ALERT]    (1) : blocked'; exit 1; }\nexec %s \"$@\"\n", blocked, real), 0o755)) //nolint:gosec // to be run by another account
	h.local, err = dataplane.NewLocal(dataplane.LocalOptions{Dir: h.dir, Temporary: true, Binary: script})
	require.NoError(t, err)
	h.run()
	one := h.server("127.0.0.2")
	last := h.sync(h.web("server a " + one))
	file := dataplane.File{Kind: dataplane.General, Name: "blocked", Content: []byte("x")}
	var once sync.Once
	h.local.SetFailpoint(func(step string) {
		if !strings.HasPrefix(step, "after rename") {
			return
		}
		once.Do(func() { killMaster(t, last.WorkerPID) })
	})
	_, err = h.local.Sync(t.Context(), h.config(h.web("server a "+one, "timeout server 9s"), file))
	require.Error(t, err)
	eventually(t, "it serves again", func() bool { status, _ := h.get("shop.test", "/"); return status == 200 })
}

func killMaster(t *testing.T, worker int) {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", worker))
	require.NoError(t, err)
	master, err := strconv.Atoi(strings.Fields(string(raw))[3])
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(master, syscall.SIGKILL))
}

// The next Sync notices a file that another program writes during a Sync.
func TestLocalDriftDuringSync(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	one, two := h.server("127.0.0.2"), h.server("127.0.0.3")
	h.sync(h.web("server a " + one))
	path := filepath.Join(h.dir, "haproxy.cfg")
	spoilt := false
	h.local.SetFailpoint(func(step string) {
		if step == "after rename haproxy.cfg" {
			require.NoError(t, os.WriteFile(path, []byte("spoilt"), 0o640))
			spoilt = true
		}
	})
	h.sync(h.web("server a " + two))
	require.True(t, spoilt)
	h.local.SetFailpoint(func(string) {})
	result := h.sync(h.web("server a " + two))
	require.Zero(t, result.Reloads)
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, h.web("server a "+two), string(raw))
}
