package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
)

// A start is no reload, an address changes at runtime, a timeout takes a reload,
// and a restart serves what is stored.
func TestSync(t *testing.T) {
	t.Parallel()
	s, stop := started(t)
	first := s.sync(s.text("one", "server a 192.0.2.1:80"))
	require.True(t, first.Started)
	require.Zero(t, first.Reloads)
	require.NotZero(t, first.WorkerPID)
	require.Equal(t, change.Start, change.ImpactOf(first.Steps))
	require.Equal(t, "one", s.body())

	second := s.sync(s.text("one", "server a 192.0.2.2:80"))
	require.Zero(t, second.Reloads)
	require.Empty(t, second.Fallback)
	require.Equal(t, 1, second.Files)
	require.NotZero(t, second.Commands)
	require.Equal(t, first.WorkerPID, second.WorkerPID)
	require.Contains(t, s.ask("show servers state shop"), "192.0.2.2")

	third := s.sync(s.text("three", "server a 192.0.2.2:80"))
	require.Equal(t, 1, third.Reloads)
	require.NotEqual(t, first.WorkerPID, third.WorkerPID)
	eventually(t, "the new process answers", func() bool { return s.body() == "three" })

	again := s.sync(s.text("three", "server a 192.0.2.2:80"))
	require.Empty(t, again.Steps)
	require.Zero(t, again.Files+again.Commands+again.Reloads)

	stop()
	entries, err := os.ReadDir(filepath.Join(s.dir, "run"))
	require.NoError(t, err)
	require.Len(t, entries, 1, "only the socket of the frontend stays")
	s.Host = newHost(t, Options{Dir: s.dir})
	running(t, s.Host)
	eventually(t, "HAProxy serves what is stored", func() bool { return s.body() == "three" })
	require.Empty(t, s.sync(s.text("three", "server a 192.0.2.2:80")).Steps)
}

// Another program that tells the process something is noticed and repaired.
func TestSyncRepairsTheProcess(t *testing.T) {
	t.Parallel()
	s, _ := started(t)
	text := s.text("one", "server a 192.0.2.1:80")
	first := s.sync(text)
	s.ask("set server shop/a addr 192.0.2.9 port 80")
	eventually(t, "the check sees it", func() bool { // from HAProxy 2.9 on a task changes addresses
		steps, err := s.DryRun(t.Context(), parse(t, text))
		return err == nil && change.ImpactOf(steps) == change.Runtime
	})
	out := s.sync(text)
	require.Equal(t, first.WorkerPID, out.WorkerPID)
	require.Zero(t, out.Files)
	require.Contains(t, s.ask("show servers state shop"), "192.0.2.1")
}

// A configuration that HAProxy refuses leaves process and files as they were.
func TestSyncFailedReload(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(testing.TB) *site{
		"started":  func(t testing.TB) *site { s, _ := started(t); return s },
		"attached": attached,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			good := s.text("one", "server a 192.0.2.1:80")
			first := s.sync(good)
			serves := first.WorkerPID
			for failed := range 2 {
				out, err := s.Sync(t.Context(), parse(t, s.text("one", "server a 192.0.2.1:80", "bogus keyword")), change.Limits{})
				require.ErrorIs(t, err, config.ErrReload)
				var e *config.Error
				require.True(t, errors.As(err, &e))
				require.Equal(t, "haproxy.cfg", e.File)
				require.Equal(t, 14, e.Line)
				require.Contains(t, e.Output, "unknown keyword 'bogus'")
				require.Equal(t, 1, strings.Count(err.Error(), "haproxy.cfg:14"), "%v", err)
				if out.Reloads > 0 { // HAProxy 3.1 and later gets its sockets back
					require.Equal(t, 1, failed)
					serves = out.WorkerPID
				}
			}
			require.Equal(t, "one", s.body())
			require.Equal(t, good, s.stored().Main())
			require.Equal(t, good, s.read("haproxy.cfg"))
			last := s.sync(s.text("one", "server a 192.0.2.2:80"))
			require.Zero(t, last.Reloads)
			require.Equal(t, serves, last.WorkerPID)
		})
	}
}

// A good configuration takes one reload after any number of failed ones.
func TestSyncAfterFailedReloads(t *testing.T) {
	t.Parallel()
	s, _ := started(t)
	s.sync(s.text("body-0"))
	for n := range 4 {
		for range n {
			_, err := s.Sync(t.Context(), parse(t, s.text("bad")+"    bind\n"), change.Limits{})
			require.ErrorIs(t, err, config.ErrReload)
		}
		body := fmt.Sprint("body-", n+1)
		require.Equal(t, 1, s.sync(s.text(body)).Reloads)
		eventually(t, "the new process answers", func() bool { return s.body() == body })
		require.Empty(t, s.sync(s.text(body)).Steps)
	}
}

// The first start fails: nothing is stored, and the next Sync starts HAProxy.
func TestSyncFailedStart(t *testing.T) {
	t.Parallel()
	s, _ := started(t)
	_, err := s.Sync(t.Context(), parse(t, s.text("one", "bogus")), change.Limits{})
	require.ErrorIs(t, err, config.ErrReload)
	require.ErrorContains(t, err, "unknown keyword 'bogus'")
	require.Nil(t, s.stored())
	require.True(t, s.sync(s.text("one")).Started)
}

// Without reloads a Sync does what changes at runtime, and leaves the rest.
func TestSyncNoReload(t *testing.T) {
	t.Parallel()
	s, _ := started(t)
	limits := change.Limits{NoReload: true}
	start := parse(t, s.text("one", "server a 192.0.2.1:80"))
	out, err := s.Sync(t.Context(), start, limits)
	require.NoError(t, err)
	require.Equal(t, change.Reload, change.ImpactOf(out.Left), "HAProxy is not running")
	require.Empty(t, out.Hash)
	first := s.sync(start.Main())

	both := s.text("two", "server a 192.0.2.2:80")
	out, err = s.Sync(t.Context(), parse(t, both), limits)
	require.NoError(t, err)
	require.Zero(t, out.Reloads)
	require.Equal(t, first.WorkerPID, out.WorkerPID)
	require.NotEmpty(t, out.Left)
	require.Less(t, len(out.Left), len(out.Steps))
	require.Contains(t, s.stored().Main(), "string one")
	require.Contains(t, s.stored().Main(), "server a 192.0.2.2:80")
	require.Contains(t, s.ask("show servers state shop"), "192.0.2.2")

	out, err = s.Sync(t.Context(), parse(t, both), limits)
	require.NoError(t, err)
	require.Zero(t, out.Commands+out.Files)
	require.NotEmpty(t, out.Left)

	last := s.sync(both)
	require.Equal(t, 1, last.Reloads)
	require.Zero(t, last.Commands)
	out, err = s.Sync(t.Context(), parse(t, s.text("two", "server a 192.0.2.3:80")), limits)
	require.NoError(t, err)
	require.Empty(t, out.Left)
}

// A command that HAProxy refuses becomes a reload, unless that is not allowed.
func TestSyncRefusedCommand(t *testing.T) {
	t.Parallel()
	s, _ := started(t)
	first := s.sync(s.text("one", "server a 192.0.2.1:80"))
	s.ask("set server shop/a state maint")
	require.Contains(t, s.ask("del server shop/a"), "deleted")
	out, err := s.Sync(t.Context(), parse(t, s.text("one", "server a 192.0.2.2:80")), change.Limits{NoReload: true})
	require.NoError(t, err)
	require.Equal(t, change.Reload, change.ImpactOf(out.Left))
	require.Equal(t, s.text("one", "server a 192.0.2.1:80"), s.stored().Main())
	out = s.sync(s.text("one", "server a 192.0.2.2:80"))
	require.Equal(t, 1, out.Reloads)
	require.Equal(t, halfDone, out.Fallback)
	require.NotEqual(t, first.WorkerPID, out.WorkerPID)
	require.Contains(t, s.ask("show servers state shop"), "192.0.2.2")

	s.ask("set server shop/a state maint")
	require.Contains(t, s.ask("del server shop/a"), "deleted")
	out = s.sync(s.text("one", "server a 192.0.2.3:80"))
	require.Equal(t, 1, out.Reloads)
	require.NotEmpty(t, out.Fallback)
}

// A fence that is lost before a stage ends the Sync there.
func TestSyncFence(t *testing.T) {
	t.Parallel()
	s, _ := started(t)
	lost := errors.New("lost")
	last := s.text("one", "server a 192.0.2.1:80")
	s.sync(last)
	for _, next := range []string{s.text("one", "server a 192.0.2.2:80"), s.text("two", "server a 192.0.2.1:80")} {
		for n := 0; ; n++ {
			left := n
			_, err := s.Sync(t.Context(), parse(t, next), change.Limits{Fence: func() error {
				if left--; left < 0 {
					return lost
				}
				return nil
			}})
			if err == nil {
				require.Greater(t, n, 1)
				break
			}
			require.ErrorIs(t, err, lost)
			require.Equal(t, last, s.stored().Main())
		}
		last = next
	}
}

// A HAProxy that ends comes back with what is stored.
func TestRunStartsAgain(t *testing.T) {
	t.Parallel()
	s, _ := started(t)
	s.sync(s.text("one", "server a 192.0.2.1:80"))
	last := s.sync(s.text("one", "server a 192.0.2.2:80"))
	require.NoError(t, syscall.Kill(last.WorkerPID, syscall.SIGKILL))
	eventually(t, "another process serves", func() bool {
		procs, err := s.master.Procs(t.Context())
		return err == nil && procs.WorkerPID() != 0 && procs.WorkerPID() != last.WorkerPID
	})
	out := s.sync(s.text("one", "server a 192.0.2.2:80"))
	require.Empty(t, out.Steps)
	require.NotEqual(t, last.WorkerPID, out.WorkerPID)
}

// A second Run leaves the folder alone, and so does one beside a HAProxy that
// another program runs.
func TestRunRefuses(t *testing.T) {
	t.Parallel()
	s, _ := started(t)
	s.sync(s.text("one"))
	require.ErrorIs(t, newHost(t, Options{Dir: s.dir}).Run(t.Context()), config.ErrBusy)
	require.ErrorIs(t, newHost(t, Options{Dir: s.dir}).CheckFolder(), config.ErrBusy)
	require.NoError(t, newHost(t, Options{Dir: s.dir, NoStart: true}).CheckFolder())

	other := attached(t)
	own := newHost(t, Options{Dir: other.dir, User: "root"})
	own.orphans = 1
	err := own.Run(t.Context())
	require.ErrorIs(t, err, config.ErrBusy)
	require.ErrorContains(t, err, "another program started")
	require.Equal(t, "first", other.body())
}

// A Sync without Run says so.
func TestSyncWithoutRun(t *testing.T) {
	t.Parallel()
	h := newHost(t, Options{Dir: newDir(t)})
	h.waitForRun = 1
	desired := parse(t, "global\n")
	_, err := h.Sync(t.Context(), desired, change.Limits{})
	require.ErrorIs(t, err, config.ErrNotRunning)
	steps, err := h.DryRun(t.Context(), desired)
	require.NoError(t, err)
	require.Len(t, steps, 1)
	target, err := h.Probe(t.Context())
	require.NoError(t, err)
	require.Zero(t, target)
	require.NoDirExists(t, h.opts.Dir, "it leaves no trace")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = h.Sync(ctx, desired, change.Limits{})
	require.ErrorIs(t, err, context.Canceled)
}

// A HAProxy that does not get ready is stopped, and its words are in the error.
func TestSyncHangingStart(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	require.NoError(t, os.Mkdir(dir, 0o755))
	script := filepath.Join(dir, "haproxy")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\necho '[WARNING]  (1) : thinking' >&2\nexec sleep 600\n"), 0o755)) //nolint:gosec // to be run
	h := newHost(t, Options{Dir: filepath.Join(dir, "d"), Binary: script, User: "root", StartTimeout: 100e6})
	running(t, h)
	_, err := h.Sync(t.Context(), parse(t, "global\n"), change.Limits{})
	require.ErrorIs(t, err, config.ErrNotRunning)
	require.ErrorContains(t, err, "it is ended, and started again: thinking")
}

func TestProbe(t *testing.T) {
	t.Parallel()
	s, _ := started(t)
	s.sync(s.text("one"))
	target, err := s.Probe(t.Context())
	require.NoError(t, err)
	require.False(t, target.Silent)
	require.Contains(t, s.ask("show info"), fmt.Sprintf("Version: %s.", target.Version))
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]Options{"no folder": {}, "the path of a socket": {Dir: "/" + strings.Repeat("x", 100)}} {
		_, err := New(o)
		require.ErrorContains(t, err, want)
	}
	if os.Geteuid() == 0 {
		_, err := New(Options{Dir: "/x", User: "no-such-account"})
		require.ErrorContains(t, err, "no-such-account")
		closed := filepath.Join(newDir(t), "closed")
		require.NoError(t, os.MkdirAll(closed, 0o700))
		err = newHost(t, Options{Dir: filepath.Join(closed, "d")}).Run(t.Context())
		require.ErrorIs(t, err, os.ErrPermission)
	}
}

// Files that another program changed are written again, and HAProxy does not
// notice.
func TestSyncRepairsFiles(t *testing.T) {
	t.Parallel()
	s, _ := started(t)
	text, file := s.text("one", "server a 192.0.2.1:80"), config.File{Kind: config.General, Name: "x.txt", Content: []byte("x")}
	first := s.sync(text, file)
	s.write("haproxy.cfg", strings.Replace(text, "5m", "6m", 1))
	require.NoError(t, os.Remove(filepath.Join(s.dir, "general", "x.txt")))
	steps, err := s.DryRun(t.Context(), parse(t, text, file))
	require.NoError(t, err)
	require.Len(t, steps, 2)
	require.Equal(t, change.None, change.ImpactOf(steps))
	out := s.sync(text, file)
	require.Equal(t, 2, out.Files)
	require.Zero(t, out.Reloads+out.Commands)
	require.Equal(t, first.WorkerPID, out.WorkerPID)
	require.Equal(t, text, s.read("haproxy.cfg"))
	require.Equal(t, "x", s.read("general/x.txt"))
}

// A process that is killed between the store and the reload leaves the old files. The
// next one reloads once.
func TestSyncAfterAKill(t *testing.T) {
	t.Parallel()
	s := attached(t)
	before := s.text("one", "server a 192.0.2.1:80")
	s.sync(before)
	s.killed("after rename current", s.text("two", "server a 192.0.2.1:80"))
	out := s.sync(before)
	require.Equal(t, 1, out.Reloads)
	require.Equal(t, halfDone, out.Fallback)
	require.Contains(t, s.ask("show servers state shop"), "192.0.2.1")
	require.Empty(t, s.sync(before).Steps)
}

// killed has a Sync end at a step, and another process come after it.
func (s *site) killed(at, next string) {
	s.Helper()
	s.SetFailpoint(func(step string) {
		if step == at {
			panic(step)
		}
	})
	require.PanicsWithValue(s, at, func() { _, _ = s.Sync(s.Context(), parse(s, next), change.Limits{}) })
	s.again()
}

// A process that is killed after it has told HAProxy something, or while it stores that,
// loses nothing: the one after it gets to each configuration. It takes no reload for
// what HAProxy tells of itself, and one for the rest.
func TestSyncAfterAKillBetweenTellingAndStoring(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		server  string
		reloads int
	}{
		"address": {"server a 192.0.2.2:80", 0},
		"server":  {"server a 192.0.2.1:80\n    server b 192.0.2.2:80", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := attached(t)
			before, next := s.text("one", "server a 192.0.2.1:80"), s.text("one", c.server)
			has := func(text string) {
				require.Equal(t, text == next, strings.Contains(s.ask("show servers state shop"), "192.0.2.2"))
			}
			s.sync(before)
			for _, at := range []string{"after tell", "after write .fresh", "after rename haproxy.cfg"} {
				for _, goal := range []string{next, before} {
					s.killed(at, next)
					has(next)
					stored := before
					if at == "after rename haproxy.cfg" {
						stored = next
					}
					require.Equal(t, stored, s.stored().Main(), at)
					out := s.sync(goal)
					require.Equal(t, c.reloads, out.Reloads, "%s: %s", at, out.Fallback)
					has(goal)
					require.Equal(t, goal, s.read("haproxy.cfg"))
					require.Empty(t, s.sync(goal).Steps)
					require.Equal(t, []string{".gen-", ".general-", ".lock", ".maps-", ".ssl-"}, s.hidden(), at)
					s.sync(before)
				}
			}
		})
	}
}
