package dataplane_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/hapticsdk/haptic/dataplane"
)

func TestLocalKilledWorkerComesBack(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	one, two := h.server("127.0.0.2"), h.server("127.0.0.3")
	h.sync(h.web("server a " + one))
	last := h.sync(h.web("server a " + two)) // at runtime
	require.NoError(t, syscall.Kill(last.WorkerPID, syscall.SIGKILL))
	eventually(t, "it serves again", func() bool {
		status, body := h.get("shop.test", "/")
		return status == 200 && body == two
	})
	next := h.sync(h.web("server a " + one))
	require.Zero(t, next.Reloads)
	require.NotEqual(t, last.WorkerPID, next.WorkerPID)
}

func TestLocalKilledMasterComesBack(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	one := h.server("127.0.0.2")
	last := h.sync(h.web("server a " + one))
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", last.WorkerPID))
	require.NoError(t, err)
	master, err := strconv.Atoi(strings.Fields(string(raw))[3])
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(master, syscall.SIGKILL))
	eventually(t, "it serves again", func() bool {
		status, body := h.get("shop.test", "/")
		return status == 200 && body == one && len(h.processes()) == 2 && !slices.Contains(h.processes(), strconv.Itoa(master))
	})
	require.NotEqual(t, last.WorkerPID, h.sync(h.web("server a "+one)).WorkerPID)
}

func TestLocalStopLeavesNothing(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.sync(h.web("server a " + h.server("127.0.0.2")))
	require.Len(t, h.processes(), 2)
	// A connection that never ends does not keep it from stopping.
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", h.port))
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	_, err = conn.Write([]byte("GET / HTTP/1.1\r\nHost: shop"))
	require.NoError(t, err)
	h.stop() // long before HAProxy would end the connection
	require.Empty(t, h.processes())
	entries, err := os.ReadDir(filepath.Join(h.dir, "run"))
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestLocalStateSurvives(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	one := h.server("127.0.0.2")
	ca := dataplane.File{Kind: dataplane.CA, Name: "ca.pem", Content: localCertificate(t, "ca.test")}
	h.sync(h.web("server a "+one), ca)
	h.stop()
	h.start()
	eventually(t, "it serves what is stored", func() bool { status, _ := h.get("shop.test", "/"); return status == 200 })
	current, err := h.local.Current(t.Context())
	require.NoError(t, err)
	require.Equal(t, h.config(h.web("server a "+one), ca).Hash(), current.Hash())
	result := h.sync(h.web("server a "+one), ca)
	require.True(t, result.Plan.Empty())
	require.Zero(t, result.Files+result.Reloads+result.Commands)
	require.NotZero(t, result.WorkerPID)
}

func TestLocalPortTaken(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	one := h.server("127.0.0.2")
	taken, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", h.port))
	require.NoError(t, err)
	file := dataplane.File{Kind: dataplane.Map, Name: "a.map", Content: []byte("a b\n")}
	_, err = h.local.Sync(t.Context(), h.config(h.web("server a "+one), file))
	require.ErrorIs(t, err, dataplane.ErrReload)
	require.ErrorContains(t, err, "Address already in use")
	var e *dataplane.Error
	require.True(t, errors.As(err, &e))
	require.Equal(t, "haproxy.cfg", e.File)
	require.Equal(t, 12, e.Line)
	current, err := h.local.Current(t.Context())
	require.NoError(t, err)
	require.Nil(t, current)
	require.Empty(t, h.processes())
	require.Empty(t, h.leftovers())

	require.NoError(t, taken.Close())
	h.sync(h.web("server a "+one), file)
	_, body := h.get("shop.test", "/")
	require.Equal(t, one, body)
}

// leftovers lists the stored files.
func (h *host) leftovers() []string {
	var names []string
	for _, dir := range []string{".", "maps", "ssl", "general"} {
		entries, err := os.ReadDir(filepath.Join(h.dir, dir))
		if !errors.Is(err, fs.ErrNotExist) {
			require.NoError(h.t, err)
		}
		for _, e := range entries {
			if e.Type().IsRegular() && e.Name() != ".lock" {
				names = append(names, filepath.Join(dir, e.Name()))
			}
		}
	}
	return names
}

func TestLocalDriftIsRepaired(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	one, two := h.server("127.0.0.2"), h.server("127.0.0.3")
	file := dataplane.File{Kind: dataplane.General, Name: "x.txt", Content: []byte("x\n")}
	text := h.web("server a " + one)
	first := h.sync(text, file)

	path := filepath.Join(h.dir, "haproxy.cfg")
	spoilt := strings.Replace(text, "maxconn 100", "maxconn 99", 1)
	require.NoError(t, os.WriteFile(path, []byte(spoilt), 0o600))
	require.NoError(t, os.Remove(filepath.Join(h.dir, "general", "x.txt")))
	plan, err := h.local.DryRun(t.Context(), h.config(text, file))
	require.NoError(t, err)
	require.Len(t, plan.Ops, 2)
	require.Equal(t, dataplane.ImpactNone, plan.Impact(), "%s", plan)

	result := h.sync(text, file)
	require.Zero(t, result.Reloads+result.Commands)
	require.Equal(t, 2, result.Files)
	require.Equal(t, first.WorkerPID, result.WorkerPID)
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, text, string(raw))

	// Together with a change that runs.
	require.NoError(t, os.WriteFile(path, []byte("not even a configuration"), 0o600))
	h.atRuntime(result, h.web("server a "+two), file)
	_, body := h.get("shop.test", "/")
	require.Equal(t, two, body)
}

func TestLocalFullDisk(t *testing.T) {
	t.Parallel()
	needHAProxy(t)
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k,mode=0755"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("CI must be able to mount a small file system:", err)
		}
		t.Skip("cannot mount a small file system:", err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	for parent := dir; parent != "/"; parent = filepath.Dir(parent) {
		if info, err := os.Stat(parent); err == nil && info.Mode().Perm()&1 == 0 {
			require.NoError(t, os.Chmod(parent, 0o755))
		}
	}
	h := &host{t: t, dir: filepath.Join(dir, "s"), port: localPort(t)}
	h.start()
	t.Cleanup(h.stop)
	one, two := h.server("127.0.0.2"), h.server("127.0.0.3")
	first := h.sync(h.web("server a " + one))
	before := h.leftovers()

	big := dataplane.File{Kind: dataplane.General, Name: "big.txt", Content: make([]byte, 100<<10)}
	_, err := h.local.Sync(t.Context(), h.config(h.web("server a "+two), big))
	require.ErrorIs(t, err, unix.ENOSPC)
	require.Equal(t, before, h.leftovers())
	_, body := h.get("shop.test", "/")
	require.Equal(t, two, body, "an address takes no file")
	result := h.sync(h.web("server a " + two))
	require.Zero(t, result.Reloads)
	require.Equal(t, first.WorkerPID, result.WorkerPID)
}

func TestLocalMissingHAProxy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	local, err := dataplane.NewLocal(dataplane.LocalOptions{Dir: dir, Binary: filepath.Join(dir, "no-such-haproxy"), User: "root"})
	require.NoError(t, err)
	run(t, local)
	config, err := dataplane.NewConfig("global\n")
	require.NoError(t, err)
	_, err = local.Sync(t.Context(), config)
	require.ErrorIs(t, err, dataplane.ErrNotRunning)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.True(t, dataplane.Retryable(err))
	current, err := local.Current(t.Context())
	require.NoError(t, err)
	require.Nil(t, current)
}

func TestLocalHangingHAProxy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := filepath.Join(dir, "haproxy")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\necho '[WARNING]  (1) : thinking' >&2\nexec sleep 600\n"), 0o700))
	state := filepath.Join(dir, "state")
	local, err := dataplane.NewLocal(dataplane.LocalOptions{Dir: state, Temporary: true, Binary: script, User: "root", StartTimeout: 100 * time.Millisecond})
	require.NoError(t, err)
	run(t, local)
	config, err := dataplane.NewConfig("global\n")
	require.NoError(t, err)
	_, err = local.Sync(t.Context(), config)
	require.ErrorIs(t, err, dataplane.ErrNotRunning)
	require.Regexp(t, `did not answer within \d+ms; it is ended, and started again`, err.Error())
	current, err := local.Current(t.Context())
	require.NoError(t, err)
	require.Nil(t, current)
}

// run runs a Local until the test ends.
func run(t *testing.T, local *dataplane.Local) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- local.Run(ctx) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-ended) })
}

func TestLocalOneFolderOneRun(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.sync(h.web("server a " + h.server("127.0.0.2")))
	other, err := dataplane.NewLocal(dataplane.LocalOptions{Dir: h.dir, Temporary: true})
	require.NoError(t, err)
	require.ErrorIs(t, other.Run(t.Context()), dataplane.ErrBusy)
	// A preflight beside it is fine.
	plan, err := other.DryRun(t.Context(), h.config(h.web("server b 127.0.0.9:80")))
	require.NoError(t, err)
	require.Len(t, plan.Ops, 2)
}

func TestLocalWithoutRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	local, err := dataplane.NewLocal(dataplane.LocalOptions{Dir: filepath.Join(dir, "state"), Temporary: true})
	require.NoError(t, err)
	config, err := dataplane.NewConfig("global\n")
	require.NoError(t, err)
	plan, err := local.DryRun(t.Context(), config)
	require.NoError(t, err)
	require.Len(t, plan.Ops, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = local.Sync(ctx, config)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, err = os.Stat(filepath.Join(dir, "state"))
	require.ErrorIs(t, err, os.ErrNotExist, "it leaves no trace")
}

func TestLocalCancelledSync(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	one, two := h.server("127.0.0.2"), h.server("127.0.0.3")
	h.sync(h.web("server a " + one))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := h.local.Sync(ctx, h.config(h.web("server a "+two)))
	require.ErrorIs(t, err, context.Canceled)
	_, body := h.get("shop.test", "/")
	require.Equal(t, one, body)
}

func TestLocalSyncsAreSerialised(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	one := h.server("127.0.0.2")
	h.sync(h.web("server a " + one))
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			_, err := h.local.Sync(t.Context(), h.config(h.web(fmt.Sprintf("server a %s weight %d", one, i+1))))
			require.NoError(t, err)
		})
	}
	wg.Wait()
	current, err := h.local.Current(t.Context())
	require.NoError(t, err)
	weight := strings.Fields(current.Main()[strings.Index(current.Main(), "weight"):])[1]
	require.Equal(t, weight, strings.Fields(h.ask("get weight shop/a"))[0])
}

// One load that fails after another does not take the unix sockets away, as
// HAProxy 3.1 and later would. Runtime changes go on.
func TestLocalFailingLoadsKeepSockets(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	one, two := h.server("127.0.0.2"), h.server("127.0.0.3")
	last := h.sync(h.web("server a " + one))
	folder := filepath.Join(h.dir, "run", "folder")
	require.NoError(t, os.Mkdir(folder, 0o755))
	broken := h.web("server a "+one) + "frontend broken\n    bind unix@" + folder + "\n"
	for i := range 4 {
		result, err := h.local.Sync(t.Context(), h.config(broken))
		require.ErrorIs(t, err, dataplane.ErrReload)
		require.NotErrorIs(t, err, dataplane.ErrListen, "it was tried")
		if result.WorkerPID != 0 { // a reload gave the sockets back
			last = result
			h.alone()
		}
		require.Contains(t, h.ask("show info"), fmt.Sprintf("\nPid: %d\n", last.WorkerPID))
		server := []string{two, one}[i%2]
		last = h.atRuntime(last, h.web("server a "+server))
		_, body := h.get("shop.test", "/")
		require.Equal(t, server, body)
	}
}
