package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// pages asks the debug server behind a socket.
func pages(t *testing.T, socket string) (page func(path string) (int, string)) {
	client := &http.Client{Timeout: patience, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}
	return func(path string) (int, string) {
		resp, err := client.Get("http://localhost" + path)
		if err != nil {
			return 0, err.Error()
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(body)
	}
}

// TestBrokenManifestAtARestart: a site whose manifest is broken, or whose folder is
// gone, is served after a restart as before it. Where nobody knows what the file said,
// what is deployed stays, and the controller is not ready.
func TestBrokenManifestAtARestart(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "haptic") // HAProxy runs under an account of its own
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o711))
	state, socket := filepath.Join(dir, "s"), filepath.Join(dir, "debug")
	flags := []string{"-local", state, "-debug-addr", "unix:" + socket}
	page := pages(t, socket)
	d := startDemo(t, flags...)
	shop := func() bool { return d.answers("shop.demo.test", "/health") == "127.0.0.13:18080" }
	blog := func() bool { return d.answers("blog.demo.test", "/posts") == "127.0.0.14:18080" }
	d.until(shop)
	d.stop()

	whole, err := os.ReadFile(filepath.Join(d.manifests, "shop.yaml"))
	require.NoError(t, err)
	d.edit("shop.yaml", func(s string) string { return strings.Replace(s, "spec:", "specs:", 1) })
	d.start(flags...)
	d.until(shop)
	d.until(blog)
	_, verbose := page("/readyz?verbose")
	require.Contains(t, verbose, "[!]manifests (reported): "+filepath.Join(d.manifests, "shop.yaml"))
	require.Contains(t, verbose, "its last good version stays in use")
	d.stop()

	// The copies are lost, as at the first start of a version that keeps them.
	require.NoError(t, os.RemoveAll(filepath.Join(state, "manifests")))
	d.launch(flags...)
	d.until(func() bool {
		_, verbose := page("/readyz?verbose")
		return strings.Contains(verbose, "the controller deploys nothing until")
	})
	d.until(shop)
	d.until(blog)
	code, _ := page("/readyz")
	require.Equal(t, http.StatusServiceUnavailable, code)
	serves := func() {
		_, body := d.get("http://"+d.http+"/health", "shop.demo.test")
		require.Contains(t, body, "127.0.0.13:", d.stderr.String())
		_, body = d.get("http://"+d.http+"/posts", "blog.demo.test")
		require.Contains(t, body, "127.0.0.14:", d.stderr.String())
	}
	serves()
	d.edit("shop.yaml", func(string) string { return string(whole) })
	d.until(func() bool { code, _ := page("/readyz"); return code == http.StatusOK })
	serves()
	_, verbose = page("/readyz?verbose")
	require.Contains(t, verbose, "[+]manifests (reported): ok")
	d.stop()

	// An unmounted volume.
	require.NoError(t, os.Rename(d.manifests, d.manifests+".away"))
	require.NoError(t, os.Mkdir(d.manifests, 0o755))
	d.start(flags...)
	d.until(func() bool { return shop() && blog() })
	_, verbose = page("/readyz?verbose")
	require.Contains(t, verbose, "all that was read before stays in use")
}

// TestManifestThatNobodyReads: a misspelt kind is a row of the page as long as it is
// there, one line when it begins and one when it ends.
func TestManifestThatNobodyReads(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "debug")
	page := pages(t, socket)
	d := startDemo(t, "-debug-addr", "unix:"+socket)
	d.edit("new.yaml", func(string) string {
		return "apiVersion: networking.k8s.io/v1\nkind: Ingres\nmetadata: {name: new}\n"
	})
	d.until(func() bool {
		_, verbose := page("/readyz?verbose")
		return strings.Contains(verbose, "new.yaml:1: Ingres default/new: networking.k8s.io/v1 has no kind Ingres; did you mean Ingress?")
	})
	told := func(text string) func() bool {
		return func() bool { return strings.Contains(d.stderr.String(), text) }
	}
	d.until(told(`level=WARN msg="manifests: ` + d.manifests + `/new.yaml:1: Ingres default/new: `))
	require.NoError(t, os.Remove(filepath.Join(d.manifests, "new.yaml")))
	d.until(func() bool {
		_, verbose := page("/readyz?verbose")
		return strings.Contains(verbose, "[+]manifests (reported): ok")
	})
	d.until(told(`msg="manifests: in order again after `))
	require.Equal(t, 2, strings.Count(d.stderr.String(), `msg="manifests: `))
}
