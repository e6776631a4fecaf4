package certs_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/hapticsdk/haptic/reconcile/certs"
)

// newPair makes a certificate for a host that is valid for a day from a time on, and its key.
func newPair(host string, from time.Time) (crt, key []byte) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{host}, NotBefore: from, NotAfter: from.Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		panic(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		panic(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
}

var may = time.Date(2030, 5, 1, 0, 0, 0, 0, time.UTC)

func Example() {
	crt, key := newPair("shop.test", may)
	good := &corev1.Secret{Data: map[string][]byte{corev1.TLSCertKey: crt, corev1.TLSPrivateKeyKey: key}}
	checked := certs.Checked{}.Check("shop.pem", good, nil, 10, may)
	fmt.Println(checked.InUse)

	bad := &corev1.Secret{Data: map[string][]byte{corev1.TLSCertKey: crt}}
	checked = checked.Check("shop.pem", bad, nil, 10, may)
	warnings, _ := checked.Warnings(may, 0)
	fmt.Println(checked.InUse.Covers("shop.test"), len(warnings))
	// Output:
	// certificate for shop.test until 2030-05-02 00:00:00 UTC
	// true 1
}

func ExampleRead() {
	crt, key := newPair("shop.test", may)
	c, err := certs.Read("shop.pem", crt, key, 10)
	fmt.Println(c.Names, c.ValidAt(may), err)
	_, err = certs.Read("shop.pem", crt, nil, 10)
	fmt.Println(err)
	// Output:
	// [shop.test] true <nil>
	// tls.crt and tls.key: tls: failed to find any PEM data in key input
}

func ExampleFile() {
	crt, key := newPair("shop.test", may)
	_, leaf, err := certs.File(crt, key, 10)
	fmt.Println(leaf.DNSNames, err)
	// Output: [shop.test] <nil>
}

func ExampleCheck() {
	crt, _ := newPair("shop.test", may)
	block, _ := pem.Decode(crt)
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(certs.Check(c))
	// Output: <nil>
}

func ExampleAuthorities() {
	_, err := certs.Authorities([]byte("nothing"), 10)
	fmt.Println(err)
	// Output: it has no certificate in PEM
}

func ExampleChecked_Warnings() {
	crt, key := newPair("shop.test", may)
	secret := &corev1.Secret{Data: map[string][]byte{corev1.TLSCertKey: crt, corev1.TLSPrivateKeyKey: key}}
	warnings, next := certs.Checked{}.Check("shop.pem", secret, nil, 10, may).Warnings(may, 0)
	fmt.Println(warnings, next.Format(time.Kitchen))
	// Output: [] 8:00PM
}
