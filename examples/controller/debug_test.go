package main

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// tenant leads two hosts, and every host that nobody else has, to the debug server.
const tenant = `apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: debug, namespace: evil}
spec:
  ingressClassName: haptic
  defaultBackend: {service: {name: debug, port: {number: 80}}}
  rules:
    - host: localhost
      http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: debug, port: {number: 80}}}}]}
---
apiVersion: v1
kind: Service
metadata: {name: debug, namespace: evil}
spec: {ports: [{name: http, port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: debug-1, namespace: evil, labels: {kubernetes.io/service-name: debug}}
addressType: IPv4
ports: [{name: http, port: %s}]
endpoints: [{addresses: [127.0.0.1]}]
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: good, namespace: demo}
spec:
  ingressClassName: haptic
  rules: [{host: good.demo.test, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: shop-web, port: {number: 80}}}}]}}]
`

// TestDebugPagesAreNotForEverybody: neither another user of the host nor a tenant,
// through HAProxy, reads the configuration or the memory. Who started the demo does.
func TestDebugPagesAreNotForEverybody(t *testing.T) {
	address := freeAddress(t)
	d := startDemo(t, "-debug-addr", address)
	d.edit("evil.yaml", func(string) string { return fmt.Sprintf(tenant, address[strings.Index(address, ":")+1:]) })
	d.until(func() bool { return d.answers("good.demo.test", "/") == "127.0.0.11:18080" })
	shown := regexp.MustCompile(`frontend http|haptic_|^\x1f\x8b|All is well|goroutine`)
	for _, path := range []string{"/debug/vars/rendered", "/debug/pprof/heap", "/debug/pprof/goroutine?debug=2", "/", "/metrics"} {
		for _, host := range []string{"localhost", address, "nobody.test"} {
			status, body := d.get("http://"+d.http+path, host)
			require.NotEqual(t, http.StatusOK, status, "%s through HAProxy as %s: %d bytes", path, host, len(body))
			require.NotRegexp(t, shown, body)
		}
		status, body := d.get("http://"+address+path, "")
		require.Equal(t, http.StatusUnauthorized, status, "%s by another user: %d bytes", path, len(body))
		require.NotRegexp(t, shown, body)
	}
	page := regexp.MustCompile(`http://demo:\S+/\n`).FindString(d.stdout.String())
	for _, path := range []string{"", "metrics", "debug/vars/rendered"} {
		d.until(func() bool { // while a site is stored, the page does not say that all is well
			status, body := d.get(strings.TrimSpace(page)+path, "")
			return status == http.StatusOK && shown.MatchString(body)
		})
	}
	token := regexp.MustCompile(`demo:(\w+)@`).FindStringSubmatch(page)[1]
	require.NotContains(t, d.stderr.String(), token, "the log goes elsewhere")
}
