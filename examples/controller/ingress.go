package main

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
)

// ControllerName is what spec.controller of our IngressClasses says.
const ControllerName = "haptic.hapticsdk.dev/ingress"

// Cluster is the one consistent view of the resources that a render reads.
type Cluster struct {
	Ingresses []*networkingv1.Ingress
	Classes   []*networkingv1.IngressClass
	Service   func(namespace, name string) *corev1.Service // nil where there is none
	Secret    func(namespace, name string) *corev1.Secret
	Slices    func(namespace, service string) []*discoveryv1.EndpointSlice
	Excluded  *reconcile.Excluded // in quarantine; nil: nothing
}

// Routes is what the templates print: what all Ingresses together mean.
type Routes struct {
	Hosts        []string // "shop.demo.test", "*.demo.test"
	Exact        []Path   // Key: host and path, as a request has them
	Prefix       []Path   // Key: the beginning of host, path and "/"
	Backends     []*Backend
	Certificates []TLSCertificate
	Default      string // backend of requests that no rule matches, "" if none
	Files        []dataplane.File
	FileOwners   map[dataplane.Position][]any // of what a file was made
	Refused      []reconcile.Refusal
}

// Keep takes from the routes of the last render each list that is equal, so
// that nothing is rendered again that did not change.
func (r *Routes) Keep(last *Routes) {
	if last == nil {
		return
	}
	if slices.Equal(r.Hosts, last.Hosts) {
		r.Hosts = last.Hosts
	}
	if slices.Equal(r.Exact, last.Exact) {
		r.Exact = last.Exact
	}
	if slices.Equal(r.Prefix, last.Prefix) {
		r.Prefix = last.Prefix
	}
	if slices.EqualFunc(r.Certificates, last.Certificates, func(a, b TLSCertificate) bool {
		return a.File == b.File && a.Secret == b.Secret && slices.Equal(a.Hosts, b.Hosts)
	}) {
		r.Certificates = last.Certificates
	}
}

// Path is a line of a map: requests that match Key go to Backend.
type Path struct {
	Key, Backend string
	Ingress      *networkingv1.Ingress // that asks for it
}

// Owners makes the Ingress answer for what is wrong with the line.
func (p Path) Owners() []any { return []any{p.Ingress} }

// Backend is a port of a Service.
type Backend struct {
	Name    string // namespace_service_port
	Servers []Server
	Service *corev1.Service       // nil where there is none
	Ingress *networkingv1.Ingress // the oldest that names it
}

// Owners makes the Service answer for what is wrong with the backend or, where
// that is not it, the Ingress.
func (b *Backend) Owners() []any {
	if b.Service == nil {
		return []any{b.Ingress}
	}
	return []any{b.Ingress, b.Service}
}

// Server is an endpoint of a Service, under a name that it keeps.
type Server struct {
	Name     string // "s1"
	Address  string // "192.0.2.1:8080"
	Disabled bool   // a spare slot that waits for an endpoint
}

// TLSCertificate is a line of the crt-list.
type TLSCertificate struct {
	File   string
	Hosts  []string // server names to use it for
	Secret *corev1.Secret
}

// Owners makes the Secret answer for what is wrong with the certificate.
func (c TLSCertificate) Owners() []any { return []any{c.Secret} }

// anyHost stands for the host of rules that name none. No Host header can say
// it, since hosts are looked up in a map that lacks it.
const anyHost = "*"

// builder collects Routes over all Ingresses.
type builder struct {
	cluster  *Cluster
	slots    *Slots
	routes   *Routes
	ing      *networkingv1.Ingress           // being read
	owner    map[claim]*networkingv1.Ingress // who has what only one can have
	hosts    map[string]bool
	backends map[string]bool
	certs    map[string]*tlsFile // by file
	tlsHosts map[string]*tlsFile // who has a server name
}

// claim is what only one Ingress can have: a line of a map, or, with the zero
// value, the default backend.
type claim struct {
	kind networkingv1.PathType // Exact, or Prefix for both others
	key  string
}

// fieldPath names a part of an Ingress. Nearly all of them are never printed,
// so they are put together only when they are.
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

// BuildRoutes says what the Ingresses of our classes mean. What cannot be
// served is left out and refused by name, so that one resource never stops the
// others. Where two Ingresses claim the same path the older one has it.
func BuildRoutes(c *Cluster, slots *Slots) *Routes {
	b := &builder{
		cluster: c, slots: slots, routes: &Routes{FileOwners: map[dataplane.Position][]any{}},
		owner: map[claim]*networkingv1.Ingress{}, hosts: map[string]bool{},
		backends: map[string]bool{}, certs: map[string]*tlsFile{}, tlsHosts: map[string]*tlsFile{},
	}
	mine := slices.DeleteFunc(slices.Clone(c.Ingresses), func(ing *networkingv1.Ingress) bool {
		return !isOurs(ing, c.Classes) || c.Excluded.Has(ing)
	})
	slices.SortFunc(mine, func(x, y *networkingv1.Ingress) int {
		return cmp.Or(x.CreationTimestamp.Compare(y.CreationTimestamp.Time),
			cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
	})
	for _, ing := range mine {
		b.ing = ing
		b.addIngress()
	}
	return b.finish()
}

// isOurs applies the rules of IngressClass: by name, by the older annotation,
// by default, and where the cluster has no classes at all, every Ingress.
func isOurs(ing *networkingv1.Ingress, classes []*networkingv1.IngressClass) bool {
	name := ing.Annotations["kubernetes.io/ingress.class"]
	if ing.Spec.IngressClassName != nil {
		name = *ing.Spec.IngressClassName
	}
	if name == "" && len(classes) == 0 {
		return true
	}
	return slices.ContainsFunc(classes, func(class *networkingv1.IngressClass) bool {
		isDefault := class.Annotations[networkingv1.AnnotationIsDefaultIngressClass] == "true"
		return class.Spec.Controller == ControllerName && (class.Name == name || name == "" && isDefault)
	})
}

func (b *builder) addIngress() {
	spec := &b.ing.Spec
	for i := range spec.TLS {
		b.addTLS(fieldPath{i, -1, -1, ""}, &spec.TLS[i])
	}
	if spec.DefaultBackend != nil {
		field := fieldPath{-1, -1, -1, ".defaultBackend"}
		if name, ok := b.backend(field, spec.DefaultBackend); ok && b.claims(field, claim{}) {
			b.routes.Default = name
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
	}
	if rule.HTTP == nil {
		return
	}
	for i := range rule.HTTP.Paths {
		field.path = i
		b.addPath(field, host, &rule.HTTP.Paths[i])
	}
}

func (b *builder) addPath(field fieldPath, host string, p *networkingv1.HTTPIngressPath) {
	path := cmp.Or(p.Path, "/")
	if problem := pathProblem(path); problem != "" {
		b.refuse(field.sub(".path"), problem)
		return
	}
	name, ok := b.backend(field.sub(".backend"), &p.Backend)
	if !ok {
		return
	}
	list, line := &b.routes.Prefix, claim{networkingv1.PathTypePrefix, host + path}
	switch {
	case p.PathType == nil, *p.PathType == networkingv1.PathTypeImplementationSpecific: // by characters: /foo matches /foobar
	case *p.PathType == networkingv1.PathTypeExact:
		list, line.kind = &b.routes.Exact, networkingv1.PathTypeExact
	default: // by whole elements: /foo matches /foo/bar and not /foobar
		line.key = host + strings.TrimRight(path, "/") + "/"
	}
	if !b.claims(field.sub(".path"), line) {
		return
	}
	*list = append(*list, Path{line.key, name, b.ing})
	if host != anyHost {
		b.hosts[host] = true
	}
}

// claims gives what only one can have to the first that asks for it.
func (b *builder) claims(field fieldPath, c claim) bool {
	if first := b.owner[c]; first != nil {
		what := "the default backend"
		if c.key != "" {
			what = fmt.Sprintf("%s path %s", c.kind, c.key)
		}
		if first == b.ing {
			b.refuse(field, what+" is given twice")
		} else {
			b.refuse(field, fmt.Sprintf("%s belongs to Ingress %s/%s, which is older", what, first.Namespace, first.Name))
		}
		return false
	}
	b.owner[c] = b.ing
	return true
}

// backend returns the name of the backend for a port of a Service. A Service
// without endpoints is a backend without servers, which answers 503, and so is
// one that does not exist: its requests must not fall to another path.
func (b *builder) backend(field fieldPath, ref *networkingv1.IngressBackend) (string, bool) {
	if ref.Service == nil {
		b.refuse(field, "only a Service can be a backend")
		return "", false
	}
	ns, wanted := b.ing.Namespace, ref.Service.Port
	for _, name := range []string{ns, ref.Service.Name, wanted.Name} {
		if problem := nameProblem(name); problem != "" {
			b.refuse(field, problem)
			return "", false
		}
	}
	port := cmp.Or(wanted.Name, strconv.Itoa(int(wanted.Number)))
	var addresses []string
	svc := b.cluster.Service(ns, ref.Service.Name)
	excluded := b.cluster.Excluded.Has(svc)
	if excluded {
		b.refuse(field, fmt.Sprintf("Service %s/%s is in quarantine, requests get 503", ns, svc.Name))
		svc = nil
	} else if svc == nil {
		b.refuse(field, fmt.Sprintf("Service %s/%s does not exist, requests get 503", ns, ref.Service.Name))
	} else if i := slices.IndexFunc(svc.Spec.Ports, func(p corev1.ServicePort) bool {
		return wanted.Name == "" && p.Port == wanted.Number || wanted.Name != "" && p.Name == wanted.Name
	}); i < 0 {
		b.refuse(field, fmt.Sprintf("Service %s/%s has no port %s, requests get 503", ns, svc.Name, port))
	} else {
		port = strconv.Itoa(int(svc.Spec.Ports[i].Port))
		var wrong []string
		addresses, wrong = endpointAddresses(b.cluster.Slices(ns, svc.Name), svc.Spec.Ports[i].Name)
		for _, a := range wrong {
			b.refuse(field, fmt.Sprintf("Service %s/%s: %q is not the address of an endpoint", ns, svc.Name, a))
		}
	}
	// No part can hold "_": the name of a Kubernetes object never does.
	name := ns + "_" + ref.Service.Name + "_" + port
	if b.backends[name] {
		return name, true
	}
	b.backends[name] = true
	if excluded {
		b.routes.Backends = append(b.routes.Backends, b.slots.Keep(name, b.ing))
	} else {
		b.routes.Backends = append(b.routes.Backends, b.slots.Assign(name, addresses, svc, b.ing))
	}
	return name, true
}

// endpointAddresses returns the addresses behind a port of a Service, by the
// name of the port: those that are ready or, where none is, those that still
// serve while they terminate. wrong are those that no server can have: HAProxy
// would take them for sockets, environment variables or names to look up.
func endpointAddresses(endpointSlices []*discoveryv1.EndpointSlice, port string) (ready, wrong []string) {
	var serving []string
	for _, s := range endpointSlices {
		if s.AddressType == discoveryv1.AddressTypeFQDN {
			continue
		}
		for _, p := range s.Ports {
			if p.Port == nil || p.Name != nil && *p.Name != port || p.Name == nil && port != "" {
				continue
			}
			for _, e := range s.Endpoints {
				for _, ip := range e.Addresses {
					address := net.JoinHostPort(ip, strconv.Itoa(int(*p.Port)))
					addr, err := netip.ParseAddr(ip)
					switch {
					case err != nil || addr.Zone() != "" || *p.Port < 1 || *p.Port > 65535:
						wrong = append(wrong, address)
					case e.Conditions.Ready == nil || *e.Conditions.Ready:
						ready = append(ready, address)
					case e.Conditions.Serving != nil && *e.Conditions.Serving:
						serving = append(serving, address)
					}
				}
			}
		}
	}
	if len(ready) == 0 {
		ready = serving
	}
	slices.Sort(ready)
	return slices.Compact(ready), wrong
}

func hostProblem(host string) string {
	name := strings.TrimPrefix(host, "*.")
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return fmt.Sprintf("%q is not a host name", host)
	}
	return ""
}

// maxPath is how long a path may be, in bytes: a request must fit into HAProxy's
// tune.bufsize, 16384, and so must a line of a map, which it reads as two
// otherwise.
const maxPath = 8192

// nameProblem says what is wrong with the name of an object or a port. The API
// server sees to it, but not everything comes from there.
func nameProblem(name string) string {
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '.' {
			return fmt.Sprintf("%q is not the name of an object", name)
		}
	}
	return ""
}

func pathProblem(path string) string {
	if !strings.HasPrefix(path, "/") {
		return fmt.Sprintf("%q does not begin with a slash", path)
	}
	if len(path) > maxPath {
		return fmt.Sprintf("it has %d bytes, which is more than the %d that are served", len(path), maxPath)
	}
	for _, r := range path {
		if r <= ' ' || r >= 0x7f || r == '?' || r == '#' {
			return fmt.Sprintf("%q holds %q, which the path of no request can", path, r)
		}
	}
	return ""
}

func (b *builder) refuse(field fieldPath, reason string) {
	object, _ := reconcile.ResourceOf(b.ing)
	b.routes.Refused = append(b.routes.Refused, reconcile.Refusal{
		Object:   object,
		Resource: "Ingress " + b.ing.Namespace + "/" + b.ing.Name,
		Source:   b.ing.Annotations[k8swatch.SourceAnnotation],
		Field:    field.String(),
		Reason:   reason,
	})
}

// at says where an object was read, if that is known.
func at(o metav1.Object) string {
	if source := o.GetAnnotations()[k8swatch.SourceAnnotation]; source != "" {
		return " (" + source + ")"
	}
	return ""
}

// finish puts everything in a stable order: the same resources make the same
// configuration to the byte.
func (b *builder) finish() *Routes {
	r := b.routes
	for host := range b.hosts {
		r.Hosts = append(r.Hosts, host)
	}
	for _, c := range b.certs {
		if len(c.Hosts) == 0 {
			continue // without server names HAProxy would use it for all that it names
		}
		slices.Sort(c.Hosts)
		r.Certificates = append(r.Certificates, c.TLSCertificate)
	}
	slices.Sort(r.Hosts)
	byKey := func(x, y Path) int { return cmp.Compare(x.Key, y.Key) }
	slices.SortFunc(r.Exact, byKey)
	slices.SortFunc(r.Prefix, byKey)
	slices.SortFunc(r.Backends, func(x, y *Backend) int { return cmp.Compare(x.Name, y.Name) })
	slices.SortFunc(r.Certificates, func(x, y TLSCertificate) int { return cmp.Compare(x.File, y.File) })
	if b.cluster.Excluded == nil { // what is in quarantine may come back, with the servers that it had
		b.slots.Forget(b.backends)
	}
	return r
}
