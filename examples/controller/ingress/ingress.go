// Package ingress says what Ingress resources mean. [Build] turns those of a cluster
// into [Routes], which the templates print. It refuses by name what cannot be served,
// so that one resource never stops the others.
//
// A [Builder] remakes only what a change affects, and builds everything if in doubt
// (builder.go, change.go). TestBuilderIsBuild compares it with [Build].
package ingress

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/examples/controller/annotation"
	"github.com/hapticsdk/haptic/reconcile"
)

// Cluster is one consistent view of the resources for a render.
type Cluster struct {
	Ingresses func() []*networkingv1.Ingress // all; a Builder calls it only to build everything
	Classes   []*networkingv1.IngressClass
	Service   func(namespace, name string) *corev1.Service // nil if it does not exist
	Services  func(namespace string) []*corev1.Service     // all, to guess the intended one; nil: Build guesses none
	Secret    func(namespace, name string) *corev1.Secret
	Slices    func(namespace, service string) []*discoveryv1.EndpointSlice
	Excluded  *reconcile.Excluded // quarantined resources; nil: none
	Addresses *Addresses          // which endpoints may be served; nil: the zero value
	Hosts     *Hosts              // the owners of hosts; nil: Build remembers none
	Limits    Limits
	Operator  *Operator // nil: the zero value

	ExpiryWarning time.Duration // how long before its end Build warns of a certificate; zero: 7 days, or a sixth of its life if that is shorter
	AnyTime       bool          // ignore the dates of certificates, as in cases, whose fixtures grow old
}

// anyHost stands for the host of rules without a host, even in a Host header.
const anyHost = "*"

// builder collects Routes over all Ingresses.
type builder struct {
	cluster     *Cluster
	slots       *Slots
	judge       judge
	routes      *Routes
	ing         *networkingv1.Ingress // the Ingress that is being read
	hosts       *Hosts
	owners      *owners              // the namespaces of hosts
	owner       table[claim, holder] // the holders of claims now
	had         map[claim]holder     // the holders of claims before
	later       [2][]waiting         // see inTurn
	backends    map[string]*backend
	made        map[portRef]*madePort
	certs       map[string]*tlsFile // by file
	tlsHosts    map[string]*tlsFile // by server name
	looseTLS    map[string]bool     // hosts whose certificate comes from a Secret without hosts, or from an earlier Secret
	namesTLS    bool                // an Ingress names a Secret without hosts: the names in the certificate count
	tlsWildcard bool                // a key of tlsHosts is a wildcard
	classes     *classes
	pinned      map[serviceName]bool // see pin
	fast        fast                 // see Builder

	options  annotation.Options                         // of the Ingress that is being read
	asked    map[*networkingv1.Ingress]*asked           // of Ingresses with annotations of ours
	shared   map[annotation.Options]*annotation.Options // equal options share a pointer
	hashes   map[*annotation.Options]string             // of shared options
	canaries map[string]*canary                         // by namespace and key of a line
	lists    map[string]*Userlist                       // by name
	read     map[string]bool                            // Secrets that annotations name, by namespace/name

	limits Limits
	spaces map[string]*space // by namespace
	space  *space            // of the Ingress that is being read
	told   map[string]told   // by "kind namespace/name" and by namespace
	said   map[saying]bool
	named  *networkingv1.Ingress // the Ingress of name
	name   string
	now    time.Time // zero: any time
}

// claim names a thing that only one Ingress can have: a line of a map, the certificate
// for a host, or, with the zero value, the default backend.
type claim struct {
	kind networkingv1.PathType // Exact, or Prefix for both others; or tlsHost
	key  string
}

// fieldPath names a part of an Ingress. Most are never printed, so the text is made
// only when needed.
type fieldPath struct {
	tls, rule, path int // -1 for none
	end             string
}

func (f fieldPath) String() string {
	s := "spec"
	if f.tls >= 0 {
		s += fmt.Sprintf(".tls[%d]", f.tls)
	}
	if f.rule >= 0 {
		s += fmt.Sprintf(".rules[%d]", f.rule)
	}
	if f.path >= 0 {
		s += fmt.Sprintf(".http.paths[%d]", f.path)
	}
	return s + f.end
}

func (f fieldPath) sub(end string) fieldPath {
	f.end += end
	return f
}

// Build returns the routes for the Ingresses of our classes. It refuses by name what
// cannot be served, so that one resource never stops the others. A host belongs to one
// namespace, as [Hosts] says. If two Ingresses of that namespace claim the same path,
// the present holder keeps it; otherwise the older one gets it.
func Build(c *Cluster, slots *Slots) *Routes { return build(c, slots).routes }

// build is Build, and returns its state behind the routes too.
func build(c *Cluster, slots *Slots) *builder {
	all := c.Ingresses()
	n := len(all)
	b := &builder{
		cluster: c, slots: slots, judge: newJudge(c.Addresses), routes: &Routes{FileOwners: map[dataplane.Position][]any{}},
		owner: table[claim, holder]{base: make(map[claim]holder, n)}, backends: make(map[string]*backend, n), made: make(map[portRef]*madePort, n),
		certs: map[string]*tlsFile{}, tlsHosts: map[string]*tlsFile{},
		limits: c.Limits.orUsual(), spaces: map[string]*space{}, told: map[string]told{}, said: map[saying]bool{},
	}
	if !c.AnyTime {
		b.now = time.Now()
	}
	b.classes = b.readClasses()
	mine := slices.DeleteFunc(slices.Clone(all), func(ing *networkingv1.Ingress) bool { return !b.isOurs(ing, b.classes) })
	slices.SortFunc(mine, byAge)
	left := map[*networkingv1.Ingress]bool{} // quarantined; they still claim their hosts
	for i, ing := range mine {
		if stands, ok := reconcile.ToRender(c.Excluded, ing); ok {
			mine[i] = stands
		} else {
			left[ing] = true
		}
	}
	mine = b.bound(mine)
	hosts := cmp.Or(c.Hosts, &Hosts{})
	b.owners, b.had = hosts.settle(mine), hosts.served()
	for _, ing := range mine {
		if b.begin(ing); !left[ing] {
			b.readCanary()
		}
	}
	for _, ing := range mine {
		if b.begin(ing); !left[ing] {
			b.addIngress()
		}
	}
	b.inTurnAgain()
	b.reportCanaries()
	b.keepServed(left)
	b.serveOperator()
	if slots.isFull(b.used(), c.Excluded == nil) {
		b.forget()
	}
	b.hosts, b.fast.revision = hosts, b.owners.revision
	b.routes.accept, b.fast.accept = b.accept, b.accept
	b.finish()
	return b
}

// accept makes the hosts and the slots remember this build.
func (b *builder) accept() {
	if b.fast.accepted {
		return
	}
	if revision, ok := b.hosts.accept(b.owners, b.owner.base); ok {
		b.fast.revision = revision
	}
	if b.fast.accepted = true; b.cluster.Excluded == nil {
		b.forget()
		b.slots.setUsed(b.used())
	}
}

// used is the number of backends or of certificates, whichever is larger.
func (b *builder) used() int { return max(len(b.backends), len(b.certs)) }

// forget drops unused slots.
func (b *builder) forget() {
	b.slots.forget(func(backend string) bool { return b.backends[backend] == nil })
	b.slots.forgetSecrets(b.certs)
}

func (b *builder) addIngress() {
	spec := &b.ing.Spec
	b.readAnnotations()
	for i := range spec.TLS {
		b.addTLS(fieldPath{i, -1, -1, ""}, &spec.TLS[i])
	}
	if spec.DefaultBackend != nil {
		field := fieldPath{-1, -1, -1, ".defaultBackend"}
		if name, ok := b.backend(field, spec.DefaultBackend, b.share(b.ofHost(anyHost))); ok && b.owns(field, anyHost) {
			b.inTurn(claim{}, name, func() {
				if b.claims(field, claim{}, name) {
					b.routes.Default, b.routes.DefaultOf = name, b.ing
				}
			})
		}
	}
	for i := range spec.Rules {
		b.addRule(fieldPath{-1, i, -1, ""}, &spec.Rules[i])
	}
}

func (b *builder) addRule(field fieldPath, rule *networkingv1.IngressRule) {
	host := rule.Host
	if host == "" {
		host = anyHost
	} else if problem := hostProblem(host); problem != "" {
		b.refuse(field.sub(".host"), problem)
		return
	} else if odd := hostWarning(host); odd != "" {
		b.warn(field.sub(".host"), odd)
	}
	if rule.HTTP == nil || !b.owns(field.sub(".host"), host) {
		return
	}
	if b.passes() {
		b.pass(field, host, rule.HTTP.Paths)
	}
	for i := range rule.HTTP.Paths {
		field.path = i
		b.addPath(field, host, &rule.HTTP.Paths[i])
	}
}

func (b *builder) addPath(field fieldPath, host string, p *networkingv1.HTTPIngressPath) {
	path := cmp.Or(p.Path, "/")
	line := lineOf(b.options.Regex, host, p)
	if problem := pathProblem(path, line.kind); problem != "" {
		b.refuse(field.sub(".path"), problem)
		return
	}
	if problem := pathTypeProblem(p.PathType); problem != "" {
		b.refuse(field.sub(".pathType"), problem)
		return
	}
	if b.options.Canary.Is { // the path belongs to another Ingress
		return
	}
	if line.kind == pattern && b.owners.hosts.get(host).namespace == everybody { // HAProxy tries it before the paths of others
		b.refuse(field.sub(".path"), "the host is for all namespaces, and a pattern could match paths of others: write the path without one")
		return
	}
	if line.kind == pattern {
		weight := annotation.Weight(path)
		if b.space.patterns += weight; b.space.patterns > b.limits.PatternsPerNamespace {
			b.space.patterns, b.space.bit = b.space.patterns-weight, true
			b.refuse(field.sub(".path"), fmt.Sprintf("namespace %s has more than the %s patterns of one namespace (patterns-per-namespace), where one with several repeats counts for some", b.ing.Namespace, figure(b.limits.PatternsPerNamespace)))
			return
		}
	}
	options, split := b.ofPath(field, host, line, path)
	name, ok := b.backend(field.sub(".backend"), &p.Backend, b.share(options))
	if !ok {
		return
	}
	if p.PathType == nil {
		b.warn(field.sub(".pathType"), fmt.Sprintf("it is missing, so that %s matches %[1]sx, too: write Prefix or Exact", path))
	}
	if line.kind != pattern && strings.ContainsAny(path, patternSigns) {
		b.warn(field.sub(".path"), fmt.Sprintf("%q is matched as it stands: pathType Prefix matches all below a path, and the annotation use-regex makes paths patterns", short(path)))
	}
	b.inTurn(line, name, func() { b.addLine(field, host, line, name, split) })
}

func (b *builder) addLine(field fieldPath, host string, line claim, name string, split *canary) {
	if !b.claims(field.sub(".path"), line, name) {
		return
	}
	list := &b.routes.Prefix
	switch line.kind {
	case networkingv1.PathTypeExact:
		list = &b.routes.Exact
	case pattern:
		list = &b.routes.Patterns
	}
	if split != nil {
		b.routes.Canaries = append(b.routes.Canaries, split.of(name))
	}
	*list = append(*list, Path{line.key, name, b.ing})
	if at := b.owners.hosts.get(host); host != anyHost && !at.paths {
		at.paths = true
		b.owners.hosts.set(host, at)
	}
}

// lineOf returns the line of a map that a path claims. regex: the path may be a pattern.
func lineOf(regex bool, host string, p *networkingv1.HTTPIngressPath) claim {
	path := cmp.Or(p.Path, "/")
	switch {
	case regex && (p.PathType == nil || *p.PathType != networkingv1.PathTypeExact):
		return claim{pattern, "^" + regexp.QuoteMeta(host) + path}
	case p.PathType == nil, *p.PathType == networkingv1.PathTypeImplementationSpecific: // by characters: /foo matches /foobar
		return claim{networkingv1.PathTypePrefix, host + path}
	case *p.PathType == networkingv1.PathTypeExact:
		return claim{networkingv1.PathTypeExact, host + path}
	}
	return claim{networkingv1.PathTypePrefix, host + strings.TrimRight(path, "/") + "/"} // by whole elements: /foo matches /foo/bar and not /foobar
}

// owns refuses a host of another namespace.
func (b *builder) owns(field fieldPath, host string) bool {
	problem := b.owners.problem(host, b.ing.Namespace)
	if problem != "" {
		at := b.owners.hosts.get(host)
		at.contested = true
		b.owners.hosts.set(host, at)
		b.refuse(field, problem)
	}
	return problem == ""
}

// claims gives a claim to the first Ingress that asks for it, and refuses it to others.
func (b *builder) claims(field fieldPath, c claim, serves string) bool {
	if ns := b.owners.paths[c]; ns != "" && ns != b.ing.Namespace {
		b.refuse(field, fmt.Sprintf("%s path %s belongs to namespace %s, which claimed it first", c.kind, c.key, ns))
		return false
	}
	if first := b.owner.get(c).ing; first != nil {
		what := "the default backend"
		if c.key != "" {
			what = fmt.Sprintf("%s path %s", c.kind, c.key)
		}
		if first == b.ing {
			b.refuse(field, what+" is given twice")
		} else {
			b.refuse(field, fmt.Sprintf("%s belongs to Ingress %s/%s, %s", what, first.Namespace, first.Name, b.why(first)))
		}
		return false
	}
	b.owner.set(c, holder{b.ing, serves})
	return true
}

// finish sorts everything, so that the same resources make the same configuration to
// the byte.
func (b *builder) finish() {
	r := b.routes
	r.Hosts = b.claimed()
	for _, h := range r.Hosts {
		if strings.HasPrefix(h.Name, "*.") {
			r.Wildcards = append(r.Wildcards, Host{h.Name[1:], h.Namespace})
		}
	}
	slices.SortFunc(r.Wildcards, Host.byLength)
	b.exceptOthers()
	certs := slices.SortedFunc(maps.Values(b.certs), func(x, y *tlsFile) int { return cmp.Compare(x.secret, y.secret) })
	for _, c := range certs {
		if len(c.Hosts) == 0 {
			continue // without server names HAProxy would use it for all names in it
		}
		slices.Sort(c.Hosts)
		r.Certificates = append(r.Certificates, c.TLSCertificate)
	}
	b.reportSecrets(certs)
	slices.SortFunc(r.Exact, Path.compare)
	slices.SortFunc(r.Prefix, Path.compare)
	slices.SortFunc(r.Patterns, Path.byLength)
	slices.SortFunc(r.Canaries, Canary.compare)
	r.Canaries = slices.CompactFunc(r.Canaries, func(x, y Canary) bool { return x.From == y.From }) // paths of one canary
	r.Userlists = b.userlists()
	slices.SortFunc(r.Passed, Path.compare)
	slices.SortFunc(r.Streams, (*Backend).compare)
	slices.SortFunc(r.Backends, (*Backend).compare)
	slices.SortFunc(r.Certificates, TLSCertificate.compare)
	slices.SortFunc(r.Files, compareFiles)
	slices.SortFunc(r.Refused, compareRefused)
}
