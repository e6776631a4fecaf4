package ingress

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/hapticsdk/haptic/reconcile"
)

// endpoints collects the endpoints behind a port of a Service.
type endpoints struct {
	judge          judge
	ready, serving []string // serving: while they terminate
	read           int
	refused        []refusedSlice
}

// refusedSlice is an EndpointSlice with a refused endpoint.
type refusedSlice struct {
	slice      *discoveryv1.EndpointSlice
	field, why string // of the first refused endpoint
	more       int
}

// addresses returns the addresses to serve, for a port by name. They are the ready
// endpoints or, if none is ready, those that still serve.
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

// isNamed reports whether a port of an EndpointSlice has the name of a Service's port.
func isNamed(p *discoveryv1.EndpointPort, port string) bool {
	return p.Name != nil && *p.Name == port || p.Name == nil && port == ""
}

// add takes one endpoint, or says why it is refused. A server needs an IP address: HAProxy
// would take other text for a socket, an environment variable or a name to look up.
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

// refuse keeps the first refused endpoint of each EndpointSlice, and counts the others.
func (e *endpoints) refuse(s *discoveryv1.EndpointSlice, why, field string, at ...any) {
	if n := len(e.refused); n > 0 && e.refused[n-1].slice == s {
		e.refused[n-1].more++
		return
	}
	e.refused = append(e.refused, refusedSlice{slice: s, field: fmt.Sprintf(field, at...), why: why})
}

// tellEndpoints reports the endpoints behind a port of a Service. Each EndpointSlice
// gets its refused endpoints. If there is no server and no refused endpoint, the
// Service gets the reason.
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
		r.Warning = true // the backend exists, and no rule refuses a server
		b.tell("Service", svc, r)
	}
}

// unusable says why a port of a Service has no server, and where to fix that. read is
// the number of endpoints behind it.
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

// Addresses says which endpoints may be served. An endpoint may not lead into the host
// of HAProxy, to the metadata service of a cloud, or back to HAProxy: the author of an
// EndpointSlice chooses its addresses. The zero value allows none of these. A value in
// use must not change. It is safe for concurrent use.
type Addresses struct {
	Allow     []netip.Prefix // special addresses that are served all the same, but never those of Listeners
	Listeners Listeners      // of HAProxy and the controller
	Host      []netip.Prefix // addresses of this host; nil: those of its interfaces
}

// Listeners are the ports of HAProxy and of the controller, each with its addresses.
// The zero address stands for all addresses of this host.
type Listeners map[uint16][]netip.Addr

// Add adds the addresses of a bind line: "host:port", ranges of ports, several with
// commas between. It skips sockets that are files: no endpoint leads there. A host name
// stands for all addresses of this host.
func (l Listeners) Add(bind string) error {
	for part := range strings.SplitSeq(bind, ",") {
		kind, at, _ := strings.Cut(part, "@")
		switch kind {
		case "ipv4", "ipv6":
			part = at
		case "unix", "abns", "abnsz", "fd", "sockpair":
			continue
		}
		i := strings.LastIndex(part, ":")
		if part == "" || strings.Contains(part, "/") {
			continue
		}
		first, last, ok := strings.Cut(part[i+1:], "-")
		if !ok {
			last = first
		}
		from, err := strconv.ParseUint(first, 10, 16)
		to, err2 := strconv.ParseUint(last, 10, 16)
		if i < 0 || err != nil || err2 != nil {
			return fmt.Errorf("%q: want address:port", part)
		}
		addr, _ := netip.ParseAddr(strings.Trim(part[:i], "[]"))
		for port := from; port <= to; port++ {
			l.AddAddr(addr, uint16(port))
		}
	}
	return nil
}

// AddAddr adds one address. An unspecified one stands for all addresses of this host.
func (l Listeners) AddAddr(addr netip.Addr, port uint16) {
	if addr = addr.Unmap(); addr.IsUnspecified() {
		addr = netip.Addr{}
	}
	if i, found := slices.BinarySearchFunc(l[port], addr, netip.Addr.Compare); !found {
		l[port] = slices.Insert(l[port], i, addr)
	}
}

// special lists addresses that no pod has.
var special = []struct {
	prefix netip.Prefix
	is     string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "an unspecified address"},
	{netip.MustParsePrefix("127.0.0.0/8"), "a loopback address"},
	{netip.MustParsePrefix("169.254.0.0/16"), "a link-local address"},
	{netip.MustParsePrefix("224.0.0.0/4"), "a multicast address"},
	{netip.MustParsePrefix("255.255.255.255/32"), "the broadcast address"},
	{netip.MustParsePrefix("::/128"), "an unspecified address"},
	{netip.MustParsePrefix("::1/128"), "a loopback address"},
	{netip.MustParsePrefix("fe80::/10"), "a link-local address"},
	{netip.MustParsePrefix("ff00::/8"), "a multicast address"},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "a local NAT64 address"},
	{netip.MustParsePrefix("168.63.129.16/32"), "the metadata service of a cloud"},
	{netip.MustParsePrefix("192.0.0.192/32"), "the metadata service of a cloud"},
	{netip.MustParsePrefix("100.100.100.200/32"), "the metadata service of a cloud"},
	{netip.MustParsePrefix("fd00:ec2::254/128"), "the metadata service of a cloud"},
	{netip.MustParsePrefix("fd20:ce::254/128"), "the metadata service of a cloud"},
	{netip.MustParsePrefix("fd00:42::42/128"), "the metadata service of a cloud"},
}

// embedding lists ranges of IPv6 whose addresses lead to an IPv4 address. at is the
// byte where the IPv4 address begins.
var embedding = []struct {
	prefix netip.Prefix
	at     int
}{
	{netip.MustParsePrefix("::/96"), 12},           // IPv4-compatible
	{netip.MustParsePrefix("::ffff:0:0:0/96"), 12}, // IPv4-translated
	{netip.MustParsePrefix("64:ff9b::/96"), 12},    // NAT64
	{netip.MustParsePrefix("2002::/16"), 2},        // 6to4
}

// embedded returns the IPv4 address that an address leads to, or the zero one.
func embedded(addr netip.Addr) netip.Addr {
	for _, e := range embedding {
		if e.prefix.Contains(addr) && addr != netip.IPv6Unspecified() && addr != netip.IPv6Loopback() {
			b := addr.As16()
			return netip.AddrFrom4([4]byte(b[e.at : e.at+4]))
		}
	}
	return netip.Addr{}
}

// judge is Addresses for one Build. It reads the interfaces of the host once, and only
// if an endpoint has a port of ours.
type judge struct {
	*Addresses
	host func() []netip.Prefix
}

func newJudge(a *Addresses) judge {
	if a == nil {
		a = &Addresses{}
	}
	if a.Host != nil {
		return judge{a, func() []netip.Prefix { return a.Host }}
	}
	return judge{a, sync.OnceValue(interfaces)}
}

// problem says why an endpoint is refused; "" if it is not. addr is no IPv4-mapped address.
func (j judge) problem(addr netip.Addr, port uint16) string {
	leads, via := addr, ""
	if inner := embedded(addr); inner.IsValid() {
		leads, via = inner, fmt.Sprintf("leads to %s, which ", inner)
	}
	if at := j.Listeners[port]; len(at) > 0 && (j.ours(addr, at) || j.ours(leads, at)) {
		return via + "is where HAProxy or the controller listens"
	}
	for _, s := range special {
		if s.prefix.Contains(leads) && !slices.ContainsFunc(j.Allow, func(p netip.Prefix) bool { return p.Contains(addr) }) {
			allow := s.prefix
			if via != "" {
				allow = netip.PrefixFrom(addr, addr.BitLen())
			}
			return fmt.Sprintf("%sis %s: -allow-endpoint %s would allow it", via, s.is, allow)
		}
	}
	return ""
}

// ours reports whether an address is one of the listeners of its port.
func (j judge) ours(addr netip.Addr, listen []netip.Addr) bool {
	if slices.Contains(listen, addr) || addr.IsUnspecified() { // an unspecified address leads to a loopback address
		return true
	}
	return slices.Contains(listen, netip.Addr{}) && (addr.IsLoopback() ||
		slices.ContainsFunc(j.host(), func(p netip.Prefix) bool { return p.Contains(addr) }))
}

// interfaces returns the addresses of this host. On a loopback interface a whole range
// is local. If they cannot be read, every address counts.
func interfaces() (host []netip.Prefix) {
	everything := []netip.Prefix{netip.PrefixFrom(netip.IPv4Unspecified(), 0), netip.PrefixFrom(netip.IPv6Unspecified(), 0)}
	all, err := net.Interfaces()
	if err != nil {
		return everything
	}
	for _, i := range all {
		addresses, err := i.Addrs()
		if err != nil {
			return everything
		}
		for _, a := range addresses {
			p, err := netip.ParsePrefix(a.String())
			if err != nil {
				continue // not an IP address
			}
			if i.Flags&net.FlagLoopback == 0 {
				p = netip.PrefixFrom(p.Addr(), p.Addr().BitLen())
			}
			host = append(host, p)
		}
	}
	return host
}
