package ingress

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/hapticsdk/haptic/examples/controller/annotation"
	"github.com/hapticsdk/haptic/k8swatch/derive"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/endpoints"
	"github.com/hapticsdk/haptic/reconcile/limits"
)

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
	svc, used, p := m.findPort(at, ref, port, end)
	if used != nil {
		port = strconv.Itoa(int(used.Port))
	}
	if svc != nil {
		options = withService(at, options, svc, used)
	}
	// No part can hold "_": the name of a Kubernetes object never does.
	name = ns + "_" + ref.Name.Name + "_" + port
	if options != nil {
		name += "_" + options.Hash()
	}
	return name, options, p
}

// findPort finds the Service and its port. Both are nil if there are none.
func (m *Model) findPort(at *derive.Reads, ref portRef, port, end string) (svc *corev1.Service, used *corev1.ServicePort, p *problem) {
	svc, ok := m.Services.Get(at, ref.Name)
	switch {
	case !ok && m.isOut(at, "Service", ref.Name):
		return nil, nil, &problem{reason: fmt.Sprintf("answers 503: Service %s is in quarantine; it is served as soon as that is released", ref.Name), served: true}
	case !ok:
		return nil, nil, &problem{".service.name", fmt.Sprintf("answers 503: Service %s does not exist; it is served as soon as that is there", ref.Name), true, true}
	case svc.Spec.Type == corev1.ServiceTypeExternalName:
		return svc, m.externalPort(at, svc, ref.port), nil
	}
	used, reason := m.portOf(svc, ref.port, port)
	if used == nil {
		p = &problem{end: end, reason: reason, served: len(svc.Spec.Ports) <= m.Limits.PortsPerService}
	}
	return svc, used, p
}

// externalPort returns the port of an ExternalName Service, which need not list it.
// nil: the Service is refused.
func (m *Model) externalPort(at *derive.Reads, svc *corev1.Service, wanted networkingv1.ServiceBackendPort) *corev1.ServicePort {
	port := &corev1.ServicePort{Port: wanted.Number}
	if found, _ := m.portOf(svc, wanted, ""); found != nil {
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

// portOf finds a port among the usable ones of a Service.
func (m *Model) portOf(svc *corev1.Service, wanted networkingv1.ServiceBackendPort, name string) (*corev1.ServicePort, string) {
	limit := m.Limits.PortsPerService
	ports := svc.Spec.Ports[:min(len(svc.Spec.Ports), limit)]
	i := slices.IndexFunc(ports, func(p corev1.ServicePort) bool {
		return wanted.Name == "" && p.Port == wanted.Number || wanted.Name != "" && p.Name == wanted.Name
	})
	switch {
	case i >= 0:
		return &ports[i], ""
	case len(svc.Spec.Ports) > limit:
		return nil, fmt.Sprintf("answers 503: Service %s/%s has %s ports, more than the %s that can be used (ports-per-service), and port %s is not among the first %[4]s",
			svc.Namespace, svc.Name, figure(len(svc.Spec.Ports)), figure(limit), name)
	}
	if wanted == (networkingv1.ServiceBackendPort{}) {
		return nil, fmt.Sprintf("answers 503: no port is named; Service %s/%s has %s", svc.Namespace, svc.Name, listPorts(ports))
	}
	return nil, fmt.Sprintf("answers 503: Service %s/%s has no port %s; it has %s", svc.Namespace, svc.Name, name, listPorts(ports))
}

// listPorts names the first ports of a Service.
func listPorts(ports []corev1.ServicePort) string {
	var list []string
	for i, p := range ports {
		if i == maxNames {
			list = append(list, fmt.Sprintf("%d more", len(ports)-i))
			break
		}
		if p.Name == "" {
			list = append(list, strconv.Itoa(int(p.Port)))
		} else {
			list = append(list, fmt.Sprintf("%s (%d)", p.Name, p.Port))
		}
	}
	return cmp.Or(strings.Join(list, ", "), "none")
}

// withService adds the options of a Service to those of an Ingress.
func withService(at *derive.Reads, of *annotation.Options, svc *corev1.Service, used *corev1.ServicePort) *annotation.Options {
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
		o, problems = annotation.Read(annotation.Service, svc.Annotations, o)
		tellAnnotations(at, "Service", svc, problems)
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
		return fmt.Sprintf("namespace %s has more than the %s backends of one namespace (backends-per-namespace): Service %s/%s port %s is not served",
			namespace, figure(m.Limits.BackendsPerNamespace), namespace, service, words[2])
	case words[3] == "":
	case m.optionBudget.Share(at, namespace, backend) == 0:
		return fmt.Sprintf("annotations of namespace %s have more than the %s bytes of one namespace, times their backends (option-bytes-per-namespace): Service %s/%s is not served",
			namespace, figure(m.Limits.OptionBytesPerNamespace), namespace, service)
	case m.rateBudget.Share(at, namespace, backend) == 0:
		return fmt.Sprintf("rates of namespace %s count more than the %s addresses of one namespace (rate-addresses-per-namespace): Service %s/%s is not served; %srate-limit-size has it count fewer",
			namespace, figure(m.Limits.RateAddressesPerNamespace), namespace, service, annotation.HAProxy)
	}
	return ""
}

// isStream reports whether a backend is for connections: a TCP service, or TLS that is passed
// through. The name of a backend for requests begins with that of a namespace.
func isStream(name string) bool {
	return strings.HasPrefix(name, "TLS-") || !strings.Contains(name, "_")
}

// pods are the endpoints behind a backend, before the limits of the namespace.
type pods struct {
	svc  *corev1.Service
	port *corev1.ServicePort // nil: none can be used
	ask  *backendAsk
	size int // what reading them takes
}

// countPods finds the Service of a backend, and counts what reading its endpoints takes.
func (m *Model) countPods(at *derive.Reads, _ string, all []*backendAsk, _ *pods) (*pods, bool) {
	ask := all[0]
	svc, used, _ := m.findPort(at, ask.ref, "", "")
	now := &pods{svc: svc, port: used, ask: ask}
	if used != nil && svc.Spec.Type != corev1.ServiceTypeExternalName {
		slices, _ := m.slicesOf.Get(at, ask.ref.Name)
		now.size = sizeOfSlices(slices, used.Name)
	}
	return now, true
}

// sizeOfSlices counts the endpoints behind a port and the slices, without reading addresses.
func sizeOfSlices(all []*discoveryv1.EndpointSlice, port string) (size int) {
	for _, s := range all {
		for i := range s.Ports {
			if p := &s.Ports[i]; p.Name != nil && *p.Name == port || p.Name == nil && port == "" {
				for j := range s.Endpoints {
					size += len(s.Endpoints[j].Addresses)
				}
			}
		}
	}
	return size + len(all)
}

// found are the addresses behind a backend that may serve.
type found struct {
	*pods
	addresses   []string
	read, total int // how many endpoints were read, and how many there are
}

// findPods reads the endpoints of a backend. It also reads those that are not ready, so
// reading has bounds of its own: twice the servers of a backend, three times those of a
// namespace.
func (m *Model) findPods(at *derive.Reads, backend string, p *pods, _ *found) (*found, bool) {
	now := &found{pods: p}
	switch {
	case p.port == nil:
		return now, true
	case p.svc.Spec.Type == corev1.ServiceTypeExternalName:
		now.addresses = []string{net.JoinHostPort(endpoints.ExternalName(p.svc), strconv.Itoa(int(p.port.Port)))}
		return now, true
	}
	ns := p.svc.Namespace
	most := min(2*m.Limits.ServersPerBackend, m.readBudget.Share(at, ns, backend))
	if most <= 0 && p.size > 0 {
		limits.Refuse(at, "Service", p.svc, reconcile.Refusal{Reason: fmt.Sprintf("namespace %s has too many endpoints and EndpointSlices to read those of this Service, and requests get 503: raise -limit servers-per-namespace=%d", ns, m.Limits.ServersPerNamespace)})
		return now, true
	}
	all, _ := m.slicesOf.Get(at, p.ask.ref.Name)
	result := endpoints.Find(m.judge.Get(at), all, p.port.Name, most)
	now.addresses, now.read, now.total = result.Addresses, result.Read, result.Total
	m.tellEndpoints(at, p, all, &result)
	return now, true
}

// tellEndpoints reports the endpoints behind a port of a Service. Each EndpointSlice gets its
// refused endpoints. If there is no server and no refused endpoint, the Service gets the reason.
func (m *Model) tellEndpoints(at *derive.Reads, p *pods, all []*discoveryv1.EndpointSlice, result *endpoints.Found) {
	name := p.svc.Namespace + "/" + p.svc.Name
	others := "no other endpoint of Service " + name + " is ready, requests get 503"
	if len(result.Addresses) > 0 {
		others = "the other endpoints of Service " + name + " serve"
	}
	for _, s := range result.Refused {
		limits.Refuse(at, "EndpointSlice", s.Slice, reconcile.Refusal{Field: s.Field, Reason: s.Reason + "; " + others, More: s.More})
	}
	if len(result.Addresses)+len(result.Refused) == 0 {
		field, reason, detail := endpoints.Unusable(p.svc, p.port, all, result.Read)
		limits.Refuse(at, "Service", p.svc, reconcile.Refusal{Field: field, Reason: reason, Detail: detail, Warning: true}) // the backend exists, and no rule refuses a server
	}
}

// serverAsk is how many servers a backend takes of its namespace.
func (m *Model) serverAsk(_ string, f *found) (namespace string, n int) {
	if f.svc == nil || f.svc.Spec.Type == corev1.ServiceTypeExternalName {
		return "", 0
	}
	return f.svc.Namespace, min(len(f.addresses), m.Limits.ServersPerBackend)
}

// serve makes a backend. Its endpoints keep their servers.
func (m *Model) serve(at *derive.Reads, name string, f *found, was *Backend) (*Backend, bool) {
	ask := f.ask
	if isStream(name) || m.backendProblem(at, ask.ref.Namespace, name) != "" {
		return nil, false
	}
	now := &Backend{Name: name, Options: ask.options, Service: f.svc, Ingress: ask.ing}
	return m.withServers(at, now, f, was), true
}

// withServers gives a backend its servers. Without a change it returns the last one.
func (m *Model) withServers(at *derive.Reads, now *Backend, f *found, was *Backend) *Backend {
	slots := m.earlier.slots[now.Name]
	if was != nil {
		slots = was.slots
	}
	if now.slots = slots; f.svc != nil {
		limit := m.Limits.ServersPerBackend
		if f.svc.Spec.Type != corev1.ServiceTypeExternalName {
			limit = min(limit, m.serverBudget.Share(at, f.svc.Namespace, now.Name))
			m.tellServers(at, f, limit)
		}
		now.slots = slots.Assign(f.addresses, limit)
		now.Servers = now.slots.Servers(m.SpareServers)
	}
	if was != nil && was.equal(now) {
		return was
	}
	return now
}

// tellServers reports endpoints that a limit keeps from serving.
func (m *Model) tellServers(at *derive.Reads, f *found, limit int) {
	has := len(f.addresses)
	if f.read < f.total {
		has = f.total
	}
	if f.port == nil || has <= limit && f.read == f.total {
		return
	}
	reason := ""
	switch l := &m.Limits; {
	case limit == l.ServersPerBackend && len(f.addresses) >= limit:
		reason = fmt.Sprintf("it has %s endpoints on port %d, more than the %s servers of a backend (servers-per-backend): %[3]s serve",
			figure(has), f.port.Port, figure(limit))
	case len(f.addresses) >= limit:
		reason = fmt.Sprintf("it has %s endpoints on port %d, and namespace %s has %s servers left of its %s (servers-per-namespace): %[4]s serve",
			figure(has), f.port.Port, f.svc.Namespace, figure(limit), figure(l.ServersPerNamespace))
	default:
		reason = fmt.Sprintf("it has %s endpoints on port %d, of which %s are read, twice as many as may serve: %s of them are ready",
			figure(f.total), f.port.Port, figure(f.read), figure(len(f.addresses)))
	}
	limits.Refuse(at, "Service", f.svc, reconcile.Refusal{Reason: reason})
}
