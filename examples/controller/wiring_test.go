package main

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
	"github.com/hapticsdk/haptic/reconcile/kit"
)

// TestClusterThatDoesNotAnswer: a preflight ends with an error, and does not
// wait for ever.
func TestClusterThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	address := freeAddress(t) // nobody is there
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c,
contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: "http://%s"}}],
users: [{name: u, user: {}}]}
`, address)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	var stderr bytes.Buffer
	code := run(ctx, []string{"-once", "-dry-run", "-kubeconfig", file}, io.Discard, &stderr)
	if code != 1 || ctx.Err() != nil || !strings.Contains(stderr.String(), "connection refused") {
		t.Errorf("code %d, %v: %s", code, ctx.Err(), stderr.String())
	}
}

// TestKubeconfigList: the variable may name several files, which are merged.
func TestKubeconfigList(t *testing.T) {
	t.Setenv("KUBECONFIG", "/does/not/exist:/neither")
	cfg, err := parseFlags(nil, kit.NewLog(io.Discard))
	if err != nil || cfg.source.Kubeconfig != "" {
		t.Errorf("%+v, %v", cfg, err)
	}
}

// TestEndpointsByHTTPS: only with the CA and the name that they have.
func TestEndpointsByHTTPS(t *testing.T) {
	t.Setenv("HAPTIC_DATAPLANE_USERNAME", "admin")
	t.Setenv("HAPTIC_DATAPLANE_PASSWORD", "secret")
	t.Setenv("HAPTIC_VALIDATION_USERNAME", "admin")
	t.Setenv("HAPTIC_VALIDATION_PASSWORD", "secret")
	api := httptest.NewTLSServer(dataplanetest.New(t, nil)) // its certificate is for example.com
	t.Cleanup(api.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.Certificate().Raw})
	require.NoError(t, os.WriteFile(ca, text, 0o600))
	for _, c := range []struct {
		flags string
		code  int
		want  string
	}{
		{"-endpoint-ca " + ca + " -endpoint-server-name example.com", 2, ""},
		{"-endpoint-ca " + ca + " -endpoint-server-name other.test", 1, "not other.test"},
		{"-endpoint-server-name example.com", 1, "certificate signed by unknown authority"},
		{"-endpoint-ca " + ca + "x", 1, "no such file"},
	} {
		var stderr bytes.Buffer
		args := append(strings.Fields(c.flags), "-once", "-dry-run", "-manifests", "demo", "-allow-endpoint", "127.0.0.0/8", "-endpoint", api.URL)
		if code := run(t.Context(), args, io.Discard, &stderr); code != c.code || !strings.Contains(stderr.String(), c.want) {
			t.Errorf("%s: code %d: %s", c.flags, code, stderr.String())
		}
	}
	for _, flags := range []string{"-endpoint-ca x", "-pods app=haproxy -pod-namespace edge -pod-scheme ftp", "-pod-namespace edge"} {
		if _, err := parseFlags(strings.Fields(flags), kit.NewLog(io.Discard)); err == nil {
			t.Errorf("%s: accepted", flags)
		}
	}
}
