package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSlowPatterns: no pattern of a tenant keeps HAProxy busy, or kills it. A path that is too
// long for one gets 414, and not the other paths of its host.
func TestSlowPatterns(t *testing.T) {
	t.Parallel()
	host, port := accept(t, mirror)
	d := startDemo(t, "-access-log", "http")
	annotated := func(name, path string, annotations ...string) string {
		s := strings.Replace(site(name, name+".test", port, host), "namespace: evil}\nspec:\n  ing", "namespace: evil, annotations: {"+strings.Join(annotations, ", ")+"}}\nspec:\n  ing", 1)
		return strings.Replace(s, "path: /, pathType: Prefix", "path: \""+path+"\", pathType: ImplementationSpecific", 1)
	}
	const regex, allow = "nginx.ingress.kubernetes.io/use-regex: \"true\"", "nginx.ingress.kubernetes.io/whitelist-source-range: 192.0.2.1"
	d.edit("kill.yaml", func(string) string {
		return annotated("kill", "/[a-z]{0,300}[a-z]{0,400}[a-z]{300}[0-9]", regex)
	})
	closed := annotated("closed", "/(.*)/(.*)x", regex, allow)
	d.edit("closed.yaml", func(string) string { return closed })
	d.edit("open.yaml", func(string) string { return site("open", "closed.test", port, host) })
	d.edit("rewrite.yaml", func(string) string {
		return annotated("rewrite", "/", "\"haproxy.org/path-rewrite\": \"a(.*)b /\\\\1\"")
	})
	status := func(host, path string) int {
		start := time.Now()
		status, _ := d.get("http://"+d.http+path, host)
		t.Logf("%d after %v: %s %.40s", status, time.Since(start), host, path)
		return status
	}
	d.until(func() bool { return status("closed.test", "/a/bx") == http.StatusForbidden })
	d.until(func() bool { return status("closed.test", "/") == http.StatusOK })
	d.until(func() bool { return status("rewrite.test", "/ab/c") == http.StatusOK })

	status("kill.test", "/"+strings.Repeat("a", 3000))
	require.Equal(t, http.StatusRequestURITooLong, status("closed.test", "/x"+strings.Repeat("/", 10_000)), "not what is open")
	require.Equal(t, http.StatusRequestURITooLong, status("rewrite.test", strings.Repeat("/a", 5_000)))
	require.Equal(t, "127.0.0.13:18080", d.answers("shop.demo.test", "/cart/"+strings.Repeat("a", 5_000)), "HAProxy is alive, and others take long paths")
}
