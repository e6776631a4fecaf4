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

	"github.com/hapticsdk/haptic/internal/follow"
)

// TLS says how to check https to the Dataplane APIs. The zero value means Go's defaults: the
// CAs of the system, and the pod's address as the name. A [Follower] takes a rotated CA into
// use.
type TLS struct {
	CAFile     string // PEM file of trusted CAs; if this and CASecret are empty: the CAs of the system
	CASecret   string // Secret with the CAs, namespace/name
	CAKey      string // key in the Secret; zero: [DefaultCAKey]
	ServerName string // name that the certificate must have; zero: the address of the pod
}

// DefaultCAKey is the key that Kubernetes itself uses for CAs.
const DefaultCAKey = "ca.crt"

// Config returns the configuration of crypto/tls, or nil for the zero value. ca is the content
// of the file or the Secret, in PEM.
func (t TLS) Config(ca []byte) (*tls.Config, error) {
	if t == (TLS{}) {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.ca() != (follow.Source{}) {
		pool, err := certPool(ca)
		if err != nil {
			return nil, err
		}
		config.RootCAs = pool
	}
	return config, nil
}

// ca returns the source of the CAs; zero if there is none.
func (t TLS) ca() follow.Source {
	if t.CASecret == "" {
		return follow.Source{Name: t.CAFile}
	}
	return sourceOf(t.CASecret)
}

// sourceOf returns the source of a namespace/name; zero for "".
func sourceOf(of string) follow.Source {
	namespace, name, ok := strings.Cut(of, "/")
	if !ok {
		return follow.Source{}
	}
	return follow.Source{Kind: "Secret", Namespace: namespace, Name: name}
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

// config returns the current configuration. The pointer stays the same until something
// changes, because a new pointer makes new targets.
func (f *Follower) config(t TLS, now map[follow.Source]string) (*tls.Config, error) {
	source, ca := t.ca(), ""
	if source != (follow.Source{}) {
		content, err := f.read("TLS", source, now)
		if err != nil {
			return nil, err
		}
		key := ""
		if source.Kind != "" {
			key = cmp.Or(t.CAKey, DefaultCAKey)
		}
		ca = string(content.Data[key])
		if ca == "" && key != "" {
			return nil, &sourceError{"TLS", source, fmt.Errorf("the key %s is missing or empty", key)}
		}
	}
	if t == f.tls && ca == f.ca {
		return f.tlsConfig, nil
	}
	config, err := t.Config([]byte(ca))
	if err != nil {
		return nil, &sourceError{"TLS", source, err}
	}
	f.tls, f.ca, f.tlsConfig = t, ca, config
	return config, nil
}
