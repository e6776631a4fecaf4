package dataplane

import "fmt"

// Position is a line of a [Config]: of its main text where Name is empty, or of
// one of its files. Validators and endpoints speak of lines by it, and whoever
// rendered the configuration knows what wrote them.
type Position struct {
	Kind FileKind `json:"kind,omitempty"`
	Name string   `json:"name,omitempty"`
	Line int      `json:"line,omitempty"` // from 1; 0 means the whole file
}

// String gives "haproxy.cfg:12" or "map hosts.map:3".
func (p Position) String() string {
	s := "haproxy.cfg"
	if p.Name != "" {
		s = fmt.Sprintf("%s %s", p.Kind, p.Name)
	}
	if p.Line > 0 {
		s = fmt.Sprintf("%s:%d", s, p.Line)
	}
	return s
}
