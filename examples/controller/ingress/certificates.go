package ingress

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/k8swatch/derive"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/certs"
	"github.com/hapticsdk/haptic/reconcile/claims"
	"github.com/hapticsdk/haptic/reconcile/limits"
)

// ofCertificates are the collections of certificates.
type ofCertificates struct {
	used  *derive.Collection[Name, *served]
	other derive.Value[*checkedSecret] // for names without one
}

// deriveCertificates gives hosts their certificates.
func (m *Model) deriveCertificates() *ofCertificates {
	named := derive.GroupBy("Secrets named", m.mine, nameSecrets, byAge)
	order := limits.OrderOf("Secrets of a namespace", named, func(of Name, all []*networkingv1.Ingress) (string, *networkingv1.Ingress) {
		return of.Namespace, all[0]
	}, byAge, func(a, b Name) int { return cmp.Compare(a.Name, b.Name) })
	m.secretBudget = limits.NewBudget("number of Secrets", named, func(of Name, _ []*networkingv1.Ingress) (string, int) {
		return of.Namespace, 1
	}, order, limits.Bound{Name: "secrets", Namespace: m.Limits.SecretsPerNamespace, All: m.Limits.SecretsOfAll}, limits.Whole)
	m.certificates = derive.Each("certificates", named, m.check)
	derive.Each("useless certificates", m.certificates, m.refuseUnusable)
	asks := derive.Each("asks for certificates", derive.GroupBy("with TLS", m.mine, onlyTLS, byAge), m.readTLS)
	m.mustCover = derive.GroupBy("hosts to cover", asks, func(_ Name, a *tlsAsks, add func(Name, mustCover)) {
		for _, c := range a.covers {
			add(c.secret, c)
		}
	}, func(a, b mustCover) int { return cmp.Compare(a.host, b.host) })
	m.tlsHosts = derive.Each(
		"certificates of hosts",
		derive.GroupBy("candidates for certificates", asks, func(_ Name, a *tlsAsks, add func(string, *tlsCandidate)) {
			for _, c := range a.all {
				add(c.host, c)
			}
		}, (*tlsCandidate).compare),
		m.giveTLS,
	)
	m.listing = m.hosts.List(func(at *derive.Reads, host string) bool {
		paths, _ := m.linesOfHost.Get(at, host)
		return paths > 0
	})
	of := &ofCertificates{}
	of.used = derive.Each("certificates in use", derive.GroupBy("hosts of a certificate", m.tlsHosts, func(_ string, h *tlsHost, add func(Name, *tlsHost)) {
		add(h.secret, h)
	}, (*tlsHost).compare), m.use)
	of.other = derive.One(m.graph, "default certificate", m.defaultCertificate)
	return of
}

// certificateName returns the file name for a Secret.
func certificateName(secret Name) string {
	return dataplane.FileName(dataplane.Certificate, secret.Namespace+"_"+secret.Name)
}

// secretOfFile is the reverse of certificateName. No name of Kubernetes has "_".
func secretOfFile(file string) Name {
	namespace, name, _ := strings.Cut(strings.TrimSuffix(file, ".pem"), "_")
	return Name{Namespace: namespace, Name: strings.ReplaceAll(name, "_", ".")}
}

// isForTLS reports whether a Secret may have a certificate for clients. Secrets of type
// Opaque are only for users and CAs, see -opaque-secrets.
func isForTLS(secret *corev1.Secret) bool {
	return secret != nil && secret.Type != corev1.SecretTypeOpaque
}

// nameSecrets adds an Ingress to each Secret of its spec.tls.
func nameSecrets(name Name, ing *networkingv1.Ingress, add func(Name, *networkingv1.Ingress)) {
	var all []string
	for i := range ing.Spec.TLS {
		if s := ing.Spec.TLS[i].SecretName; s != "" && !slices.Contains(all, s) && cmp.Or(nameProblem(s), nameProblem(name.Namespace)) == "" {
			all = append(all, s)
			add(Name{Namespace: name.Namespace, Name: s}, ing)
		}
	}
}

// checkedSecret is the checked content of a Secret.
type checkedSecret struct {
	file    string // "": the Secret has no certificate
	checked certs.Checked
	problem string // why it cannot be used, unless the Secret itself is at fault
}

// use is the certificate that clients get; nil: none.
func (c *checkedSecret) use() *certs.Certificate { return c.checked.InUse }

// check reads a Secret that Ingresses name. A certificate in use stays in use while the Secret
// has none that is valid, so a bad renewal does not break a working site.
func (m *Model) check(at *derive.Reads, name Name, _ []*networkingv1.Ingress, was *checkedSecret) (*checkedSecret, bool) {
	if m.secretBudget.Share(at, name.Namespace, name) < 1 {
		return &checkedSecret{problem: fmt.Sprintf("namespace %s has %s: Secret %s is not used", name.Namespace, m.secretBudget.Over(at, name.Namespace, "Secrets"), name)}, true
	}
	return m.checkSecret(at, name, certificateName(name), was), true
}

func (m *Model) checkSecret(at *derive.Reads, name Name, file string, was *checkedSecret) *checkedSecret {
	secret, ok := m.Secrets.Get(at, name)
	switch {
	case !ok && m.isOut(at, "Secret", name):
		return &checkedSecret{problem: fmt.Sprintf("Secret %s is in quarantine", name)}
	case !isForTLS(secret):
		return &checkedSecret{problem: fmt.Sprintf("there is no Secret %s of type %s", name, corev1.SecretTypeTLS)}
	}
	now := &checkedSecret{}
	if was != nil {
		now.checked = was.checked
	}
	now.checked = now.checked.Check(file, secret, m.earlier.files[file], m.Limits.CertificatesPerSecret, m.now(at))
	if err := unread(secret); err != nil {
		now.checked.Err = err
	}
	if now.use() != nil {
		now.file = file
	}
	_, next := now.checked.Warnings(m.now(at), m.ExpiryWarning)
	at.Again(next)
	return now
}

// now is the time by which certificates are judged; zero: any.
func (m *Model) now(at *derive.Reads) time.Time {
	if m.AnyTime {
		return time.Time{}
	}
	return at.Now()
}

// tlsCandidate is an Ingress that asks for the certificate of a host.
type tlsCandidate struct {
	ing    *networkingv1.Ingress
	place  int
	field  fieldPath
	host   string
	secret Name
	of     *checkedSecret // nil: the Secret cannot be used
}

func (c *tlsCandidate) asks() claims.Holder[Name] {
	return claims.Holder[Name]{By: claimantOf(c.ing), Serves: c.secret}
}

func (c *tlsCandidate) compare(other *tlsCandidate) int {
	return cmp.Or(byAge(c.ing, other.ing), cmp.Compare(c.place, other.place))
}

// tlsAsks is what spec.tls of an Ingress asks for.
type tlsAsks struct {
	all    []*tlsCandidate
	covers []mustCover
}

// mustCover is a host for which a Secret is named without hosts.
type mustCover struct {
	secret Name
	host   string
}

func onlyTLS(name Name, ing *networkingv1.Ingress, add func(Name, *networkingv1.Ingress)) {
	if len(ing.Spec.TLS) > 0 {
		add(name, ing)
	}
}

// readTLS finds the certificates that an Ingress asks for.
func (m *Model) readTLS(at *derive.Reads, name Name, all []*networkingv1.Ingress, _ *tlsAsks) (*tlsAsks, bool) {
	ing, asks := all[0], &tlsAsks{}
	read := map[string]bool{}
	for i := range ing.Spec.TLS {
		t := &ing.Spec.TLS[i]
		if t.SecretName == "" {
			continue
		}
		field := fieldPath{i, -1, -1, ""}
		cert := m.usable(at, ing, field.sub(".secretName"), t.SecretName)
		of := Name{Namespace: name.Namespace, Name: t.SecretName}
		hosts := t.Hosts
		if cert != nil && len(hosts) == 0 && !read[t.SecretName] {
			read[t.SecretName] = true // reading them a second time would change nothing
			hosts = cert.use().Names[:min(len(cert.use().Names), certs.MaxNames)]
			if len(ing.Spec.TLS) == 1 {
				for i := range ing.Spec.Rules {
					if host := ing.Spec.Rules[i].Host; host != "" {
						asks.covers = append(asks.covers, mustCover{of, host})
					}
				}
			}
		}
		for _, host := range hosts {
			if problem := claims.HostProblem(host); problem != "" {
				if cert != nil {
					refuse(at, ing, field.sub(".hosts"), problem)
				}
			} else if problem := m.hosts.NotOwned(at, host, name.Namespace); problem == "" {
				asks.all = append(asks.all, &tlsCandidate{ing, len(asks.all), field, host, of, cert})
			} else if cert != nil {
				refuse(at, ing, field.sub(".hosts"), problem)
			}
		}
	}
	return asks, true
}

// usable returns the certificate of a Secret, nil if there is none. It reports why.
func (m *Model) usable(at *derive.Reads, ing *networkingv1.Ingress, field fieldPath, secret string) *checkedSecret {
	for _, name := range []string{ing.Namespace, secret} {
		if problem := nameProblem(name); problem != "" {
			refuse(at, ing, field, problem)
			return nil
		}
	}
	cert, ok := m.certificates.Get(at, Name{Namespace: ing.Namespace, Name: secret})
	if !ok {
		return nil
	}
	if cert.problem != "" {
		refuse(at, ing, field, cert.problem)
	}
	if cert.file == "" {
		return nil
	}
	return cert
}

// tlsHost is a host with its certificate.
type tlsHost struct {
	*tlsCandidate
	memory claims.Holder[Name]
}

func (h *tlsHost) compare(other *tlsHost) int {
	return cmp.Or(h.tlsCandidate.compare(other.tlsCandidate), cmp.Compare(h.host, other.host))
}

// giveTLS gives a host one of the certificates that Ingresses ask for.
func (m *Model) giveTLS(at *derive.Reads, host string, all []*tlsCandidate, was *tlsHost) (*tlsHost, bool) {
	had := m.earlier.tls[host]
	if was != nil {
		had = was.memory
	}
	all = m.orLast(at, host, all, was, had)
	first, ok := claims.First(had, all, (*tlsCandidate).asks)
	if !ok {
		return nil, false
	}
	for _, c := range all {
		if c.secret != first.secret {
			why := "which an older Ingress names"
			if byAge(first.ing, c.ing) > 0 {
				why = "which serves it already"
			}
			refuse(at, c.ing, c.field.sub(".hosts"), fmt.Sprintf("%s is served with Secret %s, %s", host, first.secret, why))
		}
	}
	return &tlsHost{first, had.Then(first.asks(), m.isAway(at, had.By))}, true
}

// orLast returns the candidates whose Secret can be used. For the others it keeps the Secret
// that serves the host, while that exists.
func (m *Model) orLast(at *derive.Reads, host string, all []*tlsCandidate, was *tlsHost, had claims.Holder[Name]) (usable []*tlsCandidate) {
	for _, c := range all {
		if c.of != nil {
			usable = append(usable, c)
			continue
		}
		last := had.Serves
		named := slices.ContainsFunc(all, func(o *tlsCandidate) bool { return o.of != nil && o.secret == last })
		if last.Namespace != c.ing.Namespace || last == c.secret || named {
			continue
		}
		var before *checkedSecret
		if was != nil && was.secret == last {
			before = was.of
		}
		if cert := m.checkSecret(at, last, certificateName(last), before); cert.file != "" {
			warn(at, c.ing, c.field.sub(".secretName"), fmt.Sprintf("until Secret %s can be used, Secret %s serves %s", c.secret, last, host))
			kept := *c
			kept.of, kept.secret = cert, last
			usable = append(usable, &kept)
		}
	}
	return usable
}

// served is a certificate in use: its line of the crt-list, and its file.
type served struct {
	TLSCertificate
	file  dataplane.File
	until time.Time
}

func (s *served) compare(other *served) int { return cmp.Compare(s.File, other.File) }

// use makes the line of a certificate, and reports its dates and the hosts that it does not
// cover.
func (m *Model) use(at *derive.Reads, name Name, all []*tlsHost, was *served) (*served, bool) {
	cert := all[0].of
	use := cert.use()
	now := &served{TLSCertificate: TLSCertificate{File: cert.file, Secret: cert.checked.Secret}, until: use.NotAfter}
	now.file = dataplane.File{Kind: dataplane.Certificate, Name: cert.file, Content: use.Content}
	var line certs.Line
	var misfits []string
	for _, h := range all {
		if problem := line.Add(h.host, m.Limits.HostsPerSecret); problem != "" {
			refuse(at, h.ing, h.field.sub(".hosts"), fmt.Sprintf("Secret %s is %s: %s is not served with it", name, problem, h.host))
		} else if !use.Covers(h.host) {
			misfits = append(misfits, h.host)
		}
	}
	now.Hosts = slices.Sorted(slices.Values(line.Hosts))
	now.Except = m.exceptions(at, name.Namespace, now.Hosts)
	m.warnOfDates(at, cert)
	m.warnOfMisfits(at, name, cert, misfits)
	if was != nil && was.TLSCertificate.equal(&now.TLSCertificate) && was.until.Equal(now.until) && sameContent(was.file.Content, now.file.Content) {
		return was, true
	}
	return now, true
}

func sameContent(x, y []byte) bool { return len(x) == len(y) && (len(x) == 0 || &x[0] == &y[0]) }

// warnOfDates reports the problems of a Secret, once for all Ingresses that name it.
func (m *Model) warnOfDates(at *derive.Reads, cert *checkedSecret) {
	warnings, next := cert.checked.Warnings(m.now(at), m.ExpiryWarning)
	for _, w := range warnings {
		limits.Refuse(at, "Secret", cert.checked.Secret, reconcile.Refusal{Reason: w.Reason, Warning: !w.Refused})
	}
	at.Again(next)
}

// refuseUnusable reports a Secret that serves no host.
func (m *Model) refuseUnusable(at *derive.Reads, _ Name, cert *checkedSecret, _ bool) (bool, bool) {
	if cert.checked.Secret != nil && cert.use() == nil {
		m.warnOfDates(at, cert)
	}
	return false, false
}

func (m *Model) warnOfMisfits(at *derive.Reads, name Name, cert *checkedSecret, misfits []string) {
	more, _ := m.mustCover.Get(at, name)
	for _, c := range more {
		if other, ok := m.tlsHosts.Get(at, c.host); !cert.use().Covers(c.host) && (!ok || other.secret == name) {
			misfits = append(misfits, c.host)
		}
	}
	slices.Sort(misfits)
	misfits = slices.Compact(misfits)
	if len(misfits) > 0 {
		limits.Refuse(at, "Secret", cert.checked.Secret, reconcile.Refusal{Warning: true, Reason: fmt.Sprintf(
			"the certificate is for %s, and not for %s, for which Ingresses name it: clients refuse it there", some(cert.use().Names), some(misfits))})
	}
}

// some lists the first three names, and counts the others.
func some(names []string) string {
	const most = 3
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %s more names", strings.Join(names[:most], ", "), figure(more))
	}
	return strings.Join(names, ", ")
}

// exceptions are the names below the wildcards of a certificate that belong to another
// namespace and have no certificate.
func (m *Model) exceptions(at *derive.Reads, namespace string, hosts []string) (all []string) {
	for _, host := range hosts {
		for _, h := range m.listing.Below(at, host, namespace) {
			if _, has := m.tlsHosts.Get(at, h.Name); !has {
				all = append(all, h.Name)
			}
		}
	}
	return certs.Except(all)
}
