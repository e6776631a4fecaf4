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
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/examples/controller/tlspair"
	"github.com/hapticsdk/haptic/reconcile"
)

// pemFile is the file for HAProxy from a Secret: a valid certificate and its key.
type pemFile struct {
	content             []byte
	names               []string // in the certificate; in lower case, sorted
	notBefore, notAfter time.Time
}

// readPEM checks the content of a Secret, or of a file made from one.
func readPEM(file string, crt, key []byte, maxChain int) (*pemFile, error) {
	content, leaf, err := tlspair.File(crt, key, maxChain)
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

// dated reports whether there is a certificate and its dates allow its use. If now is
// zero, dates do not count.
func (p *pemFile) dated(now time.Time) bool {
	return p != nil && (now.IsZero() || !now.Before(p.notBefore) && now.Before(p.notAfter))
}

// checkedSecret is the result of checking a Secret, so that a render checks only
// changed ones.
type checkedSecret struct {
	secret *corev1.Secret
	newest *pemFile // of the Secret; nil: see err
	err    error
	// inUse is the newest one or, if that is unusable or not valid now, the one in use
	// before. So a bad renewal does not break a working site.
	inUse *pemFile
}

// check returns the certificate to use for a Secret.
func (s *Slots) check(file string, secret *corev1.Secret, maxChain int, now time.Time) checkedSecret {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, known := s.checked[file]
	if known && c.secret.UID != secret.UID { // the owner deleted the former Secret
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

// gone forgets a Secret: after its deletion its certificate is no longer used.
func (s *Slots) gone(file string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.checked, file)
	delete(s.deployed, file)
}

// UsualWarning and ShareOfLife say how long before its end Build warns of a
// certificate: 7 days, or a sixth of a life below 42 days. Tools renew when a third is
// left, so a warning means that they did not.
const UsualWarning, ShareOfLife = 7 * 24 * time.Hour, 6

// warnsAt returns when Build begins to warn of a certificate.
func (b *builder) warnsAt(p *pemFile) time.Time {
	before := b.cluster.ExpiryWarning
	if before == 0 {
		before = min(UsualWarning, p.notAfter.Sub(p.notBefore)/ShareOfLife)
	}
	return p.notAfter.Add(-before)
}

// reportSecrets reports the problems of Secrets, each once for all Ingresses that name
// it. It also notes the date when the report changes.
func (b *builder) reportSecrets(certs []*tlsFile) {
	for _, cert := range certs {
		c := &cert.checked
		switch {
		case cert.Secret == nil || c.inUse != nil && len(cert.Hosts) == 0 && !cert.isDefault:
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

// lookAt notes a date at which Secrets must be checked again.
func (b *builder) lookAt(when time.Time) {
	if next := b.routes.Next; b.now.Before(when) && (next.IsZero() || when.Before(next)) {
		b.routes.Next = when
	}
}

// refuseSecret reports a problem to the Secret.
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

// tlsFile is a TLSCertificate in the making.
type tlsFile struct {
	TLSCertificate
	secret  string // namespace/name
	checked checkedSecret
	named   int      // how often Ingresses name it
	full    bool     // a limit refused a host
	fresh   int      // the step that made it
	names   []string // the names in the certificate
	misfits []string // hosts for which Ingresses name it, but that it does not cover
	bytes   int      // of its Hosts
	problem string   // why it cannot be used, unless the Secret itself is at fault

	isDefault bool // for server names without a certificate

	exceptBytes int // of its Except
}

// maxLine bounds the TLS hosts of a certificate, in bytes. Their line of the crt-list
// must fit into a runtime command of HAProxy, which has 16,384 bytes in all. maxWords
// bounds the words of the line.
const maxLine, maxWords = 12_000, 1900

func (b *builder) addTLS(field fieldPath, t *networkingv1.IngressTLS) {
	if t.SecretName == "" {
		return
	}
	cert := b.certificate(field.sub(".secretName"), t.SecretName)
	if cert == nil {
		b.keepTLS(field.sub(".secretName"), t)
		return
	}
	cert.named++
	hosts := t.Hosts
	if len(hosts) == 0 {
		hosts, cert.names = cert.names, nil // using them a second time would change nothing
		b.namesTLS = true
		b.isLoose(hosts)
		if len(b.ing.Spec.TLS) == 1 {
			for i := range b.ing.Spec.Rules {
				cert.mustCover(b.ing.Spec.Rules[i].Host)
			}
		}
	}
	for _, host := range hosts {
		if problem := hostProblem(host); problem != "" {
			b.refuse(field.sub(".hosts"), problem)
		} else if b.owns(field.sub(".hosts"), host) {
			b.inTurn(claim{tlsHost, host}, cert.File, func() { b.addTLSHost(field.sub(".hosts"), cert, host) })
		}
	}
}

func (b *builder) isLoose(hosts []string) {
	if b.looseTLS == nil {
		b.looseTLS = map[string]bool{}
	}
	for _, host := range hosts {
		b.looseTLS[host] = true
	}
}

// addTLSHost uses a certificate for a host, or refuses that.
func (b *builder) addTLSHost(field fieldPath, cert *tlsFile, host string) {
	owner := b.tlsHosts[host]
	switch {
	case owner == nil && len(cert.Hosts) >= min(b.limits.HostsPerSecret, maxWords):
		cert.full = true
		b.refuse(field, fmt.Sprintf("Secret %s is used for %s TLS hosts, the most that one can have (hosts-per-secret): %s is not served with it",
			cert.secret, figure(len(cert.Hosts)), host))
	case owner == nil && cert.bytes+len(host)+1 > maxLine:
		cert.full = true
		b.refuse(field, fmt.Sprintf("Secret %s is used for %s TLS hosts, and HAProxy reads %s bytes of them: %s is not served with it",
			cert.secret, figure(len(cert.Hosts)), figure(maxLine), host))
	case owner == nil:
		b.tlsHosts[host] = cert
		b.tlsWildcard = b.tlsWildcard || host[0] == '*'
		b.owner.set(claim{tlsHost, host}, holder{b.ing, cert.File})
		cert.Hosts, cert.bytes = append(cert.Hosts, host), cert.bytes+len(host)+1
		cert.mustCover(host)
	case owner != cert:
		why := "which an older Ingress names"
		if byAge(b.owner.get(claim{tlsHost, host}).ing, b.ing) > 0 {
			why = "which serves it already"
		}
		b.refuse(field, fmt.Sprintf("%s is served with Secret %s, %s", host, owner.secret, why))
	}
}

// mustCover notes a host that the certificate in use does not cover.
func (c *tlsFile) mustCover(host string) {
	if host != "" && !c.checked.inUse.covers(host) {
		c.misfits = append(c.misfits, host)
	}
}

// certificate returns the certificate of a Secret, nil if there is no usable one.
func (b *builder) certificate(field fieldPath, secretName string) *tlsFile {
	ns := b.ing.Namespace
	for _, name := range []string{ns, secretName} {
		if problem := nameProblem(name); problem != "" {
			b.refuse(field, problem)
			return nil
		}
	}
	file := certificateName(ns, secretName)
	cert := b.certs[file]
	if cert == nil {
		cert = b.makeCertificate(file, secretName)
		b.certs[file] = cert
	}
	if cert.problem != "" {
		b.refuse(field, cert.problem)
	}
	if cert.File == "" {
		return nil
	}
	return cert
}

// certificateName returns the file name for a Secret.
func certificateName(namespace, name string) string {
	return dataplane.FileName(dataplane.Certificate, namespace+"_"+name)
}

// makeCertificate reads a Secret, once for all Ingresses that name it.
func (b *builder) makeCertificate(file, secretName string) *tlsFile {
	ns := b.ing.Namespace
	cert := &tlsFile{secret: ns + "/" + secretName, fresh: b.fast.step.number}
	if b.fast.is {
		b.fast.step.certs[cert] = true
	}
	if b.space.secrets >= b.limits.SecretsPerNamespace {
		b.space.bit = true
		cert.problem = fmt.Sprintf("namespace %s has more than the %s Secrets of one namespace (secrets-per-namespace): Secret %s is not used",
			ns, figure(b.limits.SecretsPerNamespace), cert.secret)
		return cert
	}
	b.space.secrets++
	secret, ok := reconcile.ToRender(b.cluster.Excluded, b.cluster.Secret(ns, secretName))
	switch {
	case !ok:
		cert.problem = fmt.Sprintf("Secret %s is in quarantine", cert.secret)
		return cert
	case !isForTLS(secret):
		b.slots.gone(file)
		cert.problem = fmt.Sprintf("there is no Secret %s of type %s", cert.secret, corev1.SecretTypeTLS)
		return cert
	}
	cert.Secret, cert.checked = secret, b.slots.check(file, secret, b.limits.CertificatesPerSecret, b.now)
	use := cert.checked.inUse
	if use == nil {
		return cert // reportSecrets says why
	}
	cert.File, cert.names = file, use.names[:min(len(use.names), maxWords)]
	b.routes.FileOwners[dataplane.Position{Kind: dataplane.Certificate, Name: file}] = []any{secret}
	b.routes.Files = append(b.routes.Files, dataplane.File{Kind: dataplane.Certificate, Name: file, Content: use.content})
	return cert
}
