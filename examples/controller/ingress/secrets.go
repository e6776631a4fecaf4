package ingress

import (
	"bytes"
	"cmp"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile"
)

// pemFile is what HAProxy reads of a Secret: a certificate that it takes, and its key.
type pemFile struct {
	content             []byte
	names               []string // in the certificate; in lower case, sorted
	notBefore, notAfter time.Time
}

// readPEM checks what a Secret, or a file made of one, holds.
func readPEM(file string, crt, key []byte, maxChain int) (*pemFile, error) {
	content, leaf, err := certificateFile(crt, key, maxChain)
	if err = cmp.Or(err, dataplane.CheckFileName(dataplane.Certificate, file)); err != nil {
		return nil, err
	}
	return &pemFile{content, namesOf(leaf), leaf.NotBefore, leaf.NotAfter}, nil
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

// covers reports whether clients accept the certificate for a host.
func (p *pemFile) covers(host string) bool {
	_, parent, _ := strings.Cut(host, ".")
	_, found := slices.BinarySearch(p.names, host)
	if !found {
		_, found = slices.BinarySearch(p.names, "*."+parent)
	}
	return found
}

// dated reports whether there is a certificate, and whether clients accept it by its
// dates; zero: they do at all times.
func (p *pemFile) dated(now time.Time) bool {
	return p != nil && (now.IsZero() || !now.Before(p.notBefore) && now.Before(p.notAfter))
}

// checkedSecret is what a Secret was found to hold, so that a render looks only at
// those that changed.
type checkedSecret struct {
	secret *corev1.Secret
	newest *pemFile // in the Secret; nil: see err
	err    error
	// inUse is the newest, or the one that was in use before, where the newest cannot be
	// used or, by its dates, not now: a bad renewal would take a site down that works.
	inUse *pemFile
}

// check returns what is used of a Secret.
func (s *Slots) check(file string, secret *corev1.Secret, maxChain int, now time.Time) checkedSecret {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, known := s.checked[file]
	if known && c.secret.UID != secret.UID { // its owner deleted that one
		c = checkedSecret{}
		delete(s.deployed, file)
	}
	crt, key := secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey]
	if c.secret == nil || !bytes.Equal(c.secret.Data[corev1.TLSCertKey], crt) || !bytes.Equal(c.secret.Data[corev1.TLSPrivateKeyKey], key) {
		c.newest, c.err = readPEM(file, crt, key, maxChain)
	}
	c.secret = secret
	if former := s.deployed[file]; c.inUse == nil && former != nil && !c.newest.dated(now) {
		c.inUse, _ = readPEM(file, former, former, maxChain)
	}
	if c.newest != nil && (c.newest.dated(now) || !c.inUse.dated(now)) {
		c.inUse = c.newest
	}
	if s.checked == nil {
		s.checked = map[string]checkedSecret{}
	}
	s.checked[file] = c
	return c
}

// gone forgets a Secret: what its owner deletes is used no longer.
func (s *Slots) gone(file string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.checked, file)
	delete(s.deployed, file)
}

// UsualWarning and ShareOfLife bound how long before its end a certificate is warned of:
// 7 days, or for one that lives shorter than 42 days a sixth of its life. Tools renew when
// a third is left, so that a warning says that they did not.
const UsualWarning, ShareOfLife = 7 * 24 * time.Hour, 6

// warnsAt is when a certificate is warned of.
func (b *builder) warnsAt(p *pemFile) time.Time {
	before := b.cluster.ExpiryWarning
	if before == 0 {
		before = min(UsualWarning, p.notAfter.Sub(p.notBefore)/ShareOfLife)
	}
	return p.notAfter.Add(-before)
}

// reportSecrets says which Secrets are wrong, each once for all Ingresses that name it,
// and when another look at them says something else.
func (b *builder) reportSecrets(certs []*tlsFile) {
	for _, cert := range certs {
		c := &cert.checked
		switch {
		case cert.Secret == nil || c.inUse != nil && len(cert.Hosts) == 0:
			continue // not used
		case c.inUse == nil:
			b.refuseSecret(cert, false, fmt.Sprintf("%v: no host is served with it", c.err))
			continue
		case c.err != nil:
			b.refuseSecret(cert, true, fmt.Sprintf("%v: the certificate from before, which expires at %s, stays in use", c.err, date(c.inUse.notAfter)))
		case c.inUse != c.newest:
			b.refuseSecret(cert, true, fmt.Sprintf("the certificate is valid from %s to %s: the one from before, which expires at %s, stays in use meanwhile",
				date(c.newest.notBefore), date(c.newest.notAfter), date(c.inUse.notAfter)))
			b.lookAt(c.newest.notBefore)
		}
		b.reportDates(cert, c.inUse)
		misfits := slices.DeleteFunc(cert.misfits, func(host string) bool { return b.tlsHosts[host] != nil && b.tlsHosts[host] != cert })
		slices.Sort(misfits)
		if misfits = slices.Compact(misfits); len(misfits) > 0 {
			b.refuseSecret(cert, true, fmt.Sprintf("the certificate is for %s, and not for %s, for which Ingresses name it: clients refuse it there",
				some(c.inUse.names), some(misfits)))
		}
	}
}

// reportDates warns of a certificate in use that clients refuse by its dates, or soon
// will.
func (b *builder) reportDates(cert *tlsFile, p *pemFile) {
	if e := b.routes.Expiry; e.IsZero() || p.notAfter.Before(e) {
		b.routes.Expiry = p.notAfter
	}
	if b.now.IsZero() {
		return
	}
	soon := b.warnsAt(p)
	switch now := b.now; {
	case now.Before(p.notBefore):
		b.refuseSecret(cert, true, fmt.Sprintf("the certificate is valid from %s on: clients refuse it until then", date(p.notBefore)))
	case !now.Before(p.notAfter):
		b.refuseSecret(cert, true, fmt.Sprintf("the certificate expired at %s: clients refuse it", date(p.notAfter)))
	case !now.Before(soon):
		b.refuseSecret(cert, true, fmt.Sprintf("the certificate expires at %s: renew it", date(p.notAfter)))
	}
	b.lookAt(p.notBefore)
	b.lookAt(soon)
	b.lookAt(p.notAfter)
}

// lookAt has Secrets looked at again when a date has come.
func (b *builder) lookAt(when time.Time) {
	if next := b.routes.Next; b.now.Before(when) && (next.IsZero() || when.Before(next)) {
		b.routes.Next = when
	}
}

// refuseSecret makes the Secret the culprit, with what is served where that is all.
func (b *builder) refuseSecret(cert *tlsFile, warning bool, reason string) {
	b.tell("Secret", cert.Secret, reconcile.Refusal{Reason: reason, Warning: warning})
}

// date prints an instant to the second.
func date(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// some lists the first three names, and counts the others.
func some(names []string) string {
	const most = 3
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %s more names", strings.Join(names[:most], ", "), figure(more))
	}
	return strings.Join(names, ", ")
}
