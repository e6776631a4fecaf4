package main

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// text is written and read at the same time.
type text struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *text) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *text) has(s string) func() bool {
	return func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return strings.Contains(o.buf.String(), s)
	}
}

// TestRoutes: routes of a folder come and change as values of their type, and a field
// that the type does not have is named with file and line.
func TestRoutes(t *testing.T) {
	good, err := os.ReadFile("manifests/routes.yaml")
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "routes.yaml")
	write := func(s string) { require.NoError(t, os.WriteFile(file, []byte(s), 0o600)) }
	write(string(good))
	var out, log text
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"-manifests", filepath.Dir(file)}, &out, slog.New(slog.NewTextHandler(&log, nil)))
	}()
	require.Eventually(t, out.has("# routes shop/web created\nshop.example.com shop_web_8080\n"), time.Minute, time.Millisecond)
	write(strings.Replace(string(good), "port", "prot", 1))
	require.Eventually(t, log.has(file+`:7: Route: unknown field \"spec.prot\"; its last good version stays in use`), time.Minute, time.Millisecond)
	write(strings.Replace(string(good), "8080", "8081", 1))
	require.Eventually(t, out.has("# routes shop/web modified\nshop.example.com shop_web_8081\n"), time.Minute, time.Millisecond)
	require.NoError(t, os.Remove(file))
	require.Eventually(t, out.has("# routes shop/web deleted\n"), time.Minute, time.Millisecond)
	stop()
	require.NoError(t, <-ended)
	require.False(t, out.has("prot")())
}
