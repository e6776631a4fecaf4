package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	encpem "encoding/pem"
	"fmt"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
)

// hugePair makes a certificate and an RSA key that fits it, of factors that are odd.
func hugePair(tb testing.TB, bits int) (crt, key []byte) {
	one, e := big.NewInt(1), big.NewInt(65537)
	factor := func() (f, less *big.Int) {
		f, err := rand.Int(rand.Reader, new(big.Int).Lsh(one, uint(bits/2)))
		require.NoError(tb, err)
		f.SetBit(f.SetBit(f, 0, 1), bits/2-1, 1)
		return f, new(big.Int).Sub(f, one)
	}
	var p, q, d, p1, q1, inverse *big.Int
	for d == nil || inverse == nil {
		p, p1 = factor()
		q, q1 = factor()
		d, inverse = new(big.Int).ModInverse(e, new(big.Int).Mul(p1, q1)), new(big.Int).ModInverse(q, p)
	}
	n := new(big.Int).Mul(p, q)
	der, err := asn1.Marshal(struct{ V, N, E, D, P, Q, DP, DQ, Inverse *big.Int }{
		new(big.Int), n, e, d, p, q, new(big.Int).Mod(d, p1), new(big.Int).Mod(d, q1), inverse})
	require.NoError(tb, err)
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(tb, err)
	text := &x509.Certificate{SerialNumber: one, DNSNames: []string{"x.test"}}
	cert, err := x509.CreateCertificate(rand.Reader, text, text, &rsa.PublicKey{N: n, E: 65537}, signer)
	require.NoError(tb, err)
	return encpem.EncodeToMemory(&encpem.Block{Type: "CERTIFICATE", Bytes: cert}), encpem.EncodeToMemory(&encpem.Block{Type: "RSA PRIVATE KEY", Bytes: der})
}

// TestAHugeKeyIsNotRead: one of 200 KB took 2.4 s, in which no other change was served.
func TestAHugeKeyIsNotRead(t *testing.T) {
	crt, key := hugePair(t, 65536)
	_, _, err := File(crt, key, 10)
	require.ErrorContains(t, err, "a block of tls.key has ")
	require.ErrorContains(t, err, " bytes, more than the 8,192 that are read: RSA keys have at most 4,096 bits")
	_, _, err = File(crt, append([]byte("-----BEGIN X-----\nAAAA\n-----END X-----\n"), key...), 10)
	require.ErrorContains(t, err, "more than the 8,192 that are read")
	crt, key = hugePair(t, 8192)
	_, _, err = File(crt, key, 10)
	require.ErrorContains(t, err, " bits, from 2,048 to 4,096 are taken")
}

// TestAHugeCertificateIsNotRead: clients would not take it.
func TestAHugeCertificateIsNotRead(t *testing.T) {
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	text := &x509.Certificate{SerialNumber: big.NewInt(1)}
	for i := range 20_000 {
		text.DNSNames = append(text.DNSNames, fmt.Sprintf("h%d.test", i))
	}
	cert, err := x509.CreateCertificate(rand.Reader, text, text, &signer.PublicKey, signer)
	require.NoError(t, err)
	_, key := certificate(t)
	_, _, err = File(encpem.EncodeToMemory(&encpem.Block{Type: "CERTIFICATE", Bytes: cert}), key, 10)
	require.ErrorContains(t, err, "bytes, more than the 100,000 that clients take")
}
