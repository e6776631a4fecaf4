package ingress

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile"
)

// Operator is what the operator of the controller serves beside Ingresses. It does not
// change while it is in use. With another one, a Builder builds everything. The zero
// value adds nothing.
type Operator struct {
	Certificate  string     // namespace/name of the Secret for server names without a certificate; "": they are refused
	Backend      ServiceRef // for requests without a route; zero: none
	TCP          *TCP       // nil: none
	ExternalName bool       // serve Services of the type ExternalName
}

func (b *builder) operator() *Operator { return cmp.Or(b.cluster.Operator, &Operator{}) }

// ServiceRef names a port of a Service.
type ServiceRef struct {
	Namespace, Name string
	Port            networkingv1.ServiceBackendPort
}

// ParseServiceRef reads "namespace/service:port", with the name or the number of the port.
func ParseServiceRef(s string) (ref ServiceRef, err error) {
	of, port, ok := strings.Cut(s, ":")
	namespace, name, ok2 := strings.Cut(of, "/")
	ref = ServiceRef{Namespace: namespace, Name: name}
	if n, err := strconv.ParseUint(port, 10, 16); err == nil {
		ref.Port.Number = int32(n)
	} else {
		ref.Port.Name = port
	}
	if !ok || !ok2 || port == "" || port == "0" || namespace == "" || name == "" || cmp.Or(nameProblem(namespace), nameProblem(name), nameProblem(ref.Port.Name)) != "" {
		return ServiceRef{}, fmt.Errorf("%q: want namespace/service:port", short(s))
	}
	return ref, nil
}

func (r ServiceRef) key() portRef {
	return portRef{serviceName: serviceName{r.Namespace, r.Name}, port: r.Port}
}

// serveOperator adds the operator's services, after all Ingresses.
func (b *builder) serveOperator() {
	b.ing = nil
	b.defaultCertificate()
	b.defaultBackend()
	b.serveTCP()
}

// pin notes a Service of the operator. A Builder builds everything if it, its endpoints
// or an Ingress to it change. The same applies if any Service of its namespace comes or
// goes, which may be the intended one.
func (b *builder) pin(name serviceName) {
	if b.pinned == nil {
		b.pinned = map[serviceName]bool{}
	}
	b.pinned[name], b.pinned[serviceName{namespace: name.namespace}] = true, true
}

// defaultFile is the certificate for server names without one. No Secret makes a file
// of that name.
var defaultFile = dataplane.FileName(dataplane.Certificate, "default") // constant in effect

// defaultCertificate reads the Secret for server names without a certificate.
func (b *builder) defaultCertificate() {
	namespace, name, ok := strings.Cut(b.operator().Certificate, "/")
	if !ok {
		return
	}
	cert := &tlsFile{secret: namespace + "/" + name, isDefault: true}
	secret, ok := reconcile.ToRender(b.cluster.Excluded, b.cluster.Secret(namespace, name))
	if !ok {
		return // the list of quarantined resources shows it
	}
	if !isForTLS(secret) {
		b.slots.gone(defaultFile)
		b.tell("Secret", &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}, reconcile.Refusal{
			Reason: fmt.Sprintf("-default-certificate names it, and there is none of type %s: server names without a certificate are refused", corev1.SecretTypeTLS)})
		return
	}
	cert.Secret, cert.checked = secret, b.slots.check(defaultFile, secret, b.limits.CertificatesPerSecret, b.now)
	b.certs[defaultFile] = cert
	if use := cert.checked.inUse; use != nil {
		cert.File, b.routes.DefaultCertificate = defaultFile, defaultFile
		b.routes.FileOwners[dataplane.Position{Kind: dataplane.Certificate, Name: defaultFile}] = []any{secret}
		b.routes.Files = append(b.routes.Files, dataplane.File{Kind: dataplane.Certificate, Name: defaultFile, Content: use.content})
	}
}

// defaultBackend makes the backend for requests without a route. If the Service cannot
// be used, HAProxy answers them as if there were no such backend.
func (b *builder) defaultBackend() {
	ref := b.operator().Backend
	if ref.Name == "" {
		return
	}
	b.pin(ref.key().serviceName)
	b.space = b.spaceOf(ref.Namespace)
	made := b.made[ref.key()]
	if made == nil {
		b.ing = &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace}} // without a name: no Ingress is at fault
		if found, _, _, _ := b.findBackend(ref.key()); found.problem != nil {
			made = found
		} else {
			made = b.makeBackend(ref.key())
			b.made[ref.key()] = made
		}
		b.ing = nil
	}
	if p := made.problem; p != nil {
		b.tell("Service", &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name}}, reconcile.Refusal{
			Reason: "-default-backend names it: " + strings.TrimPrefix(p.reason, "answers 503: ") + "; requests without a route get 404", Detail: p.detail})
		return
	}
	b.routes.NoRoute = made.name
}

// TCP is the content of a ConfigMap with ports that lead to Services, as in
// ingress-nginx: "9000": "namespace/service:port". With ":PROXY" behind it, incoming
// connections begin with the PROXY protocol; with "::PROXY" those to the Service do.
type TCP struct {
	Addresses *Addresses // includes these ports
	ConfigMap *corev1.ConfigMap
	missing   string   // the report if there is no ConfigMap
	hosts     []string // to listen at
	services  []tcpService
	problems  map[string]string // by key
}

type tcpService struct {
	port           uint16
	ref            ServiceRef
	accepts, sends bool
}

// maxTCP bounds the ports of a ConfigMap. lowestTCP is the first port that needs no
// privilege.
const maxTCP, lowestTCP = 200, 1024

// ReadTCP reads a ConfigMap; nil: there is none with that name. http is the address for
// HTTP. HAProxy listens at its hosts.
func ReadTCP(cm *corev1.ConfigMap, name, http string, rules *Addresses) *TCP {
	t, like := &TCP{Addresses: rules, ConfigMap: cm, problems: map[string]string{}}, uint64(0)
	for part := range strings.SplitSeq(http, ",") {
		if _, at, ok := strings.Cut(part, "@"); ok {
			part = at
		}
		i := strings.LastIndexByte(part, ':')
		like, _ = strconv.ParseUint(part[i+1:], 10, 16)
		t.hosts = append(t.hosts, part[:max(i, 0)])
	}
	if cm == nil {
		namespace, name, _ := strings.Cut(name, "/")
		t.ConfigMap = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		t.missing = "-tcp-services names it, and there is none: no TCP service is served"
		return t
	}
	all := *rules
	all.Listeners = maps.Clone(rules.Listeners)
	for _, key := range slices.Sorted(maps.Keys(cm.Data)) {
		s, problem := readTCP(key, cm.Data[key])
		switch {
		case problem != "":
		case len(rules.Listeners[s.port]) > 0:
			problem = "HAProxy or the controller listens at that port already"
		case slices.ContainsFunc(t.services, func(o tcpService) bool { return o.port == s.port }):
			problem = fmt.Sprintf("port %d is there already", s.port)
		case len(t.services) == maxTCP:
			problem = fmt.Sprintf("it is beyond the %d ports of the ConfigMap", maxTCP)
		}
		if problem != "" {
			t.problems[key] = problem
			continue
		}
		t.services = append(t.services, s)
		for _, addr := range rules.Listeners[uint16(like)] {
			all.Listeners.AddAddr(addr, s.port)
		}
	}
	t.Addresses = &all
	return t
}

// readTCP reads an entry, or says what is wrong with it.
func readTCP(key, value string) (s tcpService, problem string) {
	port, err := strconv.ParseUint(key, 10, 16)
	if err != nil || port < lowestTCP || strconv.FormatUint(port, 10) != key {
		return s, fmt.Sprintf("%q is not a port from %d to 65535", short(key), lowestTCP)
	}
	parts := strings.Split(strings.TrimSpace(value), ":")
	for i, part := range parts {
		if i > 1 && (i > 3 || part != "PROXY" && (part != "" || i == len(parts)-1)) {
			return s, fmt.Sprintf("%q: want namespace/service:port, and behind that :PROXY for connections that come with the PROXY protocol, ::PROXY for those to the Service", short(value))
		}
	}
	ref, err := ParseServiceRef(strings.Join(parts[:min(len(parts), 2)], ":"))
	if err != nil {
		return s, err.Error()
	}
	parts = append(parts, "", "")
	return tcpService{uint16(port), ref, parts[2] == "PROXY", parts[3] == "PROXY"}, ""
}

// TCPService is a port that leads to a Service.
type TCPService struct {
	*Backend         // "tcp-9000"
	Bind      string // address:port, several with commas between
	Accepts   bool   // connections begin with the PROXY protocol
	Sends     bool   // those to the Service do
	ConfigMap *corev1.ConfigMap
}

// Owners makes the Service answer for mistakes, or else the ConfigMap.
func (s *TCPService) Owners() []any {
	if s.Service == nil {
		return []any{s.ConfigMap}
	}
	return []any{s.ConfigMap, s.Service}
}

func (b *builder) serveTCP() {
	t := b.operator().TCP
	if t == nil {
		return
	}
	if t.missing != "" {
		b.tell("ConfigMap", t.ConfigMap, reconcile.Refusal{Reason: t.missing})
		return
	}
	if _, ok := reconcile.ToRender(b.cluster.Excluded, t.ConfigMap); !ok {
		return
	}
	field := func(key string) string { return fmt.Sprintf("data[%q]", short(key)) }
	for _, key := range slices.Sorted(maps.Keys(t.problems)) {
		b.tell("ConfigMap", t.ConfigMap, reconcile.Refusal{Field: field(key), Reason: t.problems[key] + ": it is not served"})
	}
	for _, s := range t.services {
		port := strconv.Itoa(int(s.port))
		b.pin(s.ref.key().serviceName)
		made, back := b.stream(s.ref.key(), func(string) string { return "tcp-" + port })
		if p := made.problem; p != nil {
			b.tell("ConfigMap", t.ConfigMap, reconcile.Refusal{Field: field(port), Detail: p.detail, Warning: p.served,
				Reason: "connections are closed: " + strings.TrimPrefix(p.reason, "answers 503: ")})
		}
		if back != nil {
			b.routes.TCP = append(b.routes.TCP, &TCPService{back, strings.Join(t.hosts, ":"+port+",") + ":" + port, s.accepts, s.sends, t.ConfigMap})
		}
	}
}

// stream makes a backend for connections to a port of a Service. name turns the name of
// the backend for requests into its name. nil: no Service can have such a name.
func (b *builder) stream(ref portRef, name func(of string) string) (*madePort, *Backend) {
	b.space = b.spaceOf(ref.namespace)
	made, svc, used, ok := b.findBackend(ref)
	if made.name == "" {
		return made, nil
	}
	as := name(made.name)
	if there := b.backends[as]; there != nil {
		return made, there.Backend
	}
	back := &backend{service: ref.name, of: ref, ing: b.ing}
	if b.backends[as] = back; ok {
		b.serving(back, as, svc, used, b.ing).assign(b.slots)
	} else {
		back.Backend = b.slots.keep(as, nil, b.ing)
	}
	return made, back.Backend
}

// passes reports whether HAProxy passes TLS connections for the hosts of the current
// Ingress through.
func (b *builder) passes() bool {
	o := &b.options
	if !o.Passthrough || o.Closed {
		return false
	}
	b.fast.doubt = true // such an Ingress always causes a full build
	past := o.Allow != "" || o.Deny != "" || o.Auth.Userlist != "" || o.Rate.Is()
	if past {
		b.tell("Ingress", b.ing, reconcile.Refusal{Field: "metadata.annotations", Reason: "ssl-passthrough would go past the allow and deny lists, the users or the rates that other annotations name: TLS ends at HAProxy"})
	}
	return !past
}

// passedHost is the kind of claims for the TLS connections of a host.
const passedHost networkingv1.PathType = "TLS passthrough of"

// pass passes the connections for a host through to the first backend of a rule.
func (b *builder) pass(field fieldPath, host string, paths []networkingv1.HTTPIngressPath) {
	switch {
	case host == anyHost:
		b.refuse(field.sub(".host"), "TLS passthrough needs a host: without one, TLS ends at HAProxy")
		return
	case b.owners.hosts.get(host).namespace == everybody:
		b.refuse(field.sub(".host"), fmt.Sprintf("%s is for all namespaces: its TLS ends at HAProxy", host))
		return
	case len(paths) == 0 || paths[0].Backend.Service == nil:
		return
	case len(paths) > 1 || cmp.Or(paths[0].Path, "/") != "/":
		b.warn(field.sub(".http.paths"), "HAProxy does not read what it passes through: all connections with TLS go to the first Service")
	}
	to := paths[0].Backend.Service
	ref := portRef{serviceName: serviceName{b.ing.Namespace, to.Name}, port: to.Port}
	field.path, field.end = 0, ""
	ask := claim{passedHost, host}
	b.inTurn(ask, "TLS-"+to.Name, func() {
		b.pin(ref.serviceName)
		if _, back := b.stream(ref, func(of string) string { return "TLS-" + of }); back != nil && b.claims(field, ask, "TLS-"+to.Name) { // its path reports what is wrong with it
			b.routes.Passed = append(b.routes.Passed, Path{host, back.Name, b.ing})
			if !slices.Contains(b.routes.Streams, back) {
				b.routes.Streams = append(b.routes.Streams, back)
			}
		}
	})
}

// isForTLS reports whether a Secret may have a certificate for clients. Secrets of type
// Opaque are only for users and CAs, see -opaque-secrets.
func isForTLS(secret *corev1.Secret) bool {
	return secret != nil && secret.Type != corev1.SecretTypeOpaque
}
