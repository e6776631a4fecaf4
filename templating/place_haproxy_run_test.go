package templating_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// haproxyOr skips the test where there is no HAProxy, but not in CI. HAPROXY_BIN
// names another one than that on the PATH.
func haproxyOr(t *testing.T) string {
	t.Helper()
	haproxy := "haproxy"
	if other := os.Getenv("HAPROXY_BIN"); other != "" {
		haproxy = other
	}
	if _, err := exec.LookPath(haproxy); err != nil {
		require.Empty(t, os.Getenv("CI"))
		t.Skip("no haproxy on the PATH")
	}
	return haproxy
}

// startHAProxy runs HAProxy until the test ends, and returns once it answers on
// its socket "stats" in dir.
func startHAProxy(t *testing.T, dir, cfg string) {
	t.Helper()
	haproxy := haproxyOr(t)
	file := filepath.Join(dir, "haproxy.cfg")
	writeFile(t, dir, "haproxy.cfg", cfg)
	var out bytes.Buffer
	cmd := exec.Command(haproxy, "-db", "-f", file)
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		ended <- <-ended
	})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		if isServing(ctx, filepath.Join(dir, "stats")) {
			return
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("%v\n%s", err, quoteLines(out.String(), cfg))
		case <-ctx.Done():
			t.Fatal("HAProxy does not answer")
		case <-again.C:
		}
	}
}

// isServing reports whether HAProxy says something on its socket: it listens there
// before it does so on others, but answers once it does on all.
func isServing(ctx context.Context, socket string) bool {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	if _, err := io.WriteString(conn, "show version\n"); err != nil {
		return false
	}
	said, err := io.ReadAll(conn)
	return err == nil && len(said) > 0
}

// quoteLines puts the lines of the configuration behind what HAProxy says of them.
func quoteLines(said, cfg string) string {
	lines := strings.Split(cfg, "\n")
	return regexp.MustCompile(`haproxy\.cfg:(\d+)\][^\n]*`).ReplaceAllStringFunc(said, func(alert string) string {
		number, _, _ := strings.Cut(strings.TrimPrefix(alert, "haproxy.cfg:"), "]")
		if n, err := strconv.Atoi(number); err == nil && n > 0 && n <= len(lines) {
			alert += "\n" + lines[n-1]
		}
		return alert
	})
}

// serveEcho is a server that says what it got: the headers of the request, and
// its path.
func serveEcho(t *testing.T, socket string) {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	require.NoError(t, err)
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, values := range r.Header {
			w.Header()[name] = values
		}
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("X-Path", r.URL.Path)
		w.Header().Set("X-Method", r.Method)
	})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-done
	})
}

func readBody(response *http.Response) (string, error) {
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	return string(body), err
}
