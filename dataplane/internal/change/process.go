package change

import (
	"net/netip"
	"strings"
)

// Process is the state of a running HAProxy, as far as it was read. A nil map was not read.
type Process struct {
	Servers      map[ServerRef]ServerState
	Backends     map[string]bool   // all backends
	Maps         map[string]string // contents of maps, by their names
	Certificates map[string]string // SHA-1 fingerprints by the names of certificates, as config.Fingerprint gives them
}

// Lacks reports whether the process has no backend of that name, if backends were read.
func (p *Process) Lacks(backend string) bool {
	return p.Backends != nil && !p.Backends[backend] && !strings.Contains(backend, "$")
}

// ServerState is the state of a server in a running HAProxy.
type ServerState struct {
	ID      int            // 0 if unknown
	Address netip.AddrPort // not valid if the server has no address
	Weight  int
	State   string // "ready", "maint", or "drain"; "" if unknown
}

// The states that a configuration can set.
const (
	Ready = "ready"
	Maint = "maint"
)

// Loaded returns the part of the state that a configuration sets.
func (s ServerState) Loaded() ServerState {
	s.ID = 0
	return s
}

// Misses names the first setting that the server does not have, or returns "". It skips
// settings that HAProxy does not report.
func (s ServerState) Misses(settings []Setting) string {
	for _, set := range settings {
		if set.Row.Loaded == nil {
			continue
		}
		if is := set.Row.Loaded(s); is != "" && is != set.Value {
			return set.Row.Field
		}
	}
	return ""
}
