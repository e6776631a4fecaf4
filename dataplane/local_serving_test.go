package dataplane_test

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

// told keeps what a Local tells of its process.
type told struct {
	mu  sync.Mutex
	all []dataplane.ProcessEvent
}

func (l *told) hear(e dataplane.ProcessEvent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, e)
}

func (l *told) kinds() (kinds []dataplane.ProcessKind) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.all {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

func (l *told) last() dataplane.ProcessEvent {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all[len(l.all)-1]
}

// watched is a host whose events are kept.
func watched(t *testing.T) (*host, *told) {
	t.Helper()
	h, l := newHost(t), &told{}
	h.stop()
	var err error
	h.local, err = dataplane.NewLocal(dataplane.LocalOptions{Dir: h.dir, OnProcess: l.hear})
	require.NoError(t, err)
	h.local.SetGrace(50 * time.Millisecond)
	h.run()
	return h, l
}

// within waits, and says how long it took.
func within(t *testing.T, what string, condition func() bool) {
	t.Helper()
	begin := time.Now()
	eventually(t, what, condition)
	t.Logf("%s: after %s", what, time.Since(begin).Round(time.Millisecond))
}

// Whatever happens to HAProxy, it is said, and when that is over as well. Each kill
// leaves a trace.
func TestLocalSaysWhatHAProxyDoes(t *testing.T) {
	t.Parallel()
	h, l := watched(t)
	require.ErrorIs(t, h.local.Serving(), dataplane.ErrNotRunning)
	one := h.server("127.0.0.2")
	result := h.sync(h.web("server a " + one))
	require.NoError(t, h.local.Serving())
	serves := func() bool { return h.local.Serving() == nil }
	want := []dataplane.ProcessKind{dataplane.ProcessStarted}
	for n := range 4 {
		before := l.last().PID
		require.NoError(t, syscall.Kill(before, syscall.SIGKILL))
		want = append(want, dataplane.ProcessEnded, dataplane.ProcessStarted)
		within(t, "the master was killed and is back", func() bool { return len(l.kinds()) == len(want) })
		require.Equal(t, want, l.kinds())
		require.NotEqual(t, before, l.last().PID)
		require.Equal(t, n+1, l.last().Times)
		within(t, "it serves", serves)
	}
	var e *dataplane.Error
	require.True(t, errors.As(l.all[1].Err, &e))
	require.ErrorIs(t, e, dataplane.ErrNotRunning)
	require.ErrorContains(t, e, fmt.Sprintf("HAProxy (process %d) ended: signal: killed", l.all[1].PID))

	result = h.sync(h.web("server a " + one))
	require.NoError(t, syscall.Kill(result.WorkerPID, syscall.SIGKILL))
	want = append(want, dataplane.ProcessEnded, dataplane.ProcessStarted)
	within(t, "the worker was killed", func() bool { return len(l.kinds()) == len(want) })
	require.Equal(t, want, l.kinds())
	require.ErrorContains(t, l.all[len(want)-2].Err, fmt.Sprintf("Current worker (%d) exited with code 137", result.WorkerPID))

	worker := h.sync(h.web("server a " + one)).WorkerPID
	require.NoError(t, syscall.Kill(worker, syscall.SIGSTOP))
	within(t, "the worker is stopped", func() bool { return errors.Is(h.local.Serving(), dataplane.ErrSilent) })
	require.EqualError(t, h.local.Serving(), fmt.Sprintf("local: process: HAProxy does not answer: its worker, process %d, is stopped (SIGSTOP): SIGCONT lets it go on", worker))
	require.NoError(t, syscall.Kill(worker, syscall.SIGCONT))
	within(t, "it goes on", serves)
	want = append(want, dataplane.ProcessSilent, dataplane.ProcessAnswers)
	require.Equal(t, want, l.kinds())
	h.stop()
	require.ErrorIs(t, h.local.Serving(), dataplane.ErrNotRunning)
	require.Equal(t, want, l.kinds(), "to stop it is no event")
}

// The port of a HAProxy is taken while it is down: that is said, and not each second.
func TestLocalSaysWhyHAProxyDoesNotStart(t *testing.T) {
	t.Parallel()
	h, l := watched(t)
	h.sync(h.web("server a " + h.server("127.0.0.2")))
	h.stop()
	taken, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", h.port))
	require.NoError(t, err)
	h.run()
	within(t, "it does not start", func() bool { err := h.local.Serving(); return err != nil && strings.Contains(err.Error(), "in use") })
	err = h.local.Serving()
	require.ErrorIs(t, err, dataplane.ErrReload)
	require.ErrorContains(t, err, fmt.Sprintf("on 127.0.0.1:%d: another process has the address", h.port))
	require.ErrorContains(t, err, "start failed")
	require.NotContains(t, err.Error(), "\n")
	within(t, "there was a third try", func() bool { return l.last().Tries == 3 })
	require.NoError(t, taken.Close())
	within(t, "it serves", func() bool { return h.local.Serving() == nil })
	failed := dataplane.ProcessStartFailed
	require.Equal(t, []dataplane.ProcessKind{dataplane.ProcessStarted, failed, failed, failed, dataplane.ProcessStarted}, l.kinds()[:5])
	require.Equal(t, 3, l.last().Tries)
}

// A master that is stopped stops no traffic, and is said: HAProxy cannot be reloaded.
func TestLocalSaysThatTheMasterIsStopped(t *testing.T) {
	t.Parallel()
	h, l := watched(t)
	require.NoError(t, h.local.MasterAnswers(), "nothing runs")
	h.sync(h.web("server a " + h.server("127.0.0.2")))
	require.NoError(t, h.local.MasterAnswers())
	master := l.last().PID
	require.NoError(t, syscall.Kill(master, syscall.SIGSTOP))
	begin := time.Now()
	within(t, "the master is stopped", func() bool { return h.local.MasterAnswers() != nil })
	require.Less(t, time.Since(begin), 2*time.Second)
	err := h.local.MasterAnswers()
	require.ErrorIs(t, err, dataplane.ErrSilent)
	require.EqualError(t, err, fmt.Sprintf("local: process: the HAProxy master (process %d) does not answer: HAProxy serves, and cannot be reloaded: it is stopped (SIGSTOP): SIGCONT lets it go on", master))
	require.NoError(t, h.local.Serving())
	require.NoError(t, syscall.Kill(master, syscall.SIGCONT))
	within(t, "it goes on", func() bool { return h.local.MasterAnswers() == nil })
	require.Equal(t, []dataplane.ProcessKind{dataplane.ProcessStarted}, l.kinds())
}

// Reloads, also those that HAProxy refuses, and many old workers are no reason to say
// that it does not answer.
func TestLocalServesThroughReloads(t *testing.T) {
	t.Parallel()
	h, l := watched(t)
	one := h.server("127.0.0.2")
	h.sync(h.web("server a " + one))
	for i := range 20 {
		_, err := h.local.Sync(t.Context(), h.config(h.web("server a "+one, fmt.Sprintf("timeout queue %ds", 1+i), []string{"", "bogus"}[i%2])))
		require.Equal(t, i%2 == 1, err != nil, "%v", err)
		require.NoError(t, h.local.Serving())
		require.NoError(t, h.local.MasterAnswers())
	}
	require.Equal(t, []dataplane.ProcessKind{dataplane.ProcessStarted}, l.kinds())
}
