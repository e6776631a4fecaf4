package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const manifest = `
apiVersion: v1
kind: Service
metadata: {name: web, annotations: {example.com/host: web.test}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{port: %d}]
endpoints: [{addresses: []}, {addresses: [127.0.0.1]}, {conditions: {ready: true}}]
---
apiVersion: v1
kind: Service
metadata: {name: evil, annotations: {example.com/host: "x\\nevil.test web"}}
---
apiVersion: v1
kind: Service
metadata: {name: odd, annotations: {example.com/host: odd.test}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: odd-1, labels: {kubernetes.io/service-name: odd}}
addressType: IPv4
ports: [{port: 99999}]
endpoints: [{addresses: [127.0.0.1]}]
`

// TestServes: a Service is served, its endpoints change, and a bad one harms nobody. Nor does
// an endpoint without an address.
func TestServes(t *testing.T) {
	if _, err := exec.LookPath("haproxy"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	dir, addr := t.TempDir(), freeAddr(t)
	serve := func(name string) {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, name) }))
		t.Cleanup(s.Close)
		text := fmt.Sprintf(manifest, s.Listener.Addr().(*net.TCPAddr).Port)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "web.yaml"), []byte(text), 0o644))
	}
	serve("one")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, []string{"-manifests", dir}, addr, stateDir(t)) }()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	get := func(host string) string {
		req, err := http.NewRequest(http.MethodGet, "http://"+addr+"/", nil)
		require.NoError(t, err)
		req.Host = host
		resp, err := client.Do(req)
		if err != nil {
			return err.Error()
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return string(body)
	}
	require.Eventually(t, func() bool { return get("web.test") == "one" }, time.Minute, 20*time.Millisecond, "it serves")
	serve("two")
	require.Eventually(t, func() bool { return get("web.test") == "two" }, time.Minute, 20*time.Millisecond, "it follows")
	require.Equal(t, "no such host\n", get("evil.test"))
	require.Contains(t, get("odd.test"), "503 Service Unavailable", "its EndpointSlice alone is left out")
	cancel()
	require.NoError(t, <-ended)
}

// TestRightsOfHAProxy: no haproxy that it starts, to serve or to check, is root or knows
// a credential.
func TestRightsOfHAProxy(t *testing.T) {
	binary, err := exec.LookPath("haproxy")
	if err != nil && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	require.NoError(t, err)
	tools := filepath.Dir(stateDir(t))
	notes := filepath.Join(tools, "notes")
	script := fmt.Sprintf("#!/bin/sh\n{ echo \"uid=$(id -u) args=$*\"; env; } >> '%s'\nexec '%s' \"$@\"\n", notes, binary)
	require.NoError(t, os.WriteFile(filepath.Join(tools, "haproxy"), []byte(script), 0o755))
	require.NoError(t, os.WriteFile(notes, nil, 0o600))
	require.NoError(t, os.Chmod(notes, 0o666)) // for any account
	t.Setenv("PATH", tools+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("AWS_SESSION_TOKEN", "very-secret")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"-manifests", t.TempDir()}, freeAddr(t), stateDir(t))
	}()
	said := func() string { text, _ := os.ReadFile(notes); return string(text) }
	require.Eventually(t, func() bool { return strings.Contains(said(), "args=-c ") && strings.Contains(said(), "args=-W ") }, time.Minute, 20*time.Millisecond)
	cancel()
	require.NoError(t, <-ended)
	require.NotContains(t, said(), "very-secret")
	if os.Geteuid() == 0 {
		require.NotRegexp(t, "uid=0 args=-[cW]", said())
	}
}

// stateDir is a folder that the account of HAProxy may enter.
func stateDir(t *testing.T) string {
	dir, err := os.MkdirTemp("", "minimal-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o711))
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "haproxy")
}

func freeAddr(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// TestCopyBuildsElsewhere does what a user does: copies this folder, with its tests,
// into a module of their own and has go find there all that it imports and embeds.
func TestCopyBuildsElsewhere(t *testing.T) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	module := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(module, "mine"), os.DirFS(".")))
	gomod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	theirs := strings.Replace(string(gomod), "module github.com/hapticsdk/haptic", "module example.com/mine", 1) +
		"\nrequire github.com/hapticsdk/haptic v0.0.0\nreplace github.com/hapticsdk/haptic => " + root + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(module, "go.mod"), []byte(theirs), 0o644))
	gosum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(module, "go.sum"), gosum, 0o644))

	// It says what a build elsewhere would say, of the tests, too: the compiler itself has
	// seen these files, and does not ask where they are.
	list := exec.Command("go", "list", "-mod=mod", "-deps", "-test", "./mine")
	list.Dir = module
	out, err := list.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "\nexample.com/mine/mine\n")
}
