package change

import (
	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// Do is a change of a running HAProxy that takes no reload: a pointer to one of the types
// below. It may hold secrets: never print one.
type Do interface{ does() }

// SetServer changes fields of a server.
type SetServer struct {
	Ref    ServerRef
	Server *config.Server // its new form
	Set    []Setting      // what changes
	Beside bool           // for the Dataplane API: such a server could be added beside it, and no rule names it
}

// AddServer adds a server.
type AddServer struct {
	Ref    ServerRef
	Server *config.Server
}

// DeleteServer deletes a server.
type DeleteServer struct{ Ref ServerRef }

// ChangeEntries changes entries of a map, or of the patterns of ACLs.
type ChangeEntries struct {
	File    config.File // its new state
	Entries []Entry
	Whole   bool // the order or repeated keys count, so HAProxy must get the whole content
}

// SetCertificate changes a certificate that the process has.
type SetCertificate struct{ File config.File }

// NewCertificate gives the process a certificate that it does not know.
type NewCertificate struct{ File config.File }

// DeleteCertificate deletes a certificate. File is its last state.
type DeleteCertificate struct{ File config.File }

// ChangeListEntry creates, updates or deletes an entry of a crt-list.
type ChangeListEntry struct {
	Action Action
	File   config.File // the list, in its new state
	Entry  haproxycfg.ListEntry
}

// SetCA changes a file of CA certificates.
type SetCA struct{ File config.File }

// TakeBackend makes a backend of the process a new one, and gives it its servers.
type TakeBackend struct {
	Name    Name // after the change
	Servers []Do
	Publish bool // HAProxy hides a backend that left, and can show it again
}

// LeaveBackend ends the use of a backend: nothing leads to it any more.
type LeaveBackend struct {
	Name    Name // after the change
	Servers []Do
	Publish bool // HAProxy hides the backend, and deletes it when it has no more requests
}

// MakeBackend makes a backend from a defaults section, with its servers.
type MakeBackend struct {
	Backend string
	From    string // the defaults section
	Mode    string
	Servers []Do
}

func (*SetServer) does()         {}
func (*AddServer) does()         {}
func (*DeleteServer) does()      {}
func (*ChangeEntries) does()     {}
func (*SetCertificate) does()    {}
func (*NewCertificate) does()    {}
func (*DeleteCertificate) does() {}
func (*ChangeListEntry) does()   {}
func (*SetCA) does()             {}
func (*TakeBackend) does()       {}
func (*LeaveBackend) does()      {}
func (*MakeBackend) does()       {}

// RefOf returns the server that a change concerns, or the zero value.
func RefOf(do Do) ServerRef {
	switch do := do.(type) {
	case *SetServer:
		return do.Ref
	case *AddServer:
		return do.Ref
	case *DeleteServer:
		return do.Ref
	}
	return ServerRef{}
}

// ServersOf returns the changes of servers that are part of the change of a backend.
func ServersOf(do Do) []Do {
	switch do := do.(type) {
	case *TakeBackend:
		return do.Servers
	case *LeaveBackend:
		return do.Servers
	case *MakeBackend:
		return do.Servers
	}
	return nil
}

// nameAfter returns the name of a backend after a change, if the change sets it.
func nameAfter(do Do) (Name, bool) {
	switch do := do.(type) {
	case *TakeBackend:
		return do.Name, true
	case *LeaveBackend:
		return do.Name, true
	}
	return Name{}, false
}
