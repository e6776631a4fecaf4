package validate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"testing"

	"github.com/hapticsdk/haptic/dataplane"
)

// HAProxy judges a certificate with another kind of key: the security level may
// refuse it.
func TestInheritsOnlyCertificatesOfOneShape(t *testing.T) {
	t.Parallel()
	config := func(content []byte) *dataplane.Config {
		c, err := dataplane.NewConfig("frontend f\n  bind :443 ssl crt /etc/haproxy/ssl/a.pem\n",
			dataplane.File{Kind: dataplane.Certificate, Name: "a.pem", Content: content})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	base := config(newCertificate(t))
	for curve, want := range map[elliptic.Curve]bool{elliptic.P256(): true, elliptic.P224(): false, elliptic.P384(): false} {
		if got := inherits(t.Context(), base, config(newCertificateOn(t, curve))); got != want {
			t.Errorf("%s: got %v", curve.Params().Name, got)
		}
	}
}

func newCertificate(t testing.TB) []byte {
	t.Helper()
	return newCertificateOn(t, elliptic.P256())
}

func newCertificateOn(t testing.TB, curve elliptic.Curve) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})...)
}
