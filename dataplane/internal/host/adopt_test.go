package host

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
)

// left is a folder with a HAProxy that serves "first", as a Run leaves it whose
// process is killed. Beside it is a Host that does not run yet.
func left(t *testing.T, o Options) (s *site, p *process) {
	t.Helper()
	o.Dir = newDir(t)
	starter := o
	starter.Temporary = true // or it would outlive a test that panics
	s = &site{t, newHost(t, starter), o.Dir}
	require.NoError(t, s.store.prepare())
	_, err := s.store.load(true)
	require.NoError(t, err)
	w, err := s.store.stage(parse(t, s.text("first", "server a 192.0.2.1:80")), false)
	require.NoError(t, err)
	require.NoError(t, w.publish())
	p, err = s.startProcess()
	require.NoError(t, err)
	t.Cleanup(func() { p.stop(0) })
	s.next(o)
	return s, p
}

func (s *site) next(o Options) { s.Host = newHost(s, o) }

func (s *site) serves(body string) {
	s.Helper()
	eventually(s, "it serves "+body, func() bool { return s.body() == body })
}

// A controller that was killed in the middle of a change leaves its mark: the next
// one takes HAProxy over, and reloads it once.
func TestAdoptHalfDone(t *testing.T) {
	t.Parallel()
	s, p := left(t, Options{})
	s.serves("first")
	s.ask("set server shop/a addr 192.0.2.9")
	s.write("run/half-done", s.store.current())
	running(t, s.Host)
	out := s.sync(s.text("first", "server a 192.0.2.1:80"))
	require.Equal(t, 1, out.Reloads)
	require.Equal(t, halfDone, out.Fallback)
	require.False(t, p.hasEnded())
	require.Zero(t, s.sync(s.text("first", "server a 192.0.2.1:80")).Reloads)
}

// One that is killed while it starts HAProxy, before that listens, starts no second.
func TestAdoptWhileItStarts(t *testing.T) {
	t.Parallel()
	scripts, err := os.MkdirTemp("", "host")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(scripts)) })
	require.NoError(t, os.Chmod(scripts, 0o755))
	real, err := exec.LookPath("haproxy")
	require.NoError(t, err)
	script, let := filepath.Join(scripts, "haproxy"), filepath.Join(scripts, "start")
	require.NoError(t, os.WriteFile(script, fmt.Appendf(nil, "#!/bin/sh\nuntil [ -e %s ]; do sleep 0.01; done\nexec %s \"$@\"\n", let, real), 0o755)) //nolint:gosec // to be run by another account
	s, p := left(t, Options{Binary: script})
	running(t, s.Host)
	eventually(t, "Run has it", func() bool { return s.ask1().process != nil })
	require.Equal(t, p.master.Pid, s.ask1().process.master.Pid)
	require.NoError(t, os.WriteFile(let, nil, 0o644))
	require.Zero(t, s.sync(s.text("first", "server a 192.0.2.1:80")).Reloads)
	require.Equal(t, "first", s.body())
	procs, err := s.master.Procs(t.Context())
	require.NoError(t, err)
	require.Equal(t, p.master.Pid, procs.MasterPID)
}

func (s *site) ask1() startReply { return s.Host.ask(s.Context(), false) }

// One that is killed while HAProxy reloads: the reload ends, and nothing else is done.
func TestAdoptWhileItReloads(t *testing.T) {
	t.Parallel()
	s, p := left(t, Options{})
	s.serves("first")
	for range 5 {
		require.NoError(t, p.master.Signal(syscall.SIGUSR2))
		found, err := s.awaitOrphan(t.Context())
		require.NoError(t, err)
		require.Equal(t, p.master.Pid, found.Pid)
	}
	running(t, s.Host)
	require.Zero(t, s.sync(s.text("first", "server a 192.0.2.1:80")).Reloads)
	require.Equal(t, "first", s.body())
	require.False(t, p.hasEnded())
}

// A HAProxy that hangs is taken over, and not started a second time.
func TestAdoptOneThatHangs(t *testing.T) {
	t.Parallel()
	s, p := left(t, Options{StartTimeout: 1})
	s.serves("first")
	require.NoError(t, p.master.Signal(syscall.SIGSTOP))
	defer func() { require.NoError(t, p.master.Signal(syscall.SIGCONT)) }()
	running(t, s.Host)
	_, err := s.Sync(t.Context(), parse(t, s.text("second")), change.Limits{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Equal(t, "first", s.body())
	require.False(t, p.hasEnded())
}

// The end of a HAProxy that was adopted is noticed, and it is started again.
func TestAdoptedEnds(t *testing.T) {
	t.Parallel()
	s, p := left(t, Options{})
	s.serves("first")
	stop := running(t, s.Host)
	eventually(t, "Run has it", func() bool { return s.ask1().process != nil })
	require.NoError(t, p.master.Kill())
	eventually(t, "another one runs", func() bool {
		now := s.ask1().process
		return now != nil && now.master.Pid != p.master.Pid && s.body() == "first"
	})
	stop()
	require.True(t, p.hasEnded())
}

// What another account or program runs is left alone.
func TestAdoptRefuses(t *testing.T) {
	t.Parallel()
	s, p := left(t, Options{})
	s.serves("first")
	if os.Geteuid() == 0 {
		err := newHost(t, Options{Dir: s.dir, User: "root"}).Run(t.Context())
		require.ErrorIs(t, err, config.ErrBusy)
		require.ErrorContains(t, err, fmt.Sprintf("process %d, has user id %d in place of 0", p.master.Pid, s.account.UID))
	}
	second, err := s.startProcess()
	require.NoError(t, err)
	defer second.stop(0)
	eventually(t, "both run", func() bool { return len(s.masterArguments(second.master.Pid)) > 0 })
	err = s.Run(t.Context())
	require.ErrorIs(t, err, config.ErrBusy)
	require.ErrorContains(t, err, fmt.Sprint(p.master.Pid))
	require.ErrorContains(t, err, fmt.Sprint(second.master.Pid))
	require.False(t, p.hasEnded())

	other := newHost(t, Options{Dir: s.dir, MasterSocket: filepath.Join(s.dir, "run", "other.sock")})
	err = other.Run(t.Context())
	require.ErrorIs(t, err, config.ErrBusy)
	require.ErrorContains(t, err, "another program started")
}

// The id of an adopted HAProxy that was given to another process is left alone.
func TestAdoptedIdComesAgain(t *testing.T) {
	t.Parallel()
	s, p := left(t, Options{})
	s.serves("first")
	adopted := s.adopt(&orphan{Process: p.master, began: "1", binary: "haproxy"})
	<-adopted.ended
	adopted.began = "1"
	adopted.kill()
	require.Equal(t, "first", s.body())
}

// The lock of the folder ends with the process that has it, although its HAProxy
// lives on.
func TestAdoptLock(t *testing.T) {
	t.Parallel()
	s, _ := left(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, release, err := s.takeFolder(ctx)
	require.NoError(t, err)
	p, err := s.startProcess() // while the lock is held
	require.NoError(t, err)
	defer p.stop(0)
	release()
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.master.Pid))
	require.NoError(t, err)
	for _, fd := range fds {
		at, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", p.master.Pid, fd.Name()))
		require.NotContains(t, at, lockFile)
	}
}
