package validate_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
)

// withMaterial makes the files in ssl/ of what their lines name: "certificate
// a", "expired certificate a", "key a", "encrypted key a", where a certificate
// fits the key of its name. Other lines stay what they are.
func withMaterial(t *testing.T, files []txtar.File) []txtar.File {
	t.Helper()
	keys := map[string]*ecdsa.PrivateKey{}
	files = slices.Clone(files)
	for i, f := range files {
		if !strings.HasPrefix(f.Name, "ssl/") {
			continue
		}
		files[i].Data = nil
		for line := range bytes.Lines(f.Data) {
			files[i].Data = append(files[i].Data, material(t, string(line), keys)...)
		}
	}
	return files
}

func material(t *testing.T, line string, keys map[string]*ecdsa.PrivateKey) []byte {
	t.Helper()
	words := strings.Fields(line)
	if len(words) < 2 {
		return []byte(line)
	}
	what, name := strings.Join(words[:len(words)-1], " "), words[len(words)-1]
	if keys[name] == nil {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		keys[name] = key
	}
	switch what {
	case "certificate":
		return selfSigned(t, keys[name], name, time.Now().Add(time.Hour))
	case "expired certificate":
		return selfSigned(t, keys[name], name, time.Now().Add(-time.Hour))
	case "key":
		return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8(t, keys[name])})
	case "encrypted key":
		// The usual way to say so, and nothing that any password opens.
		return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: make([]byte, 128),
			Headers: map[string]string{"Proc-Type": "4,ENCRYPTED", "DEK-Info": "AES-256-CBC,00112233445566778899AABBCCDDEEFF"}})
	}
	return []byte(line)
}

func pkcs8(t *testing.T, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func selfSigned(t *testing.T, key *ecdsa.PrivateKey, name string, until time.Time) []byte {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: until.Add(-48 * time.Hour), NotAfter: until, DNSNames: []string{name + ".example"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
