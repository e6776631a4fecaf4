package api

import (
	"context"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"strings"
	"time"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/internal/dpapi"
	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// readCertificate returns the stored version of a desired certificate. Its content is empty
// if it differs and this client does not know it. readCertificate compares the file info of
// the API and the hash in the ledger. Without a hash in the ledger, it compares the
// certificate in the process. If the API does not give that out either, the stored
// certificate counts as different.
func (c *Client) readCertificate(ctx context.Context, j *job, want config.File) (config.File, error) {
	info, err := c.api.CertificateInfo(ctx, want.Name)
	if err != nil {
		return want, readError(err, want)
	}
	other := config.File{Kind: want.Kind, Name: want.Name}
	if !looksLike(info, want.Content) {
		if last := c.certs[want.Name]; looksLike(info, last) {
			other.Content = last
		}
		return other, nil
	}
	switch c.ledger.owned[refOf(want).entry()] {
	case certificateHash(want):
		return want, nil
	case "":
		loaded, err := c.loadedFingerprint(ctx, j, want)
		if loaded != "" && loaded == config.Fingerprint(want.Content) {
			return want, nil
		}
		return other, err
	}
	return other, nil
}

// looksLike reports whether the file info of a stored certificate fits a PEM file: the size,
// the serial number of one of its certificates, and the earliest end of all.
func looksLike(info dpapi.FileInfo, pem []byte) bool {
	content := onWire(config.File{Kind: config.Certificate, Content: pem})
	if info.Size != int64(len(content)) {
		return false
	}
	serial, earliest := info.Serial == "", time.Time{}
	for block := range haproxycfg.Blocks(content) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			continue
		}
		serial = serial || cert.SerialNumber.String() == info.Serial
		if earliest.IsZero() || cert.NotAfter.Before(earliest) {
			earliest = cert.NotAfter
		}
	}
	return serial && (info.NotAfter.IsZero() || earliest.Equal(info.NotAfter))
}

// certificateHash returns a hash of a certificate, or "" for other files. The ledger keeps it
// because the API never gives certificates back.
func certificateHash(f config.File) string {
	if f.Kind != config.Certificate {
		return ""
	}
	return config.HashOf(f.Content)[:32]
}

// loadedFingerprint returns the fingerprint of a certificate that the process has loaded, or
// "" if the API does not give it out.
func (c *Client) loadedFingerprint(ctx context.Context, j *job, f config.File) (string, error) {
	if j.target.WhyNot("certificate", change.Update, "") != "" {
		return "", nil
	}
	loaded, err := c.api.LoadedCertificate(ctx, c.opts.Layout.Path(f.Kind, f.Name))
	if ok, err := answered("read", err); !ok {
		return "", err
	}
	return strings.ToUpper(strings.ReplaceAll(loaded.SHA1, ":", "")), nil
}

func checkCertificate(content []byte) (sentinel error, why string) {
	var hasCert, hasKey bool
	for block := range haproxycfg.Blocks(content) {
		switch {
		case block.Type == "CERTIFICATE":
			if _, err := x509.ParseCertificate(block.Bytes); err != nil {
				return config.ErrInvalid, "the certificate cannot be parsed: " + err.Error()
			}
			hasCert = true
		case strings.HasSuffix(block.Type, "PRIVATE KEY"):
			hasKey = true
			switch key, _ := x509.ParsePKCS8PrivateKey(block.Bytes); key.(type) {
			case nil, *rsa.PrivateKey, *ecdsa.PrivateKey: // nil: a key in another form
			default:
				return config.ErrUnsupported, "the storage takes RSA and ECDSA keys only"
			}
		}
	}
	switch {
	case !hasCert:
		return config.ErrInvalid, "there is no certificate in it"
	case !hasKey:
		return config.ErrInvalid, "there is no private key in it"
	}
	return nil, ""
}
