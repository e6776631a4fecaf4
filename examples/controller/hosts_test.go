package main

import (
	"crypto/tls"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// hostManifest is an Ingress, a Service and an endpoint of a namespace. The name of the
// Ingress comes first among all.
const hostManifest = `apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: aaa, namespace: NAMESPACE}
spec:
  ingressClassName: haptic
SPEC
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: NAMESPACE}
spec: {ports: [{name: http, port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: NAMESPACE, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, port: PORT}]
endpoints: [{addresses: [ADDRESS]}]
`

// claim saves the manifests of a namespace whose Service is at an address.
func (d *demo) claim(namespace, address, spec string) {
	d.edit(namespace+".yaml", func(string) string {
		return strings.NewReplacer("NAMESPACE", namespace, "SPEC", spec, "ADDRESS", address, "PORT", d.first()).Replace(hostManifest)
	})
}

// certify gives a certificate to a namespace, in the Secret "own".
func (d *demo) certify(namespace string) {
	text, err := os.ReadFile("demo/tls.yaml")
	require.NoError(d.tb, err)
	d.edit(namespace+"-tls.yaml", func(string) string {
		return strings.NewReplacer("name: shop-tls", "name: own", "namespace: demo", "namespace: "+namespace).Replace(string(text))
	})
}

// handshake asks for a certificate by a server name.
func (d *demo) handshake(name string) error {
	conn, err := tls.Dial("tcp", d.https, &tls.Config{InsecureSkipVerify: true, ServerName: name})
	if err == nil {
		conn.Close()
	}
	return err
}

// evilSpec asks for all that the namespace demo has, and for what it has not.
const evilSpec = `  defaultBackend: &web {service: {name: web, port: {number: 80}}}
  tls: [{hosts: [shop.demo.test, blog.demo.test, evil.test], secretName: own}]
  rules:
    - host: shop.demo.test
      http: {paths: [{path: /, pathType: Exact, backend: *web}, {path: /login, pathType: Exact, backend: *web}]}
    - host: a.wild.test
      http: {paths: [{path: /, pathType: Prefix, backend: *web}]}
    - host: evil.test
      http: {paths: [{path: /, pathType: Prefix, backend: *web}]}
    - http: {paths: [{path: /.well-known/acme-challenge, pathType: Prefix, backend: *web}]}
`

// TestHostsStayWithTheirNamespace: another namespace gets no request for a host of
// demo, nor its certificate, also after a restart, when all objects are equally old.
func TestHostsStayWithTheirNamespace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o711)) // haproxy runs under an account of its own
	state := filepath.Join(dir, "s")
	d := startDemo(t, "-local", state, "-host-grace", "1s")
	const evil, acme = "127.0.0.29:18080", "/.well-known/acme-challenge/x"
	d.certify("wild")
	d.certify("aaa")
	d.claim("wild", "127.0.0.28", `  tls: [{hosts: ["*.demo.test"], secretName: own}]
  rules:
    - host: "*.wild.test"
      http: {paths: [{path: /w, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}
`)
	d.until(func() bool { return d.answers("x.wild.test", "/w") == "127.0.0.28:18080" })
	d.claim("aaa", "127.0.0.29", evilSpec)
	d.until(func() bool { return d.answers("evil.test", "/") == evil })

	check := func(t *testing.T) {
		for _, target := range []string{"shop.demo.test/", "shop.demo.test/login", "shop.demo.test" + acme, "blog.demo.test/", "blog.demo.test" + acme,
			"SHOP.demo.TEST/login", "shop.demo.test.:80/login", "blog.demo.test." + acme, "a.wild.test/", "a.wild.test/w", "a.wild.test" + acme, "x.wild.test" + acme, "a.b.wild.test" + acme, "A.b.c.wild.test.:80/"} {
			host, path, _ := strings.Cut(target, "/")
			require.NotEqual(t, evil, d.answers(host, "/"+path), target)
		}
		status, _ := d.get("http://"+d.http+"/other", "blog.demo.test")
		require.Equal(t, http.StatusNotFound, status, "no default backend of another namespace")
		require.Equal(t, evil, d.answers("nobodys.test", "/"), "who has no host has the requests for those that nobody has")
		require.Equal(t, evil, d.answers("nobodys.test", acme))
		require.Equal(t, evil, d.answers("evil.test", acme))
		d.until(func() bool {
			return strings.Contains(d.stderr.String(), "shop.demo.test belongs to namespace demo, which claimed it first")
		})
		require.Error(t, d.handshake("blog.demo.test"), "no certificate of another namespace, that of a wildcard either")
		for _, name := range []string{"shop.demo.test", "evil.test", "x.demo.test"} {
			require.NoError(t, d.handshake(name), name)
		}
	}
	check(t)
	d.stop()
	t.Run("after a restart", func(t *testing.T) {
		d.start("-local", state, "-host-grace", "1s")
		check(t)
		d.edit("wild.yaml", func(s string) string { return strings.Replace(s, "*.demo.test", "*.other.test", 1) }) // it waits for the name, too
		d.edit("blog.yaml", func(string) string { return "# none\n" })
		d.edit("aaa.yaml", func(s string) string { return strings.Replace(s, "evil.test", "blog.demo.test", 1) })
		d.until(func() bool { return d.answers("blog.demo.test", "/") == evil }) // it is free
	})
}
