package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// worker is the process that serves, and how often HAProxy was reloaded.
func worker(state string) string {
	conn, err := net.Dial("unix", filepath.Join(state, "run", "master.sock"))
	if err != nil {
		return ""
	}
	defer conn.Close()
	fmt.Fprintln(conn, "show proc")
	_ = conn.(*net.UnixConn).CloseWrite()
	answer, _ := io.ReadAll(conn)
	var lines []string
	for line := range strings.Lines(string(answer)) {
		if words := strings.Fields(line); len(words) > 2 {
			lines = append(lines, strings.Join(words[:3], " "))
		}
	}
	return strings.Join(lines, "\n")
}

// TestTemplatesBrokenAtARestart: HAProxy serves what is stored, log and page say what
// is wrong and where, and the controller goes on as soon as that is mended.
func TestTemplatesBrokenAtARestart(t *testing.T) {
	t.Parallel()
	templates, state, debug := t.TempDir(), t.TempDir(), freeAddress(t)
	require.NoError(t, os.Chmod(filepath.Dir(state), 0o755))
	require.NoError(t, os.CopyFS(templates, os.DirFS("templates")))
	require.NoError(t, os.RemoveAll(filepath.Join(templates, "cases")))
	file := filepath.Join(templates, "haproxy.cfg")
	good, err := os.ReadFile(file)
	require.NoError(t, err)
	write := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
	}
	token := filepath.Join(state, "token")
	write(token, "0123456789abcdef0123456789abcdef")
	page := "http://me:0123456789abcdef0123456789abcdef@" + debug
	args := []string{"-templates", templates, "-local", filepath.Join(state, "h"), "-debug-addr", debug, "-debug-token-file", token}
	d := startDemo(t, args...)
	serves := func() bool { return d.answers("blog.demo.test", "/posts") == "127.0.0.14:18080" }
	d.until(serves)
	for name, c := range map[string]struct {
		breaks func()
		says   string
	}{
		"does not compile": {func() { write(file, string(good)+"{{ nosuch }}\n") }, fmt.Sprintf("haproxy.cfg:%d:4: undefined: nosuch", strings.Count(string(good), "\n")+1)},
		"fails its case":   {func() { write(filepath.Join(templates, "cases", "a.yaml"), failing) }, "no match"},
		"is gone":          {func() { require.NoError(t, os.Remove(file)) }, "template haproxy.cfg: missing"},
	} {
		t.Run(name, func(t *testing.T) {
			d.stop()
			c.breaks()
			d.launch(args...)
			d.until(serves)
			var before string
			d.until(func() bool {
				before = worker(filepath.Join(state, "h"))
				return strings.Contains(before, "worker")
			})
			var status int
			var body string
			d.until(func() bool {
				status, body = d.get(page+"/readyz?verbose", "")
				return strings.Contains(body, c.says)
			})
			_, html := d.get(page+"/", "")
			require.Contains(t, html, c.says)
			require.Equal(t, http.StatusServiceUnavailable, status)
			require.Contains(t, body, "templates")
			d.until(func() bool { return strings.Contains(d.stderr.String(), c.says) })

			write(file, string(good))
			require.NoError(t, os.RemoveAll(filepath.Join(templates, "cases")))
			d.until(func() bool { status, _ = d.get(page+"/readyz", ""); return status == http.StatusOK })
			d.until(func() bool { return strings.Contains(d.stderr.String(), "templates: in order again") })
			require.True(t, serves())
			require.Equal(t, before, worker(filepath.Join(state, "h")), "HAProxy is neither reloaded nor started anew")
			_, log, _ := strings.Cut(d.stderr.String(), "\n") // the line of the start names haproxy.cfg
			require.Equal(t, 1, strings.Count(log, c.says), "%s", d.stderr.String())
		})
	}
}

// TestBrokenTemplatesWithoutAStoredConfiguration: there is nothing to serve.
func TestBrokenTemplatesWithoutAStoredConfiguration(t *testing.T) {
	t.Parallel()
	templates := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(templates, "haproxy.cfg"), []byte("{{ nosuch }}\n"), 0o644))
	for _, more := range [][]string{nil, {"-once", "-dry-run"}} {
		var stderr output
		args := append([]string{"-manifests", "demo", "-templates", templates, "-local", filepath.Join(t.TempDir(), "h")}, more...)
		require.Equal(t, 1, run(t.Context(), args, io.Discard, &stderr))
		require.Contains(t, stderr.String(), "haproxy.cfg:1:4: undefined: nosuch")
	}
}
