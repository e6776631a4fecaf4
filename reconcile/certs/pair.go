package certs

import (
	"bytes"
	"cmp"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"

	corev1 "k8s.io/api/core/v1"

	"github.com/hapticsdk/haptic/reconcile/limits"
)

// minRSA and maxRSA bound RSA keys, in bits. OpenSSL takes no shorter one at its
// security level 2, and a handshake with 16,384 bits takes 0.22 s.
const minRSA, maxRSA = 2048, 4096

// maxKeyBytes bounds a private key before it is parsed. The time for that grows with
// the square of the length: 2.4 s for 150 KB. A key of 4,096 bits has 2,400 bytes.
const maxKeyBytes = 8192

// MaxChainBytes bounds the certificates of a Secret. Clients with OpenSSL take no
// longer chain, and reading one of 1 MB takes 0.15 s.
const MaxChainBytes = 100_000

// File checks a certificate and its key, so that one bad Secret does not stop all others. It
// writes both anew, without text between them and without blank lines: a blank line would end
// the payload of a runtime command. HAProxy takes the result, also at runtime. File also
// refuses some pairs that HAProxy would take, such as brainpool curves, which Go lacks.
func File(crt, key []byte, maxChain int) (content []byte, leaf *x509.Certificate, err error) {
	for block, rest := pem.Decode(key); block != nil; block, rest = pem.Decode(rest) {
		if n := len(block.Bytes); n > maxKeyBytes {
			return nil, nil, fmt.Errorf(
				"a block of %s has %s bytes, more than the %s that are read: RSA keys have at most %s bits",
				corev1.TLSPrivateKeyKey,
				limits.Figure(n),
				limits.Figure(maxKeyBytes),
				limits.Figure(maxRSA),
			)
		}
	}
	chain, size := 0, 0
	for block, rest := pem.Decode(crt); block != nil; block, rest = pem.Decode(rest) {
		size += len(block.Bytes)
		if block.Type == "CERTIFICATE" {
			chain++
		}
	}
	switch {
	case chain > maxChain:
		return nil, nil, fmt.Errorf(
			"a chain of %s certificates, more than the %s of one Secret (certificates-per-secret)",
			limits.Figure(chain),
			limits.Figure(maxChain),
		)
	case size > MaxChainBytes:
		return nil, nil, fmt.Errorf(
			"%s has certificates of %s bytes, more than the %s that clients take",
			corev1.TLSCertKey,
			limits.Figure(size),
			limits.Figure(MaxChainBytes),
		)
	}
	pair, err := tls.X509KeyPair(crt, key)
	if err != nil {
		return nil, nil, fmt.Errorf("%s and %s: %w", corev1.TLSCertKey, corev1.TLSPrivateKeyKey, err)
	}
	var out bytes.Buffer
	for i, der := range pair.Certificate {
		c, err := x509.ParseCertificate(der)
		if err == nil {
			err = Check(c)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("certificate %d of the chain: %w", i+1, err)
		}
		if i == 0 {
			leaf = c
		}
		if err := pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: der}); err != nil {
			return nil, nil, err
		}
	}
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		return nil, nil, errors.New("the private key is of an unknown kind") // never the key itself
	}
	err = pem.Encode(&out, &pem.Block{Type: "PRIVATE KEY", Bytes: der})
	return out.Bytes(), leaf, err
}

// Check returns an error if HAProxy would not take a certificate.
func Check(c *x509.Certificate) error { return cmp.Or(checkForm(c.Raw), checkStrength(c)) }

// derCertificate has all parts of a certificate.
type derCertificate struct {
	Signed struct {
		Version         int `asn1:"optional,explicit,default:0,tag:0"`
		Serial          *big.Int
		Algorithm       pkix.AlgorithmIdentifier
		Issuer          []derNameSET
		Validity        struct{ NotBefore, NotAfter asn1.RawValue }
		Subject         []derNameSET
		PublicKey       derKey
		IssuerUniqueID  asn1.BitString   `asn1:"optional,tag:1"`
		SubjectUniqueID asn1.BitString   `asn1:"optional,tag:2"`
		Extensions      []pkix.Extension `asn1:"optional,omitempty,explicit,tag:3"`
	}
	Algorithm pkix.AlgorithmIdentifier
	Signature asn1.BitString
}

type derNameSET []struct {
	Type  asn1.ObjectIdentifier
	Value asn1.RawValue
}

type derKey struct {
	Algorithm pkix.AlgorithmIdentifier
	Key       asn1.BitString
}

// checkForm refuses a certificate with parts that Go skips and OpenSSL refuses.
func checkForm(der []byte) error {
	var c derCertificate
	rest, err := asn1.Unmarshal(der, &c)
	if err != nil || len(rest) > 0 {
		return errors.New("not in the form DER")
	}
	if again, err := asn1.Marshal(c); err != nil || !bytes.Equal(again, der) {
		return errors.New("not in the form DER, or with more in it than a certificate has")
	}
	return nil
}

// checkStrength refuses the keys and signatures that OpenSSL refuses at its security level 2.
func checkStrength(c *x509.Certificate) error {
	switch key := c.PublicKey.(type) {
	case *rsa.PublicKey:
		if bits := key.N.BitLen(); bits < minRSA || bits > maxRSA {
			return fmt.Errorf("an RSA key of %s bits, from %s to %s are taken", limits.Figure(bits), limits.Figure(minRSA), limits.Figure(maxRSA))
		}
	case *ecdsa.PublicKey, ed25519.PublicKey:
	default:
		return fmt.Errorf("a key of the kind %s: RSA, ECDSA and Ed25519 are taken", c.PublicKeyAlgorithm)
	}
	of := x509.RSA
	switch c.SignatureAlgorithm {
	case x509.UnknownSignatureAlgorithm: // such as RSA-PSS with SHA-1
		return errors.New("signed in a way that is weak or not known: sign with SHA-256, SHA-384 or SHA-512")
	case x509.ECDSAWithSHA1:
		of = x509.ECDSA
	case x509.MD2WithRSA, x509.MD5WithRSA, x509.SHA1WithRSA:
	case x509.DSAWithSHA1:
		of = x509.DSA
	default:
		return nil
	}
	if signsItself(c) && c.PublicKeyAlgorithm == of {
		return nil
	}
	return fmt.Errorf("signed with %s, which is too weak", c.SignatureAlgorithm)
}

// authorityKeyID is the extension that names the key of the signer.
var authorityKeyID = asn1.ObjectIdentifier{2, 5, 29, 35}

// signsItself reports whether a certificate names itself as its signer. Then OpenSSL
// does not check the signature.
func signsItself(c *x509.Certificate) bool {
	for _, e := range c.Extensions {
		var by struct {
			Key    []byte        `asn1:"optional,tag:0"`
			Issuer asn1.RawValue `asn1:"optional,tag:1"`
			Serial *big.Int      `asn1:"optional,tag:2"`
		}
		if !e.Id.Equal(authorityKeyID) {
			continue
		}
		if rest, err := asn1.Unmarshal(e.Value, &by); err != nil || len(rest) > 0 {
			return false
		}
		var name asn1.RawValue // its only content, a directory name
		if rest, err := asn1.Unmarshal(by.Issuer.Bytes, &name); len(by.Issuer.Bytes) > 0 &&
			(err != nil || len(rest) > 0 || !bytes.Equal(name.Bytes, c.RawIssuer)) {
			return false
		}
		if by.Key != nil && !bytes.Equal(by.Key, c.SubjectKeyId) || by.Serial != nil && by.Serial.Cmp(c.SerialNumber) != 0 {
			return false
		}
	}
	return bytes.Equal(c.RawIssuer, c.RawSubject)
}
