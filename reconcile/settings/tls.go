package settings

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
)

// TLS says how https to the Dataplane APIs is checked. The zero value is
// Go's defaults: the CAs of the system, and the address of the pod as the name.
type TLS struct {
	CAFile             string    `json:"caFile,omitempty" doc:"PEM file of the CAs to trust, on the machine of the controller. Empty, with the other two: those of the system." is:"folder"`
	CASecret           KeyRef    `json:"caSecretRef,omitzero" doc:"The same out of a Secret."`
	CAConfigMap        KeyRef    `json:"caConfigMapRef,omitzero" doc:"The same out of a ConfigMap."`
	ServerName         string    `json:"serverName,omitempty" doc:"The name that must stand in the certificate. Empty: the address of the pod, which few certificates have." is:"host"`
	ClientCertificate  SecretRef `json:"clientCertificateSecretRef,omitzero" doc:"The Secret with tls.crt and tls.key, for Dataplane APIs that ask for a certificate."`
	InsecureSkipVerify bool      `json:"insecureSkipVerify,omitempty" doc:"Trust any certificate. Whoever is on the way to a pod can then read the password and change the configuration: for tests alone."`
}

// KeyRef names a key of a Secret or of a ConfigMap.
type KeyRef struct {
	Name      string `json:"name" doc:"Of the object." required:"true" is:"name"`
	Namespace string `json:"namespace,omitempty" doc:"Empty: that of the controller." is:"name"`
	Key       string `json:"key,omitempty" doc:"Empty: ca.crt." is:"key"`
}

// defaultCAKey is where Kubernetes itself puts CAs.
const defaultCAKey = "ca.crt"

// Config makes the configuration of crypto/tls, nil for the zero value. ca is what
// the file, Secret or ConfigMap has that the settings name, certificate and key are
// those of the client, in PEM; nil where the settings name none. An error says what
// is wrong, and nothing of the key.
func (d TLS) Config(ca, certificate, key []byte) (*tls.Config, error) {
	if d == (TLS{}) {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: d.ServerName, InsecureSkipVerify: d.InsecureSkipVerify}
	if d.hasCA() {
		pool, err := certPool(ca)
		if err != nil {
			return nil, err
		}
		config.RootCAs = pool
	}
	if d.ClientCertificate.Name != "" {
		pair, err := tls.X509KeyPair(certificate, key)
		if err != nil {
			return nil, fmt.Errorf("client certificate: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

func (d TLS) hasCA() bool {
	return d.CAFile != "" || d.CASecret != (KeyRef{}) || d.CAConfigMap != (KeyRef{})
}

// ca is the Secret, the ConfigMap or the file with the CAs, and the key there; zero
// where there is none.
func (d TLS) ca(namespace string) (source, string) {
	kind, ref := "Secret", d.CASecret
	if d.CAConfigMap != (KeyRef{}) {
		kind, ref = "ConfigMap", d.CAConfigMap
	}
	if ref == (KeyRef{}) {
		return source{name: d.CAFile}, ""
	}
	return source{kind, cmp.Or(ref.Namespace, namespace), ref.Name}, cmp.Or(ref.Key, defaultCAKey)
}

// client is the Secret with the certificate of the client; zero for none.
func (d TLS) client(namespace string) source {
	if d.ClientCertificate.Name == "" {
		return source{}
	}
	return source{"Secret", cmp.Or(d.ClientCertificate.Namespace, namespace), d.ClientCertificate.Name}
}

// certPool reads all certificates of a PEM file. x509 skips what it cannot read,
// and would trust fewer than the file says.
func certPool(text []byte) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	count := 0
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		count++
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("CA: block %d is a %s, not a CERTIFICATE", count, strings.ToValidUTF8(block.Type, "?"))
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("CA: certificate %d: %w", count, err)
		}
		pool.AddCert(certificate)
	}
	if began := bytes.Count(text, []byte("-----BEGIN ")); began != count {
		return nil, fmt.Errorf("CA: %d of %d blocks cannot be read", began-count, began)
	}
	if count == 0 {
		return nil, errors.New("CA: no certificate")
	}
	return pool, nil
}

// check says what contradicts itself.
func (d TLS) check(scheme string, fail func(path, format string, args ...any)) {
	if d == (TLS{}) {
		return
	}
	if scheme == "http" {
		fail("", "has a meaning with dataplane.scheme: https alone")
	}
	given := 0
	for _, is := range []bool{d.CAFile != "", d.CASecret != (KeyRef{}), d.CAConfigMap != (KeyRef{})} {
		if is {
			given++
		}
	}
	if given > 1 {
		fail("", "one of caFile, caSecretRef and caConfigMapRef wanted, not %d", given)
	}
	if d.InsecureSkipVerify && (given > 0 || d.ServerName != "") {
		fail(".insecureSkipVerify", "then neither a CA nor serverName is looked at: leave those out, or this")
	}
}
