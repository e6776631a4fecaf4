package change

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// SparePrefix begins the names of spare backends, which wait in a process for new ones.
// Package dataplane documents it.
const SparePrefix = "haptic-spare-"

// IsSpare reports whether a backend of that name is a spare one.
func IsSpare(backend string) bool { return strings.HasPrefix(backend, SparePrefix) }

// OwnerOf returns whom a backend belongs to: its name up to the first "_", without capital
// letters and "-" before it, as in "LOGINS-shop_users". Owners share what a process has little of.
func OwnerOf(backend string) string {
	owner, _, _ := strings.Cut(backend, "_")
	return strings.TrimLeft(owner, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-")
}

// Name is the name of a backend in a worker process.
type Name struct {
	Backend string `json:"backend"` // in the configuration
	Process string `json:"process"`

	// Gone is set for a backend that the configuration no longer has. It stays in
	// the process until the next reload, with its servers in maintenance.
	Gone *Gone `json:"gone,omitempty"`
}

// Gone is a deleted backend as the process has it, written as configuration.
type Gone struct {
	Text  string `json:"text"`
	Above string `json:"above"` // the defaults section that applies
}

// Names lists two kinds of backends of one worker process: those with another name than in
// its configuration, and those that the configuration no longer has. Names are immutable, and
// safe for concurrent use. Nil has none. A name lives as long as the process: a taken spare
// stays taken, because requests for its backend may still wait in it.
type Names struct {
	byBackend map[string]Name
	byProcess map[string]string
}

// NewNames makes Names of a list.
func NewNames(list []Name) *Names {
	n := &Names{byBackend: make(map[string]Name, len(list)), byProcess: make(map[string]string, len(list))}
	for _, name := range list {
		n.byBackend[name.Backend], n.byProcess[name.Process] = name, name.Backend
	}
	return n
}

// List returns all names, sorted by their backends.
func (n *Names) List() []Name {
	if n == nil {
		return nil
	}
	return slices.SortedFunc(maps.Values(n.byBackend), func(a, b Name) int { return strings.Compare(a.Backend, b.Backend) })
}

// Of returns the name of a backend. It returns false for a backend that the process lacks, or
// has under the name of the configuration.
func (n *Names) Of(backend string) (Name, bool) {
	if n == nil {
		return Name{}, false
	}
	name, ok := n.byBackend[backend]
	return name, ok
}

// Has reports whether the process has another name for a backend, or still has a deleted one.
func (n *Names) Has(backend string) bool { _, ok := n.Of(backend); return ok }

// InProcess returns the name of a backend in the process.
func (n *Names) InProcess(backend string) string {
	name, _ := n.Of(backend)
	return cmp.Or(name.Process, backend)
}

// Value returns a value of a map as the process needs it: the name of a backend becomes its
// name in the process.
func (n *Names) Value(value string) string {
	if name, ok := n.Of(value); ok && name.Gone == nil {
		return name.Process
	}
	return value
}

// Backend returns the backend with that name in the process.
func (n *Names) Backend(process string) string {
	if n == nil {
		return process
	}
	return cmp.Or(n.byProcess[process], process)
}

// Taken reports whether a backend of the process is, or was, used for another one.
func (n *Names) Taken(process string) bool { return n.Backend(process) != process }

// GoneCount returns how many deleted backends the process still has.
func (n *Names) GoneCount() (count int) {
	for _, name := range n.List() {
		if name.Gone != nil {
			count++
		}
	}
	return count
}

// Without returns the names after the process has deleted these backends.
func (n *Names) Without(backends []string) *Names {
	after := NewNames(n.List())
	for _, backend := range backends {
		delete(after.byProcess, after.byBackend[backend].Process)
		delete(after.byBackend, backend)
	}
	return after
}

// After returns the names after all these changes. It returns n itself if none of them
// changes a name.
func (n *Names) After(dos []Do) *Names {
	after := n
	for _, do := range dos {
		name, ok := nameAfter(do)
		if !ok {
			continue
		}
		if after == n {
			after = NewNames(n.List())
		}
		after.byBackend[name.Backend], after.byProcess[name.Process] = name, name.Backend
		if name.Gone == nil && name.Backend == name.Process {
			delete(after.byBackend, name.Backend)
			delete(after.byProcess, name.Process)
		}
	}
	return after
}
