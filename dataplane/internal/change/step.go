// Package change says what can happen to a running HAProxy: the steps of a plan,
// and the one table of what changes without a reload.
//
// A new field of a server is one row in table.go, and its keyword in
// config/server.go (ParseServer, ServerFields): the senders take its commands and
// versions from there. A field that is read back also has its place in ServerState,
// which the senders fill, and diff/running.go says what a drift of it is.
package change

import (
	"cmp"
	"strings"

	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/internal/haproxycfg"
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

// Step is one operation of a plan. All but Do is for people and holds no secrets.
type Step struct {
	Action Action
	Kind   string
	Parent string
	Name   string
	Index  *int
	Fields []Field
	Impact Impact
	Reason string // why it takes a reload

	// Section has the lines that a step about a server changes. Ahead says that the
	// step makes sense before the reload that other steps take: what the process
	// knows of the backend otherwise stays as it is.
	Section config.Key
	Ahead   bool

	// Do is what the process must be told. It is nil for a reload, and where an
	// earlier step of the same file tells it.
	Do *Do
}

// Needs turns the step into one that takes a reload for that reason, unless the
// reason is "".
func (s *Step) Needs(reason string) {
	if reason != "" {
		s.Impact, s.Reason, s.Do = Reload, reason, nil
	}
}

// Verb is what a running HAProxy is told.
type Verb int

// The verbs.
const (
	SetServer Verb = iota
	AddServer
	DeleteServer
	ChangeEntries // of a map or of the patterns of ACLs
	SetCertificate
	NewCertificate
	DeleteCertificate
	AddListEntry // of a crt-list
	SetListEntry
	DeleteListEntry
	SetCA
	TakeBackend  // a backend of the process becomes a new one, with its servers
	LeaveBackend // nothing leads to a backend any more
	MakeBackend  // a backend comes from its defaults, with its servers
)

// ServerRef names a server.
type ServerRef struct{ Backend, Server string }

// String returns "backend/server", as the commands of HAProxy name it.
func (r ServerRef) String() string { return r.Backend + "/" + r.Server }

// Compare orders servers.
func (r ServerRef) Compare(o ServerRef) int {
	return cmp.Or(strings.Compare(r.Backend, o.Backend), strings.Compare(r.Server, o.Server))
}

// Do is a change of a running HAProxy that takes no reload. It may hold secrets:
// never print one.
type Do struct {
	Verb    Verb
	Ref     ServerRef            // of a server
	Server  *config.Server       // AddServer, SetServer: as it shall be
	Beside  bool                 // SetServer, of the Dataplane API: such a server could be added beside it, and no rule names it
	Set     []Setting            // SetServer: what changes
	File    config.File          // new state of a file; in DeleteCertificate its last one
	Entries []Entry              // ChangeEntries
	Whole   bool                 // ChangeEntries: the order or repeated keys count, so only the whole content will do
	Entry   haproxycfg.ListEntry // of a crt-list
	Name    Name                 // TakeBackend, LeaveBackend, MakeBackend: as it is then
	Servers []*Do                // of these, what the servers are told
	Publish bool                 // TakeBackend, LeaveBackend: HAProxy hides a backend that left, deletes it when no request is in it, and can show it again
	From    string               // MakeBackend: the defaults section
	Mode    string               // MakeBackend
}

// Setting is a new value of a field of a server.
type Setting struct {
	Row   *Row
	Value string
}

// Entry is what happens to one key of a map, or to one pattern.
type Entry struct {
	Action     Action
	Key, Value string
}

// Tells returns what the process must be told, in order.
func Tells(steps []Step) []*Do {
	var dos []*Do
	for i := range steps {
		if steps[i].Do != nil {
			dos = append(dos, steps[i].Do)
		}
	}
	return dos
}

// ImpactOf is the impact of the most expensive step.
func ImpactOf(steps []Step) Impact {
	most := None
	for i := range steps {
		most = max(most, steps[i].Impact)
	}
	return most
}
