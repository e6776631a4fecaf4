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
	"github.com/hapticsdk/haptic/k8swatch/derive"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/claims"
	"github.com/hapticsdk/haptic/reconcile/endpoints"
	"github.com/hapticsdk/haptic/reconcile/limits"
)

// Operator is what the operator of the controller serves beside Ingresses. It does not
// change while it is in use: set another one as the input. The zero value adds nothing.
type Operator struct {
	Certificate  string     // namespace/name of the Secret for server names without a certificate; "": they are refused
	Backend      ServiceRef // for requests without a route; zero: none
	TCP          *TCP       // nil: none
	ExternalName bool       // serve Services of the type ExternalName
}

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
	if !ok || !ok2 || port == "" || port == "0" || namespace == "" || name == "" ||
		cmp.Or(nameProblem(namespace), nameProblem(name), nameProblem(ref.Port.Name)) != "" {
		return ServiceRef{}, fmt.Errorf("%q: want namespace/service:port", short(s))
	}
	return ref, nil
}

func (r ServiceRef) ref() portRef {
	return portRef{Name{Namespace: r.Namespace, Name: r.Name}, r.Port}
}

// operator is what the operator serves.
func (m *Model) operator(at *derive.Reads) *Operator {
	o, _ := m.Operator.Get(at, struct{}{})
	return cmp.Or(o, &Operator{})
}

// defaultFile is the certificate for server names without one. No Secret makes a file
// of that name.
var defaultFile = dataplane.FileName(dataplane.Certificate, "default") // constant in effect

// defaultCertificate reads the Secret for server names without a certificate; nil: there is none.
func (m *Model) defaultCertificate(at *derive.Reads, was *checkedSecret) *checkedSecret {
	namespace, name, ok := strings.Cut(m.operator(at).Certificate, "/")
	if !ok {
		return nil
	}
	secret := Name{Namespace: namespace, Name: name}
	cert := m.checkSecret(at, secret, defaultFile, was)
	switch {
	case cert.checked.Secret != nil:
		m.warnOfDates(at, cert)
	case !m.isOut(at, "Secret", secret): // otherwise the list of quarantined resources shows it
		limits.Refuse(at, "Secret", &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}, reconcile.Refusal{
			Reason: fmt.Sprintf(
				"-default-certificate names it, and there is none of type %s: server names without a certificate are refused",
				corev1.SecretTypeTLS,
			)})
	}
	return cert
}

// operatorAsks is what the operator asks for.
type operatorAsks struct {
	backends []*backendAsk
	noRoute  string // the backend for requests without a route; "": none
}

// askOperator asks for the backends of the operator.
func (m *Model) askOperator(at *derive.Reads, _ struct{}, o *Operator, _ *operatorAsks) (*operatorAsks, bool) {
	asks := &operatorAsks{}
	if o.Backend.Name != "" {
		m.askDefault(at, o.Backend, asks)
	}
	if t := o.TCP; t != nil && t.missing != "" {
		limits.Refuse(at, "ConfigMap", t.ConfigMap, reconcile.Refusal{Reason: t.missing})
	} else if t != nil {
		m.askTCP(at, t, asks)
	}
	return asks, true
}

// askDefault asks for the backend for requests without a route. If the Service cannot be
// used, HAProxy answers them as if there were no such backend.
func (m *Model) askDefault(at *derive.Reads, of ServiceRef, asks *operatorAsks) {
	name, options, p := m.findBackend(at, of.ref(), nil)
	if p != nil {
		limits.Refuse(at, "Service", &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: of.Name}}, reconcile.Refusal{
			Reason: "-default-backend names it: " + strings.TrimPrefix(
				p.reason,
				"answers 503: ",
			) + "; requests without a route get 404", Detail: m.guessFor(at, p, of.ref())})
		return
	}
	asks.noRoute = name
	asks.backends = append(asks.backends, &backendAsk{backend: name, ref: of.ref(), options: options})
}

// guessFor suggests the Service that was meant.
func (m *Model) guessFor(at *derive.Reads, p *problem, ref portRef) string {
	if !p.missing {
		return ""
	}
	services, _ := m.servicesOfSpace.Get(at, ref.Namespace)
	return guessOf(ref.Name.Name, services)[ref.Name.Name]
}

// askTCP asks for the backends of ports, and reports mistakes in the ConfigMap.
func (m *Model) askTCP(at *derive.Reads, t *TCP, asks *operatorAsks) {
	for key, problem := range t.problems {
		limits.Refuse(at, "ConfigMap", t.ConfigMap, reconcile.Refusal{Field: fieldOfPort(key), Reason: problem + ": it is not served"})
	}
	for _, s := range t.services {
		port, ref := strconv.Itoa(int(s.port)), s.ref.ref()
		name, _, p := m.findBackend(at, ref, nil)
		if p != nil {
			limits.Refuse(at, "ConfigMap", t.ConfigMap, reconcile.Refusal{Field: fieldOfPort(port), Detail: m.guessFor(at, p, ref), Warning: p.served,
				Reason: "connections are closed: " + strings.TrimPrefix(p.reason, "answers 503: ")})
		}
		if name != "" {
			asks.backends = append(asks.backends, &backendAsk{backend: "tcp-" + port, ref: ref})
		}
	}
}

// TCP is the content of a ConfigMap with ports that lead to Services, as in
// ingress-nginx: "9000": "namespace/service:port". With ":PROXY" behind it, incoming
// connections begin with the PROXY protocol; with "::PROXY" those to the Service do.
type TCP struct {
	Addresses *endpoints.Addresses // includes these ports
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
func ReadTCP(cm *corev1.ConfigMap, name, http string, rules *endpoints.Addresses) *TCP {
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
			return s, fmt.Sprintf(
				"%q: want namespace/service:port, and behind that :PROXY for connections that come with the PROXY protocol, ::PROXY for those to the Service",
				short(value),
			)
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

	namespace string // of the Service
}

// Namespace is that of the Service, whose share of connections counts.
func (s *TCPService) Namespace() string { return s.namespace }

// Owners makes the Service answer for mistakes, or else the ConfigMap.
func (s *TCPService) Owners() []any {
	if s.Service == nil {
		return []any{s.ConfigMap}
	}
	return []any{s.ConfigMap, s.Service}
}

// readPorts adds the ports of the operator's ConfigMap.
func readPorts(_ struct{}, o *Operator, add func(uint16, tcpService)) {
	if o.TCP != nil && o.TCP.missing == "" {
		for _, s := range o.TCP.services {
			add(s.port, s)
		}
	}
}

func fieldOfPort(key string) string { return fmt.Sprintf("data[%q]", short(key)) }

// serveTCP makes the service of a port.
func (m *Model) serveTCP(at *derive.Reads, port uint16, all []tcpService, was *TCPService) (*TCPService, bool) {
	s, text, t, before := all[0], strconv.Itoa(int(port)), m.operator(at).TCP, (*Backend)(nil)
	if _, ok := m.backendAsks.Get(at, "tcp-"+text); !ok || t == nil {
		return nil, false
	}
	if was != nil {
		before = was.Backend
	}
	back := m.withServers(at, Backend{Name: "tcp-" + text}, before)
	now := &TCPService{back, strings.Join(t.hosts, ":"+text+",") + ":" + text, s.accepts, s.sends, t.ConfigMap, s.ref.Namespace}
	if was != nil && *was == *now {
		return was, true
	}
	return now, true
}

// passes reports whether HAProxy passes TLS connections for the hosts of the Ingress through.
func (r *reading) passes() bool {
	o := &r.options
	if !o.Passthrough || o.Closed {
		return false
	}
	if r.NoPassthrough {
		limits.Refuse(r.at, "Ingress", r.ing, reconcile.Refusal{Field: "metadata.annotations",
			Reason: "ssl-passthrough is not served, as it costs the TLS connections of all others: TLS ends at HAProxy; -ssl-passthrough would allow it"})
		return false
	}
	past := o.Allow != "" || o.Deny != "" || o.Auth.Userlist != "" || o.Rate.Is()
	if past {
		limits.Refuse(
			r.at,
			"Ingress",
			r.ing,
			reconcile.Refusal{
				Field:  "metadata.annotations",
				Reason: "ssl-passthrough would go past the allow and deny lists, the users or the rates that other annotations name: TLS ends at HAProxy",
			},
		)
	}
	return !past
}

// pass passes the connections for a host through to the first backend of a rule.
func (r *reading) pass(field fieldPath, host string, paths []networkingv1.HTTPIngressPath) {
	owner, _ := r.hosts.Owners.Get(r.at, host)
	switch {
	case host == claims.AnyHost:
		r.refuse(field.sub(".host"), "TLS passthrough needs a host: without one, TLS ends at HAProxy")
		return
	case owner == claims.AllNamespaces:
		r.refuse(field.sub(".host"), fmt.Sprintf("%s is for all namespaces: its TLS ends at HAProxy", host))
		return
	case len(paths) == 0 || paths[0].Backend.Service == nil:
		return
	case len(paths) > 1 || cmp.Or(paths[0].Path, "/") != "/":
		r.warn(field.sub(".http.paths"), "HAProxy does not read what it passes through: all connections with TLS go to the first Service")
	}
	to := paths[0].Backend.Service
	ref := portRef{Name{Namespace: r.ing.Namespace, Name: to.Name}, to.Port}
	name, _, _ := r.findBackend(r.at, ref, nil) // its path reports what is wrong with it
	if name == "" {
		return
	}
	field.path, field.end = 0, ""
	stream := "TLS-" + name
	r.backends = append(r.backends, &backendAsk{stream, ref, nil, r.ing, len(r.backends)})
	r.add(candidate{line: line{passedHost, host}, field: field, host: host, serves: stream})
}

// serveStream makes a backend for connections, if a host leads to it.
func (m *Model) serveStream(at *derive.Reads, name string, all []*backendAsk, was *Backend) (*Backend, bool) {
	if hosts, _ := m.passedTo.Get(at, name); hosts == 0 {
		return nil, false
	}
	return m.withServers(at, Backend{Name: name, Ingress: all[0].ing}, was), true
}
