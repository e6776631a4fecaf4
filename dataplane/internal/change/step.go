// Package change says what can happen to a running HAProxy: the steps of a plan, and the one
// table of what changes without a reload.
//
// A new field of a server needs a ServerField (field.go) and a row in table.go. A field that
// is read back also has its place in ServerState, which the senders fill.
package change

import (
	"cmp"
	"strings"

	"github.com/hapticsdk/haptic/dataplane/internal/config"
)

// Impact says what a step costs the running HAProxy.
type Impact int

// Impacts, the cheapest first.
const (
	None  Impact = iota
	Start        // no HAProxy runs: it starts with the configuration
	Runtime
	Reload
)

// Action is what happens to the subject of a step.
type Action string

// The actions.
const (
	Create Action = "create"
	Update Action = "update"
	Delete Action = "delete"
)

// Field is one difference within the subject of a step, without secrets.
type Field struct{ Name, Old, New string }

// Step is one operation of a plan. All fields except Do are for people and hold no secrets.
type Step struct {
	Action Action
	Kind   string
	Parent string
	Name   string
	Index  *int
	Fields []Field
	Impact Impact
	Reason string // why it takes a reload

	// Section has the lines that a step about a server changes. Ahead says that the step
	// makes sense before the reload that other steps need: those steps do not change what the
	// process has of the backend.
	Section config.Key
	Ahead   bool

	// Do is the change of the process. It is nil for a reload, and if the Do of an earlier
	// step covers the same file.
	Do Do
}

// Needs turns the step into one that takes a reload for that reason. It does nothing if the
// reason is "".
func (s *Step) Needs(reason string) {
	if reason != "" {
		s.Impact, s.Reason, s.Do = Reload, reason, nil
	}
}

// ServerRef names a server.
type ServerRef struct{ Backend, Server string }

// String returns "backend/server", as the commands of HAProxy name it.
func (r ServerRef) String() string { return r.Backend + "/" + r.Server }

// Compare orders servers.
func (r ServerRef) Compare(o ServerRef) int {
	return cmp.Or(strings.Compare(r.Backend, o.Backend), strings.Compare(r.Server, o.Server))
}

// Entry is a change of one key of a map, or of one pattern.
type Entry struct {
	Action     Action
	Key, Value string
}

// RuntimeChanges returns the changes of the process, in order.
func RuntimeChanges(steps []Step) []Do {
	var dos []Do
	for i := range steps {
		if steps[i].Do != nil {
			dos = append(dos, steps[i].Do)
		}
	}
	return dos
}

// ImpactOf returns the greatest impact of the steps.
func ImpactOf(steps []Step) Impact {
	most := None
	for i := range steps {
		most = max(most, steps[i].Impact)
	}
	return most
}
