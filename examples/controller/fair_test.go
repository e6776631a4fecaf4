package main

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// siteOf is an Ingress with its Service and an endpoint. The host is that of its names.
func siteOf(namespace, name, port string, annotations ...string) string {
	return fmt.Sprintf(`
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: %[2]s, namespace: %[1]s, annotations: {%[4]s}}
spec:
  ingressClassName: haptic
  rules:
    - host: %[2]s.%[1]s.test
      http:
        paths: [{path: /, pathType: Prefix, backend: {service: {name: %[2]s, port: {number: 80}}}}]
---
apiVersion: v1
kind: Service
metadata: {name: %[2]s, namespace: %[1]s}
spec:
  ports: [{name: http, port: 80, targetPort: %[3]s}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %[2]s-1, namespace: %[1]s, labels: {kubernetes.io/service-name: %[2]s}}
addressType: IPv4
ports: [{name: http, port: %[3]s}]
endpoints:
  - addresses: [127.0.0.14]
---
`, namespace, name, port, strings.Join(annotations, ", "))
}

// TestReloadsAndSparesAreShared: one tenant has reloads, each with an upload that keeps the old
// worker alive, takes all spare backends that it gets, and has changes of the frontend that
// wait. The new Ingress of another is served without a reload, and one that takes a reload
// gets that.
func TestReloadsAndSparesAreShared(t *testing.T) {
	t.Parallel()
	d := startDemo(t, "-max-old-workers", "2", "-spare-backends", "32", "-min-interval", "10ms")
	put := func(file, text string) { d.edit(file, func(string) string { return text }) }
	serves := func(host string) {
		t.Helper()
		d.until(func() bool { return d.answers(host, "/") == "127.0.0.14:18080" })
	}
	reloads := func() int { return strings.Count(d.plans(), "one reload") }
	waits := func() int { return strings.Count(d.stderr.String(), "a reload waits for old workers to end") }
	evil := func(timeout int) string {
		return siteOf("evil", "site", d.first(), fmt.Sprintf("nginx.ingress.kubernetes.io/proxy-read-timeout: '%d'", timeout))
	}

	put("evil.yaml", evil(100))
	serves("site.evil.test")
	for n := 0; waits() == 0; n++ {
		upload, err := net.Dial("tcp", d.http)
		require.NoError(t, err)
		t.Cleanup(func() { upload.Close() })
		_, err = fmt.Fprint(upload, "POST / HTTP/1.1\r\nHost: site.evil.test\r\nContent-Length: 1000000\r\n\r\nx")
		require.NoError(t, err)
		before := reloads()
		put("evil.yaml", evil(101+n))
		d.until(func() bool { return reloads() > before || waits() > 0 })
	}
	var many strings.Builder
	for i := range 60 {
		many.WriteString(siteOf("evil", fmt.Sprintf("s%02d", i), d.first()))
	}
	put("evil-many.yaml", many.String())
	serves("s00.evil.test")
	before := waits()
	put("evil-canary.yaml", strings.ReplaceAll(siteOf("evil", "canary", d.first(),
		"nginx.ingress.kubernetes.io/canary: 'true'", "nginx.ingress.kubernetes.io/canary-by-cookie: beta"), "canary.evil.test", "site.evil.test"))
	d.until(func() bool { return waits() > before })

	before, begun := reloads(), time.Now()
	put("good.yaml", siteOf("good", "web", d.first()))
	serves("web.good.test")
	require.Equal(t, before, reloads())
	put("fine.yaml", siteOf("fine", "web", d.first(), "nginx.ingress.kubernetes.io/proxy-read-timeout: '100'"))
	serves("web.fine.test")
	d.until(func() bool { return reloads() > before })
	require.Contains(t, d.plans(), "+ acl canary-open in frontend http (reload", "what waited goes with it")
	require.Less(t, time.Since(begun), 30*time.Second, "uploads end by themselves after 50 s")
}
