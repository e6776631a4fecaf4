package main

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/kit"
	"github.com/hapticsdk/haptic/reconcile/render"
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
		return status == want
	})
}

// TestDebugPagesAreNotPublic: a Service that leads to the debug server of the
// controller shows nothing of it.
func TestDebugPagesAreNotPublic(t *testing.T) {
	t.Parallel()
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
				return strings.Contains(d.stderr.String(), "endpoints[0].addresses[0]: "+debug+" is where HAProxy or the controller listens")
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
		return strings.Contains(d.stderr.String(), "endpoints[0].addresses[0]: 127.0.0.77:"+port+" is a loopback address: -allow-endpoint 127.0.0.0/8 would allow it; no other endpoint of Service evil/x is ready, requests get 503; 2 more refusals")
	})
	d.stop()

	d = startDemo(t, "-allow-endpoint", "127.0.0.77/32")
	d.publish(manifest, "x.test", http.StatusOK)
	status, body := d.get("http://"+d.http+"/", "x.test")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "backend", body)
	d.until(func() bool {
		return strings.Contains(d.stderr.String(), "endpoints[1].addresses[0]: 169.254.169.254:"+port+" is a link-local address: -allow-endpoint 169.254.0.0/16 would allow it; the other endpoints of Service evil/x serve; 1 more refusals")
	})
}

// TestInstancesAreNoEndpoints: no Service leads to HAProxy or its API at the address
// of an instance, by whatever address of a pod, and a new instance counts at once.
func TestInstancesAreNoEndpoints(t *testing.T) {
	for _, name := range []string{"USERNAME", "PASSWORD"} {
		t.Setenv("HAPTIC_DATAPLANE_"+name, "x")
		t.Setenv("HAPTIC_VALIDATION_"+name, "x")
	}
	api := httptest.NewServer(dataplanetest.New(t, nil))
	t.Cleanup(api.Close)
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(api.URL, "http://"))
	manifests := t.TempDir()
	for host, at := range map[string]string{"a": port, "b": "8080", "c": "8443", "d": "8081"} {
		require.NoError(t, os.WriteFile(filepath.Join(manifests, host+".yaml"), []byte(strings.Replace(site(host, host+".test", at, "127.0.0.1"), "  ingressClassName: haptic\n", "", 1)), 0o600))
	}
	for _, url := range []string{api.URL, "http://localhost:" + port} {
		var stdout, stderr output
		run(t.Context(), []string{"-once", "-dry-run", "-manifests", manifests, "-endpoint", url, "-allow-endpoint", "127.0.0.0/8"}, &stdout, &stderr)
		for _, at := range []string{port, "8080", "8443"} {
			require.Contains(t, stderr.String(), "127.0.0.1:"+at+" is where HAProxy or the controller listens")
		}
		require.NotContains(t, stderr.String(), "127.0.0.1:8081")
	}

	cfg, err := parseFlags([]string{"-pods", "app=haproxy", "-pod-namespace", "x", "-http-addr", "192.0.2.9:81"}, kit.NewLog(io.Discard))
	require.NoError(t, err)
	c := &controller{cfg: cfg, log: slog.New(slog.DiscardHandler), bus: eventbus.New(nil)}
	require.NoError(t, c.listen())
	c.loop, err = reconcile.New(reconcile.Options{Renderer: &render.Templates{}})
	require.NoError(t, err)
	both := []netip.Addr{netip.MustParseAddr("10.1.1.1"), netip.MustParseAddr("fd00::1")}
	c.listenAt([]netip.AddrPort{netip.AddrPortFrom(both[0], 5555), netip.AddrPortFrom(both[1], 5555)})
	listeners := c.endpointRules().Listeners
	require.Equal(t, both, listeners[5555])
	require.Equal(t, append(slices.Clone(both[:1]), netip.MustParseAddr("192.0.2.9"), both[1]), listeners[81])
	require.Equal(t, []netip.Addr{netip.MustParseAddr("192.0.2.9")}, c.addresses.Listeners[81], "what is shared stays")
	require.Empty(t, listeners[80])

	c.listenAt(nil)
	require.Empty(t, c.endpointRules().Listeners[5555])
}

func TestRangesOfFlags(t *testing.T) {
	for _, bad := range []string{"127.0.0.1", "::ffff:127.0.0.0/104", "x", ""} {
		_, err := parseFlags([]string{"-allow-endpoint", bad}, kit.NewLog(&output{}))
		require.ErrorContains(t, err, "want a range such as 10.0.0.0/8", bad)
	}
	cfg, err := parseFlags([]string{"-allow-endpoint", "127.1.2.3/8", "-allow-endpoint", "fd00::/8"}, kit.NewLog(&output{}))
	require.NoError(t, err)
	require.Equal(t, "[127.0.0.0/8 fd00::/8]", fmt.Sprint(cfg.allowEndpoints))
	var stdout, stderr output
	require.Equal(t, 1, run(t.Context(), []string{"-manifests", "demo", "-http-addr", "8080"}, &stdout, &stderr))
	require.Contains(t, stderr.String(), `-http-addr "8080": want address:port`)
}

// TestFleetsOfTwoNamespaces: controllers with equal flags are two fleets where their
// instances are in two namespaces, as a request may pass both.
func TestFleetsOfTwoNamespaces(t *testing.T) {
	t.Parallel()
	fleet := func(namespace string) string {
		cfg, err := parseFlags([]string{"-pods", "app=haproxy", "-pod-namespace", namespace, "-credentials", "a/b"}, kit.NewLog(io.Discard))
		require.NoError(t, err)
		c := &controller{cfg: cfg, source: &kit.Source{}, targets: &kit.Targets{}}
		require.NoError(t, c.newSettings())
		return c.settings.Fleet
	}
	require.Equal(t, fleet("edge"), fleet("edge"))
	require.NotEqual(t, fleet("edge"), fleet("inner"))
}
