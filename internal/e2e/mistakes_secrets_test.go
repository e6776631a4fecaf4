package e2e

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"
)

func runSecrets(t *testing.T, b *board, g *group) { startFolder(t, b, g, 2).runAll(g) }

// renew puts another certificate and key into the Secret of the site.
func renew(change func(sc *scene) keyPair) func(sc *scene) {
	return func(sc *scene) {
		pair := change(sc)
		sc.write(sc.words([]string{namesSecret(siteManifest) + withPair(secretManifest, pair)})[0])
	}
}

// pair makes a certificate of the authority that the test says the rest of.
func (sc *scene) pair(host string, bits int, from, to time.Duration) keyPair {
	sc.t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	sc.fatal(err)
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		NotBefore: time.Now().Add(from), NotAfter: time.Now().Add(to), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	ca := sc.manifest.certs.ca
	der, err := x509.CreateCertificate(rand.Reader, tmpl, ca.cert, key.Public(), ca.key)
	sc.fatal(err)
	return keyPair{cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		key: pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})}
}

const day = 24 * time.Hour

// secretMistakes are certificates that are worse than those before. The last good
// one is served until a better one comes.
var secretMistakes = []mistake{
	{name: "no such Secret", tls: true, edit: []string{"secretName: SITE-tls", "secretName: SITE-tsl"},
		says: []string{"Ingress shop/SITE", "spec.tls[0]", "Secret shop/SITE-tsl"}},
	{name: "a Secret of another type", tls: true, own: unknownName, edit: []string{"kubernetes.io/tls", "Opaque"},
		says: []string{"Ingress shop/SITE", "SITE.yaml:1", "spec.tls[0]", "Secret shop/SITE-tls", "kubernetes.io/tls"}},
	{name: "the Secret is deleted", tls: true, own: unknownName, plant: func(sc *scene) { sc.write(sc.words([]string{namesSecret(siteManifest)})[0]) },
		says: []string{"Ingress shop/SITE", "spec.tls[0]", "Secret shop/SITE-tls"}},
	{name: "a key of another certificate", tls: true, plant: renew(func(sc *scene) keyPair {
		pair := sc.manifest.certs.issue(sc.host())
		pair.key = sc.manifest.certs.issue(sc.host()).key
		return pair
	}), says: []string{"Secret shop/SITE-tls", "SITE.yaml", "key"}},
	{name: "half a certificate", tls: true, plant: renew(func(sc *scene) keyPair {
		pair := sc.manifest.certs.issue(sc.host())
		pair.cert = pair.cert[:len(pair.cert)/2]
		return pair
	}), says: []string{"Secret shop/SITE-tls", "SITE.yaml", "tls.crt"}},
	{name: "no certificate in the Secret", tls: true, plant: renew(func(sc *scene) keyPair {
		return keyPair{key: sc.manifest.certs.issue(sc.host()).key}
	}), says: []string{"Secret shop/SITE-tls", "SITE.yaml", "tls.crt"}},
	{name: "certificate and key changed round", tls: true, plant: renew(func(sc *scene) keyPair {
		pair := sc.manifest.certs.issue(sc.host())
		pair.cert, pair.key = pair.key, pair.cert
		return pair
	}), says: []string{"Secret shop/SITE-tls", "SITE.yaml", "tls.crt"}},
	{name: "a certificate that has expired", tls: true, plant: renew(func(sc *scene) keyPair { return sc.pair(sc.host(), 2048, -9*day, -day) }),
		says: []string{"Secret shop/SITE-tls", "SITE.yaml", "is valid from", "stays in use"}},
	{name: "a certificate that is about to expire", tls: true, plant: renew(func(sc *scene) keyPair { return sc.pair(sc.host(), 2048, -80*day, 3*day) }),
		says: []string{"Secret shop/SITE-tls", "SITE.yaml", "expires"}},
	{name: "a certificate for another host", known: "it is served with a warning: no earlier one is kept for the host", tls: true, plant: renew(func(sc *scene) keyPair { return sc.manifest.certs.issue("other.test") }),
		says: []string{"Secret shop/SITE-tls", "SITE.yaml", "SITE.test", "other.test"}},
	{name: "a weak key", tls: true, plant: renew(func(sc *scene) keyPair { return sc.pair(sc.host(), 1024, -day, 90*day) }),
		says: []string{"Secret shop/SITE-tls", "SITE.yaml", "1,024"}},
}
