package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestClusterThatDoesNotAnswer: a preflight ends with an error, and does not
// wait for ever.
func TestClusterThatDoesNotAnswer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close() // nobody is there any more
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c,
contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: "http://%s"}}],
users: [{name: u, user: {}}]}
`, address)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
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
	cfg, err := parseFlags(nil, io.Discard)
	if err != nil || cfg.kubeconfig != "" {
		t.Errorf("%+v, %v", cfg, err)
	}
}
