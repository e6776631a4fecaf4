package dataplane

import (
	"fmt"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
)

// Version is a version of HAProxy, such as 3.2. The zero value stands for 2.6, the oldest
// version that this package supports.
type Version struct{ Major, Minor int }

// String returns the version as HAProxy writes it, such as "3.2".
func (v Version) String() string { return change.Version(v).String() }

// Compare returns -1 if v is older than other, 0 if they are equal and 1 if v is newer.
func (v Version) Compare(other Version) int { return change.Version(v).Compare(change.Version(other)) }

// Transport is the way in which a change reaches a running HAProxy.
type Transport int

// The transports.
const (
	Sockets Transport = iota // the stats socket of the process, as [Local] uses it
	API                      // a Dataplane API beside it, as [Client] uses it
)

// String returns "sockets" or "api".
func (t Transport) String() string { return change.Transport(t).String() }

// Target says which HAProxy a plan is for. The version and the transport decide what changes
// without a reload; [RuntimeChanges] is the table. The zero value is HAProxy 2.6 through its
// own sockets.
type Target struct {
	Version   Version // of HAProxy
	Transport Transport
	API       Version // of the Dataplane API, if that is the transport; zero means 3.0
}

func outerTarget(t change.Target) Target {
	return Target{Version: Version(t.Version), Transport: Transport(t.Transport), API: Version(t.API)}
}

// RuntimeChange is a kind of change that a running HAProxy takes without a reload, through
// one transport. A change without a RuntimeChange takes one reload.
type RuntimeChange struct {
	Kind      string    // as in [Op.Kind]: "server", "map entry", "certificate", ...
	Action    Action    // as in [Op.Action]
	Field     string    // as in [Change.Field]: "address", ...; "" for the whole subject
	Transport Transport // the way to the process
	Since     Version   // of HAProxy
	API       Version   // of the Dataplane API, if that is the transport
	Where     string    // further conditions; "" for none
}

// String describes the change on one line, such as "update server weight (sockets, HAProxy
// 2.6): a dynamic balance".
func (c RuntimeChange) String() string {
	what := string(c.Action) + " " + c.Kind
	if c.Field != "" {
		what += " " + c.Field
	}
	s := fmt.Sprintf("%s (%s, HAProxy %s)", what, c.Transport, c.Since)
	if c.Transport == API {
		s = fmt.Sprintf("%s (%s %s, HAProxy %s)", what, c.Transport, c.API, c.Since)
	}
	if c.Where != "" {
		s += ": " + c.Where
	}
	return s
}

// RuntimeChanges returns the table by which [Diff], [Local] and [Client] decide what takes a
// reload. The rows for sockets were measured with HAProxy 2.6, 3.0, 3.2 and 3.4, each against
// a process that starts with the new configuration. The commands are those of the management
// manual, section 9.3. The rows for the API were measured with version 3.2 of the API.
func RuntimeChanges() []RuntimeChange {
	var changes []RuntimeChange
	for _, r := range change.Table() {
		c := RuntimeChange{Kind: r.Kind, Action: Action(r.Action), Field: r.Field, Since: Version(r.Since), Where: r.Where}
		changes = append(changes, c)
		if r.API == (change.Version{}) {
			continue
		}
		c.Transport, c.Since, c.API = API, Version(r.SinceAPI), Version(r.API)
		if r.WhereAPI != "" {
			c.Where = r.WhereAPI
		}
		changes = append(changes, c)
	}
	return changes
}
