package ingress

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/hapticsdk/haptic/reconcile"
)

// endpoints are those behind a port of a Service.
type endpoints struct {
	judge          judge
	ready, serving []string // serving: while they terminate
	read           int
	refused        []refusedSlice
}

// refusedSlice is an EndpointSlice with an endpoint that is not served.
type refusedSlice struct {
	slice      *discoveryv1.EndpointSlice
	field, why string // of the first
	more       int
}

// addresses returns what is served, by the name of the port: the endpoints that are
// ready or, where none is, those that still serve.
func (e *endpoints) addresses(endpointSlices []*discoveryv1.EndpointSlice, port string) []string {
	for _, s := range endpointSlices {
		if s.AddressType == discoveryv1.AddressTypeFQDN {
			e.refuse(s, "FQDN is not served, IPv4 and IPv6 are: give the addresses", "addressType")
			continue
		}
		for k := range s.Ports {
			p := &s.Ports[k]
			if p.Port == nil || !isNamed(p, port) {
				continue
			}
			if *p.Port < 1 || *p.Port > 65535 {
				e.refuse(s, fmt.Sprintf("%d is no port: they are from 1 to 65535", *p.Port), "ports[%d].port", k)
				continue
			}
			for i := range s.Endpoints {
				for j, ip := range s.Endpoints[i].Addresses {
					if problem := e.add(ip, uint16(*p.Port), &s.Endpoints[i].Conditions); problem != "" {
						e.refuse(s, problem, "endpoints[%d].addresses[%d]", i, j)
					}
				}
			}
		}
	}
	if len(e.ready) == 0 {
		e.ready = e.serving
	}
	slices.Sort(e.ready)
	return slices.Compact(e.ready)
}

// isNamed reports whether a port of an EndpointSlice is that of a Service.
func isNamed(p *discoveryv1.EndpointPort, port string) bool {
	return p.Name != nil && *p.Name == port || p.Name == nil && port == ""
}

// add takes one endpoint, or says why it is refused. No server can have what is no
// address: HAProxy would take it for a socket, an environment variable or a name to
// look up.
func (e *endpoints) add(ip string, port uint16, is *discoveryv1.EndpointConditions) (problem string) {
	e.read++
	addr, err := netip.ParseAddr(ip)
	if err != nil || addr.Zone() != "" {
		return fmt.Sprintf("%q is no IP address", short(ip))
	}
	at := netip.AddrPortFrom(addr.Unmap(), port)
	if why := e.judge.problem(at.Addr(), at.Port()); why != "" {
		return at.String() + " " + why
	}
	if is.Ready == nil || *is.Ready {
		e.ready = append(e.ready, at.String())
	} else if is.Serving != nil && *is.Serving {
		e.serving = append(e.serving, at.String())
	}
	return ""
}

// refuse keeps the first of each EndpointSlice, and counts the others.
func (e *endpoints) refuse(s *discoveryv1.EndpointSlice, why, field string, at ...any) {
	if n := len(e.refused); n > 0 && e.refused[n-1].slice == s {
		e.refused[n-1].more++
		return
	}
	e.refused = append(e.refused, refusedSlice{slice: s, field: fmt.Sprintf(field, at...), why: why})
}

// tellEndpoints says what is wrong with the endpoints behind a port of a Service: to
// each EndpointSlice what of it is refused and, where nothing of them is and no
// server is left, to the Service why.
func (b *builder) tellEndpoints(svc *corev1.Service, port *corev1.ServicePort, all []*discoveryv1.EndpointSlice, found *endpoints) {
	name := svc.Namespace + "/" + svc.Name
	others := "no other endpoint of Service " + name + " is ready, requests get 503"
	if len(found.ready) > 0 {
		others = "the other endpoints of Service " + name + " serve"
	}
	for _, s := range found.refused {
		b.tell("EndpointSlice", s.slice, reconcile.Refusal{Field: s.field, Reason: s.why + "; " + others, More: s.more})
	}
	if len(found.ready)+len(found.refused) == 0 {
		r := unusable(svc, port, all, found.read)
		r.Warning = true // the backend is there, and no rule keeps a server out
		b.tell("Service", svc, r)
	}
}

// unusable says why a port of a Service has no server, and where that is mended: read
// endpoints stand behind it.
func unusable(svc *corev1.Service, port *corev1.ServicePort, all []*discoveryv1.EndpointSlice, read int) reconcile.Refusal {
	if read > 0 {
		return reconcile.Refusal{Reason: "no endpoint is ready, requests get 503: see the readiness probes of its pods", Detail: figure(read) + " not ready"}
	}
	count, names := 0, []string{}
	for _, s := range all {
		count += len(s.Endpoints)
		for i := range s.Ports {
			p := &s.Ports[i]
			name := `""`
			if p.Name != nil {
				name = fmt.Sprintf("%q", short(*p.Name))
			}
			if p.Port != nil {
				name += fmt.Sprintf(" (%d)", *p.Port)
			}
			if len(names) < maxNames && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	at := slices.IndexFunc(svc.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == port.Name })
	switch wants := labels.FormatLabels(svc.Spec.Selector); {
	case len(all) == 0 && len(svc.Spec.Selector) == 0:
		return reconcile.Refusal{Reason: fmt.Sprintf("no EndpointSlice has the label %s=%s, requests get 503: the Service has no selector, so that the cluster makes none", discoveryv1.LabelServiceName, svc.Name)}
	case len(all) == 0:
		return reconcile.Refusal{Reason: fmt.Sprintf("no EndpointSlice has the label %s=%s, requests get 503: write one, or see why the cluster makes none", discoveryv1.LabelServiceName, svc.Name)}
	case count == 0 && len(svc.Spec.Selector) == 0:
		return reconcile.Refusal{Reason: "its EndpointSlices have no endpoint, requests get 503: the Service has no selector, so that the cluster adds none"}
	case count == 0:
		return reconcile.Refusal{Reason: fmt.Sprintf("no pod with the labels %s runs, requests get 503: see spec.selector and its pods", short(wants))}
	case len(names) == 0 && port.TargetPort.Type == intstr.String:
		return reconcile.Refusal{Field: fmt.Sprintf("spec.ports[%d].targetPort", at), Reason: fmt.Sprintf("no pod of the Service has a container port named %q, requests get 503: name one that they have, or give its number", port.TargetPort.StrVal)}
	case len(names) == 0:
		return reconcile.Refusal{Field: fmt.Sprintf("spec.ports[%d].name", at), Reason: fmt.Sprintf("no EndpointSlice of the Service has a port %q, requests get 503: they have none", port.Name)}
	}
	return reconcile.Refusal{Field: fmt.Sprintf("spec.ports[%d].name", at), Reason: fmt.Sprintf("no EndpointSlice of the Service has a port %q, requests get 503: they have %s", port.Name, strings.Join(names, ", "))}
}

// maxNames bounds the names that a message lists.
const maxNames = 5
