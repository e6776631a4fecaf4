// Package certs reads the certificates in PEM files.
package certs

import (
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/sha1" //nolint:gosec // the fingerprint that HAProxy shows
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"slices"
	"strings"
)

// Read returns the certificates of a PEM file in their order. It skips what is
// no certificate.
func Read(content []byte) (list []*x509.Certificate) {
	for _, block := range blocks(content) {
		if c, err := x509.ParseCertificate(block.Bytes); err == nil && block.Type == "CERTIFICATE" {
			list = append(list, c)
		}
	}
	return list
}

func blocks(content []byte) (list []*pem.Block) {
	for block, rest := pem.Decode(content); block != nil; block, rest = pem.Decode(rest) {
		list = append(list, block)
	}
	return list
}

// Check returns an error in the words of client-native's storage for a file
// without a certificate, or without a private key that it knows.
func Check(content []byte) error {
	if len(Read(content)) == 0 {
		return errors.New("failed to parse certificate")
	}
	if !slices.ContainsFunc(blocks(content), isKey) {
		return errors.New("file should contain both certificate and private key")
	}
	return nil
}

// isKey recognises RSA and ECDSA keys, as the storage does.
func isKey(block *pem.Block) bool {
	key, _ := x509.ParsePKCS8PrivateKey(block.Bytes)
	switch key.(type) {
	case *rsa.PrivateKey, *ecdsa.PrivateKey:
		return true
	}
	_, notRSA := x509.ParsePKCS1PrivateKey(block.Bytes)
	_, notECDSA := x509.ParseECPrivateKey(block.Bytes)
	return notRSA == nil || notECDSA == nil
}

// Leaf returns the certificate of the server, nil if the storage does not find
// one: of several the first that is no CA and issued none of the others.
func Leaf(list []*x509.Certificate) *x509.Certificate {
	if len(list) == 1 {
		return list[0]
	}
	for _, c := range list {
		issued := func(other *x509.Certificate) bool { return other.Issuer.String() == c.Subject.String() }
		if !c.IsCA && c.Subject.CommonName != "" && !slices.ContainsFunc(list, issued) {
			return c
		}
	}
	return nil
}

// Fingerprint returns the SHA-1 fingerprint as HAProxy shows it.
func Fingerprint(c *x509.Certificate) string {
	sum := sha1.Sum(c.Raw) //nolint:gosec // see the import
	return strings.ToUpper(hex.EncodeToString(sum[:]))
}
