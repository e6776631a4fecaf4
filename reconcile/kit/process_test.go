package kit_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/kit"
	"github.com/hapticsdk/haptic/reconcile/observe"
)

// output may be read while it is written.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// newProcess is one with these flags.
func newProcess(t *testing.T, out io.Writer, args ...string) *kit.Process {
	log := kit.NewLog(out)
	flags := kit.NewFlags("program", log)
	require.NoError(t, flags.Parse(args))
	require.NoError(t, flags.Err())
	bus := eventbus.New(nil)
	observer, err := observe.New(bus, observe.Subject{Version: "v1.2.3"}, log.Logger)
	require.NoError(t, err)
	return &kit.Process{Name: "controller", Flags: flags, Bus: bus, Observer: observer,
		Watches: "manifests in demo", HAProxy: "behind 2 Dataplane APIs"}
}

// TestStartAndEnd: the log says what starts, with the addresses that were found free,
// and what ends.
func TestStartAndEnd(t *testing.T) {
	var out output
	p := newProcess(t, &out, "-metrics-addr", "127.0.0.1:0", "-debug-addr", "")
	ctx, cancel := context.WithCancelCause(t.Context())
	p.Go("part", func(ctx context.Context) error {
		cancel(errors.New("it is enough"))
		<-ctx.Done()
		return ctx.Err()
	})
	require.NoError(t, p.Run(ctx))
	lines := strings.Split(out.String(), "\n")
	require.Len(t, lines, 4)
	require.Regexp(t, `level=INFO msg="controller starts" version=v1\.2\.3 watches="manifests in demo" haproxy="behind 2 Dataplane APIs" metrics=127\.0\.0\.1:[1-9]\d* debug=none$`, lines[0])
	require.Contains(t, lines[1], `level=INFO msg="stopping: the instances behind Dataplane APIs serve on" cause="it is enough"`)
	require.Contains(t, lines[2], `level=INFO msg="controller has ended" after=`)
}

// full is an instance that takes nothing.
type full struct{}

func (full) Name() string { return "one" }

func (full) DryRun(context.Context, *dataplane.Config) (*dataplane.Plan, error) { return nil, nil }

func (full) Sync(context.Context, *dataplane.Config, ...dataplane.SyncOption) (*dataplane.Result, error) {
	return nil, errors.New("the disk is full")
}

// TestEndSaysWhatWaits: what the loop says as the last thing of all is in the log, before
// the line of the end.
func TestEndSaysWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out output
		p := newProcess(t, &out, "-metrics-addr", "", "-debug-addr", "")
		loop, err := reconcile.New(reconcile.Options{Bus: p.Bus, Targets: []reconcile.Target{full{}},
			Renderer: reconcile.RendererFunc(func(context.Context) (*reconcile.Rendered, error) {
				cfg, err := dataplane.NewConfig("global\n")
				return &reconcile.Rendered{Config: cfg}, err
			})})
		require.NoError(t, err)
		p.Go("loop", loop.Run)
		loop.Trigger("start")
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		require.NoError(t, p.Run(ctx))
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		require.Regexp(t, `level=WARN msg="ended before revision [0-9a-f]{8} was deployed to one: failed.*, and waits for the next try: the disk is full"`, strings.Join(lines[:len(lines)-1], "\n"))
		require.Contains(t, lines[len(lines)-1], "controller has ended")
	})
}

// TestPartFails: it ends all others, and its error is told at once and returned.
func TestPartFails(t *testing.T) {
	var out output
	p := newProcess(t, &out, "-metrics-addr", "", "-debug-addr", "")
	p.Go("fails", func(context.Context) error { return errors.New("no disk") })
	p.Go("waits", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	require.EqualError(t, p.Run(t.Context()), "no disk")
	require.Contains(t, out.String(), `level=ERROR msg="stopping: the instances behind Dataplane APIs serve on" error="no disk"`)
}

// TestTakenAddress: the error names the flag, and nothing has begun.
func TestTakenAddress(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	at := taken.Addr().String()
	for flag, args := range map[string][]string{
		"-metrics-addr: metrics server": {"-metrics-addr", at, "-debug-addr", ""},
		"-debug-addr: debug server":     {"-debug-addr", at, "-metrics-addr", "127.0.0.1:0"}, // the other one is closed: goleak
	} {
		var out output
		p := newProcess(t, &out, args...)
		p.Go("HAProxy", func(context.Context) error { t.Error("it began"); return nil })
		err := p.Run(t.Context())
		require.EqualError(t, err, flag+": listen tcp "+at+": bind: address already in use")
		require.Empty(t, out.String())
		require.NoError(t, p.Bus.Close(t.Context()))
	}
}

// TestTakenFolder: where another process has the folder of HAProxy, the error is all
// that is said, and nothing has begun.
func TestTakenFolder(t *testing.T) {
	var out output
	p := newProcess(t, &out, "-metrics-addr", "127.0.0.1:0", "-debug-addr", "")
	dir, err := os.MkdirTemp("", "haptic-") // which the account of HAProxy may enter
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	p.Local, err = dataplane.NewLocal(dataplane.LocalOptions{Dir: dir})
	require.NoError(t, err)
	require.NoError(t, p.Local.CheckFolder(), "and it makes what is locked")
	lock, err := os.Open(filepath.Join(dir, ".lock"))
	require.NoError(t, err)
	defer lock.Close()
	require.NoError(t, syscall.Flock(int(lock.Fd()), syscall.LOCK_EX))
	p.Go("loop", func(context.Context) error { t.Error("it began"); return nil })
	require.EqualError(t, p.Run(t.Context()), "local: folder: "+dir+": the folder is in use by another process")
	require.Empty(t, out.String())
	require.NoError(t, p.Bus.Close(t.Context()))
}

// TestEndWaits: the parts that have not ended are named, in the order in which they
// were added, after 1, 2 and 4 seconds.
func TestEndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out output
		g := kit.Group{Log: kit.NewLog(&out).Logger}
		ctx, cancel := context.WithCancel(t.Context())
		for name, wait := range map[string]time.Duration{"at once": 0, "HAProxy": 5 * time.Second} {
			g.Go(name, func(ctx context.Context) error {
				<-ctx.Done()
				time.Sleep(wait)
				return ctx.Err()
			})
		}
		g.Go("loop", func(ctx context.Context) error { <-ctx.Done(); time.Sleep(2 * time.Second); return nil })
		cancel()
		began := time.Now()
		require.NoError(t, g.Run(ctx))
		require.Equal(t, 5*time.Second, time.Since(began))
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		require.Len(t, lines, 2, out.String())
		require.Contains(t, lines[0], `level=WARN msg="the end waits" for="HAProxy, loop" since=1s`)
		require.Contains(t, lines[1], `for=HAProxy since=3s`)
	})
}

// TestUntil: the parts end with the function, whose error counts; one that is
// interrupted has not succeeded.
func TestUntil(t *testing.T) {
	wait := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	g := kit.Group{}
	g.Go("watches", wait)
	require.NoError(t, g.Until(t.Context(), func(context.Context) error { return nil }))
	require.EqualError(t, g.Until(t.Context(), func(context.Context) error { return errors.New("refused") }), "refused")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, g.Until(ctx, wait), context.Canceled)
	g.Go("fails", func(context.Context) error { return errors.New("no cluster") })
	require.EqualError(t, g.Until(t.Context(), wait), "no cluster")
}

// TestKeepsLessGarbageAtRest: a start leaves its garbage alone, and gives it back after
// the first reconciliation, unless GOGC says how much is kept.
func TestKeepsLessGarbageAtRest(t *testing.T) {
	percent := func() uint64 {
		sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	for gogc, wants := range map[string][2]uint64{"": {300, 50}, "80": {80, 80}} {
		atStart, want := wants[0], wants[1]
		t.Setenv("GOGC", gogc)
		before := debug.SetGCPercent(80)
		defer debug.SetGCPercent(before)
		p := newProcess(t, io.Discard, "-metrics-addr", "", "-debug-addr", "")
		heard := make(chan struct{})
		p.Go("loop", func(context.Context) error {
			eventbus.Publish(p.Bus, reconcile.ReconciliationStarted{})
			if now := percent(); now != atStart {
				t.Errorf("%d %% at the start", now)
			}
			eventbus.Publish(p.Bus, reconcile.ReconciliationCompleted{})
			return nil
		})
		eventbus.Subscribe(p.Bus, func(context.Context, eventbus.Delivery[reconcile.ReconciliationCompleted]) { close(heard) })
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Run(ctx) }()
		<-heard
		if gogc == "" {
			require.Eventually(t, func() bool { return percent() == want }, time.Minute, time.Millisecond)
		}
		stop()
		require.NoError(t, <-ended) // and all events are delivered
		require.Equal(t, want, percent())
	}
}

// TestDrain: a process that is to end fails its readiness first, and serves on until the
// time is over. One that fails meanwhile ends at once.
func TestDrain(t *testing.T) {
	for _, fails := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var out output
			p := newProcess(t, &out, "-metrics-addr", "", "-debug-addr", "")
			p.Drain = 10 * time.Second
			ctx, cancel := context.WithCancelCause(t.Context())
			begun := time.Now()
			p.Go("part", func(serves context.Context) error {
				require.NoError(t, p.Observer.Health.Ready())
				cancel(errors.New("SIGTERM"))
				time.Sleep(5 * time.Second)
				require.ErrorContains(t, p.Observer.Health.Ready(), "this process stops within 10s")
				if fails {
					return errors.New("broken")
				}
				<-serves.Done()
				return serves.Err()
			})
			err := p.Run(ctx)
			if fails {
				require.EqualError(t, err, "broken")
				require.Equal(t, 5*time.Second, time.Since(begun))
				return
			}
			require.NoError(t, err)
			require.Equal(t, 10*time.Second, time.Since(begun))
			require.Contains(t, out.String(), "draining: /readyz answers 503, and the controller keeps serving")
			require.Contains(t, out.String(), `serve on" cause=SIGTERM`)
		})
	}
}
