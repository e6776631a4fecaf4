package main

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
	"github.com/hapticsdk/haptic/reconcile/discover"
	"github.com/hapticsdk/haptic/reconcile/kit"
)

const secretText = `apiVersion: v1
kind: Secret
metadata: {name: haproxy-credentials, namespace: edge}
stringData: {dataplane_username: admin, dataplane_password: %s}
`

// podText is a pod with the labels, in a namespace of one's choice.
const podText = `apiVersion: v1
kind: Pod
metadata: {name: haproxy-0, namespace: %s, labels: {app: haproxy}}
status: {podIP: 127.0.0.%d, containerStatuses: [{name: dataplane, ready: true, state: {running: {}}}]}
`

// TestRemote: pods are found by their labels in the namespace of the controller, with
// credentials that come late and are rotated; the settings say another port, and the
// pods are found there. All speak https. One with the labels in another namespace is
// not even asked.
func TestRemote(t *testing.T) {
	needHAProxy(t)
	first := dataplanetest.New(t, &dataplanetest.Options{Password: "c4nary-one"})
	second := dataplanetest.New(t, &dataplanetest.Options{Password: "c4nary-two"})
	var ca []byte
	port := func(s *dataplanetest.Server) string {
		secure := httptest.NewTLSServer(s)
		t.Cleanup(secure.Close)
		ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}) // for example.com
		u, err := url.Parse(secure.URL)
		require.NoError(t, err)
		return u.Port()
	}
	firstPort, secondPort := port(first), port(second)
	evil, err := net.Listen("tcp", "127.0.0.66:"+firstPort)
	require.NoError(t, err)
	asked := make(chan net.Conn, 1)
	go func() {
		for conn, err := evil.Accept(); err == nil; conn, err = evil.Accept() {
			asked <- conn
		}
		close(asked)
	}()
	data, err := os.ReadFile("testdata/settings.yaml")
	require.NoError(t, err)
	text := func(port string) string {
		return strings.NewReplacer("podSelector:", "port: "+port+"\n  podSelector:", "haproxy.example", "example.com").Replace(string(data))
	}
	s := &stage{t: t, manifests: t.TempDir(), settings: filepath.Join(t.TempDir(), "settings.yaml")}
	s.write(s.settings, text(firstPort))
	s.write(filepath.Join(s.manifests, "ca.yaml"), "apiVersion: v1\nkind: Secret\nmetadata: {name: haproxy-ca, namespace: edge}\ndata: {ca.crt: "+base64.StdEncoding.EncodeToString(ca)+"}\n")
	s.write(filepath.Join(s.manifests, "evil.yaml"), fmt.Sprintf(podText, "evil", 66))
	s.write(filepath.Join(s.manifests, "shop.yaml"), shop("shop.test", "192.0.2.1:80"))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, []string{"-settings", s.settings, "-manifests", s.manifests, "-pod-namespace", "edge", "-debug-addr", "", "-metrics-addr", ""}, io.Discard, &s.log)
	}()
	defer func() {
		cancel()
		require.Zero(t, <-done)
		require.NotContains(t, s.log.String(), "c4nary")
	}()
	s.until("the report of missing credentials", func() bool {
		return strings.Contains(s.log.String(), "Secret edge/haproxy-credentials: it does not exist")
	})
	s.write(filepath.Join(s.manifests, "secret.yaml"), fmt.Sprintf(secretText, "c4nary-one"))
	s.write(filepath.Join(s.manifests, "pod.yaml"), fmt.Sprintf(podText, "edge", 1))
	s.until("the first deployment", func() bool { return strings.Contains(first.Raw(), "server 192-0-2-1 192.0.2.1:80") })
	routes, _ := first.File(dataplane.Map, "routes.map")
	require.Equal(t, "shop.test/ demo_web_80", strings.TrimSpace(string(routes)))

	// Another port: other instances, whose credentials come with the rotation.
	s.write(s.settings, text(secondPort))
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
	require.NoError(t, evil.Close())
	_, was := <-asked
	require.False(t, was, "the pod of another namespace was asked")
}

// TestNamespace: without it nobody knows whose pods get the password.
func TestNamespace(t *testing.T) {
	if _, err := discover.OwnNamespace(func(string) string { return "" }); err == nil {
		t.Skip("in a pod it is known")
	}
	t.Setenv("POD_NAMESPACE", "")
	_, err := parseFlags([]string{"-settings", "testdata/settings.yaml"}, kit.NewLog(io.Discard))
	require.ErrorContains(t, err, "-pod-namespace is required without -local: POD_NAMESPACE is not set")
	c, err := parseFlags([]string{"-settings", "testdata/settings.yaml", "-local", "dir"}, kit.NewLog(io.Discard))
	require.NoError(t, err)
	require.Equal(t, "default", c.namespace)
	t.Setenv("POD_NAMESPACE", "edge")
	c, err = parseFlags([]string{"-settings", "testdata/settings.yaml"}, kit.NewLog(io.Discard))
	require.NoError(t, err)
	require.Equal(t, "edge", c.namespace)
}

// TestRestartBehindDataplaneAPIs: what a process before this one deployed is what
// templates see as currentConfig from the first deployment on, so that a choice of
// before survives.
func TestRestartBehindDataplaneAPIs(t *testing.T) {
	needHAProxy(t)
	api := dataplanetest.New(t, &dataplanetest.Options{Password: "c4nary", Config: "global\n\nbackend chosen\n"})
	at, err := url.Parse(api.URL())
	require.NoError(t, err)
	s := &stage{t: t, manifests: t.TempDir(), settings: filepath.Join(t.TempDir(), "settings.yaml")}
	s.write(s.settings, fmt.Sprintf(`
haproxyConfig:
  template: |
    global
        maxconn 1000
    frontend web
        mode http
        timeout client 1s
        bind {{ httpAddress }}
        default_backend {%% if len(currentConfig.Sections("backend")) > 0 %%}{{ currentConfig.Sections("backend")[0] }}{%% else %%}new{%% end %%}
    {%% for name in []string{"chosen", "new"} %%}
    backend {{ name }}
        mode http
        timeout server 1s
        timeout connect 1s
    {%% end %%}
dataplane: {podSelector: {matchLabels: {app: haproxy}}, scheme: http, port: %s}
credentialsSecretRef: {name: haproxy-credentials}
`, at.Port()))
	s.write(filepath.Join(s.manifests, "secret.yaml"), fmt.Sprintf(secretText, "c4nary"))
	s.write(filepath.Join(s.manifests, "pod.yaml"), fmt.Sprintf(podText, "edge", 1))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, []string{"-settings", s.settings, "-manifests", s.manifests, "-pod-namespace", "edge", "-metrics-addr", "", "-debug-addr", ""}, io.Discard, &s.log)
	}()
	defer func() {
		cancel()
		require.Zero(t, <-done)
	}()
	s.until("the deployment", func() bool { return strings.Contains(api.Raw(), "default_backend") })
	require.Contains(t, api.Raw(), "default_backend chosen")
}
