package ingress

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/hapticsdk/haptic/examples/controller/annotation"
	"github.com/hapticsdk/haptic/k8swatch/derive"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/endpoints"
	"github.com/hapticsdk/haptic/reconcile/limits"
)

// ofBackends are the collections of backends.
type ofBackends struct {
	all     *derive.Collection[string, *Backend]
	streams *derive.Collection[string, *Backend]
	tcp     *derive.Collection[uint16, *TCPService]
}

// deriveBackends finds the servers of backends.
func (m *Model) deriveBackends(of *ofAsks) *ofBackends {
	order := limits.OrderOf("backends of a namespace", of.backends, func(_ string, all []*backendAsk) (string, *backendAsk) {
		return all[0].ref.Namespace, all[0]
	}, (*backendAsk).compare, cmp.Compare[string])
	l := &m.Limits
	m.backendBudget = limits.NewBudget("number of backends", of.backends, func(name string, all []*backendAsk) (string, int) {
		return all[0].ref.Namespace, 1 - boolToInt(isStream(name))
	}, order, limits.Bound{Name: "backends", Namespace: l.BackendsPerNamespace, All: l.BackendsOfAll}, limits.Whole)
	m.optionBudget = limits.NewBudget("bytes of options", of.backends, func(_ string, all []*backendAsk) (string, int) {
		return all[0].ref.Namespace, all[0].options.Size()
	}, order, limits.Bound{Name: "option-bytes", Namespace: l.OptionBytesPerNamespace, All: l.OptionBytesOfAll}, limits.Whole)
	m.rateBudget = limits.NewBudget("addresses of rates", of.backends, func(_ string, all []*backendAsk) (string, int) {
		return all[0].ref.Namespace, all[0].options.Addresses()
	}, order, limits.Bound{Name: "rate-addresses", Namespace: l.RateAddressesPerNamespace, All: l.RateAddressesOfAll, Item: 10_240}, limits.Whole)
	m.backendAsks = of.backends
	m.servers = endpoints.NewBackends(of.backends, m.portOf, m.Slices.Collection, m.judge, order, endpoints.Options{
		PerBackend: l.ServersPerBackend, PerNamespace: l.ServersPerNamespace, OfAll: l.ServersOfAll, Spare: m.SpareServers,
		Earlier: func(backend string) endpoints.Slots { return m.earlier.slots[backend] },
	})
	ports := derive.GroupBy("ports", m.Operator.Collection, readPorts, func(a, b tcpService) int { return cmp.Compare(a.port, b.port) })
	return &ofBackends{all: m.deriveChecks(derive.Each("backends", of.backends, m.serve)), tcp: derive.Each("TCP services", ports, m.serveTCP)}
}

func addBackends(all []*backendAsk, add func(string, *backendAsk)) {
	for _, b := range all {
		add(b.backend, b)
	}
}

// portRef is a reference to a port of a Service.
type portRef struct {
	Name
	port networkingv1.ServiceBackendPort
}

// backendAsk is an Ingress that names a backend.
type backendAsk struct {
	backend string
	ref     portRef
	options *annotation.Options   // of the Ingress and the Service together; nil: none
	ing     *networkingv1.Ingress // nil: the operator
	place   int                   // in the Ingress
}

func (a *backendAsk) compare(other *backendAsk) int {
	switch {
	case a.ing != nil && other.ing != nil:
		return cmp.Or(byAge(a.ing, other.ing), cmp.Compare(a.place, other.place))
	case a.ing != nil:
		return -1
	case other.ing != nil:
		return 1
	}
	return 0
}

// problem is a mistake in a part of an Ingress.
type problem struct {
	end, reason string
	served      bool // no rule refuses it: it exists, and waits for something
	missing     bool // the Service does not exist
}

func refusalOf(field fieldPath, reason string) reconcile.Refusal {
	return reconcile.Refusal{Field: field.String(), Reason: reason}
}

// backend returns the name of the backend for a port of a Service. A Service that has
// no endpoints or does not exist is a backend without servers, which answers 503. Its
// requests must not fall to another path.
func (r *reading) backend(field fieldPath, ref *networkingv1.IngressBackend, options *annotation.Options) (string, bool) {
	switch {
	case ref.Service == nil && ref.Resource != nil:
		r.refuse(field.sub(".resource"), "only a Service can be a backend")
		return "", false
	case ref.Service == nil:
		r.refuse(field, "there is no Service: name one, and its port")
		return "", false
	}
	return r.backendFor(r.ing, field, portRef{Name{Namespace: r.ing.Namespace, Name: ref.Service.Name}, ref.Service.Port}, options)
}

// backendFor finds a backend that an Ingress names, and reports what is wrong with it.
func (r *reading) backendFor(ing *networkingv1.Ingress, field fieldPath, ref portRef, options *annotation.Options) (string, bool) {
	name, all, p := r.findBackend(r.at, ref, options)
	switch {
	case p == nil:
	case p.missing && ing == r.ing:
		r.missing = append(r.missing, missing{field, p, ref.Name.Name})
	default:
		limits.RefuseOnce(r.at, "Ingress", ing, reconcile.Refusal{Field: field.sub(p.end).String(), Reason: p.reason, Warning: p.served})
	}
	if name == "" {
		return "", false
	}
	if !slices.ContainsFunc(r.backends, func(a *backendAsk) bool { return a.backend == name && a.ref == ref && a.ing == ing }) {
		r.backends = append(r.backends, &backendAsk{name, ref, all, ing, len(r.backends)})
	}
	return name, true
}

// findBackend names the backend for a reference, with the options of the Service, and says
// what is wrong with it. The name is empty if there is none.
func (m *Model) findBackend(at *derive.Reads, ref portRef, options *annotation.Options) (name string, all *annotation.Options, p *problem) {
	ns, wanted := ref.Namespace, ref.port
	end := ".service.port.name"
	if wanted.Name == "" {
		end = ".service.port.number"
	}
	if wanted == (networkingv1.ServiceBackendPort{}) {
		end = ".service.port"
	}
	for _, part := range [...][2]string{{"", ns}, {".service.name", ref.Name.Name}, {end, wanted.Name}} {
		if reason := nameProblem(part[1]); reason != "" {
			return "", options, &problem{end: part[0], reason: reason}
		}
	}
	port := cmp.Or(wanted.Name, strconv.Itoa(int(wanted.Number)))
	svc, used, p := m.findPort(at, ref, end)
	if used != nil {
		port = strconv.Itoa(int(used.Port))
	}
	if svc != nil {
		options = m.withService(at, options, svc, used)
	}
	// No part can hold "_": the name of a Kubernetes object never does.
	name = ns + "_" + ref.Name.Name + "_" + port
	if options != nil {
		name += "_" + options.Hash()
	}
	return name, options, p
}

// findPort finds the Service and its port. Both are nil if there are none.
func (m *Model) findPort(at *derive.Reads, ref portRef, end string) (svc *corev1.Service, used *corev1.ServicePort, p *problem) {
	svc, ok := m.Services.Get(at, ref.Name)
	switch {
	case !ok && m.isOut(at, "Service", ref.Name):
		return nil, nil, &problem{
			reason: fmt.Sprintf("answers 503: Service %s is in quarantine; it is served as soon as that is released", ref.Name),
			served: true,
		}
	case !ok:
		return nil, nil, &problem{
			".service.name",
			fmt.Sprintf("answers 503: Service %s does not exist; it is served as soon as that is there", ref.Name),
			true,
			true,
		}
	case svc.Spec.Type == corev1.ServiceTypeExternalName:
		return svc, m.externalPort(at, svc, ref.port), nil
	}
	used, reason := endpoints.FindPort(svc, ref.port.Name, ref.port.Number, m.Limits.PortsPerService)
	if used == nil {
		p = &problem{end: end, reason: "answers 503: " + reason, served: len(svc.Spec.Ports) <= m.Limits.PortsPerService}
	}
	return svc, used, p
}

// externalPort returns the port of an ExternalName Service, which need not list it.
// nil: the Service is refused.
func (m *Model) externalPort(at *derive.Reads, svc *corev1.Service, wanted networkingv1.ServiceBackendPort) *corev1.ServicePort {
	port := &corev1.ServicePort{Port: wanted.Number}
	if found, _ := endpoints.FindPort(svc, wanted.Name, wanted.Number, m.Limits.PortsPerService); found != nil {
		port = found
	}
	field, reason := "spec.type", ""
	switch {
	case !m.operator(at).ExternalName:
		reason = "ExternalName is not served, as the name may lead anywhere later, also to this host or to the metadata service of a cloud; " +
			"use a Service without selector, and an EndpointSlice with addresses, or -allow-external-name"
	case port.Port < 1 || port.Port > 65535:
		field, reason = "spec.ports", "an Ingress names a port that it does not have: name one by its number"
	default:
		field, reason = endpoints.ExternalNameProblem(m.judge.Get(at), svc, port.Port)
	}
	if reason != "" {
		limits.Refuse(at, "Service", svc, reconcile.Refusal{Field: field, Reason: "answers 503: " + reason})
		return nil
	}
	return port
}

// withService adds the options of a Service to those of an Ingress.
func (m *Model) withService(at *derive.Reads, of *annotation.Options, svc *corev1.Service, used *corev1.ServicePort) *annotation.Options {
	protocol := ""
	if used != nil && used.AppProtocol != nil {
		protocol = *used.AppProtocol
	}
	has := annotation.Has(svc.Annotations)
	if !has && protocol == "" || of != nil && of.Closed {
		return of
	}
	o := annotation.Options{}
	if of != nil {
		o = *of
	}
	if has {
		var problems []annotation.Problem
		o, problems = m.Annotations.Read(annotation.Service, svc.Annotations, o)
		warnOfAnnotations(at, "Service", svc, problems)
	}
	o.AppProtocol(protocol)
	return pointerTo(o)
}

// pointerTo returns nil for no options.
func pointerTo(o annotation.Options) *annotation.Options {
	if o == (annotation.Options{}) {
		return nil
	}
	return &o
}

func equal(x, y *annotation.Options) bool { return x == y || x != nil && y != nil && *x == *y }

// backendProblem says which limit of the namespace refuses a backend; "" if none does.
func (m *Model) backendProblem(at *derive.Reads, namespace, backend string) string {
	words := append(strings.Split(backend, "_"), "", "", "")
	switch service := words[1]; {
	case m.backendBudget.Share(at, namespace, backend) < 1:
		return fmt.Sprintf("namespace %s has %s: Service %[1]s/%[3]s port %[4]s is not served", namespace, m.backendBudget.Over(at, namespace, "backends"), service, words[2])
	case words[3] == "":
	case m.optionBudget.Share(at, namespace, backend) == 0:
		return fmt.Sprintf("annotations of namespace %s have, times their backends, %s: Service %[1]s/%[3]s is not served",
			namespace, m.optionBudget.Over(at, namespace, "bytes"), service)
	case m.rateBudget.Share(at, namespace, backend) == 0:
		return fmt.Sprintf("rates of namespace %s count %s: Service %[1]s/%[3]s is not served; %[4]srate-limit-size has it count fewer",
			namespace, m.rateBudget.Over(at, namespace, "addresses"), service, annotation.HAProxy)
	}
	return ""
}

// isStream reports whether a backend is for connections: a TCP service, or TLS that is passed
// through. The name of a backend for requests begins with that of a namespace.
func isStream(name string) bool {
	return strings.HasPrefix(name, "TLS-") || !strings.Contains(name, "_")
}

// portOf finds the port of a Service that a backend leads to.
func (m *Model) portOf(at *derive.Reads, all []*backendAsk) endpoints.Port {
	svc, used, _ := m.findPort(at, all[0].ref, "")
	return endpoints.Port{Of: all[0].ref.Name, Service: svc, Port: used}
}

// serve makes a backend. Its endpoints keep their servers.
func (m *Model) serve(at *derive.Reads, name string, all []*backendAsk, was *Backend) (*Backend, bool) {
	ask := all[0]
	if isStream(name) || m.backendProblem(at, ask.ref.Namespace, name) != "" {
		return nil, false
	}
	return m.withServers(at, Backend{Name: name, Options: ask.options, Ingress: ask.ing}, was), true
}

// withServers gives a backend its servers. Without a change it returns the last one.
func (m *Model) withServers(at *derive.Reads, now Backend, was *Backend) *Backend {
	if was != nil {
		now.slots = was.slots
	}
	served, _ := m.servers.Serve(at, now.Name, now.slots)
	now.Service, now.Servers, now.slots = served.Service, served.Servers, served.Slots
	if was != nil && was.equal(&now) {
		return was
	}
	return &now
}
