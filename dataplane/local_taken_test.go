package dataplane_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/user"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

// refusals asks the frontend each few milliseconds until stop is called, which returns
// how many requests there were, and how many of them had no answer.
func (h *host) refusals() (stop func() (asked, refused int)) {
	ctx, cancel := context.WithCancel(context.Background())
	var asked, refused atomic.Int64
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for tick := time.NewTicker(5 * time.Millisecond); ctx.Err() == nil; <-tick.C {
			asked.Add(1)
			if status, _ := h.get("shop.test", "/"); status != 200 {
				refused.Add(1)
			}
		}
	}()
	return func() (int, int) {
		cancel()
		<-ended
		return int(asked.Load()), int(refused.Load())
	}
}

// A reload onto a port that another process has would make HAProxy pause all of its
// listeners for seconds.
func TestLocalReloadOntoATakenPort(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	one, two := h.server("127.0.0.2"), h.server("127.0.0.3")
	h.sync(h.web("server a " + one))
	taken, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", h.tls))
	require.NoError(t, err)
	defer taken.Close()
	wanted := func(server string) *dataplane.Config {
		return h.config(strings.Replace(h.web("server a "+server), "frontend web\n", fmt.Sprintf("frontend web\n    bind 127.0.0.1:%d\n", h.tls), 1))
	}
	stop := h.refusals()
	begin := time.Now()
	for range 3 {
		_, err = h.local.Sync(t.Context(), wanted(two))
		require.ErrorIs(t, err, dataplane.ErrListen)
	}
	took := time.Since(begin)
	asked, refused := stop()
	t.Logf("%d of %d requests had no answer, three tries took %s: %v", refused, asked, took, err)
	require.Zero(t, refused)
	_, body := h.get("shop.test", "/")
	require.Equal(t, two, body, "an address does not wait for the port")
	var e *dataplane.Error
	require.True(t, errors.As(err, &e))
	require.Equal(t, 12, e.Line)
	require.ErrorContains(t, err, fmt.Sprintf("127.0.0.1:%d", h.tls))
	require.ErrorContains(t, err, "another process has the address")
	require.NoError(t, taken.Close())
	result, err := h.local.Sync(t.Context(), wanted(two))
	require.NoError(t, err)
	require.Equal(t, 1, result.Reloads)
}

// HAProxy gives way to itself: no address that its own processes have is refused, though
// connections keep an old worker and addresses overlap.
func TestLocalReloadOntoItsOwnPort(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	one := h.server("127.0.0.2")
	binds := func(lines ...string) string {
		text := h.web("server a " + one)
		for _, line := range lines {
			text = strings.Replace(text, "frontend web\n", "frontend web\n    bind "+strings.ReplaceAll(line, "PORT", fmt.Sprint(h.tls))+"\n", 1)
		}
		return text
	}
	var releases []func()
	for i, lines := range [][]string{
		nil, {"127.0.0.1:PORT"}, nil, {"127.0.0.1:PORT"}, {":PORT"}, {"127.0.0.1:PORT"}, {"127.0.0.1:PORT,*:PORT"},
		{"[::]:PORT v4v6"}, {":::PORT v6only", "ipv4@127.0.0.1:PORT"}, nil, {"[::1]:PORT-PORT"},
	} {
		result := h.syncOnly(binds(lines...))
		require.Equal(t, min(i, 1), result.Reloads, "%q", lines)
		if i < 6 {
			releases = append(releases, h.hold("a"))
		}
	}
	for _, release := range releases {
		release()
	}
}

// An address that no interface has pauses HAProxy as well, and so does a user that it
// cannot become: its new worker ends, and the old one with it.
func TestLocalReloadsThatCannotBe(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	one := h.server("127.0.0.2")
	first := h.sync(h.web("server a " + one))
	stop := h.refusals()
	for text, line := range map[string]string{
		"no interface of this host has the address": "frontend web\n    bind 192.0.2.1:8080\n",
		"takes the rights of root":                  "global\n    chroot /nonexistent\n",
		"\"uid 12345\"":                             "global\n    uid 12345\n",
		"\"group daemon\"":                          "global\n    group daemon\n",
	} {
		header, _, _ := strings.Cut(line, "\n")
		_, err := h.local.Sync(t.Context(), h.config(strings.Replace(h.web("server a "+one), header+"\n", line, 1)))
		require.ErrorIs(t, err, dataplane.ErrReload)
		require.ErrorContains(t, err, text)
	}
	asked, refused := stop()
	require.Zero(t, refused, "of %d", asked)
	h.atRuntime(first, h.web("server a "+h.server("127.0.0.3")))
	require.Equal(t, 1, h.sync(strings.Replace(h.web("server a "+one), "global\n", "global\n    user "+dataplane.DefaultUser()+"\n    group "+groupOf(t, dataplane.DefaultUser())+"\n", 1)).Reloads)
}

func groupOf(t *testing.T, name string) string {
	t.Helper()
	u, err := user.Lookup(name)
	require.NoError(t, err)
	g, err := user.LookupGroupId(u.Gid)
	require.NoError(t, err)
	return g.Name
}
