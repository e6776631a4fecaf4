package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRatesOutliveReloads: the reloads that one tenant needs give the clients of another no
// request more, and guesses of passwords neither.
func TestRatesOutliveReloads(t *testing.T) {
	t.Parallel()
	state, err := os.MkdirTemp("", "haptic")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(state) })
	require.NoError(t, os.Chmod(state, 0o711))
	d := startDemo(t, "-local", filepath.Join(state, "s"), "-min-interval", "10ms")
	ask := func(command string) string {
		answer, err := runtimeCommand(filepath.Join(state, "s", "run", "haproxy.sock"), command+"\n")
		if err != nil {
			return ""
		}
		return answer
	}
	d.edit("good.yaml", func(string) string {
		return siteOf("good", "web", d.first(), "haproxy.org/rate-limit-requests: '5'", "haproxy.org/rate-limit-period: 1m")
	})
	d.until(func() bool { return strings.Contains(ask("show table"), "good_web_80") })
	text, err := os.ReadFile(filepath.Join(state, "s", "haproxy.cfg"))
	require.NoError(t, err)
	require.Contains(t, string(text), "mworker-max-reloads 1000000\n", "no number of reloads ends a download")
	d.until(func() bool { // HAProxy has waited for a worker before the first one, and needs no lesson any more
		var learned int
		_, flags, _ := strings.Cut(ask("show peers"), " flags=")
		_, err := fmt.Sscanf(flags, "0x%x", &learned)
		return err == nil && learned&3 == 3
	})
	status := func() int { code, _ := d.get("http://"+d.http+"/", "web.good.test"); return code }
	for range 5 {
		require.Equal(t, http.StatusOK, status())
	}
	require.Equal(t, http.StatusForbidden, status())

	for n := range 3 {
		before := strings.Count(d.plans(), "one reload")
		d.edit("evil.yaml", func(string) string {
			return siteOf("evil", "site", d.first(), fmt.Sprintf("nginx.ingress.kubernetes.io/proxy-read-timeout: '%d'", 100+n))
		})
		d.until(func() bool { return strings.Count(d.plans(), "one reload") > before })
		d.until(func() bool { return strings.Contains(ask("show table"), "good_web_80") })
		d.until(func() bool { return rated(ask("show table")) })
		require.Equal(t, http.StatusForbidden, status(), "after %d reloads", n+1)
	}
}

// rated reports whether the table of the backend has an address.
func rated(tables string) bool {
	for line := range strings.Lines(tables) {
		if strings.Contains(line, "good_web_80") {
			return !strings.Contains(line, "used:0")
		}
	}
	return false
}
