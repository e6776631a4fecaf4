package ingress

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/hapticsdk/haptic/reconcile"
)

// portRef is how an Ingress names a port of a Service.
type portRef struct {
	namespace, service string
	port               networkingv1.ServiceBackendPort
}

// madeBackend is what a port of a Service became.
type madeBackend struct {
	name    string // "" where there is no backend
	problem string // said of each path that leads here
}

// backend returns the name of the backend for a port of a Service. A Service
// without endpoints is a backend without servers, which answers 503, and so is
// one that does not exist: its requests must not fall to another path.
func (b *builder) backend(field fieldPath, ref *networkingv1.IngressBackend) (string, bool) {
	if ref.Service == nil {
		b.refuse(field, "only a Service can be a backend")
		return "", false
	}
	key := portRef{b.ing.Namespace, ref.Service.Name, ref.Service.Port}
	made, known := b.made[key]
	if !known {
		made = b.makeBackend(field, key)
		b.made[key] = made
	}
	if made.problem != "" {
		b.refuse(field, made.problem)
	}
	return made.name, made.name != ""
}

// makeBackend looks up a port of a Service, once for all paths that lead there.
func (b *builder) makeBackend(field fieldPath, ref portRef) (made madeBackend) {
	ns, wanted := ref.namespace, ref.port
	for _, name := range []string{ns, ref.service, wanted.Name} {
		if problem := nameProblem(name); problem != "" {
			return madeBackend{problem: problem}
		}
	}
	port := cmp.Or(wanted.Name, strconv.Itoa(int(wanted.Number)))
	svc, ok := reconcile.ToRender(b.cluster.Excluded, b.cluster.Service(ns, ref.service))
	var used *corev1.ServicePort
	if !ok {
		made.problem = fmt.Sprintf("Service %s/%s is in quarantine, requests get 503", ns, ref.service)
	} else if svc == nil {
		made.problem = fmt.Sprintf("Service %s/%s does not exist, requests get 503", ns, ref.service)
	} else if used, made.problem = b.findPort(svc, wanted, port); used != nil {
		port = strconv.Itoa(int(used.Port))
	}
	// No part can hold "_": the name of a Kubernetes object never does.
	made.name = ns + "_" + ref.service + "_" + port
	if b.backends[made.name] {
		return made
	}
	if b.space.backends >= b.limits.BackendsPerNamespace {
		return madeBackend{problem: fmt.Sprintf("namespace %s has more than the %s backends of one namespace (backends-per-namespace): Service %s/%s port %s is not served",
			ns, figure(b.limits.BackendsPerNamespace), ns, ref.service, port)}
	}
	b.space.backends++
	b.backends[made.name] = true
	if !ok {
		b.routes.Backends = append(b.routes.Backends, b.slots.Keep(made.name, b.ing))
		return made
	}
	var addresses []string
	limit := b.limits.ServersPerBackend
	if used != nil {
		addresses, limit = b.endpoints(field, svc, used)
	}
	b.routes.Backends = append(b.routes.Backends, b.slots.assign(made.name, addresses, limit, svc, b.ing))
	return made
}

// findPort finds a port among those of a Service that can be used.
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
		return nil, fmt.Sprintf("Service %s/%s has %s ports, more than the %s that can be used (ports-per-service): port %s is not among the first %[4]s, requests get 503",
			svc.Namespace, svc.Name, figure(len(svc.Spec.Ports)), figure(limit), name)
	}
	return nil, fmt.Sprintf("Service %s/%s has no port %s, requests get 503", svc.Namespace, svc.Name, name)
}

// endpoints returns the addresses behind a port of a Service, and how many of
// them can serve.
func (b *builder) endpoints(field fieldPath, svc *corev1.Service, port *corev1.ServicePort) (addresses []string, limit int) {
	l, sp := &b.limits, b.space
	// Endpoints that are not ready are read, too, so that reading has bounds of its own.
	left := min(2*l.ServersPerBackend, 3*l.ServersPerNamespace-sp.read)
	if left <= 0 {
		b.refuse(field, fmt.Sprintf("namespace %s has so many endpoints and EndpointSlices (servers-per-namespace) that those of Service %s/%s are not read", svc.Namespace, svc.Namespace, svc.Name))
		return nil, 0
	}
	all := b.cluster.Slices(svc.Namespace, svc.Name)
	read, count, total := firstEndpoints(all, port.Name, left)
	sp.read += count + min(len(all), left)
	found := endpoints{judge: b.judge}
	addresses = found.addresses(read, port.Name)
	if problem := found.problem(); problem != "" {
		b.refuse(field, fmt.Sprintf("Service %s/%s: %s", svc.Namespace, svc.Name, problem))
	}
	limit = min(l.ServersPerBackend, l.ServersPerNamespace-sp.servers)
	has := len(addresses)
	if count < total {
		has = total
	}
	sp.servers += min(len(addresses), limit)
	switch {
	case has <= limit && count == total:
	case limit == l.ServersPerBackend && len(addresses) >= limit:
		b.refuse(field, fmt.Sprintf("Service %s/%s has %s endpoints on port %d, more than the %s servers of a backend (servers-per-backend): %[5]s serve",
			svc.Namespace, svc.Name, figure(has), port.Port, figure(limit)))
	case len(addresses) >= limit:
		b.refuse(field, fmt.Sprintf("Service %s/%s has %s endpoints on port %d, and namespace %[1]s has %[5]s servers left of its %s (servers-per-namespace): %[5]s serve",
			svc.Namespace, svc.Name, figure(has), port.Port, figure(limit), figure(l.ServersPerNamespace)))
	default:
		b.refuse(field, fmt.Sprintf("Service %s/%s has %s endpoints on port %d, of which %s are read, twice as many as may serve: %s of them are ready",
			svc.Namespace, svc.Name, figure(total), port.Port, figure(count), figure(len(addresses))))
	}
	return addresses, limit
}

// firstEndpoints cuts slices to the first addresses behind a port, and reads as many
// slices: each may have 100 ports, and no address. count is how many addresses are left,
// of total or more.
func firstEndpoints(all []*discoveryv1.EndpointSlice, port string, limit int) (first []*discoveryv1.EndpointSlice, count, total int) {
	most := limit
	for i, s := range all {
		if i == most {
			total += len(all) - i
			break
		}
		ports := 0
		for i := range s.Ports {
			if name := s.Ports[i].Name; name != nil && *name == port || name == nil && port == "" {
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
