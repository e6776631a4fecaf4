package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
)

const secretText = `apiVersion: v1
kind: Secret
metadata: {name: haproxy-credentials, namespace: edge}
stringData: {dataplane_username: admin, dataplane_password: %s, validation_username: v, validation_password: v}
`

// TestRemote: pods are found by their labels, with credentials that come late and
// are rotated; the settings say another port, and the pods are found there.
func TestRemote(t *testing.T) {
	needHAProxy(t)
	first := dataplanetest.New(t, &dataplanetest.Options{Password: "c4nary-one"})
	second := dataplanetest.New(t, &dataplanetest.Options{Password: "c4nary-two"})
	port := func(s *dataplanetest.Server) string {
		u, err := url.Parse(s.URL())
		require.NoError(t, err)
		return u.Port()
	}
	data, err := os.ReadFile("testdata/settings.yaml")
	require.NoError(t, err)
	text := func(s *dataplanetest.Server) string {
		return strings.Replace(string(data), "podSelector:", "port: "+port(s)+"\n  podSelector:", 1)
	}
	s := &stage{t: t, manifests: t.TempDir(), settings: filepath.Join(t.TempDir(), "settings.yaml")}
	s.write(s.settings, text(first))
	s.write(filepath.Join(s.manifests, "shop.yaml"), shop("shop.test", "192.0.2.1:80"))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, []string{"-settings", s.settings, "-manifests", s.manifests, "-namespace", "edge", "-debug-addr", ""}, io.Discard, &s.log)
	}()
	defer func() {
		cancel()
		require.NoError(t, <-done)
		require.NotContains(t, s.log.String(), "c4nary")
	}()
	s.until("the report of missing credentials", func() bool {
		return strings.Contains(s.log.String(), "Secret edge/haproxy-credentials: it does not exist")
	})
	s.write(filepath.Join(s.manifests, "secret.yaml"), fmt.Sprintf(secretText, "c4nary-one"))
	s.write(filepath.Join(s.manifests, "pod.yaml"), `apiVersion: v1
kind: Pod
metadata: {name: haproxy-0, namespace: edge, labels: {app: haproxy}}
status: {podIP: 127.0.0.1, containerStatuses: [{name: dataplane, ready: true, state: {running: {}}}]}
`)
	s.until("the first deployment", func() bool { return strings.Contains(first.Raw(), "server 192-0-2-1 192.0.2.1:80") })
	routes, _ := first.File(dataplane.Map, "routes.map")
	require.Equal(t, "shop.test/ demo_web_80", strings.TrimSpace(string(routes)))

	// Another port: other instances, whose credentials come with the rotation.
	s.write(s.settings, text(second))
	s.until("the refused call", func() bool { return len(second.Requests()) > 0 })
	s.write(filepath.Join(s.manifests, "secret.yaml"), fmt.Sprintf(secretText, "c4nary-two"))
	rotated := time.Now()
	s.until("the deployment with new credentials", func() bool { return strings.Contains(second.Raw(), "server 192-0-2-1 192.0.2.1:80") })
	t.Logf("deployed %v after the rotation", time.Since(rotated))

	// No pod, no target; and the controller goes on.
	require.NoError(t, os.Remove(filepath.Join(s.manifests, "pod.yaml")))
	s.until("the pod to be gone", func() bool {
		return strings.Contains(s.log.String(), "deploying to 0 instances, gone: edge/haproxy-0")
	})
}
