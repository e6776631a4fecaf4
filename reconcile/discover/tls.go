package discover

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/hapticsdk/haptic/internal/follow"
)

// TLS says how to check https to the Dataplane APIs. The zero value means Go's defaults: the
// CAs of the system, and the pod's address as the name. Objects are namespace/name. A
// [Follower] takes a rotated CA or certificate into use.
type TLS struct {
	CAFile            string // PEM file of trusted CAs; if this, CASecret and CAConfigMap are empty: the CAs of the system
	CASecret          string // Secret with the CAs
	CAConfigMap       string // ConfigMap with the CAs
	CAKey             string // key in the Secret or ConfigMap; zero: [DefaultCAKey]
	ServerName        string // name that the certificate must have; zero: the address of the pod
	ClientCertificate string // Secret with tls.crt and tls.key, for Dataplane APIs that ask for a certificate

	InsecureSkipVerify bool // trust any certificate
}

// DefaultCAKey is the key that Kubernetes itself uses for CAs.
const DefaultCAKey = "ca.crt"

// Config returns the configuration of crypto/tls, or nil for the zero value. ca is the content
// of the file, Secret or ConfigMap. certificate and key are the client's. All are PEM, or nil
// if there are none. The error shows nothing of the key.
func (t TLS) Config(ca, certificate, key []byte) (*tls.Config, error) {
	if t == (TLS{}) {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName, InsecureSkipVerify: t.InsecureSkipVerify}
	if t.ca() != (follow.Source{}) {
		pool, err := certPool(ca)
		if err != nil {
			return nil, err
		}
		config.RootCAs = pool
	}
	if t.ClientCertificate != "" {
		pair, err := tls.X509KeyPair(certificate, key)
		if err != nil {
			return nil, fmt.Errorf("client certificate: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// ca returns the source of the CAs; zero if there is none.
func (t TLS) ca() follow.Source {
	if t.CASecret == "" && t.CAConfigMap == "" {
		return follow.Source{Name: t.CAFile}
	}
	return cmp.Or(object("Secret", t.CASecret), object("ConfigMap", t.CAConfigMap))
}

func (t TLS) client() follow.Source { return object("Secret", t.ClientCertificate) }

// object returns the source of a namespace/name; zero for "".
func object(kind, of string) follow.Source {
	namespace, name, ok := strings.Cut(of, "/")
	if !ok {
		return follow.Source{}
	}
	return follow.Source{Kind: kind, Namespace: namespace, Name: name}
}

// certPool reads all certificates of a PEM file. x509 alone would skip unreadable ones and
// trust fewer than the file lists.
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

// material holds the PEM texts of a tls.Config.
type material struct{ ca, certificate, key string }

// material reads the sources of TLS.
func (f *Follower) material(t TLS, now map[follow.Source]string) (m material, err error) {
	caKey := ""
	if t.ca().Kind != "" {
		caKey = cmp.Or(t.CAKey, DefaultCAKey)
	}
	for _, part := range []struct {
		source follow.Source
		key    string
		to     *string
	}{{t.ca(), caKey, &m.ca}, {t.client(), corev1.TLSCertKey, &m.certificate}, {t.client(), corev1.TLSPrivateKeyKey, &m.key}} {
		if part.source == (follow.Source{}) {
			continue
		}
		content, err := f.read("TLS", part.source, now)
		if err != nil {
			return m, err
		}
		if *part.to = string(content.Data[part.key]); *part.to == "" && part.key != "" {
			return m, &sourceError{"TLS", part.source, fmt.Errorf("the key %s is missing or empty", part.key)}
		}
	}
	return m, nil
}

// config returns the current configuration. The pointer stays the same until something
// changes, because a new pointer makes new targets.
func (f *Follower) config(t TLS, now map[follow.Source]string) (*tls.Config, error) {
	m, err := f.material(t, now)
	if err != nil {
		return nil, err
	}
	if t == f.tls && m == f.made {
		return f.tlsConfig, nil
	}
	config, err := t.Config([]byte(m.ca), []byte(m.certificate), []byte(m.key))
	if err != nil {
		wrong := t.client()
		if _, err := certPool([]byte(m.ca)); err != nil && t.ca() != (follow.Source{}) {
			wrong = t.ca()
		}
		return nil, &sourceError{"TLS", wrong, err}
	}
	f.tls, f.made, f.tlsConfig = t, m, config
	return config, nil
}
