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

// endpointAddresses returns the addresses behind a port of a Service, by the
// name of the port: those that are ready or, where none is, those that still
// serve while they terminate. wrong are those that no server can have: HAProxy
// would take them for sockets, environment variables or names to look up.
func endpointAddresses(endpointSlices []*discoveryv1.EndpointSlice, port string) (ready, wrong []string) {
	var serving []string
	for _, s := range endpointSlices {
		if s.AddressType == discoveryv1.AddressTypeFQDN {
			continue
		}
		for _, p := range s.Ports {
			if p.Port == nil || p.Name != nil && *p.Name != port || p.Name == nil && port != "" {
				continue
			}
			for _, e := range s.Endpoints {
				for _, ip := range e.Addresses {
					address := net.JoinHostPort(ip, strconv.Itoa(int(*p.Port)))
					addr, err := netip.ParseAddr(ip)
					switch {
					case err != nil || addr.Zone() != "" || *p.Port < 1 || *p.Port > 65535:
						wrong = append(wrong, address)
					case e.Conditions.Ready == nil || *e.Conditions.Ready:
						ready = append(ready, address)
					case e.Conditions.Serving != nil && *e.Conditions.Serving:
						serving = append(serving, address)
					}
				}
			}
		}
	}
	if len(ready) == 0 {
		ready = serving
	}
	slices.Sort(ready)
	return slices.Compact(ready), wrong
}

func hostProblem(host string) string {
	name := strings.TrimPrefix(host, "*.")
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
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
