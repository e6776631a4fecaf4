package dataplane_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

// controllerDir makes the test binary a controller that runs a Local over that
// folder until it is killed. With temporary its HAProxy ends with it, with stdoutApart it
// has a LocalOptions.Stdout.
const (
	controllerDir = "HAPTIC_TEST_CONTROLLER_DIR"
	temporary     = "HAPTIC_TEST_CONTROLLER_TEMPORARY"
	stdoutApart   = "HAPTIC_TEST_CONTROLLER_STDOUT"
)

func controller(dir string) {
	opts := dataplane.LocalOptions{
		Dir: dir, Temporary: os.Getenv(temporary) != "", Logger: slog.New(slog.NewTextHandler(os.Stdout, nil)),
	}
	if os.Getenv(stdoutApart) != "" {
		opts.Stdout = io.Discard
	}
	local, err := dataplane.NewLocal(opts)
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
		defer cancel()
		err = local.Run(ctx)
	}
	fmt.Println("controller ended:", err)
	os.Exit(1)
}

// child is a controller in a process of its own.
type child struct {
	t   testing.TB
	cmd *exec.Cmd
}

// startController returns when the controller has printed the words.
func (h *host) startController(words string, env ...string) *child {
	h.t.Helper()
	self, err := os.Executable()
	require.NoError(h.t, err)
	c := &child{t: h.t, cmd: exec.Command(self)}
	c.cmd.Env = append(append(os.Environ(), controllerDir+"="+h.dir), env...)
	out, err := c.cmd.StdoutPipe()
	require.NoError(h.t, err)
	require.NoError(h.t, c.cmd.Start())
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.Contains(lines.Text(), words) {
			return c
		}
		h.t.Log(lines.Text())
	}
	h.t.Fatal("the controller has ended")
	return nil
}

func (c *child) kill() {
	c.t.Helper()
	require.NoError(c.t, c.cmd.Process.Kill())
	require.Error(c.t, c.cmd.Wait())
}

// flow sends one request after the other, each on a new connection.
type flow struct {
	answered, failed atomic.Int64
	stop             func()
}

func (h *host) flow() *flow {
	f := &flow{}
	end, ended := make(chan struct{}), make(chan struct{})
	f.stop = sync.OnceFunc(func() { close(end); <-ended })
	h.t.Cleanup(f.stop)
	go func() {
		defer close(ended)
		for {
			select {
			case <-end:
				return
			default:
			}
			if status, body := h.get("shop.test", "/"); status == 200 {
				f.answered.Add(1)
			} else if f.failed.Add(1) == 1 {
				h.t.Logf("the first failed request: %s", body)
			}
		}
	}()
	return f
}

// goesOn waits until so many more requests have been sent.
func (f *flow) goesOn(t testing.TB, more int64) {
	t.Helper()
	now := f.answered.Load() + f.failed.Load()
	eventually(t, "requests go on", func() bool { return f.answered.Load()+f.failed.Load() > now+more })
}

// Three controllers in a row are killed, and each time the next one takes their HAProxy
// over: no request fails, nothing is reloaded, and HAProxy obeys as before.
func TestLocalAdoptsHAProxy(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	one, two := h.server("127.0.0.2"), h.server("127.0.0.3")
	h.sync(h.web("server a " + one))
	h.stop()
	c := h.startController("haproxy started")
	processes := h.processes()
	f := h.flow()
	for range 2 {
		f.goesOn(t, 20)
		c.kill()
		f.goesOn(t, 100)
		c = h.startController("haproxy adopted")
	}
	c.kill()
	h.start()
	last := h.sync(h.web("server a " + one))
	require.Zero(t, last.Reloads+last.Commands, "%s", last.Plan)
	require.Empty(t, last.Fallback)
	require.ElementsMatch(t, processes, h.processes())

	h.atRuntime(last, h.web("server a "+two))
	_, err := h.local.Sync(t.Context(), h.config(h.web("server a "+two, "bogus keyword")))
	require.ErrorIs(t, err, dataplane.ErrReload)
	require.ErrorContains(t, err, "unknown keyword 'bogus'")
	next := h.sync(h.web("server a "+two, "timeout server 7s"))
	require.Equal(t, 1, next.Reloads)
	require.NotEqual(t, last.WorkerPID, next.WorkerPID)
	f.stop()
	t.Logf("%d of %d requests failed", f.failed.Load(), f.answered.Load()+f.failed.Load())
	require.Zero(t, f.failed.Load())

	// One that is killed comes back, and the end is the end.
	killMaster(t, next.WorkerPID)
	eventually(t, "it serves again", func() bool { _, body := h.get("shop.test", "/"); return body == two })
	h.stop()
	require.Empty(t, h.processes())
}

// A HAProxy that was adopted ends in order: with ctx, and a request under way is
// finished.
func TestLocalAdoptedEnds(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.sync(h.web("server a " + h.server("127.0.0.2")))
	h.stop()
	c := h.startController("haproxy started")
	c.kill()
	h.start()
	h.sync(h.web("server a " + h.server("127.0.0.3")))
	h.stop()
	require.Empty(t, h.processes())
	entries, err := os.ReadDir(filepath.Join(h.dir, "run"))
	require.NoError(t, err)
	require.Empty(t, entries)
}

// A controller for a temporary folder takes its HAProxy along.
func TestLocalTemporary(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.sync(h.web("server a " + h.server("127.0.0.2")))
	h.stop()
	c := h.startController("haproxy started", temporary+"=1")
	c.kill()
	eventually(t, "nothing is left", func() bool { return len(h.processes()) == 0 })
	h.start()
	eventually(t, "it serves again", func() bool { status, _ := h.get("shop.test", "/"); return status == 200 })
}

// HAProxy prints and nobody reads: it neither waits nor ends.
func TestLocalPrintsWithoutController(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	one := h.server("127.0.0.2")
	text := strings.Replace(h.web("server a "+one), "global\n", "global\n    log stdout format raw local0\n", 1)
	text = strings.Replace(text, "defaults\n", "defaults\n    log global\n    log-format \""+strings.Repeat("x", 800)+"\"\n", 1)
	h.sync(text)
	h.stop()
	c := h.startController("haproxy started")
	c.kill()
	f := h.flow()
	f.goesOn(t, 2*pipeLines)
	f.stop()
	require.Zero(t, f.failed.Load())
	h.start()
	require.Zero(t, h.sync(text).Reloads)
	h.mu.Lock()
	defer h.mu.Unlock()
	require.Contains(t, h.output.String(), "xxxxxxxx", "it has what was printed meanwhile")
}

// TestLocalStdout: what HAProxy writes to its standard output goes to a writer of its own,
// also from a HAProxy that is taken over, and what it says of a failure does not.
func TestLocalStdout(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.stop()
	var stdout lockedText
	h.stdout = &stdout
	h.start()
	one := h.server("127.0.0.2")
	text := strings.Replace(h.web("server a "+one), "global\n", "global\n    log stdout format raw local0\n", 1)
	text = strings.Replace(text, "defaults\n", "defaults\n    log global\n    log-format \"request of %HU\"\n", 1)
	h.sync(text)
	h.get("shop.test", "/first")
	eventually(t, "the line is there", func() bool { return strings.Contains(stdout.String(), "request of /first\n") })
	broken, err := dataplane.NewConfig(strings.Replace(text, "log-format", "no-such-keyword", 1))
	require.NoError(t, err)
	_, err = h.local.Sync(t.Context(), broken)
	require.ErrorContains(t, err, "no-such-keyword")
	require.NotContains(t, err.Error(), "request of")
	require.NotContains(t, stdout.String(), "no-such-keyword")
	h.stop()
	c := h.startController("haproxy started", stdoutApart+"=1")
	c.kill()
	h.get("shop.test", "/meanwhile")
	h.start()
	eventually(t, "what was printed meanwhile is there", func() bool { return strings.Contains(stdout.String(), "request of /meanwhile\n") })
	require.Zero(t, h.sync(text).Reloads)
	h.mu.Lock()
	defer h.mu.Unlock()
	require.NotContains(t, h.output.String(), "request of")
}

// lockedText may be read while it is written.
type lockedText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lockedText) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// pipeLines of 800 bytes are more than the pipe takes.
const pipeLines = (1 << 20) / 800
