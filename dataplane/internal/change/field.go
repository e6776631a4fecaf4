package change

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"

	"github.com/hapticsdk/haptic/dataplane/internal/config"
)

// ServerField is how a field of a server changes in a running HAProxy. A value is that of the
// runtime commands.
type ServerField struct {
	Value   func(*ServerChange) (value, why string)     // the value to set, or why the change takes a reload
	Command func(server ServerRef, value string) string // for the stats socket
	Good    []string                                    // parts of good answers; nil if a good answer is empty

	// The Dataplane API takes some fields only with a push of the whole text before version
	// 3.4. The zero values are for a field that it does not change.
	Header func(server ServerRef, value string) string           // for X-Runtime-Actions of a push
	Fields func(value string) (fields map[string]any, err error) // of a request about the server
	Pushed bool                                                  // before 3.4, only a push changes it

	// The process reports some fields. Otherwise both are nil.
	Loaded func(ServerState) string                         // the value in the process
	Drift  func(*config.Server, ServerState) (value string) // if it is not that of the line; "" if it is

	Shown   func(*config.Server) string // as plans show it; nil if that is the word of the line
	Written func(value string) string   // as a line says it; nil if that is the value
}

// ServerChange is a server before and after a change.
type ServerChange struct {
	Old, New     *config.Server
	Was, Balance Balance // of its backend, before and after
}

// FieldRow returns the row for a field of an existing server, or nil.
func FieldRow(field string) *Row {
	for i := range table {
		if r := &table[i]; r.ServerField != nil && r.Field == field {
			return r
		}
	}
	return nil
}

// ServerFields returns the names of all fields of both servers. The fields that may change at
// runtime come first, then the others by name.
func ServerFields(a, b *config.Server) []string {
	var fields, others []string
	for i := range table {
		if table[i].ServerField != nil {
			fields = append(fields, table[i].Field)
		}
	}
	for _, s := range []*config.Server{a, b} {
		for name := range s.Options {
			if !slices.Contains(fields, name) && !slices.Contains(others, name) {
				others = append(others, name)
			}
		}
	}
	slices.Sort(others)
	return append(fields, others...)
}

// Fixed returns the keywords of a server in their order, except those that change at runtime.
func Fixed(s *config.Server) []string {
	return slices.DeleteFunc(slices.Clone(s.Keywords), func(w string) bool { return FieldRow(w) != nil })
}

// ShownValue returns the value of a field in a form that can be compared.
func ShownValue(s *config.Server, field string) string {
	if row := FieldRow(field); row != nil && row.Shown != nil {
		return row.Shown(s)
	}
	return s.Value(field)
}

// SettingsOf returns the settings that a new server has, as far as a running HAProxy reports
// them.
func SettingsOf(server *config.Server) []Setting {
	var settings []Setting
	for i := range table {
		if r := &table[i]; r.ServerField != nil && r.Loaded != nil {
			if value, _ := r.Value(&ServerChange{Old: server, New: server}); value != "" {
				settings = append(settings, Setting{Row: r, Value: value})
			}
		}
	}
	return settings
}

// Drifted returns the fields in which the process differs from the line of a server, as a line
// says them.
func Drifted(s *config.Server, state ServerState) map[string]string {
	set := make(map[string]string)
	for i := range table {
		r := &table[i]
		if r.ServerField == nil || r.Drift == nil {
			continue
		}
		if value := r.Drift(s, state); value != "" {
			set[r.Field] = Setting{Row: r, Value: value}.Written()
		}
	}
	return set
}

// Setting is a new value for a field of a server.
type Setting struct {
	Row   *Row
	Value string
}

// Written returns the value as a line says it.
func (s Setting) Written() string {
	if s.Row.Written == nil {
		return s.Value
	}
	return s.Row.Written(s.Value)
}

// InOrder returns settings in the order in which they are sent. A server that goes gets no
// request at its new address, and one that comes none at its old address.
func InOrder(settings []Setting) []Setting {
	turn := map[string]int{Maint: -1, Ready: 1}
	return slices.SortedStableFunc(slices.Values(settings), func(x, y Setting) int { return turn[x.Value] - turn[y.Value] })
}

// OtherBalance is why weights, and the list of servers, wait for a reload.
const OtherBalance = "the balance changes as well"

var address = ServerField{
	Value: func(c *ServerChange) (value, why string) {
		_, literal := c.Old.Literal()
		address, ok := c.New.Literal()
		if !ok || !literal {
			return "", "only an IP address with a port can change to another at runtime"
		}
		return address.String(), ""
	},
	Command: func(s ServerRef, v string) string {
		return "set server " + s.String() + " addr " + hostPort(v, " port ")
	},
	Good:   []string{"changed from", "no need to change", "nothing changed"},
	Header: func(s ServerRef, v string) string { return headerOf("SetServerAddr", s, hostPort(v, " ")) },
	Fields: func(v string) (map[string]any, error) {
		address, err := netip.ParseAddrPort(v)
		return map[string]any{"address": address.Addr().String(), "port": address.Port()}, err
	},
	Pushed: true,
	Loaded: func(s ServerState) string { return s.Address.String() },
	Drift: func(s *config.Server, is ServerState) string {
		if address, ok := s.Literal(); ok && is.Address.IsValid() && is.Address != address {
			return is.Address.String()
		}
		return ""
	},
	Shown: func(s *config.Server) string {
		if address, ok := s.Literal(); ok {
			return address.String()
		}
		return s.Value("address")
	},
}

var weight = ServerField{
	Value: func(c *ServerChange) (value, why string) {
		switch {
		case !c.Balance.Weighs():
			why = fmt.Sprintf("balance %s has fixed weights", c.Balance.Algorithm)
		case c.Old.Has("agent-check") || c.New.Has("agent-check"):
			why = "an agent check counts its percentages from the weight at the start"
		case c.Was != c.Balance:
			why = OtherBalance
		}
		return cmp.Or(c.New.Value("weight"), "1"), why
	},
	Command: func(s ServerRef, v string) string { return "set server " + s.String() + " weight " + v },
	Header:  func(s ServerRef, v string) string { return headerOf("SetServerWeight", s, v) },
	Fields: func(v string) (map[string]any, error) {
		n, err := strconv.Atoi(v)
		return map[string]any{"weight": n}, err
	},
	Pushed: true,
	Loaded: func(s ServerState) string { return strconv.Itoa(s.Weight) },
	Drift: func(s *config.Server, is ServerState) string {
		n, err := strconv.Atoi(cmp.Or(s.Value("weight"), "1"))
		if err != nil || n == is.Weight || s.Has("agent-check") || is.Weight < 0 {
			return ""
		}
		return strconv.Itoa(is.Weight)
	},
}

var maxconn = ServerField{
	Value: func(c *ServerChange) (value, why string) {
		if c.Old.Has("minconn") || c.New.Has("minconn") {
			why = "the limit of connections depends on minconn"
		}
		return cmp.Or(c.New.Value("maxconn"), "0"), why // 0 means no limit
	},
	Command: func(s ServerRef, v string) string { return "set maxconn server " + s.String() + " " + v },
}

var state = ServerField{
	Value: func(c *ServerChange) (value, why string) {
		if c.New.Disabled() {
			return Maint, ""
		}
		return Ready, ""
	},
	Command: func(s ServerRef, v string) string { return "set server " + s.String() + " state " + v },
	Header:  func(s ServerRef, v string) string { return headerOf("SetServerState", s, v) },
	Fields:  func(v string) (map[string]any, error) { return map[string]any{"admin_state": v}, nil },
	Loaded:  func(s ServerState) string { return s.State },
	Drift: func(s *config.Server, is ServerState) string {
		switch {
		case s.Has("track") || is.State == "":
		case !s.Disabled() && is.State != Ready:
			return Maint
		case s.Disabled() && is.State != Maint:
			return Ready
		}
		return ""
	},
	Shown: func(s *config.Server) string { return cmp.Or(s.Value("state"), "enabled") },
	Written: func(v string) string {
		if v == Maint {
			return "disabled"
		}
		return "enabled"
	},
}

// hostPort splits an address as netip.AddrPort prints it, and joins the parts with between.
func hostPort(address, between string) string {
	host, port, _ := net.SplitHostPort(address)
	return host + between + port
}

func headerOf(action string, s ServerRef, value string) string {
	return action + " " + s.Backend + " " + s.Server + " " + value
}
