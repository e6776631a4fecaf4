package main

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// ownTemplates are the built-in templates with what a user added: annotations
// of Ingresses and Secrets that end where they can do harm.
func ownTemplates(tb testing.TB) string {
	dir := tb.TempDir()
	require.NoError(tb, os.CopyFS(dir, os.DirFS("templates")))
	change := func(name, old, new string) {
		file := filepath.Join(dir, name)
		text, err := os.ReadFile(file)
		require.NoError(tb, err)
		require.Contains(tb, string(text), old)
		require.NoError(tb, os.WriteFile(file, []byte(strings.Replace(string(text), old, new, 1)), 0o644))
	}
	change("haproxy.cfg", "    use_backend %", `{% for p in prefix %}
{% notes := p.Ingress.Annotations %}
{% if notes["fail"] != "" %}{{ fail("no " + notes["fail"]) }}{% end %}
{% if notes["snippet"] != "" %}
    {{ raw(notes["snippet"]) }}
{% end %}
{% if notes["tag"] != "" %}
    http-request set-var(txn.tag) str({{ notes["tag"] }})
{% end %}
{% end %}
    use_backend %`)
	change("crt-lists/certificates.txt", `{% for name in certificate.Hosts %}`,
		`{% if certificate.Secret.Annotations["options"] != "" %} [{{ raw(certificate.Secret.Annotations["options"]) }}]{% end %}{% for name in certificate.Hosts %}`)
	return dir
}

// ingressManifest is an Ingress for a host of its own.
func ingressManifest(name, annotations string) string {
	return fmt.Sprintf(`apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: %[1]s, namespace: demo, annotations: {%[2]s}}
spec:
  ingressClassName: haptic
  rules:
    - host: %[1]s.demo.test
      http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: blog, port: {number: 80}}}}]}
`, name, annotations)
}

// TestQuarantine: whatever is wrong with one resource, all others are served,
// and it is named with its line and that of the template.
func TestQuarantine(t *testing.T) {
	t.Parallel()
	templates := ownTemplates(t)
	d := startDemo(t, "-templates", templates)
	const blog = "127.0.0.14:18080"
	text, err := os.ReadFile("templates/haproxy.cfg")
	require.NoError(t, err)
	before, _, _ := strings.Cut(string(text), "    use_backend %")
	own := func(line int) string { return fmt.Sprintf("haproxy.cfg:%d", strings.Count(before, "\n")+line) } // of what ownTemplates adds
	save := func(name, annotations string) {
		d.edit(name+".yaml", func(string) string { return ingressManifest(name, annotations) })
	}
	for name, c := range map[string]struct{ bad, good, says string }{
		"snippet": {`snippet: "foo bar"`, `snippet: "http-request set-header X-A b"`, own(5) + ": "},
		"deny":    {`snippet: "http-request deny deny_status x"`, `snippet: ""`, own(5) + ": "},
		"fail":    {`fail: "way"`, `snippet: ""`, own(3) + ": no way"},
		"tag":     {`tag: "a\nb"`, `tag: "ab"`, own(8) + ": refused"},
	} {
		t.Run(name, func(t *testing.T) {
			save(name, c.bad)
			d.until(func() bool { return strings.Contains(d.stderr.String(), `resource="Ingress demo/`+name+`"`) })
			require.Contains(t, d.stderr.String(), c.says)
			require.Contains(t, d.stderr.String(), "for Ingress demo/"+name+" ("+filepath.Join(d.manifests, name+".yaml")+":1)")
			save(name+"-next", "")
			d.until(func() bool { return d.answers(name+"-next.demo.test", "/") == blog })
			status, _ := d.get("http://"+d.http+"/", name+".demo.test")
			require.Equal(t, http.StatusNotFound, status)
			save(name, c.good)
			d.until(func() bool { return d.answers(name+".demo.test", "/") == blog })
			d.until(func() bool {
				return strings.Contains(d.stderr.String(), `released from quarantine: Ingress demo/`+name+`: `)
			})

			save(name, c.bad) // it worked, and goes on to
			d.until(func() bool {
				return strings.Contains(d.stderr.String(), "for Ingress demo/"+name+" ("+filepath.Join(d.manifests, name+".yaml")+":1); the earlier version is served")
			})
			save(name+"-last", "")
			d.until(func() bool { return d.answers(name+"-last.demo.test", "/") == blog })
			require.Equal(t, blog, d.answers(name+".demo.test", "/"))
			require.NoError(t, os.Remove(filepath.Join(d.manifests, name+".yaml")))
			d.until(func() bool { return d.answers(name+".demo.test", "/") == "no" })
		})
	}

	t.Run("a Secret", func(t *testing.T) {
		server := httptest.NewTLSServer(nil)
		server.Close()
		pair := server.TLS.Certificates[0]
		der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
		require.NoError(t, err)
		crt := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})
		key := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
		secret := func(options string) {
			d.edit("own-tls.yaml", func(string) string {
				return fmt.Sprintf("apiVersion: v1\nkind: Secret\ntype: kubernetes.io/tls\nmetadata: {name: own, namespace: demo, annotations: {options: %q}}\ndata: {tls.crt: %s, tls.key: %s}\n",
					options, base64.StdEncoding.EncodeToString(crt), base64.StdEncoding.EncodeToString(key))
			})
		}
		secret("foo bar")
		d.edit("own.yaml", func(string) string {
			return ingressManifest("own", "") + "  tls: [{hosts: [own.demo.test], secretName: own}]\n"
		})
		d.until(func() bool {
			return strings.Contains(d.stderr.String(), `resource="Secret demo/own" source=`+filepath.Join(d.manifests, "own-tls.yaml")+":1")
		})
		require.Contains(t, d.stderr.String(), "of crt-list certificates.txt")
		d.until(func() bool { return d.answers("own.demo.test", "/") == blog })
		secret("alpn h2")
		d.until(func() bool {
			return strings.Contains(d.stderr.String(), `released from quarantine: Secret demo/own: `)
		})
		require.Equal(t, blog, d.answers("own.demo.test", "/"))
	})
}

// TestNoQuarantineFlag keeps what is there, and names the culprit all the same.
func TestNoQuarantineFlag(t *testing.T) {
	t.Parallel()
	d := startDemo(t, "-templates", ownTemplates(t), "-no-quarantine")
	d.edit("bad.yaml", func(string) string { return ingressManifest("bad", `snippet: "foo bar"`) })
	d.until(func() bool {
		return strings.Contains(d.stderr.String(), "for Ingress demo/bad ("+filepath.Join(d.manifests, "bad.yaml")+":1)")
	})
	d.edit("next.yaml", func(string) string { return ingressManifest("next", "") })
	d.edit("bad.yaml", func(string) string { return ingressManifest("bad", "") })
	d.until(func() bool { return d.answers("next.demo.test", "/") == "127.0.0.14:18080" })
	require.NotContains(t, d.stderr.String(), "in quarantine")
}
