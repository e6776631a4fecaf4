package host

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
)

// A time-out says what was waited for, how long, and what goes on, and has one cause.
func TestTimeOutsAreWorded(t *testing.T) {
	t.Parallel()
	serving := func(t *testing.T) *site {
		s, _ := started(t)
		s.sync(s.text("one", "server a 192.0.2.1:80"))
		return s
	}
	alone := func(t *testing.T, o Options) *site {
		o.Dir = newDir(t)
		s := &site{t, newHost(t, o), o.Dir}
		s.waitForRun = 10 * time.Millisecond
		return s
	}
	stopped := func(t *testing.T, pid int) {
		require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
		t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	}
	const short = 300 * time.Millisecond
	for name, c := range map[string]struct {
		make func(t *testing.T) *site
		want string
		is   error
	}{
		"master": {func(t *testing.T) *site {
			s := serving(t)
			procs, err := s.master.Procs(t.Context())
			require.NoError(t, err)
			stopped(t, procs.MasterPID)
			return s
		}, `^probe: the HAProxy master \(process \d+\) did not answer within \S+; it is stopped \(SIGSTOP\), and HAProxy keeps its last configuration$`, context.DeadlineExceeded},
		"worker": {func(t *testing.T) *site {
			s := serving(t)
			stopped(t, s.Host.worker)
			return s
		}, `^probe: the HAProxy worker \(process \d+\) did not answer within \S+$`, context.DeadlineExceeded},
		"another call": {func(t *testing.T) *site {
			s := alone(t, Options{})
			require.NoError(t, s.lock(t.Context()))
			return s
		}, `^wait: the call before this one did not end within \S+; nothing was changed$`, context.DeadlineExceeded},
		"nobody called Run": {func(t *testing.T) *site { return alone(t, Options{}) },
			`^start: Run, which starts HAProxy, was not called$`, config.ErrNotRunning},
		"nobody to attach to": {func(t *testing.T) *site { return alone(t, Options{NoStart: true, User: "root"}) },
			`^probe: no HAProxy listens on the master socket: dial unix \S+: connect: no such file or directory$`, config.ErrNotRunning},
		"no binary": {func(t *testing.T) *site {
			s := alone(t, Options{Binary: "/nonexistent/haproxy"})
			running(t, s.Host)
			return s
		}, `^start: /nonexistent/haproxy: HAProxy cannot be started: exec: "/nonexistent/haproxy": stat /nonexistent/haproxy: no such file or directory$`, config.ErrNotRunning},
		"a slow start": {func(t *testing.T) *site {
			script := filepath.Join(filepath.Dir(newDir(t)), "slow")
			require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\nexec sleep 60\n"), 0o755)) //nolint:gosec // another account runs it
			s := alone(t, Options{Binary: script, StartTimeout: short / 3})
			running(t, s.Host)
			return s
		}, `^start: the HAProxy master \(process \d+\) did not answer within \S+; it is ended, and started again$`, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := c.make(t)
			ctx, cancel := context.WithTimeout(t.Context(), short)
			defer cancel()
			_, err := s.Sync(ctx, parse(t, s.text("two", "server a 192.0.2.2:80")), change.Limits{})
			require.ErrorIs(t, err, c.is)
			require.Regexp(t, c.want, err.Error())
			require.True(t, config.Retryable(err, 0))
			require.NotContains(t, err.Error(), "context deadline")
			require.NotContains(t, err.Error(), "is not running")
		})
	}
}

// A context that was cancelled says only that.
func TestCancelledIsNoTimeOut(t *testing.T) {
	t.Parallel()
	h := newHost(t, Options{Dir: newDir(t)})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := h.Sync(ctx, config.Empty(), change.Limits{})
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, errors.Is(err, context.DeadlineExceeded))
}
