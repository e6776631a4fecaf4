package ingress

import (
	"bytes"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/hapticsdk/haptic/dataplane"
)

// tlsFile is a TLSCertificate that is being put together.
type tlsFile struct {
	TLSCertificate
	secret string   // namespace/name
	names  []string // that it has of its own

	exceptions int // from its wildcards
}

func (b *builder) addTLS(field fieldPath, t *networkingv1.IngressTLS) {
	if t.SecretName == "" {
		return
	}
	cert := b.certificate(field.sub(".secretName"), t.SecretName)
	if cert == nil {
		return
	}
	hosts := t.Hosts
	if len(hosts) == 0 {
		hosts = cert.names
	}
	for _, host := range hosts {
		owner := b.tlsHosts[host]
		switch problem := hostProblem(host); {
		case problem != "":
			b.refuse(field.sub(".hosts"), problem)
		case !b.owns(field.sub(".hosts"), host):
		case owner == nil:
			b.tlsHosts[host] = cert
			cert.Hosts = append(cert.Hosts, host)
		case owner != cert:
			b.refuse(field.sub(".hosts"), fmt.Sprintf("%s is served with Secret %s, which an older Ingress names", host, owner.secret))
		}
	}
}

// certificate returns the certificate in a Secret, nil if there is none that
// can be used.
func (b *builder) certificate(field fieldPath, secretName string) *tlsFile {
	ns := b.ing.Namespace
	for _, name := range []string{ns, secretName} {
		if problem := nameProblem(name); problem != "" {
			b.refuse(field, problem)
			return nil
		}
	}
	file := dataplane.FileName(dataplane.Certificate, ns+"_"+secretName)
	if cert := b.certs[file]; cert != nil {
		return cert
	}
	secret := b.cluster.Secret(ns, secretName)
	if b.cluster.Excluded.Has(secret) {
		b.refuse(field, fmt.Sprintf("Secret %s/%s is in quarantine", ns, secretName))
		return nil
	}
	if secret == nil {
		b.refuse(field, fmt.Sprintf("there is no Secret %s/%s of type %s", ns, secretName, corev1.SecretTypeTLS))
		return nil
	}
	content, leaf, err := certificateFile(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err == nil {
		err = dataplane.CheckFileName(dataplane.Certificate, file)
	}
	if err != nil {
		b.refuse(field, fmt.Sprintf("Secret %s/%s%s: %v", ns, secret.Name, at(secret), err))
		return nil
	}
	cert := &tlsFile{TLSCertificate: TLSCertificate{File: file, Secret: secret}, secret: ns + "/" + secretName, names: slices.Clone(leaf.DNSNames)}
	if len(cert.names) == 0 && leaf.Subject.CommonName != "" {
		cert.names = []string{leaf.Subject.CommonName}
	}
	b.certs[file] = cert
	b.routes.FileOwners[dataplane.Position{Kind: dataplane.Certificate, Name: file}] = []any{secret}
	b.routes.Files = append(b.routes.Files, dataplane.File{Kind: dataplane.Certificate, Name: file, Content: content})
	return cert
}

// minRSA is the shortest RSA key that OpenSSL takes at its security level 2,
// in bits.
const minRSA = 2048

// certificateFile checks what HAProxy would fail on, so that one bad Secret does
// not stop all others, and writes certificates and key anew: without text
// between them and without blank lines, at which the payload of a runtime
// command would end.
func certificateFile(crt, key []byte) (content []byte, leaf *x509.Certificate, err error) {
	pair, err := tls.X509KeyPair(crt, key)
	if err != nil {
		return nil, nil, err
	}
	var out bytes.Buffer
	for i, der := range pair.Certificate {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, nil, fmt.Errorf("certificate %d of the chain: %w", i+1, err)
		}
		if public, ok := c.PublicKey.(*rsa.PublicKey); ok && public.N.BitLen() < minRSA {
			return nil, nil, fmt.Errorf("certificate %d of the chain: an RSA key of %d bits, at least %d are needed", i+1, public.N.BitLen(), minRSA)
		}
		if weakSignature(c) {
			return nil, nil, fmt.Errorf("certificate %d of the chain: signed with %s, which is too weak", i+1, c.SignatureAlgorithm)
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

// weakSignature reports a signature that OpenSSL refuses at its security level
// 2. Of certificates that sign themselves it does not look at it.
func weakSignature(c *x509.Certificate) bool {
	switch c.SignatureAlgorithm {
	case x509.MD2WithRSA, x509.MD5WithRSA, x509.SHA1WithRSA, x509.DSAWithSHA1, x509.ECDSAWithSHA1:
		return !bytes.Equal(c.RawIssuer, c.RawSubject)
	}
	return false
}
