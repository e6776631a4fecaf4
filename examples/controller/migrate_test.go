package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMigrate: -migrate says of each annotation what becomes of it, whatever the class, and
// deploys nothing.
func TestMigrate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "all.yaml"), []byte(`apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: web
  namespace: shop
  annotations:
    nginx.ingress.kubernetes.io/app-root: /app
    nginx.ingress.kubernetes.io/rewrite-target: /$uri
    nginx.ingress.kubernetes.io/auth-type: basic
    nginx.ingress.kubernetes.io/auth-secret: users
    nginx.ingress.kubernetes.io/proxy-buffering: "off"
    nginx.ingress.kubernetes.io/server-snippet: "deny all;"
    nginx.ingress.kubernetes.io/canray: "true"
    nginx.ingress.kubernetes.io/enable-modsecurity: "false"
    haproxy.com/timeout-server: 5s
    nginx.ingress.kubernetes.io/proxy-read-timeout: "5"
spec:
  ingressClassName: nginx
  tls: [{hosts: [shop.test], secretName: shop}]
  rules: [{host: shop.test, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}, {path: "/a/.*", pathType: ImplementationSpecific, backend: {service: {name: web, port: {number: 80}}}}]}}]
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop, annotations: {haproxy.org/load-balance: leastconn, haproxy.org/allow-list: 10.0.0.0/8}}
spec: {ports: [{port: 80}]}
---
apiVersion: v1
kind: Secret
metadata: {name: users, namespace: shop}
type: Opaque
stringData: {auth: "ann:$apr1$1$JnfUMaRMSDySeWsNAWvmB1"}
`), 0o600))
	var out, log bytes.Buffer
	require.Zero(t, run(t.Context(), []string{"-migrate", "-manifests", dir}, &out, &log), "%s", log.String())
	require.Equal(t, `Ingress shop/web
  nginx.ingress.kubernetes.io/canray: unknown: it is not known, and does nothing: did you mean nginx.ingress.kubernetes.io/canary?
  nginx.ingress.kubernetes.io/app-root: same
  nginx.ingress.kubernetes.io/rewrite-target: refused: "/$uri" has a '$' that is not in front of the number of a group, $1 to $9
  nginx.ingress.kubernetes.io/auth-type: differs: digest is refused
  nginx.ingress.kubernetes.io/auth-secret: refused: Secret shop/users: line 1 of its key auth: a hash of Apache's own MD5 ($apr1$), which HAProxy does not know: write one by htpasswd -nB or by openssl passwd -6; the paths of the Ingress answer 503 until it is right
  nginx.ingress.kubernetes.io/proxy-read-timeout: same: haproxy.com/timeout-server sets the same option, and that one counts: remove one of them
  haproxy.com/timeout-server: differs: 50s without it; a WebSocket has timeout-tunnel
  nginx.ingress.kubernetes.io/server-snippet: refused: lines of a configuration are not taken from an annotation: write a template of your own and give it by -templates; the paths of the Ingress answer 503 until it is right, because they would be open without it
  nginx.ingress.kubernetes.io/enable-modsecurity: same
  nginx.ingress.kubernetes.io/proxy-buffering: not needed: HAProxy streams, with buffers of its own
  spec.rules[0].http.paths[1].path: differs: "/a/.*" is matched as it stands: pathType Prefix matches all below a path, and the annotation use-regex makes paths patterns
  nginx.ingress.kubernetes.io/ssl-redirect: differs: it is not given, and hosts with TLS are not redirected to https here: write "true"
Service shop/web
  haproxy.org/allow-list: refused: it belongs to an Ingress, and does nothing in a Service: move it
  haproxy.org/load-balance: differs: ewma is refused: leastconn is near to it
2 resources: 5 differs, 1 not needed, 4 refused, 3 same, 1 unknown; docs/annotations.md has all
`, out.String())
	require.NotContains(t, out.String()+log.String(), "JnfUMaRM")
}
