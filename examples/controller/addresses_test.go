package main

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// site is an Ingress for a host, and a Service with these endpoints, all in the
// namespace evil.
func site(name, host, port string, addresses ...string) string {
	return fmt.Sprintf(`apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: %[1]s, namespace: evil}
spec:
  ingressClassName: haptic
  rules: [{host: %[2]q, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: %[1]s, port: {number: 80}}}}]}}]
---
apiVersion: v1
kind: Service
metadata: {name: %[1]s, namespace: evil}
spec: {ports: [{name: http, port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %[1]s-1, namespace: evil, labels: {kubernetes.io/service-name: %[1]s}}
addressType: IPv4
ports: [{name: http, port: %[3]s}]
endpoints: [{addresses: ["%[4]s"]}]
`, name, host, port, strings.Join(addresses, `"]}, {addresses: ["`))
}

// publish saves a site and waits until it answers with this status.
func (d *demo) publish(manifest, host string, want int) {
	d.tb.Helper()
	d.edit(host+".yaml", func(string) string { return manifest })
	d.until(func() bool {
		status, _ := d.get("http://"+d.http+"/", host)
		return status != 0 && status != http.StatusNotFound
	})
}

// TestDebugPagesAreNotPublic: a Service that leads to the debug server of the
// controller shows nothing of it.
func TestDebugPagesAreNotPublic(t *testing.T) {
	debug := freeAddress(t)
	_, port, _ := net.SplitHostPort(debug)
	for name, flags := range map[string][]string{
		"by default":       {"-debug-addr", debug},
		"loopback allowed": {"-debug-addr", debug, "-allow-endpoint", "127.0.0.0/8"},
	} {
		t.Run(name, func(t *testing.T) {
			d := startDemo(t, flags...)
			d.publish(site("x", "localhost", port, "127.0.0.1"), "localhost", http.StatusServiceUnavailable)
			for _, page := range []string{"/", "/metrics", "/debug/pprof/heap"} {
				status, body := d.get("http://"+d.http+page, "localhost")
				require.Equal(t, http.StatusServiceUnavailable, status, body)
			}
			d.until(func() bool {
				return strings.Contains(d.stderr.String(), "Service evil/x: endpoint "+debug+" is where HAProxy or the controller listens")
			})
			require.Equal(t, "127.0.0.13:18080", d.answers("shop.demo.test", "/cart"))
		})
	}
}

// TestEndpointsAreAllowedByFlag: without the flag loopback addresses but those of
// the demo are refused.
func TestEndpointsAreAllowedByFlag(t *testing.T) {
	backend, err := net.Listen("tcp", "127.0.0.77:0")
	require.NoError(t, err)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "backend") })}
	done := make(chan error, 1)
	go func() { done <- server.Serve(backend) }()
	t.Cleanup(func() { server.Close(); <-done })
	_, port, _ := net.SplitHostPort(backend.Addr().String())
	manifest := site("x", "x.test", port, "127.0.0.77", "169.254.169.254", "127.0.0.78")

	d := startDemo(t)
	d.publish(manifest, "x.test", http.StatusServiceUnavailable)
	d.until(func() bool {
		return strings.Contains(d.stderr.String(), "Service evil/x: endpoint 127.0.0.77:"+port+" is a loopback address: -allow-endpoint 127.0.0.0/8 would allow it (3 endpoints are refused)")
	})
	d.stop()

	d = startDemo(t, "-allow-endpoint", "127.0.0.77/32")
	d.publish(manifest, "x.test", http.StatusOK)
	status, body := d.get("http://"+d.http+"/", "x.test")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "backend", body)
	d.until(func() bool {
		return strings.Contains(d.stderr.String(), "endpoint 127.0.0.78:"+port+" is a loopback address: -allow-endpoint 127.0.0.0/8 would allow it (2 endpoints are refused)")
	})
}

func TestRangesOfFlags(t *testing.T) {
	for _, bad := range []string{"127.0.0.1", "::ffff:127.0.0.0/104", "x", ""} {
		_, err := parseFlags([]string{"-allow-endpoint", bad}, &output{})
		require.ErrorContains(t, err, "want a range such as 10.0.0.0/8", bad)
	}
	cfg, err := parseFlags([]string{"-allow-endpoint", "127.1.2.3/8", "-allow-endpoint", "fd00::/8"}, &output{})
	require.NoError(t, err)
	require.Equal(t, "[127.0.0.0/8 fd00::/8]", fmt.Sprint(cfg.allowEndpoints))
	var stdout, stderr output
	require.Equal(t, 1, run(t.Context(), []string{"-manifests", "demo", "-http-addr", "8080"}, &stdout, &stderr))
	require.Contains(t, stderr.String(), `-http-addr: "8080": want address:port`)
}
