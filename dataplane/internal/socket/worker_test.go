package socket

import (
	"bufio"
	"context"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/internal/haproxyctl"
)

func TestDial(t *testing.T) {
	t.Parallel()
	p := start(t, "backend b\n")
	require.GreaterOrEqual(t, p.worker.Version().Compare(change.HAProxy26), 0)
	require.NotZero(t, p.worker.Version())
	yes := func(context.Context) bool { return true }

	_, err := Dial(t.Context(), p.stats+"x", p.pid, yes)
	require.True(t, haproxyctl.Absent(err), "%v", err)

	asked := 0
	_, err = Dial(t.Context(), p.stats, p.pid+1, func(context.Context) bool { asked++; return asked == 3 })
	require.ErrorIs(t, err, ErrAnotherWorker)
	require.Equal(t, 3, asked)

	ctx, cancel := context.WithCancel(t.Context())
	_, err = Dial(ctx, p.stats, p.pid+1, func(context.Context) bool { cancel(); return false })
	require.ErrorIs(t, err, context.Canceled)
}

// After a reload, Dial returns the new worker and never the old one.
func TestDialAfterAReload(t *testing.T) {
	t.Parallel()
	p := start(t, "backend b\n")
	for range 3 {
		before := p.pid
		_, _, err := p.master.Reload(t.Context())
		require.NoError(t, err)
		eventually(t, "a new worker", func() bool {
			procs, err := p.master.Procs(t.Context())
			return err == nil && procs.WorkerPID() != before && procs.WorkerPID() != 0
		})
		p.dial()
		require.NotEqual(t, before, p.pid)
	}
}

// fake is a worker whose answers come from a function.
func fake(t *testing.T, answer func(command string) string) *Worker {
	client, server := net.Pipe()
	go func() {
		defer func() { _ = server.Close() }()
		for lines := bufio.NewScanner(server); lines.Scan(); {
			if _, err := server.Write([]byte(answer(lines.Text()) + "\n\n> ")); err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { _ = client.Close() })
	return &Worker{conn: &haproxyctl.Conn{Conn: client}}
}

// belated is a HAProxy that shows what it was told only after some time.
func belated(after time.Duration) func(string) string {
	start := time.Now()
	return func(command string) string {
		switch {
		case strings.HasPrefix(command, "set server b/s addr"):
			return "IP changed from '192.0.2.1' to '192.0.2.2' by 'stats socket command'"
		case strings.HasPrefix(command, "show servers state"):
			shown := "# be_name srv_id srv_name srv_addr srv_admin_state srv_uweight srv_port\nb 1 s 192.0.2.1 0 3 80"
			if time.Since(start) >= after {
				shown = strings.Replace(shown, "192.0.2.1", "192.0.2.2", 1)
			}
			return shown
		}
		return ""
	}
}

// From HAProxy 2.9 on a new address shows after a while.
func TestReadBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do    change.Do
		after time.Duration
		says  string
	}{
		"at once":        {set(ref("b", "s"), "address", "192.0.2.2:80"), 0, ""},
		"later":          {set(ref("b", "s"), "address", "192.0.2.2:80"), 2 * time.Second, ""},
		"never":          {set(ref("b", "s"), "address", "192.0.2.2:80"), time.Hour, "HAProxy accepted a change of server b/s but does not show it: address"},
		"not a weight":   {set(ref("b", "s"), "weight", "4"), 0, "HAProxy accepted a change of server b/s but does not show it: weight"},
		"not a state":    {set(ref("b", "s"), "state", change.Maint), 0, "HAProxy accepted a change of server b/s but does not show it: state"},
		"not a server":   {set(ref("b", "t"), "weight", "0"), 0, "HAProxy accepted a change of server b/t but does not show it"},
		"nothing to see": {set(ref("b", "s"), "maxconn", "4"), 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				_, err := fake(t, belated(c.after)).Apply(t.Context(), config.Layout{}, make(Leaving), []change.Do{c.do})
				if c.says == "" {
					require.NoError(t, err)
				} else {
					require.ErrorContains(t, err, c.says)
				}
			})
		})
	}
	t.Run("cancelled", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := fake(t, belated(time.Hour)).Apply(ctx, config.Layout{}, make(Leaving), []change.Do{set(ref("b", "s"), "address", "192.0.2.2:80")})
			require.ErrorIs(t, err, context.DeadlineExceeded)
		})
	})
}
