package ingress

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/examples/controller/annotation"
)

// step is the effect of one change of Ingresses on the routes.
type step struct {
	number int

	exact, prefix, patterns edits[Path]

	hosts        edits[Host]
	certificates edits[TLSCertificate]
	files        edits[dataplane.File]
	backends     edits[*Backend]
	asked        map[string]bool                  // new hosts
	certs        map[*tlsFile]bool                // touched certificates
	orphans      map[string]*networkingv1.Ingress // backends whose Ingress was undone
	again        []serviceName                    // to report on, or to serve, anew
}

func (s *step) serveAgain(name serviceName) {
	if !slices.Contains(s.again, name) {
		s.again = append(s.again, name)
	}
}

// changeIngresses undoes the Ingresses as they were, and adds them as they are.
func (b *builder) changeIngresses(all []Change[networkingv1.Ingress]) {
	if len(all) == 0 {
		return
	}
	if !b.fast.accepted { // the holders before are not the present ones
		b.fast.doubt = true
		return
	}
	b.fast.check(len(b.shared) <= 1000+2*len(b.made)) // building everything drops old options
	b.had, b.fast.forget = nil, map[string]bool{}
	b.owner.over, b.owners.hosts.over = map[claim]holder{}, map[string]hostOwner{}
	for _, c := range all {
		if c.Was != nil && !b.fast.doubt {
			b.undo(c.Was)
		}
	}
	all = slices.DeleteFunc(all, func(c Change[networkingv1.Ingress]) bool { return c.Is == nil })
	slices.SortFunc(all, func(x, y Change[networkingv1.Ingress]) int { return byAge(x.Is, y.Is) })
	for _, c := range all {
		if !b.fast.doubt {
			b.redo(c.Is)
		}
	}
	b.fast.check(len(b.later[0])+len(b.later[1])+len(b.fast.step.orphans) == 0)
}

// withSayers adds the Ingresses that have a report because of a changed Service.
func (b *builder) withSayers(changes *Changes) []Change[networkingv1.Ingress] {
	all := slices.Clone(changes.Ingresses)
	for _, s := range changes.Services {
		svc := s.Is
		if svc == nil {
			svc = s.Was
		}
		if svc == nil {
			continue
		}
		for _, m := range b.fast.ports[serviceName{svc.Namespace, svc.Name}] {
			for _, ing := range m.sayers {
				if !slices.ContainsFunc(all, func(c Change[networkingv1.Ingress]) bool { return c.Was == ing }) {
					all = append(all, Change[networkingv1.Ingress]{Was: ing, Is: ing})
				}
			}
		}
	}
	return all
}

// isPlain reports whether a host is not shared, and has nothing to do with others' wildcards.
func (b *builder) isPlain(host string) bool {
	if host == anyHost {
		return !b.hosts.isShared(host)
	}
	if _, above := b.owners.above(host); b.looseTLS[host] || host == "" || host[0] == '*' || !isHost(host) || b.hosts.isShared(host) || above != "" && above != b.ing.Namespace {
		return false
	}
	if i := strings.IndexByte(host, '.'); b.tlsWildcard && i > 0 {
		cert := b.tlsHosts["*"+host[i:]]
		return cert == nil || cert.Secret.Namespace == b.ing.Namespace
	}
	return true
}

// undo removes an Ingress. If it shares anything or lacks something, that causes doubt.
func (b *builder) undo(ing *networkingv1.Ingress) {
	b.fast.touched[resourceName("Ingress", ing)] = true
	b.fast.mute = true
	ours := b.isOurs(ing, b.classes)
	if b.fast.mute = false; !ours {
		return
	}
	b.begin(ing)
	if _, cut := b.slots.cut[ing.Namespace+"/"+ing.Name]; cut || b.fast.odd[serviceName{ing.Namespace, ing.Name}] || ing.Spec.DefaultBackend != nil || !b.isWithin(b.space) {
		b.fast.doubt = true
		return
	}
	b.fast.check(annotation.Given(ing.Annotations, annotation.NGINX+"ssl-passthrough") == "")
	b.options = b.annotated().options
	delete(b.asked, ing)
	b.takeSpace(ing, -1)
	for host := range hostsOf(ing) {
		b.unask(host)
	}
	for i := range ing.Spec.TLS {
		b.undoTLS(&ing.Spec.TLS[i])
	}
	for i := range ing.Spec.Rules {
		rule := &ing.Spec.Rules[i]
		for j := 0; rule.HTTP != nil && j < len(rule.HTTP.Paths) && !b.fast.doubt; j++ {
			b.undoPath(rule.Host, &rule.HTTP.Paths[j])
		}
	}
}

// takeSpace adds the paths of an Ingress to its namespace, or subtracts them.
func (b *builder) takeSpace(ing *networkingv1.Ingress, sign int) (paths int) {
	m := measure{paths: 1 << 30, bytes: 1 << 30}
	m.cut(ing)
	b.space.paths, b.space.bytes = b.space.paths+sign*m.taken, b.space.bytes+sign*m.size
	return m.taken
}

// unask removes a claim of a host.
func (b *builder) unask(host string) {
	at := b.owners.hosts.get(host)
	if !b.fast.check(!at.contested && at.namespace == b.ing.Namespace && b.isPlain(host)) {
		return
	}
	listed := b.owners.isListed(host, at)
	if at.asking--; at.asking > 0 {
		_, above := b.owners.above(host)
		b.fast.check(above == "")
	} else {
		if listed {
			b.fast.step.hosts.gone = append(b.fast.step.hosts.gone, Host{host, at.namespace})
		}
		at = hostOwner{}
	}
	b.owners.hosts.set(host, at)
}

// release removes a claim of the current Ingress, and returns what served it.
func (b *builder) release(c claim) (serves string) {
	had := b.owner.get(c)
	if b.fast.check(had.ing == b.ing && !b.fast.contested[c]) {
		b.owner.set(c, holder{})
	}
	return had.serves
}

func (b *builder) undoPath(host string, p *networkingv1.HTTPIngressPath) {
	if host == "" {
		host = anyHost
	}
	line, path, s := lineOf(b.options.Regex, host, p), cmp.Or(p.Path, "/"), &b.fast.step
	list := &s.prefix
	switch line.kind {
	case networkingv1.PathTypeExact:
		list = &s.exact
	case pattern:
		list = &s.patterns
		b.space.patterns -= annotation.Weight(path)
	}
	list.gone = append(list.gone, Path{line.key, b.release(line), b.ing})
	if p.Backend.Service == nil {
		b.fast.doubt = true
		return
	}
	of := serviceName{b.ing.Namespace, p.Backend.Service.Name}
	b.fast.check(!b.pinned[of])
	options, _ := b.ofPath(fieldPath{}, host, line, path)
	made := b.made[portRef{of, p.Backend.Service.Port, b.share(options)}]
	if !b.fast.check(made != nil && made.name != "") {
		return
	}
	made.sayers = slices.DeleteFunc(made.sayers, func(ing *networkingv1.Ingress) bool { return ing == b.ing })
	back := b.backends[made.name]
	if made.paths--; made.paths == 0 {
		b.unmake(made, back)
	}
	if back.ports > 0 && back.ing == b.ing {
		s.orphans[made.name] = b.ing
	}
}

// unmake forgets a port to which nothing leads any more.
func (b *builder) unmake(made *madePort, back *backend) {
	s := &b.fast.step
	delete(b.made, made.portRef)
	b.fast.ports[made.serviceName] = slices.DeleteFunc(b.fast.ports[made.serviceName], func(m *madePort) bool { return m == made })
	s.serveAgain(made.serviceName)
	if made.guessed {
		b.space.guesses--
	}
	if back.ports--; back.ports > 0 {
		b.fast.check(back.of != made.portRef)
		return
	}
	sp := b.space
	sp.options, sp.addresses = sp.options-back.asks.Size(), sp.addresses-back.asks.Addresses()
	sp.backends, sp.servers, sp.read = sp.backends-1, sp.servers-back.servers, sp.read-back.read
	delete(b.backends, made.name)
	delete(s.orphans, made.name)
	b.fast.forget[made.name] = true
	s.backends.gone = append(s.backends.gone, back.Backend)
}

// redo adds an Ingress. If it affects any other, that causes doubt.
func (b *builder) redo(ing *networkingv1.Ingress) {
	b.fast.touched[resourceName("Ingress", ing)] = true
	if !b.isOurs(ing, b.classes) {
		return
	}
	b.begin(ing)
	if !b.fast.check(ing.Spec.DefaultBackend == nil && nameProblem(ing.Namespace) == "" && ing.Namespace != "" && b.isWithin(b.space)) {
		return
	}
	if b.takeSpace(ing, 1) > b.limits.PathsPerIngress {
		b.fast.doubt = true
	}
	for host := range hostsOf(ing) {
		b.ask(host)
	}
	for i := range ing.Spec.TLS {
		t := &ing.Spec.TLS[i]
		if cert := b.certs[certificateName(ing.Namespace, t.SecretName)]; t.SecretName != "" && cert != nil {
			b.touchCertificate(cert)
		}
		b.fast.check(t.SecretName == "" || len(t.Hosts) > 0 && !b.namesTLS)
	}
	if b.fast.doubt {
		return
	}
	b.addIngress()
	b.fast.check(!b.fast.odd[serviceName{ing.Namespace, ing.Name}] && b.isWithin(b.space))
}

// ask claims a host that is free or that the namespace has.
func (b *builder) ask(host string) {
	at := b.owners.hosts.get(host)
	_, above := b.owners.above(host)
	switch {
	case !b.isPlain(host):
		b.fast.doubt = true
	case at.asking == 0:
		b.fast.check(b.owner.get(claim{tlsHost, host}).ing == nil)
		at = hostOwner{namespace: b.ing.Namespace}
		b.fast.step.asked[host] = true
	default:
		b.fast.check(at.namespace == b.ing.Namespace && !at.contested && (above == "" || b.fast.step.asked[host]))
	}
	at.asking++
	b.owners.hosts.set(host, at)
}

// joins checks that the Ingress of a backend is older than another that joins it.
func (b *builder) joins(back *backend, name string) {
	if !b.fast.is || back.fresh == b.fast.step.number {
		return
	}
	was := b.fast.step.orphans[name]
	switch {
	case was == nil:
		b.fast.check(byAge(back.ing, b.ing) <= 0)
	case b.fast.check(byAge(was, b.ing) == 0):
		back.ing = b.ing
		delete(b.fast.step.orphans, name)
		b.fast.step.serveAgain(serviceName{b.ing.Namespace, back.service})
	}
}

// touchCertificate prepares a certificate for a change of its hosts.
func (b *builder) touchCertificate(cert *tlsFile) {
	s := &b.fast.step
	if s.certs[cert] || !b.fast.check(cert.problem == "" && cert.File != "" && len(cert.Hosts) > 0 && len(cert.misfits) == 0 && !cert.full && len(cert.Except) == 0 && b.fast.before["Secret "+cert.secret].count == 0) {
		return
	}
	s.certs[cert] = true
	if len(cert.Hosts) > 0 {
		s.certificates.gone = append(s.certificates.gone, cert.TLSCertificate)
	}
	cert.Hosts = slices.Clone(cert.Hosts)
}

func (b *builder) undoTLS(t *networkingv1.IngressTLS) {
	if t.SecretName == "" {
		return
	}
	file := certificateName(b.ing.Namespace, t.SecretName)
	cert := b.certs[file]
	if !b.fast.check(cert != nil && len(t.Hosts) > 0 && !b.namesTLS) {
		return
	}
	b.touchCertificate(cert)
	for _, host := range t.Hosts {
		b.release(claim{tlsHost, host})
		delete(b.tlsHosts, host)
		cert.Hosts = slices.DeleteFunc(cert.Hosts, func(h string) bool { return h == host })
		cert.bytes -= len(host) + 1
	}
	if cert.named--; cert.named > 0 {
		return
	}
	use, next := cert.checked.inUse, b.routes.Next
	if !b.fast.check(use != nil) {
		return
	}
	b.fast.check(use == cert.checked.newest && !use.notAfter.Equal(b.routes.Expiry) && !next.Equal(use.notBefore) && !next.Equal(use.notAfter) && !next.Equal(b.warnsAt(use)))
	delete(b.certs, file)
	b.space.secrets--
	s := &b.fast.step
	b.fast.forget[file] = true
	s.files.gone = append(s.files.gone, dataplane.File{Kind: dataplane.Certificate, Name: file, Content: use.content})
}

// finishStep applies the step to routes that share everything else with the last ones.
func (b *builder) finishStep(r *Routes) {
	s, now := &b.fast.step, b.routes
	s.exact.come, s.prefix.come, s.patterns.come, s.files.come = now.Exact, now.Prefix, now.Patterns, now.Files
	for host := range s.asked {
		if at := b.owners.hosts.get(host); b.owners.isListed(host, at) {
			s.hosts.come = append(s.hosts.come, Host{host, at.namespace})
		}
	}
	for cert := range s.certs {
		if slices.Sort(cert.Hosts); len(cert.Hosts) > 0 {
			s.certificates.come = append(s.certificates.come, cert.TLSCertificate)
		}
	}
	r.Exact = s.exact.apply(r.Exact, Path.compare, func(x, y Path) bool { return x == y })
	r.Prefix = s.prefix.apply(r.Prefix, Path.compare, func(x, y Path) bool { return x == y })
	r.Patterns = s.patterns.apply(r.Patterns, Path.byLength, func(x, y Path) bool { return x == y })
	r.Hosts = s.hosts.apply(r.Hosts, Host.compare, func(x, y Host) bool { return x == y })
	r.Certificates = s.certificates.apply(r.Certificates, TLSCertificate.compare, func(x, y TLSCertificate) bool { return x.equal(&y) })
	r.Expiry, r.Next = now.Expiry, now.Next
	if len(s.files.gone)+len(s.files.come) > 0 {
		r.FileOwners = maps.Clone(r.FileOwners)
		for _, f := range s.files.gone {
			delete(r.FileOwners, dataplane.Position{Kind: f.Kind, Name: f.Name})
		}
		maps.Copy(r.FileOwners, now.FileOwners)
	}
	r.Files = s.files.apply(r.Files, compareFiles, func(x, y dataplane.File) bool {
		return x.Name == y.Name && len(x.Content) > 0 && len(y.Content) > 0 && &x.Content[0] == &y.Content[0]
	})
}

// reportCertificates reports the problems of new certificates.
func (b *builder) reportCertificates() {
	var certs []*tlsFile
	for cert := range b.fast.step.certs {
		if cert.fresh == b.fast.step.number {
			b.fast.touched["Secret "+cert.secret] = true
			certs = append(certs, cert)
		} else if cert.named > 0 {
			b.fast.check(len(cert.Hosts) > 0 && len(cert.misfits) == 0)
		}
	}
	b.reportSecrets(certs)
}

// acceptStep makes the hosts and the slots remember the step.
func (b *builder) acceptStep(number int) {
	h := b.hosts
	h.mu.Lock()
	defer h.mu.Unlock()
	if b.fast.accepted || b.fast.pending != number || h.revision != b.fast.revision {
		return
	}
	b.owner.commit()
	b.owners.hosts.commit()
	h.revision++
	b.fast.accepted, b.fast.revision = true, h.revision
	b.slots.forgetOnly(b.fast.forget, func(name string) bool { return b.backends[name] != nil || b.certs[name] != nil })
	b.slots.setUsed(b.used())
}
