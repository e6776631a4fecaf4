package ingress

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	encpem "encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/dataplane"
)

// TestHostileResources: one resource neither stops the others nor takes what is
// theirs, also where no API server has checked it.
func TestHostileResources(t *testing.T) {
	crt, key := rsaPair(t, 2048)
	longName := strings.Repeat("n", 253)
	brokenChain := append(append([]byte{}, crt...), encpem.EncodeToMemory(&encpem.Block{Type: "CERTIFICATE", Bytes: []byte("abc")})...)
	shortCrt, shortKey := rsaPair(t, 1024)
	named := path(prefix, "/", "a")
	named.Backend.Service.Port = networkingv1.ServiceBackendPort{Name: "a b"}
	for name, c := range map[string]struct {
		bad *networkingv1.Ingress
		why string
	}{
		// HAProxy reads a map by pieces of 16383 bytes: the second would be a rule of another host.
		"path that HAProxy cuts":   {ingress("zbad", rule("x.test", path(prefix, "/"+strings.Repeat("a", 16383-len("x.test/"))+"good.test/x", "b"))), "more than the"},
		"space in a Service":       {ingress("zbad", rule("x.test", path(prefix, "/", "a b"))), "not the name"},
		"line feed in a Service":   {ingress("zbad", rule("x.test", path(prefix, "/", "a\nbackend x"))), "not the name"},
		"name of another backend":  {ingress("zbad", rule("x.test", path(prefix, "/", "a_80"))), "not the name"},
		"space in a port":          {ingress("zbad", rule("x.test", named)), "not the name"},
		"name that makes no file":  {withTLS(ingress("zbad"), "x.test", longName), "longer than"},
		"space in a Secret":        {withTLS(ingress("zbad"), "x.test", "a b"), "not the name"},
		"broken chain":             {withTLS(ingress("zbad"), "x.test", "chain"), "certificate 2 of the chain"},
		"short key":                {withTLS(ingress("zbad"), "x.test", "short"), "1,024 bits"},
		"socket for an address":    {ingress("zbad", rule("x.test", path(prefix, "/", "unix"))), `"unix@/run/x" is no IP address; no other endpoint of Service ns/unix is ready`},
		"variable for an address":  {ingress("zbad", rule("x.test", path(prefix, "/", "env"))), `"${HOME}" is no IP address; no other endpoint of Service ns/env is ready`},
		"port that does not exist": {ingress("zbad", rule("x.test", path(prefix, "/", "port"))), "70000 is no port"},
		"server name of another":   {withTLS(ingress("zbad"), "good.test", "aaa"), "good.test is served with Secret ns/good"},
		"certificate for another":  {&networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "zbad"}, Spec: networkingv1.IngressSpec{TLS: []networkingv1.IngressTLS{{SecretName: "aaa"}}}}, "good.test is served with Secret ns/good"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(withTLS(ingress("good", rule("good.test", path(prefix, "/good", "a"))), "good.test", "good"), c.bad)
			w.secrets["ns/good"], w.secrets["ns/aaa"] = secret("good", crt, key), secret("aaa", crt, key)
			w.secrets["ns/"+longName], w.secrets["ns/a b"] = secret(longName, crt, key), secret("a b", crt, key)
			w.secrets["ns/chain"], w.secrets["ns/short"] = secret("chain", brokenChain, key), secret("short", shortCrt, shortKey)
			for service, address := range map[string]string{"unix": "unix@/run/x", "env": "${HOME}", "port": "192.0.2.1"} {
				w.services["ns/"+service] = w.services["ns/a"].DeepCopy()
				w.services["ns/"+service].Name = service
				s := slice("http", 8080, address)
				if service == "port" {
					*s.Ports[0].Port = 70000
				}
				w.slices["ns/"+service] = append(w.slices["ns/"+service], s)
			}
			r := w.build()
			require.Len(t, r.Refused, 1)
			require.Contains(t, []string{"Ingress ns/zbad", "EndpointSlice ns/slice", "Secret ns/" + r.Refused[0].Object.Name}, r.Refused[0].Resource)
			require.Contains(t, r.Refused[0].Reason, c.why)
			require.Equal(t, []TLSCertificate{{File: "ns_good.pem", Hosts: []string{"good.test"}}}, unsigned(r.Certificates))
			cfg := renderRoutes(t, dataplane.Layout{Base: t.TempDir()}, r)
			require.Contains(t, cfg.Main(), "server s1 192.0.2.1:8080")
			require.NotContains(t, cfg.Main(), "70000")
		})
	}
}

// rsaPair is a certificate for good.test.
func rsaPair(t *testing.T, bits int) (crt, key []byte) {
	t.Helper()
	priv, err := rsa.GenerateKey(rand.Reader, bits)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"good.test"}, NotAfter: time.Now().Add(30 * 24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &priv.PublicKey, priv)
	require.NoError(t, err)
	return encpem.EncodeToMemory(&encpem.Block{Type: "CERTIFICATE", Bytes: der}),
		encpem.EncodeToMemory(&encpem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(priv)})
}
