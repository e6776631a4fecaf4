// Package certs turns a Secret into what HAProxy serves: a checked chain with its key.
//
//   - [Read] checks a certificate and its key, so that one bad Secret stops no other. [File]
//     writes them anew, as HAProxy takes them, also at runtime.
//   - [Checked.Check] keeps the last good certificate in use while a Secret has none that is
//     valid: a bad renewal does not break a working site.
//   - [Checked.Warnings] says what is wrong with it, and when that changes.
//   - [Line] and [Except] keep a line of a crt-list within what HAProxy reads.
//   - [Authorities] reads certificates of authorities.
//
// None keeps a state beyond its arguments. Private keys never print.
package certs

import (
	"bytes"
	"cmp"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile/limits"
)

// Certificate is a valid certificate with its key, in the form of a file for HAProxy.
type Certificate struct {
	Content             []byte   // with the private key: it never prints
	Names               []string // in the certificate; in lower case, sorted
	NotBefore, NotAfter time.Time
}

// String names the certificate, without its content.
func (c *Certificate) String() string {
	if c == nil {
		return "no certificate"
	}
	return fmt.Sprintf("certificate for %s until %s", strings.Join(c.Names, ", "), date(c.NotAfter))
}

// GoString is String, so that %#v prints no key.
func (c Certificate) GoString() string { return c.String() }

// Format prints String for every verb.
func (c Certificate) Format(s fmt.State, _ rune) { _, _ = s.Write([]byte(c.String())) }

// LogValue prints String in a log.
func (c Certificate) LogValue() slog.Value { return slog.StringValue(c.String()) }

// MarshalText prints String in JSON.
func (c Certificate) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// Read checks a certificate and its key. file is the name of the file for HAProxy, and maxChain
// bounds the certificates of the chain. Its errors never hold the key.
func Read(file string, crt, key []byte, maxChain int) (*Certificate, error) {
	content, leaf, err := File(crt, key, maxChain)
	if err = cmp.Or(err, dataplane.CheckFileName(dataplane.Certificate, file)); err != nil {
		return nil, err
	}
	return &Certificate{content, namesOf(leaf), leaf.NotBefore, leaf.NotAfter}, nil
}

func namesOf(leaf *x509.Certificate) []string {
	names := slices.Clone(leaf.DNSNames)
	if len(names) == 0 && leaf.Subject.CommonName != "" {
		names = []string{leaf.Subject.CommonName}
	}
	for i, name := range names {
		names[i] = strings.ToLower(name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Covers reports whether clients accept the certificate for a host.
func (c *Certificate) Covers(host string) bool {
	_, parent, _ := strings.Cut(host, ".")
	_, found := slices.BinarySearch(c.Names, host)
	if !found {
		_, found = slices.BinarySearch(c.Names, "*."+parent)
	}
	return found
}

// ValidAt reports whether there is a certificate and its dates allow its use. If now is
// zero, dates do not count.
func (c *Certificate) ValidAt(now time.Time) bool {
	return c != nil && (now.IsZero() || !now.Before(c.NotBefore) && now.Before(c.NotAfter))
}

// Checked is the result of checking a Secret. The zero value is that of no Secret.
type Checked struct {
	Secret *corev1.Secret
	Newest *Certificate // of the Secret; nil: see Err
	Err    error
	// InUse is the newest one or, if that is unusable or not valid now, the one in use
	// before. So a bad renewal does not break a working site.
	InUse *Certificate
}

// Check checks a Secret anew. The receiver is the last result for the same file. former is the
// file that an earlier process deployed; nil: none. A Secret with another UID is another one:
// its owner deleted the former. If now is zero, dates do not count.
func (c Checked) Check(file string, secret *corev1.Secret, former []byte, maxChain int, now time.Time) Checked {
	if c.Secret != nil && c.Secret.UID != secret.UID {
		c, former = Checked{}, nil
	}
	crt, key := secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey]
	if c.Secret == nil || !bytes.Equal(c.Secret.Data[corev1.TLSCertKey], crt) || !bytes.Equal(c.Secret.Data[corev1.TLSPrivateKeyKey], key) {
		c.Newest, c.Err = Read(file, crt, key, maxChain)
	}
	c.Secret = secret
	if c.InUse == nil && former != nil && !c.Newest.ValidAt(now) {
		c.InUse, _ = Read(file, former, former, maxChain)
	}
	if c.Newest != nil && (c.Newest.ValidAt(now) || !c.InUse.ValidAt(now)) {
		c.InUse = c.Newest
	}
	return c
}

// UsualWarning and ShareOfLife say how long before its end a certificate is warned of: 7 days,
// or a sixth of a life below 42 days. Tools renew when a third is left, so a warning means
// that they did not.
const UsualWarning, ShareOfLife = 7 * 24 * time.Hour, 6

// warnsAt returns when Warnings begins to warn of the end of a certificate.
func (c *Certificate) warnsAt(before time.Duration) time.Time {
	if before == 0 {
		before = min(UsualWarning, c.NotAfter.Sub(c.NotBefore)/ShareOfLife)
	}
	return c.NotAfter.Add(-before)
}

// Warning is a problem of a Secret with a certificate.
type Warning struct {
	Reason  string
	Refused bool // nothing is served with the Secret
}

// Warnings says what the owner of the Secret should know, and when that changes; zero: never.
// before is how long before its end to warn of a certificate; zero: see [UsualWarning]. If now
// is zero, dates do not count.
func (c Checked) Warnings(now time.Time, before time.Duration) (all []Warning, next time.Time) {
	warn := func(format string, values ...any) {
		all = append(all, Warning{Reason: fmt.Sprintf(format, values...)})
	}
	look := func(when time.Time) {
		if !now.IsZero() && now.Before(when) && (next.IsZero() || when.Before(next)) {
			next = when
		}
	}
	use := c.InUse
	switch {
	case use == nil && c.Err == nil:
		return nil, next
	case use == nil:
		return []Warning{{fmt.Sprintf("%v: no host is served with it", c.Err), true}}, next
	case c.Err != nil:
		warn("%v: the certificate from before, which expires at %s, stays in use", c.Err, date(use.NotAfter))
	case use != c.Newest:
		warn("the certificate is valid from %s to %s: the one from before, which expires at %s, stays in use meanwhile",
			date(c.Newest.NotBefore), date(c.Newest.NotAfter), date(use.NotAfter))
		look(c.Newest.NotBefore)
	}
	if now.IsZero() {
		return all, next
	}
	soon := use.warnsAt(before)
	switch {
	case now.Before(use.NotBefore):
		warn("the certificate is valid from %s on: clients refuse it until then", date(use.NotBefore))
	case !now.Before(use.NotAfter):
		warn("the certificate expired at %s: clients refuse it", date(use.NotAfter))
	case !now.Before(soon):
		warn("the certificate expires at %s: renew it", date(use.NotAfter))
	}
	look(use.NotBefore)
	look(soon)
	look(use.NotAfter)
	return all, next
}

// date prints an instant to the second.
func date(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// Authorities reads certificates, and writes them anew.
func Authorities(data []byte, most int) ([]byte, error) {
	var out bytes.Buffer
	count := 0
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		count++
		if count > most || len(block.Bytes) > MaxChainBytes {
			return nil, fmt.Errorf(
				"it has more than the %s certificates of one Secret (certificates-per-secret), or one is larger than %s bytes",
				limits.Figure(most),
				limits.Figure(MaxChainBytes),
			)
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err == nil {
			err = Check(c)
		}
		if err != nil {
			return nil, fmt.Errorf("certificate %d: %w", count, err)
		}
		if err := pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}); err != nil {
			return nil, err
		}
	}
	if count == 0 {
		return nil, errors.New("it has no certificate in PEM")
	}
	return out.Bytes(), nil
}
