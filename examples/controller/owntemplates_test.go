package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOwnTemplates: templates of a user's own have all that reconcile gives to
// templates, and what they fetch is fetched again.
func TestOwnTemplates(t *testing.T) {
	t.Parallel()
	var word atomic.Value
	word.Store("first")
	pages := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, word.Load())
	}))
	defer pages.Close()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("templates")))
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "cases")))
	write := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	text, err := os.ReadFile(filepath.Join(dir, "haproxy.cfg"))
	require.NoError(t, err)
	write("snippets/answer.cfg", "    # a snippet\n")
	own := `    # hosts {{ pathResolver.GetPath("map", "hosts.map") }}
    errorfile 503 {{ fileRegistry.Register("file", "503.http", "HTTP/1.0 503 Sorry\r\ncontent-type: text/plain\r\n\r\nsorry\n") }}
{% var paths = shared.ComputeIfAbsent("paths", func() any { return len(prefix) }) %}
{% if currentConfig != nil %}
    # there were {{ len(currentConfig.Sections("backend")) }} backends and now {{ paths }} paths
{% end %}
{{ include("answer") }}
    http-request return status 200 content-type text/plain string {{ http.FetchWith("PAGES", map[string]any{"interval": "1s"}) }} if { path /word }
    use_backend %`
	write("haproxy.cfg", strings.Replace(string(text), "    use_backend %", strings.ReplaceAll(own, "PAGES", pages.URL), 1))

	d := startDemo(t, "-templates", dir)
	answers := func(want string) func() bool {
		return func() bool { _, body := d.get("http://"+d.http+"/word", "blog.demo.test"); return body == want }
	}
	d.until(answers("first"))
	word.Store("second")
	d.until(answers("second"))
}
