package main

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// hostile is for tests that judge by time: on a machine with much else to do, or with the race
// detector, they say nothing.
var hostile = flag.Bool("hostile", false, "measure how long a hostile tenant delays others, as make hostile does")

// evilSecrets is a file with a tenant's Service, its Ingress of many hosts, and a
// Secret with a certificate for each of them, each with a line of the crt-list that
// HAProxy takes or refuses. HAProxy ends with the first one that it refuses.
func evilSecrets(t *testing.T, many int) func(options string) string {
	server := httptest.NewTLSServer(nil)
	server.Close()
	pair := server.TLS.Certificates[0]
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	require.NoError(t, err)
	crt := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}))
	key := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	return func(options string) string {
		var b strings.Builder
		b.WriteString("apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: evil}\nspec: {ports: [{port: 80}]}\n---\n")
		b.WriteString("apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: web, namespace: evil}\nspec:\n  ingressClassName: haptic\n  rules:\n")
		for i := range many {
			fmt.Fprintf(&b, "    - {host: h%d.evil.test, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}\n", i)
		}
		b.WriteString("  tls:\n")
		for i := range many {
			fmt.Fprintf(&b, "    - {hosts: [h%d.evil.test], secretName: s%d}\n", i, i)
		}
		for i := range many {
			fmt.Fprintf(&b, "---\napiVersion: v1\nkind: Secret\ntype: kubernetes.io/tls\nmetadata: {name: s%d, namespace: evil, annotations: {options: %q}}\ndata: {tls.crt: %s, tls.key: %s}\n",
				i, options, crt, key)
		}
		return b.String()
	}
}

// saveGood gives another tenant one more host. The returned condition holds when it is served.
func (d *demo) saveGood(n int) (served func() bool) {
	name := fmt.Sprintf("good-%d", n)
	d.edit(name+".yaml", func(string) string { return ingressManifest(name, "") })
	return func() bool { return d.answers(name+".demo.test", "/") == "127.0.0.14:18080" }
}

// servesEvil holds when HAProxy has the hosts of the hostile tenant, which has no endpoints.
func (d *demo) servesEvil() bool {
	status, _ := d.get("http://"+d.http+"/", "h0.evil.test")
	return status == http.StatusServiceUnavailable
}

// TestHostileTenant: Secrets of one tenant turn bad together while another tenant adds hosts.
// Those are served, what is bad is served as it was, and what is mended is released.
func TestHostileTenant(t *testing.T) {
	t.Parallel()
	const many = 10
	d := startDemo(t, "-templates", ownTemplates(t))
	secrets := evilSecrets(t, many)
	save := func(options string) { d.edit("evil.yaml", func(string) string { return secrets(options) }) }
	save("alpn h2")
	d.until(d.servesEvil)
	said := func(text string) func() bool {
		says := regexp.MustCompile(text + ": [^:]*Secret evil/s")
		return func() bool { return says.MatchString(d.stderr.String()) }
	}
	save("foo bar")
	d.until(d.saveGood(1))
	d.until(said("in quarantine, all others are served"))
	d.until(d.saveGood(2))
	require.NotContains(t, d.stderr.String(), "quarantine: Ingress demo/good")
	save("alpn h2")
	d.until(said("released from quarantine"))
	d.until(d.saveGood(3))
}

// TestHostileTenantStallsNobody: 200 Secrets of one tenant turn bad together, or flip
// between good and bad, and a change of another is served about as soon as without
// that. TestHostileTenant of reconcile counts in validations.
func TestHostileTenantStallsNobody(t *testing.T) {
	if !*hostile {
		t.Skip("it judges by time: make hostile")
	}
	const many, changes = 200, 4
	for name, every := range map[string]time.Duration{"turn bad together": 0, "flip at 100 ms": 100 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			d := startDemo(t, "-templates", ownTemplates(t))
			secrets := evilSecrets(t, many)
			save := func(options string) { d.edit("evil.yaml", func(string) string { return secrets(options) }) }
			save("alpn h2")
			change := func(n int) time.Duration {
				begun := time.Now()
				d.until(d.saveGood(n))
				return time.Since(begun)
			}
			change(0)
			d.until(d.servesEvil)
			alone := change(1)
			stop := make(chan struct{})
			var wg sync.WaitGroup
			save("foo bar")
			if every > 0 {
				wg.Go(func() {
					for n := 0; ; n++ {
						select {
						case <-time.After(every):
							save([]string{"alpn h2", "foo bar"}[n%2])
						case <-stop:
							return
						}
					}
				})
			}
			var took []time.Duration
			for n := range changes {
				took = append(took, change(n+2))
				<-time.After(300 * time.Millisecond)
			}
			close(stop)
			wg.Wait()
			slices.Sort(took)
			t.Logf("a change took %s before, then median %s, longest %s", alone, took[changes/2], took[changes-1])
			require.Less(t, took[changes/2], 2*time.Second)
			require.Less(t, took[changes-1], 5*time.Second)
		})
	}
}
