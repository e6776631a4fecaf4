package dataplane_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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

// A server that comes back while it still has connections takes a reload.
func TestLocalServerReturns(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	slow, two := h.server("127.0.0.2"), h.server("127.0.0.3")
	last := h.sync(h.web("server slow "+slow, "server b "+two+" weight 1"))
	release := h.hold("slow")
	h.atRuntime(last, h.web("server b "+two+" weight 1"))
	require.Contains(t, h.ask("show servers state shop"), " slow ")
	require.Equal(t, map[string]int{two: 4}, h.answers(4))
	back := h.sync(h.web("server slow "+slow, "server b "+two+" weight 1"))
	require.Equal(t, 1, back.Reloads)
	require.NotEmpty(t, back.Fallback)
	release()
}

// A request under way when Run ends comes to its end; no new ones are taken.
func TestLocalStopsSoftly(t *testing.T) {
	t.Parallel()
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
