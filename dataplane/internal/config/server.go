package config

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Server is a parsed server line of a backend. The words of the default-server lines above it
// come before its own. HAProxy reads them in this order, and later words win.
type Server struct {
	Name     string
	Args     []string            // the address, then all words
	Options  map[string][]string // values by keyword; a keyword without a value has an empty one
	Keywords []string            // in their order, except disabled and enabled
	Defaults []string            // keywords from a default-server
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

	// From here on, keywords of later HAProxy versions.
	"check-reuse-pool": true, "check-sni-auto": true, "no-check-reuse-pool": true, "no-check-sni-auto": true,
	"no-renegotiate": true, "no-sni-auto": true, "renegotiate": true, "sni-auto": true, "strict-maxconn": true,
}

// ParseServer parses the words of a server line, and those of the default-server lines that
// apply to it.
func ParseServer(words []string, defaults ...string) (Server, bool) {
	if len(words) < 3 || words[0] != "server" {
		return Server{}, false
	}
	s := Server{Name: words[1], Args: words[2:], Options: make(map[string][]string)}
	if len(defaults) > 0 {
		s.Args = slices.Concat(words[2:3], defaults, words[3:])
	}
	for rest := s.Args[1:]; len(rest) > 0; {
		keyword, inherited := rest[0], len(rest) > len(words)-3
		rest = rest[1:]
		value := ""
		if !serverFlags[keyword] {
			if len(rest) == 0 {
				return Server{}, false
			}
			value, rest = rest[0], rest[1:]
		}
		if inherited {
			s.Defaults = append(s.Defaults, keyword)
		}
		if keyword == "disabled" || keyword == "enabled" {
			s.Options["state"] = []string{keyword} // the last one counts
			continue
		}
		s.Keywords = append(s.Keywords, keyword)
		switch keyword {
		case "weight", "maxconn", "minconn":
			s.Options[keyword] = []string{value} // the last one counts
		default:
			s.Options[keyword] = append(s.Options[keyword], value)
		}
	}
	return s, true
}

// Has reports whether the line has a keyword.
func (s *Server) Has(keyword string) bool { _, ok := s.Options[keyword]; return ok }

// Disabled reports whether the server starts in maintenance.
func (s *Server) Disabled() bool { return s.Value("state") == "disabled" }

// Value returns the field of that name as a plan shows it: "" if the line does not have it,
// "yes" if it takes no value.
func (s *Server) Value(field string) string {
	if field == "address" {
		return s.Args[0]
	}
	if serverFlags[field] && s.Has(field) {
		return "yes"
	}
	return strings.Join(s.Options[field], ", ")
}

// Ordered reports whether one keyword undoes another one, so that their order counts.
func (s *Server) Ordered() bool {
	return slices.ContainsFunc(s.Keywords, func(w string) bool {
		return strings.HasPrefix(w, "no-") || strings.HasPrefix(w, "force-") || w == "non-stick" || w == "agent-addr"
	})
}

// CheckElsewhere reports whether the health check has its own address or port. Without them,
// it uses TLS and the PROXY protocol as the traffic does.
func (s *Server) CheckElsewhere() bool { return s.Has("port") || s.Has("addr") }

// SendsProxy reports whether the traffic starts with a PROXY header.
func (s *Server) SendsProxy() bool {
	return slices.ContainsFunc(s.Keywords, func(w string) bool { return strings.HasPrefix(w, "send-proxy") })
}

// Literal returns the address of a server if it is an IP address with a port. The runtime
// commands take that form.
func (s *Server) Literal() (netip.AddrPort, bool) {
	i := strings.LastIndexByte(s.Args[0], ':')
	if i < 0 {
		return netip.AddrPort{}, false
	}
	host := strings.TrimSuffix(strings.TrimPrefix(s.Args[0][:i], "["), "]")
	addr, err := netip.ParseAddr(host)
	port, errPort := strconv.ParseUint(s.Args[0][i+1:], 10, 16)
	if err != nil || addr.Zone() != "" || errPort != nil || port == 0 {
		return netip.AddrPort{}, false
	}
	return netip.AddrPortFrom(addr, uint16(port)), true
}
