package change

import (
	"net/netip"
	"strconv"
	"strings"
)

// Process is what was read of a running HAProxy. A nil map was not read.
type Process struct {
	Servers      map[ServerRef]ServerState
	Backends     map[string]bool   // all that there are
	Maps         map[string]string // contents of maps, by their names
	Certificates map[string]string // SHA-1 fingerprints by the names of certificates, as config.Fingerprint gives them
}

// Lacks reports whether the process has no backend of that name, as far as was read.
func (p *Process) Lacks(backend string) bool {
	return p.Backends != nil && !p.Backends[backend] && !strings.Contains(backend, "$")
}

// ServerState is what a running HAProxy says of a server.
type ServerState struct {
	ID      int            // 0 if not told
	Address netip.AddrPort // not valid where the address is none
	Weight  int
	State   string // "ready", "maint", or "drain"; "" if not told
}

// The states of a server that a configuration can ask for.
const (
	Ready = "ready"
	Maint = "maint"
)

// Loaded returns what of it a configuration says.
func (s ServerState) Loaded() ServerState {
	s.ID = 0
	return s
}

func (s ServerState) address() string { return s.Address.String() }
func (s ServerState) weight() string  { return strconv.Itoa(s.Weight) }
func (s ServerState) state() string   { return s.State }

// Misses names the first setting that the server does not have, or "" if it has
// all that can be read back. What HAProxy does not tell is not missing.
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
