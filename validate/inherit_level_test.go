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

// What OpenSSL refuses at another security level is for haproxy to say.
func TestInheritsNotAtAnotherSecurityLevel(t *testing.T) {
	t.Parallel()
	const frontend = "frontend f\n  bind :443 ssl crt /etc/haproxy/ssl/a.pem"
	for text, want := range map[string]bool{
		frontend + "\n": true,
		"global\n  ssl-security-level 3\n" + frontend + "\n": false,
		frontend + " ciphers DEFAULT@SECLEVEL=3\n":           false,
	} {
		config := func() *dataplane.Config {
			c, err := dataplane.NewConfig(text, dataplane.File{Kind: dataplane.Certificate, Name: "a.pem", Content: newCertificate(t)})
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		if got := inherits(config(), config()); got != want {
			t.Errorf("%s\ngot %v", text, got)
		}
	}
}

func newCertificate(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
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
