package claims

import (
	"cmp"
	"strings"

	"github.com/hapticsdk/haptic/k8swatch/derive"
)

// Host is a claimed host, as an entry of a map.
type Host struct {
	Name      string // "shop.demo.test", "*.demo.test", or "*" for AnyHost
	Namespace string // its owner, or AllNamespaces
}

func (h *Host) compare(other *Host) int { return cmp.Compare(h.Name, other.Name) }

// byLength puts the longest first.
func (h *Host) byLength(other *Host) int {
	return cmp.Or(cmp.Compare(len(other.Name), len(h.Name)), h.compare(other))
}

// Listing are the hosts as the entries of two maps. HAProxy finds the host of a request with
// them. Entries that did not change keep their pointers.
type Listing struct {
	ByName *derive.Collection[string, *Host]
	Hosts  derive.List[*Host] // by name

	wildcards *derive.Collection[struct{}, []*Host]
	below     *derive.Collection[string, derive.Ordered[*Host]] // by parent
}

// Wildcards returns the wildcards among the hosts as ".demo.test", the longest first. Do not
// change them. at is nil outside of a function.
func (l *Listing) Wildcards(at *derive.Reads) []*Host {
	all, _ := l.wildcards.Get(at, struct{}{})
	return all
}

// Below returns the names one label below a wildcard that belong to another namespace, in
// order. The certificate of the wildcard is not theirs. at is nil outside of a function.
func (l *Listing) Below(at *derive.Reads, wildcard, namespace string) (others []*Host) {
	parent, is := strings.CutPrefix(wildcard, "*.")
	if !is {
		return nil
	}
	all, _ := l.below.Get(at, parent)
	for h := range all.All() {
		if h.Namespace != AllNamespaces && h.Namespace != namespace {
			others = append(others, h)
		}
	}
	return others
}

// List makes the entries of hosts. uses reports whether a host has something of its own, such
// as a path. One that has nothing is left out if a wildcard of the same namespace covers it.
func (h *Hosts) List(uses func(at *derive.Reads, host string) bool) *Listing {
	l := &Listing{ByName: derive.Each("hosts", h.Owners, func(at *derive.Reads, name, owner string, was *Host) (*Host, bool) {
		if i := strings.IndexByte(name, '.'); i >= 0 && name[0] != '*' {
			if w, ok := h.wildcards.Get(at, "*"+name[i:]); ok && w.owner == owner && !uses(at, name) {
				return nil, false
			}
		}
		if was != nil && was.Namespace == owner {
			return was, true
		}
		return &Host{name, owner}, true
	})}
	l.Hosts = derive.Sorted("sorted hosts", l.ByName, (*Host).compare)
	l.wildcards = derive.GroupBy("sorted wildcards", l.ByName, func(name string, host *Host, add func(struct{}, *Host)) {
		if below, is := strings.CutPrefix(name, "*."); is {
			add(struct{}{}, &Host{"." + below, host.Namespace})
		}
	}, (*Host).byLength)
	l.below = derive.SortBy("hosts below", l.ByName, func(name string, host *Host, add func(string, *Host)) {
		if _, parent, ok := strings.Cut(name, "."); ok && !strings.HasPrefix(name, "*.") {
			add(parent, host)
		}
	}, (*Host).compare)
	return l
}
