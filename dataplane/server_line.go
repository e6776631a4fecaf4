package dataplane

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// serverLine is a server line of a backend, taken apart. The words of the
// default-server lines above it come before its own, which is how HAProxy reads
// them: what stands later counts.
type serverLine struct {
	name     string
	args     []string            // the address, then all words
	options  map[string][]string // values by keyword; a keyword without a value has an empty one
	fixed    []string            // keywords in their order, without those that change at runtime
	defaults []string            // keywords that a default-server has
}

// serverFlags are the keywords of a server line that take no value
// (configuration manual, section 5.2). All others take one.
var serverFlags = map[string]bool{
	"allow-0rtt": true, "agent-check": true, "backup": true, "check": true, "check-send-proxy": true,
	"check-ssl": true, "check-via-socks4": true, "disabled": true, "enabled": true,
	"force-sslv3": true, "force-tlsv10": true, "force-tlsv11": true, "force-tlsv12": true, "force-tlsv13": true,
	"no-agent-check": true, "no-backup": true, "no-check": true, "no-check-send-proxy": true, "no-check-ssl": true,
	"no-send-proxy": true, "no-send-proxy-v2": true, "no-send-proxy-v2-ssl": true, "no-send-proxy-v2-ssl-cn": true,
	"no-ssl": true, "no-ssl-reuse": true, "no-sslv3": true, "no-tlsv10": true, "no-tlsv11": true, "no-tlsv12": true,
	"no-tlsv13": true, "no-tls-tickets": true, "no-tfo": true, "no-verifyhost": true, "non-stick": true,
	"send-proxy": true, "send-proxy-v2": true, "send-proxy-v2-ssl": true, "send-proxy-v2-ssl-cn": true,
	"ssl": true, "ssl-reuse": true, "stick": true, "tfo": true, "tls-tickets": true,

	// Of later versions.
	"check-reuse-pool": true, "check-sni-auto": true, "no-check-reuse-pool": true, "no-check-sni-auto": true,
	"no-renegotiate": true, "no-sni-auto": true, "renegotiate": true, "sni-auto": true, "strict-maxconn": true,
}

// addable are the keywords that "add server" takes in HAProxy 2.6 (management
// manual, section 9.3), without those whose server would need more than that
// command to work as it does after a reload: agent checks and tracking.
var addable = map[string]bool{
	"allow-0rtt": true, "alpn": true, "addr": true, "backup": true, "ca-file": true, "check": true,
	"check-alpn": true, "check-proto": true, "check-send-proxy": true, "check-sni": true, "check-ssl": true,
	"check-via-socks4": true, "ciphers": true, "ciphersuites": true, "crl-file": true, "crt": true,
	"disabled": true, "downinter": true, "enabled": true, "error-limit": true, "fall": true, "fastinter": true,
	"force-sslv3": true, "force-tlsv10": true, "force-tlsv11": true, "force-tlsv12": true, "force-tlsv13": true,
	"id": true, "inter": true, "maxconn": true, "maxqueue": true, "minconn": true, "no-ssl-reuse": true,
	"no-sslv3": true, "no-tlsv10": true, "no-tlsv11": true, "no-tlsv12": true, "no-tlsv13": true,
	"no-tls-tickets": true, "npn": true, "observe": true, "on-error": true, "on-marked-down": true,
	"on-marked-up": true, "pool-low-conn": true, "pool-max-conn": true, "pool-purge-delay": true, "port": true,
	"proto": true, "proxy-v2-options": true, "rise": true, "send-proxy": true, "send-proxy-v2": true,
	"send-proxy-v2-ssl": true, "send-proxy-v2-ssl-cn": true, "slowstart": true, "sni": true, "source": true,
	"ssl": true, "ssl-max-ver": true, "ssl-min-ver": true, "tfo": true, "tls-tickets": true, "usesrc": true,
	"verify": true, "verifyhost": true, "weight": true, "ws": true,
}

// notInherited are the addable keywords that a server does not take from a
// default-server, or not in the same way as if they stood on its own line.
var notInherited = map[string]bool{
	"addr": true, "check-proto": true, "id": true,
	"no-sslv3": true, "no-tlsv10": true, "no-tlsv11": true, "no-tlsv12": true, "no-tlsv13": true,
}

// lastOnly are the keywords of which the last one on a line counts.
var lastOnly = map[string]bool{
	"addr": true, "agent-addr": true, "agent-port": true, "agent-send": true, "maxconn": true, "minconn": true,
	"port": true, "weight": true,
}

// parseServer takes the words of a server line apart, with those of the
// default-server lines that apply to it.
func parseServer(words []string, defaults ...string) (serverLine, bool) {
	if len(words) < 3 || words[0] != "server" {
		return serverLine{}, false
	}
	s := serverLine{name: words[1], args: words[2:], options: make(map[string][]string)}
	if len(defaults) > 0 {
		s.args = slices.Concat(words[2:3], defaults, words[3:])
	}
	for rest := s.args[1:]; len(rest) > 0; {
		keyword, inherited := rest[0], len(rest) > len(words)-3
		rest = rest[1:]
		value := ""
		if !serverFlags[keyword] {
			if len(rest) == 0 {
				return serverLine{}, false
			}
			value, rest = rest[0], rest[1:]
		}
		if inherited {
			s.defaults = append(s.defaults, keyword)
		}
		if keyword == "disabled" || keyword == "enabled" {
			s.options["state"] = []string{keyword} // the last one counts
			continue
		}
		if keyword != "weight" && keyword != "maxconn" {
			s.fixed = append(s.fixed, keyword)
		}
		if lastOnly[keyword] {
			s.options[keyword] = nil
		}
		s.options[keyword] = append(s.options[keyword], value)
	}
	return s, true
}

func (s *serverLine) has(keyword string) bool { _, ok := s.options[keyword]; return ok }

// value returns the field of that name as a plan shows it: "" where the line
// does not have it, the keyword itself where it takes no value.
func (s *serverLine) value(field string) string {
	if field == "address" {
		return s.args[0]
	}
	values, ok := s.options[field]
	if !ok {
		return ""
	}
	if serverFlags[field] {
		return "yes"
	}
	return strings.Join(values, ", ")
}

// serverFields returns the names of all fields of both servers: those that may change
// at runtime first, then the others by name.
func serverFields(a, b *serverLine) []string {
	fields := []string{"address", "weight", "maxconn", "state"}
	var others []string
	for _, s := range []*serverLine{a, b} {
		for name := range s.options {
			if !slices.Contains(fields, name) && !slices.Contains(others, name) {
				others = append(others, name)
			}
		}
	}
	slices.Sort(others)
	return append(fields, others...)
}

// ordered reports whether a keyword undoes what another one sets, so that
// their order counts.
func (s *serverLine) ordered() bool {
	return slices.ContainsFunc(s.fixed, func(w string) bool {
		return strings.HasPrefix(w, "no-") || strings.HasPrefix(w, "force-") || w == "non-stick" || w == "agent-addr"
	})
}

// checkElsewhere reports whether the health check has an address or a port of
// its own: without, it speaks TLS and the PROXY protocol as the traffic does.
func (s *serverLine) checkElsewhere() bool { return s.has("port") || s.has("addr") }

// wrapped reports whether the traffic is not plain TCP.
func (s *serverLine) wrapped() bool {
	return s.has("ssl") || s.has("socks4") || s.has("proto") || s.sendsProxy()
}

// sendsProxy reports whether the traffic starts with a PROXY header.
func (s *serverLine) sendsProxy() bool {
	for name := range s.options {
		if strings.HasPrefix(name, "send-proxy") {
			return true
		}
	}
	return false
}

// literal returns the address of a server if it is an IP address with a port,
// in the form that the runtime commands take.
func (s *serverLine) literal() (netip.AddrPort, bool) {
	i := strings.LastIndexByte(s.args[0], ':')
	if i < 0 {
		return netip.AddrPort{}, false
	}
	host := strings.TrimSuffix(strings.TrimPrefix(s.args[0][:i], "["), "]")
	addr, err := netip.ParseAddr(host)
	if err != nil || addr.Zone() != "" {
		return netip.AddrPort{}, false
	}
	port, err := strconv.ParseUint(s.args[0][i+1:], 10, 16)
	if err != nil || port == 0 {
		return netip.AddrPort{}, false
	}
	return netip.AddrPortFrom(addr, uint16(port)), true
}
