package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
)

// TestReady: the controller is not ready without credentials and without a HAProxy,
// and says why. Once it deployed, a lost Secret is said, and it stays ready.
func TestReady(t *testing.T) {
	needHAProxy(t)
	api := dataplanetest.New(t, &dataplanetest.Options{Password: "c4nary-right"})
	at, err := url.Parse(api.URL())
	require.NoError(t, err)
	s := &stage{t: t, manifests: t.TempDir(), settings: filepath.Join(t.TempDir(), "settings.yaml")}
	s.write(s.settings, strings.NewReplacer("PORT", at.Port()).Replace(onceSettings))
	socket := filepath.Join(t.TempDir(), "debug")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	page := func(path string) (int, string) {
		response, err := client.Get("http://localhost" + path)
		if err != nil {
			return 0, err.Error()
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		return response.StatusCode, string(body)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, []string{"-settings", s.settings, "-manifests", s.manifests, "-pod-namespace", "edge", "-debug-addr", "unix:" + socket, "-metrics-addr", ""}, io.Discard, &s.log)
	}()
	defer func() {
		cancel()
		require.Zero(t, <-done)
		require.NotContains(t, s.log.String(), "c4nary")
	}()
	says := func(ready int, reason string) {
		t.Helper()
		s.until(reason, func() bool {
			code, body := page("/readyz")
			_, verbose := page("/readyz?verbose")
			require.NotContains(t, verbose, "c4nary")
			return code == ready && strings.Contains(verbose, reason) && (ready == http.StatusOK || strings.Contains(body, reason)) &&
				strings.Contains(s.log.String(), reason)
		})
	}
	put := func(name, text string) { s.write(filepath.Join(s.manifests, name), text) }
	put("site.yaml", fmt.Sprintf(siteText, "good", "http"))
	const secret = "credentials: Secret edge/haptic-credentials: "
	credentials := func(password, user string) {
		put("secret.yaml", strings.NewReplacer("haproxy-credentials", "haptic-credentials", "dataplane_username: admin", user).Replace(fmt.Sprintf(secretText, password)))
	}
	says(http.StatusServiceUnavailable, secret+"it does not exist")
	credentials("c4nary-wrong", "other: admin")
	says(http.StatusServiceUnavailable, secret+"missing or empty: dataplane_username")
	credentials("''", "dataplane_username: admin")
	says(http.StatusServiceUnavailable, secret+"missing or empty: dataplane_password")
	credentials("c4nary-wrong", "dataplane_username: admin")
	says(http.StatusServiceUnavailable, "no HAProxy is found: no pod of namespace edge with the labels app=haproxy")
	put("pod.yaml", fmt.Sprintf(podText, "edge", 1))
	says(http.StatusServiceUnavailable, "edge/haproxy-0: probe: not authorised (status 401)")
	credentials("c4nary-right", "dataplane_username: admin")
	s.until("readiness", func() bool { code, _ := page("/readyz"); return code == http.StatusOK })
	require.Contains(t, api.Raw(), "backend good")

	require.NoError(t, os.Remove(filepath.Join(s.manifests, "secret.yaml")))
	says(http.StatusOK, secret+"it does not exist")
	require.Contains(t, s.log.String(), "the credentials from before stay in use: "+secret)
	put("other.yaml", fmt.Sprintf(siteText, "other", "http"))
	s.until("the change", func() bool { return strings.Contains(api.Raw(), "backend other") })
	_, shown := page("/debug/vars/credentials")
	require.Contains(t, shown, `"inUse": true`)
	require.Contains(t, shown, "it does not exist")
	require.NotContains(t, shown, "c4nary")
	_, errors := page("/debug/vars/errors")
	require.Contains(t, errors, secret+"it does not exist")

	// All pods go, as in a restart of them: the controller stays ready.
	require.NoError(t, os.Remove(filepath.Join(s.manifests, "pod.yaml")))
	s.until("the pod to be gone", func() bool {
		code, _ := page("/readyz")
		return code == http.StatusOK && strings.Contains(s.log.String(), "deploying to 0 instances, gone: edge/haproxy-0")
	})
}
