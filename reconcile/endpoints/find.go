package endpoints

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/hapticsdk/haptic/reconcile/limits"
)

// Found are the endpoints behind a port of a Service.
type Found struct {
	// Addresses may serve, as "address:port", sorted. They are the ready endpoints or, if none
	// is ready, those that still serve while they terminate.
	Addresses []string
	Read      int       // endpoints that were read, whether they are ready or not
	Total     int       // endpoints that there are
	Refused   []Refused // EndpointSlices with endpoints that may not be served
}

// Refused is an EndpointSlice with a refused endpoint.
type Refused struct {
	Slice         *discoveryv1.EndpointSlice
	Field, Reason string // of the first refused endpoint
	More          int    // how many more there are
}

// Find returns the endpoints behind a port of a Service. slices are those of the Service, and
// port is the name of its port. It reads at most limit endpoints, and as many slices.
func Find(j Judge, slices []*discoveryv1.EndpointSlice, port string, limit int) Found {
	first, count, total := firstEndpoints(slices, port, limit)
	c := collector{judge: j}
	addresses := c.addresses(first, port)
	return Found{Addresses: addresses, Read: count, Total: total, Refused: c.refused}
}

// collector collects the endpoints behind a port of a Service.
type collector struct {
	judge          Judge
	ready, serving []string // serving: while they terminate
	read           int
	refused        []Refused
}

// addresses returns the addresses to serve, for a port by name. They are the ready
// endpoints or, if none is ready, those that still serve.
func (e *collector) addresses(endpointSlices []*discoveryv1.EndpointSlice, port string) []string {
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

// isNamed reports whether a port of an EndpointSlice has the name of a Service's port.
func isNamed(p *discoveryv1.EndpointPort, port string) bool {
	return p.Name != nil && *p.Name == port || p.Name == nil && port == ""
}

// add takes one endpoint, or says why it is refused. A server needs an IP address: HAProxy
// would take other text for a socket, an environment variable or a name to look up.
func (e *collector) add(ip string, port uint16, is *discoveryv1.EndpointConditions) (problem string) {
	e.read++
	addr, err := netip.ParseAddr(ip)
	if err != nil || addr.Zone() != "" {
		return fmt.Sprintf("%q is no IP address", limits.Short(ip))
	}
	at := netip.AddrPortFrom(addr.Unmap(), port)
	if why := e.judge.Problem(at.Addr(), at.Port()); why != "" {
		return at.String() + " " + why
	}
	if is.Ready == nil || *is.Ready {
		e.ready = append(e.ready, at.String())
	} else if is.Serving != nil && *is.Serving {
		e.serving = append(e.serving, at.String())
	}
	return ""
}

// refuse keeps the first refused endpoint of each EndpointSlice, and counts the others.
func (e *collector) refuse(s *discoveryv1.EndpointSlice, why, field string, at ...any) {
	if n := len(e.refused); n > 0 && e.refused[n-1].Slice == s {
		e.refused[n-1].More++
		return
	}
	e.refused = append(e.refused, Refused{Slice: s, Field: fmt.Sprintf(field, at...), Reason: why})
}

// Unusable says why a port of a Service has no server, and where to fix that. read is
// the number of endpoints behind it.
func Unusable(svc *corev1.Service, port *corev1.ServicePort, all []*discoveryv1.EndpointSlice, read int) (field, reason, detail string) {
	if read > 0 {
		return "", "no endpoint is ready, requests get 503: see the readiness probes of its pods", limits.Figure(read) + " not ready"
	}
	count, names := 0, []string{}
	for _, s := range all {
		count += len(s.Endpoints)
		for i := range s.Ports {
			p := &s.Ports[i]
			name := `""`
			if p.Name != nil {
				name = fmt.Sprintf("%q", limits.Short(*p.Name))
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
		return "", fmt.Sprintf(
			"no EndpointSlice has the label %s=%s, requests get 503: the Service has no selector, so that the cluster makes none",
			discoveryv1.LabelServiceName,
			svc.Name,
		), ""
	case len(all) == 0:
		return "", fmt.Sprintf(
			"no EndpointSlice has the label %s=%s, requests get 503: write one, or see why the cluster makes none",
			discoveryv1.LabelServiceName,
			svc.Name,
		), ""
	case count == 0 && len(svc.Spec.Selector) == 0:
		return "", "its EndpointSlices have no endpoint, requests get 503: the Service has no selector, so that the cluster adds none", ""
	case count == 0:
		return "", fmt.Sprintf("no pod with the labels %s runs, requests get 503: see spec.selector and its pods", limits.Short(wants)), ""
	case len(names) == 0 && port.TargetPort.Type == intstr.String:
		return fmt.Sprintf(
				"spec.ports[%d].targetPort",
				at,
			), fmt.Sprintf(
				"no pod of the Service has a container port named %q, requests get 503: name one that they have, or give its number",
				port.TargetPort.StrVal,
			), ""
	case len(names) == 0:
		return fmt.Sprintf(
				"spec.ports[%d].name",
				at,
			), fmt.Sprintf(
				"no EndpointSlice of the Service has a port %q, requests get 503: they have none",
				port.Name,
			), ""
	}
	return fmt.Sprintf(
			"spec.ports[%d].name",
			at,
		), fmt.Sprintf(
			"no EndpointSlice of the Service has a port %q, requests get 503: they have %s",
			port.Name,
			strings.Join(names, ", "),
		), ""
}

// maxNames bounds the names that a message lists.
const maxNames = 5

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
