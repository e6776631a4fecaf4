package ingress

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

	"github.com/hapticsdk/haptic/examples/controller/annotation"
	"github.com/hapticsdk/haptic/reconcile"
)

// serviceName names a Service.
type serviceName struct{ namespace, name string }

// portRef is an Ingress's reference to a port of a Service.
type portRef struct {
	serviceName
	port    networkingv1.ServiceBackendPort
	options *annotation.Options // options of the Ingress; nil: none
}

// madePort is the result for a reference to a port of a Service.
type madePort struct {
	portRef
	name    string                  // of the backend; "" if there is none
	asks    *annotation.Options     // options of Ingress and Service together
	problem *problem                // reported at the first path of each Ingress that leads here
	guessed bool                    // a Service with a similar name was looked for
	paths   int                     // how many lead here
	sayers  []*networkingv1.Ingress // Ingresses with a report of the problem
}

// backend is a backend in the making.
type backend struct {
	*Backend
	service       string
	ing           *networkingv1.Ingress // the oldest that names it
	fresh         int                   // the step that made it
	of            portRef               // the first reference to it; others may differ in the port's name or in options
	asks          *annotation.Options
	ports         int // how many references lead here
	servers, read int // its part of the space
}

// problem is a mistake in a part of an Ingress.
type problem struct {
	end, reason, detail string
	served              bool // no rule refuses it: it exists, and waits for something
}

func (p *problem) equal(other *problem) bool {
	return p == other || p != nil && other != nil && *p == *other
}

// backend returns the name of the backend for a port of a Service. A Service that has
// no endpoints or does not exist is a backend without servers, which answers 503. Its
// requests must not fall to another path.
func (b *builder) backend(field fieldPath, ref *networkingv1.IngressBackend, options *annotation.Options) (string, bool) {
	switch {
	case ref.Service == nil && ref.Resource != nil:
		b.refuse(field.sub(".resource"), "only a Service can be a backend")
		return "", false
	case ref.Service == nil:
		b.refuse(field, "there is no Service: name one, and its port")
		return "", false
	}
	key := portRef{serviceName{b.ing.Namespace, ref.Service.Name}, ref.Service.Port, options}
	made := b.made[key]
	if made == nil {
		made = b.makeBackend(key)
		b.made[key] = made
		b.fast.made(made)
	}
	made.paths++
	if back := b.backends[made.name]; back != nil {
		b.joins(back, made.name)
	}
	if b.fast.is {
		b.fast.check(!b.pinned[key.serviceName])
	}
	if p := made.problem; p != nil {
		if n := len(made.sayers); n == 0 || made.sayers[n-1] != b.ing {
			made.sayers = append(made.sayers, b.ing)
		}
		b.sayOnce(field.sub(p.end), reconcile.Refusal{Reason: p.reason, Detail: p.detail, Warning: p.served})
	}
	if made.name == "" {
		b.fast.isOdd(b.ing)
	}
	return made.name, made.name != ""
}

// makeBackend looks up a port of a Service, once for all paths that lead there.
func (b *builder) makeBackend(ref portRef) *madePort {
	made, svc, used, ok := b.findBackend(ref)
	if made.name == "" {
		return made
	}
	if back := b.backends[made.name]; back != nil {
		back.ports++
		return made
	}
	if b.space.backends >= b.limits.BackendsPerNamespace {
		b.space.bit = true
		return &madePort{portRef: ref, problem: &problem{reason: fmt.Sprintf("namespace %s has more than the %s backends of one namespace (backends-per-namespace): Service %s/%s port %s is not served",
			ref.namespace, figure(b.limits.BackendsPerNamespace), ref.namespace, ref.name, strings.Split(made.name, "_")[2])}}
	}
	size := made.asks.Size()
	if size > 0 && b.space.options+size > b.limits.OptionBytesPerNamespace {
		b.space.bit = true
		return &madePort{portRef: ref, problem: &problem{reason: fmt.Sprintf("annotations of namespace %s have more than the %s bytes of one namespace, times their backends (option-bytes-per-namespace): Service %s/%s is not served",
			ref.namespace, figure(b.limits.OptionBytesPerNamespace), ref.namespace, ref.name)}}
	}
	addresses := made.asks.Addresses()
	if addresses > 0 && b.space.addresses+addresses > b.limits.RateAddressesPerNamespace {
		b.space.bit = true
		return &madePort{portRef: ref, problem: &problem{reason: fmt.Sprintf("rates of namespace %s count more than the %s addresses of one namespace (rate-addresses-per-namespace): Service %s/%s is not served; %srate-limit-size has it count fewer",
			ref.namespace, figure(b.limits.RateAddressesPerNamespace), ref.namespace, ref.name, annotation.HAProxy)}}
	}
	b.space.backends, b.space.options, b.space.addresses = b.space.backends+1, b.space.options+size, b.space.addresses+addresses
	back := &backend{service: ref.name, of: ref, asks: made.asks, ing: b.ing, fresh: b.fast.step.number, ports: 1}
	if b.fast.is {
		b.fast.step.serveAgain(ref.serviceName)
	}
	b.backends[made.name] = back
	switch {
	case !ok:
		back.Backend = b.slots.keep(made.name, made.asks, b.ing)
	case b.fast.is: // the slots get it once nothing is in doubt
		b.fast.serve = append(b.fast.serve, b.serving(back, made.name, svc, used, b.ing))
		return made
	default:
		b.serving(back, made.name, svc, used, b.ing).assign(b.slots)
	}
	b.routes.Backends = append(b.routes.Backends, back.Backend)
	return made
}

// serving has all that a backend needs to get its servers.
type serving struct {
	*backend
	name      string
	addresses []string
	limit     int
	svc       *corev1.Service
	ing       *networkingv1.Ingress
}

func (s serving) assign(slots *Slots) {
	s.backend.Backend = slots.assign(s.name, s.addresses, s.limit, s.asks, s.svc, s.ing)
}

// serving finds the endpoints of a backend.
func (b *builder) serving(back *backend, name string, svc *corev1.Service, used *corev1.ServicePort, ing *networkingv1.Ingress) serving {
	var addresses []string
	limit, sp := b.limits.ServersPerBackend, b.space
	sp.servers, sp.read = sp.servers-back.servers, sp.read-back.read
	servers, read := sp.servers, sp.read
	switch {
	case used == nil:
	case svc.Spec.Type == corev1.ServiceTypeExternalName:
		addresses = []string{net.JoinHostPort(externalName(svc), strconv.Itoa(int(used.Port)))}
	default:
		addresses, limit = b.endpoints(svc, used)
	}
	back.servers, back.read = sp.servers-servers, sp.read-read
	return serving{back, name, addresses, limit, svc, ing}
}

// findBackend finds the Service and the port of a reference, and reports mistakes in it.
func (b *builder) findBackend(ref portRef) (made *madePort, svc *corev1.Service, used *corev1.ServicePort, ok bool) {
	ns, wanted := ref.namespace, ref.port
	made = &madePort{portRef: ref, asks: ref.options}
	end := ".service.port.name"
	if wanted.Name == "" {
		end = ".service.port.number"
	}
	if wanted == (networkingv1.ServiceBackendPort{}) {
		end = ".service.port"
	}
	for _, part := range [...][2]string{{"", ns}, {".service.name", ref.name}, {end, wanted.Name}} {
		if reason := nameProblem(part[1]); reason != "" {
			made.problem = &problem{end: part[0], reason: reason}
			return made, nil, nil, false
		}
	}
	port := cmp.Or(wanted.Name, strconv.Itoa(int(wanted.Number)))
	svc, ok = reconcile.ToRender(b.cluster.Excluded, b.cluster.Service(ns, ref.name))
	switch {
	case !ok:
		made.problem = &problem{reason: fmt.Sprintf("answers 503: Service %s/%s is in quarantine; it is served as soon as that is released", ns, ref.name), served: true}
	case svc == nil:
		made.guessed = true
		made.problem = &problem{".service.name", fmt.Sprintf("answers 503: Service %s/%s does not exist; it is served as soon as that is there", ns, ref.name), b.meantService(ns, ref.name), true}
	case svc.Spec.Type == corev1.ServiceTypeExternalName:
		if used = b.externalPort(svc, wanted); used != nil {
			port = strconv.Itoa(int(used.Port))
		}
	default:
		reason := ""
		if used, reason = b.findPort(svc, wanted, port); used != nil {
			port = strconv.Itoa(int(used.Port))
		} else {
			made.problem = &problem{end, reason, "", len(svc.Spec.Ports) <= b.limits.PortsPerService}
		}
	}
	if svc != nil {
		made.asks = b.withService(ref.options, svc, used)
	}
	// No part can hold "_": the name of a Kubernetes object never does.
	made.name = ns + "_" + ref.name + "_" + port
	if made.asks != nil {
		made.name += "_" + b.hashes[made.asks]
	}
	return made, svc, used, ok
}

// externalName returns the host of an ExternalName Service, as in DNS.
func externalName(svc *corev1.Service) string {
	return strings.ToLower(strings.TrimSuffix(svc.Spec.ExternalName, "."))
}

// externalPort returns the port of an ExternalName Service, which need not list it.
// nil: the Service is refused.
func (b *builder) externalPort(svc *corev1.Service, wanted networkingv1.ServiceBackendPort) *corev1.ServicePort {
	port := &corev1.ServicePort{Port: wanted.Number}
	if found, _ := b.findPort(svc, wanted, ""); found != nil {
		port = found
	}
	field, reason := "spec.type", ""
	name := externalName(svc)
	addr, notIP := netip.ParseAddr(name)
	switch {
	case !b.operator().ExternalName:
		reason = "ExternalName is not served, as the name may lead anywhere later, also to this host or to the metadata service of a cloud; " +
			"use a Service without selector, and an EndpointSlice with addresses, or -allow-external-name"
	case port.Port < 1 || port.Port > 65535:
		field, reason = "spec.ports", "an Ingress names a port that it does not have: name one by its number"
	case notIP == nil:
		if reason = b.judge.problem(addr.Unmap(), uint16(port.Port)); reason != "" {
			field, reason = "spec.externalName", name+" "+reason
		}
	case name == "localhost" || strings.HasSuffix(name, ".localhost") || strings.HasPrefix(name, "localhost."):
		field, reason = "spec.externalName", fmt.Sprintf("%q is this host", short(name))
	case strings.HasPrefix(name, "*") || !isHost(name) || !hasName(name[strings.LastIndexByte(name, '.')+1:]): // 127.1 is an address
		field, reason = "spec.externalName", fmt.Sprintf("%q is not a host name", short(svc.Spec.ExternalName))
	}
	if reason != "" {
		b.tell("Service", svc, reconcile.Refusal{Field: field, Reason: "answers 503: " + reason})
		return nil
	}
	return port
}

// maxGuesses bounds how often a build looks for the intended Service of a namespace,
// and maxGuessed among how many.
const maxGuesses, maxGuessed = 10, 1000

// meantService suggests an existing Service; "" if none has a similar name.
func (b *builder) meantService(namespace, name string) string {
	if b.space.guesses++; b.cluster.Services == nil || b.space.guesses > maxGuesses {
		return ""
	}
	all := b.cluster.Services(namespace)
	for _, svc := range all[:min(len(all), maxGuessed)] {
		if annotation.Near(name, svc.Name) {
			return "did you mean " + svc.Name + "?"
		}
	}
	return ""
}

// findPort finds a port among the usable ones of a Service.
func (b *builder) findPort(svc *corev1.Service, wanted networkingv1.ServiceBackendPort, name string) (*corev1.ServicePort, string) {
	limit := b.limits.PortsPerService
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

// endpoints returns the addresses behind a port of a Service, and how many of them may serve.
func (b *builder) endpoints(svc *corev1.Service, port *corev1.ServicePort) (addresses []string, limit int) {
	l, sp := &b.limits, b.space
	refuse := func(format string, values ...any) {
		b.tell("Service", svc, reconcile.Refusal{Reason: fmt.Sprintf(format, values...)})
	}
	// It also reads endpoints that are not ready, so reading has its own bounds.
	left := min(2*l.ServersPerBackend, 3*l.ServersPerNamespace-sp.read)
	if left <= 0 {
		sp.bit = true
		refuse("namespace %s has too many endpoints and EndpointSlices to read those of this Service, and requests get 503: raise -limit servers-per-namespace=%d", svc.Namespace, l.ServersPerNamespace)
		return nil, 0
	}
	all := b.cluster.Slices(svc.Namespace, svc.Name)
	read, count, total := firstEndpoints(all, port.Name, left)
	sp.read += count + min(len(all), left)
	sp.bit = sp.bit || left < 2*l.ServersPerBackend && (count < total || len(all) > left)
	found := endpoints{judge: b.judge}
	addresses = found.addresses(read, port.Name)
	if len(addresses) == 0 || len(found.refused) > 0 {
		b.tellEndpoints(svc, port, all[:min(len(all), left)], &found)
	}
	limit = min(l.ServersPerBackend, l.ServersPerNamespace-sp.servers)
	sp.bit = sp.bit || limit < l.ServersPerBackend && len(addresses) > limit
	has := len(addresses)
	if count < total {
		has = total
	}
	sp.servers += min(len(addresses), limit)
	switch {
	case has <= limit && count == total:
	case limit == l.ServersPerBackend && len(addresses) >= limit:
		refuse("it has %s endpoints on port %d, more than the %s servers of a backend (servers-per-backend): %[3]s serve",
			figure(has), port.Port, figure(limit))
	case len(addresses) >= limit:
		refuse("it has %s endpoints on port %d, and namespace %s has %s servers left of its %s (servers-per-namespace): %[4]s serve",
			figure(has), port.Port, svc.Namespace, figure(limit), figure(l.ServersPerNamespace))
	default:
		refuse("it has %s endpoints on port %d, of which %s are read, twice as many as may serve: %s of them are ready",
			figure(total), port.Port, figure(count), figure(len(addresses)))
	}
	return addresses, limit
}

// firstEndpoints cuts slices to the first addresses behind a port. It reads at most
// limit slices: each may have 100 ports, and no address. count is the number of
// addresses left, of total or more.
func firstEndpoints(all []*discoveryv1.EndpointSlice, port string, limit int) (first []*discoveryv1.EndpointSlice, count, total int) {
	most := limit
	for i, s := range all {
		if i == most {
			total += len(all) - i
			break
		}
		ports := 0
		for i := range s.Ports {
			if isNamed(&s.Ports[i], port) {
				ports++
			}
		}
		if ports == 0 {
			continue
		}
		cut := 0
		for ; cut < len(s.Endpoints); cut++ {
			n := ports * len(s.Endpoints[cut].Addresses)
			if count+n > limit {
				break
			}
			count, total = count+n, total+n
		}
		if rest := len(s.Endpoints) - cut; rest > 0 {
			part := *s
			part.Endpoints = s.Endpoints[:cut]
			s, total, limit = &part, total+ports*rest, 0
		}
		first = append(first, s)
	}
	return first, count, total
}
