package kit_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/reconcile/observe"
)

// otherAddress is one of this host that is not loopback, as a pod has it; loopback
// where there is none.
func otherAddress(t *testing.T) string {
	all, err := net.InterfaceAddrs()
	require.NoError(t, err)
	for _, a := range all {
		if ip, _, err := net.ParseCIDR(a.String()); err == nil && ip.IsGlobalUnicast() && ip.To4() != nil {
			return ip.String()
		}
	}
	return "127.0.0.1"
}

// ask returns the status and the text of a page.
func ask(t *testing.T, url, token string, header ...string) (int, string) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for _, h := range header {
		req.Header.Set(h, "192.0.2.1")
	}
	resp, err := client.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(body)
}

// TestPodCanBeReached: Prometheus and the kubelet ask by the address of the pod and have
// no token. They get figures, yes or no, and nothing else; who has the token asks the
// other listener, which nobody gets anything from without.
func TestPodCanBeReached(t *testing.T) {
	const token = "c4nary-0123456789"
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte(token), 0o600))
	host := otherAddress(t)
	var out output
	p := newProcess(t, &out, "-metrics-addr", "0.0.0.0:0", "-debug-addr", host+":0", "-debug-token-file", file)
	p.Observer.Health.Check("credentials", observe.ReadyToServe, func() error { return errors.New("the cause") })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	defer func() {
		cancel()
		require.NoError(t, <-done)
		require.NotContains(t, out.String(), token)
	}()
	listens := regexp.MustCompile(`metrics=\S+:(\d+) debug=\S+:(\d+)`)
	require.Eventually(t, func() bool { return listens.MatchString(out.String()) }, time.Minute, time.Millisecond, "%s", &out)
	ports := listens.FindStringSubmatch(out.String())
	metrics, debug := "http://"+net.JoinHostPort(host, ports[1]), "http://"+net.JoinHostPort(host, ports[2])

	for _, header := range []string{"X-Other", "X-Forwarded-For", "Via"} { // a proxy may stand between
		status, text := ask(t, metrics+"/metrics", "", header)
		require.Equal(t, http.StatusOK, status)
		require.Contains(t, text, `haptic_component_healthy{component="credentials"} 0`)
	}
	status, _ := ask(t, metrics+"/healthz", "")
	require.Equal(t, http.StatusOK, status)
	for _, with := range []string{"", token} {
		for _, path := range []string{"/readyz", "/readyz?verbose", "/healthz?verbose"} {
			_, text := ask(t, metrics+path, with)
			require.Regexp(t, `^(not )?ok\n$`, text, "%s never says why", path)
		}
		for _, path := range []string{"/", "/debug/vars/", "/debug/vars/rendered", "/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/goroutine?debug=2"} {
			status, _ := ask(t, metrics+path, with)
			require.Equal(t, http.StatusNotFound, status, path)
		}
	}
	for _, path := range []string{"/", "/metrics", "/debug/vars/", "/debug/pprof/"} {
		status, _ := ask(t, debug+path, "")
		require.Equal(t, http.StatusUnauthorized, status, path)
		status, _ = ask(t, debug+path, token)
		require.Equal(t, http.StatusOK, status, path)
	}
	_, text := ask(t, debug+"/readyz?verbose", "")
	require.Equal(t, "not ok\n", text)
	_, text = ask(t, debug+"/readyz?verbose", token)
	require.Contains(t, text, "the cause")
}
