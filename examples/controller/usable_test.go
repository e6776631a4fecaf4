package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestNoUsableServer: a backend that loses its last usable server is a line of the log, a
// row of the page and a metric within two seconds, and one that has one again is a line.
// Readiness that comes and goes adds no others.
func TestNoUsableServer(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "haptic") // a socket has a short path
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "debug")
	d := startDemo(t, "-debug-addr", "unix:"+socket)
	page := pages(t, socket)
	served := func() bool { return d.answers("shop.demo.test", "/health") == "127.0.0.13:18080" }
	d.until(served)
	ready := func(n int, is bool) {
		d.edit("shop-endpoints.yaml", func(s string) string {
			all := ""
			for i := range n {
				all += fmt.Sprintf("  - {addresses: [127.0.0.%d], conditions: {ready: %t}}\n", 13+i, is)
			}
			at := strings.LastIndex(s, "endpoints:\n") + len("endpoints:\n")
			return s[:at] + all
		})
	}
	const row = "no endpoint is ready, requests get 503: see the readiness probes of its pods"
	fastest := patience
	for n := 1; n <= 5; n++ { // a rollout that does not come up
		ready(n, false)
		began := time.Now()
		d.until(func() bool {
			_, html := page("/")
			return strings.Contains(html, fmt.Sprintf("%s; %d not ready", row, n))
		})
		fastest = min(fastest, time.Since(began))
	}
	require.Less(t, fastest, 2*time.Second)
	code, _ := d.get("http://"+d.http+"/health", "shop.demo.test")
	require.Equal(t, 503, code)
	_, html := page("/")
	require.NotContains(t, html, "All is well")
	_, metrics := page("/metrics")
	require.Contains(t, metrics, `haptic_warned_resources{kind="Service"} 1`)
	ready(1, true)
	d.until(served)
	d.until(func() bool { return strings.Contains(d.stderr.String(), "in order again: Service demo/shop-cart") })
	require.Equal(t, 1, strings.Count(d.stderr.String(), row))
	require.Equal(t, 1, strings.Count(d.stderr.String(), "in order again: "))

	// The culprit is the EndpointSlice, and the other endpoints serve.
	d.edit("shop-endpoints.yaml", func(s string) string { return strings.Replace(s, "127.0.0.12", "127.0.0.312", 1) })
	d.until(func() bool {
		return strings.Contains(d.stderr.String(), "refused: EndpointSlice demo/shop-web-1 ("+filepath.Join(d.manifests, "shop-endpoints.yaml")+
			`:3): endpoints[1].addresses[0]: \"127.0.0.312\" is no IP address; the other endpoints of Service demo/shop-web serve`)
	})
	d.until(func() bool { return d.answers("shop.demo.test", "/") == "127.0.0.11:18080" })
}
