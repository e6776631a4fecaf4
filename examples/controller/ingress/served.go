package ingress

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// endpoints are those behind a port of a Service.
type endpoints struct {
	judge          judge
	ready, serving []string // serving: while they terminate
	refused        int
	first, why     string // of the refused
}

// addresses returns what is served, by the name of the port: the endpoints that are
// ready or, where none is, those that still serve.
func (e *endpoints) addresses(endpointSlices []*discoveryv1.EndpointSlice, port string) []string {
	for _, s := range endpointSlices {
		if s.AddressType == discoveryv1.AddressTypeFQDN {
			continue
		}
		for _, p := range s.Ports {
			if p.Port == nil || p.Name != nil && *p.Name != port || p.Name == nil && port != "" {
				continue
			}
			for i := range s.Endpoints {
				for _, ip := range s.Endpoints[i].Addresses {
					e.add(ip, *p.Port, &s.Endpoints[i].Conditions)
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

// add takes one endpoint. No server can have what is no address: HAProxy would take
// it for a socket, an environment variable or a name to look up.
func (e *endpoints) add(ip string, port int32, is *discoveryv1.EndpointConditions) {
	addr, err := netip.ParseAddr(ip)
	if err != nil || addr.Zone() != "" || port < 1 || port > 65535 {
		e.refuse(fmt.Sprintf("%q", net.JoinHostPort(ip, strconv.Itoa(int(port)))), "is not the address of an endpoint")
		return
	}
	at := netip.AddrPortFrom(addr.Unmap(), uint16(port))
	if why := e.judge.problem(at.Addr(), at.Port()); why != "" {
		e.refuse(at.String(), why)
	} else if is.Ready == nil || *is.Ready {
		e.ready = append(e.ready, at.String())
	} else if is.Serving != nil && *is.Serving {
		e.serving = append(e.serving, at.String())
	}
}

// refuse counts, and keeps the first one in the order of the alphabet.
func (e *endpoints) refuse(endpoint, why string) {
	if e.refused++; e.refused == 1 || endpoint < e.first {
		e.first, e.why = endpoint, why
	}
}

// problem says what was refused; "" for nothing.
func (e *endpoints) problem() string {
	switch e.refused {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("endpoint %s %s", e.first, e.why)
	}
	return fmt.Sprintf("endpoint %s %s (%d endpoints are refused)", e.first, e.why, e.refused)
}

// hostProblem says why a name is not that of a host, by the rules of the API server:
// each render asks it of each host.
func hostProblem(host string) string {
	name, last := strings.TrimPrefix(host, "*."), byte('.')
	ok := name != "" && len(name) <= validation.DNS1123SubdomainMaxLength
	for i := 0; ok && i < len(name); i++ {
		switch c := name[i]; {
		case c == '.' || c == '-':
			ok = last != '.' && (c == '-' || last != '-')
		default:
			ok = c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		}
		last = name[i]
	}
	if !ok || last == '.' || last == '-' {
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
			return fmt.Sprintf("%q holds %q, which no request path can hold", path, r)
		}
	}
	return ""
}
