package dataplane_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

// hold begins a request that does not end, and that the server gets.
func (h *host) hold(server string) (release func()) {
	h.t.Helper()
	client := &http.Client{Transport: &http.Transport{}}
	body, rest := io.Pipe()
	answered := make(chan error, 1)
	go func() {
		resp, err := client.Post(fmt.Sprintf("http://127.0.0.1:%d/", h.port), "text/plain", body)
		if err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
		answered <- err
	}()
	_, err := rest.Write([]byte("begun"))
	require.NoError(h.t, err)
	eventually(h.t, "the request is under way", func() bool {
		return strings.Contains(h.ask("show sess"), "srv="+server)
	})
	h.held++
	return func() {
		h.t.Helper()
		h.held--
		require.NoError(h.t, rest.Close())
		require.NoError(h.t, <-answered, "the request is not cut")
		client.CloseIdleConnections()
	}
}

// A server that comes back while it still has connections is the one of before,
// with what has changed since.
func TestLocalServerReturns(t *testing.T) {
	const check = " check inter 50ms fastinter 50ms rise 1 fall 2"
	for name, c := range map[string]struct{ before, after string }{
		"the same":                {"", ""},
		"the same, checked":       {check, check},
		"another weight":          {" weight 3", " weight 5"},
		"without its weight":      {" weight 3", ""},
		"another limit":           {" maxconn 5", " maxconn 6"},
		"without a limit":         {" maxconn 5", ""},
		"a limit":                 {"", " maxconn 5"},
		"disabled":                {check, check + " disabled"},
		"all that can be set":     {check + " weight 3 maxconn 5", " weight 4 maxconn 6" + check},
		"spelt in another manner": {check + " weight 3", " weight 3" + check},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.port = localPort(t)
			slow, two := h.server("127.0.0.2"), h.server("127.0.0.3")
			text := func(servers ...string) string {
				return h.web(append([]string{"balance roundrobin"}, servers...)...)
			}
			last := h.sync(text("server slow " + slow + c.before))
			release := h.hold("slow")
			last = h.atRuntime(last, text("server b "+two))
			require.Contains(t, h.ask("show servers state shop"), " slow ")
			back := text("server b "+two, "server slow "+slow+c.after)
			plan, err := h.local.DryRun(t.Context(), h.config(back))
			require.NoError(t, err)
			last = h.atRuntime(last, back)
			require.Equal(t, plan.String(), last.Plan.String())
			if c.after == "" {
				require.Equal(t, map[string]int{slow: 3, two: 3}, h.answers(6))
			}
			h.asFresh(func(other *host) (string, []dataplane.File) {
				return strings.NewReplacer(h.local.RuntimeSocket(), other.local.RuntimeSocket(), fmt.Sprint(":", h.port), fmt.Sprint(":", other.port)).Replace(back), nil
			})
			release()
			// It is no longer one that goes.
			eventually(t, "the connection has ended", func() bool { return !strings.Contains(h.ask("show sess"), "srv=slow") })
			h.tidied()
			require.Contains(t, h.ask("show servers state shop"), " slow ")
			h.atRuntime(last, text("server b "+two))
		})
	}
}

// tidied waits until Run has looked after servers that go.
func (h *host) tidied() {
	h.t.Helper()
	h.local.Tidy(h.t.Context())
}

// What cannot be set takes a reload as long as the connections last, and the
// plan says so.
func TestLocalServerReturnsAsAnother(t *testing.T) {
	h := newHost(t)
	slow, two := h.server("127.0.0.2"), h.server("127.0.0.3")
	last := h.sync(h.web("server slow "+slow, "server b "+two+" weight 0"))
	release := h.hold("slow")
	last = h.atRuntime(last, h.web("server b "+two))
	back := h.web("server slow "+slow+" check inter 50ms", "server b "+two)
	plan, err := h.local.DryRun(t.Context(), h.config(back))
	require.NoError(t, err)
	require.Equal(t, dataplane.ImpactReload, plan.Impact())
	require.Contains(t, plan.String(), "the server of before still has connections, and check of a server can change only at a reload")
	result := h.sync(back)
	require.Equal(t, 1, result.Reloads)
	require.Empty(t, result.Fallback)
	require.Equal(t, plan.String(), result.Plan.String())
	release()

	// Without connections it comes anew.
	last = h.atRuntime(result, h.web("server b "+two))
	h.atRuntime(last, h.web("server slow "+slow+" backup", "server b "+two))
}

// A request under way when Run ends comes to its end; no new ones are taken.
func TestLocalStopsSoftly(t *testing.T) {
	h := newHost(t)
	h.stop()
	h.local.SetGrace(2 * patience) // the default is for users: a test may be slow
	h.run()
	h.sync(h.web("server a " + h.server("127.0.0.2")))
	release := h.hold("a")
	h.cancel()
	eventually(t, "no new connections", func() bool {
		status, _ := h.get("shop.test", "/")
		return status == 0
	})
	release()
	h.stop()
	require.Empty(t, h.processes())
}
