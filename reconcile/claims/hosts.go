package claims

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/hapticsdk/haptic/k8swatch/derive"
)

// AllNamespaces stands for the owner of shared hosts. No namespace has that name.
const AllNamespaces = "*"

// HostOptions are what stays the same while hosts are in use. The zero value is usable.
type HostOptions struct {
	// Shared are hosts that all namespaces may use. "*.demo.test" stands for all names below
	// demo.test, and "*" for all hosts. See [CheckShared].
	Shared []string

	// Earlier returns the owner that a host had in an earlier process; "": none is known. It
	// counts for hosts without an owner. After the first commit it must return "", so that a
	// namespace does not get back what it gave up. Nil: there was no earlier process.
	Earlier func(host string) (namespace string)

	// Grace is how long a namespace keeps a host that only others claim by now. Zero: not at all.
	// A controller takes [UsualGrace].
	Grace time.Duration
}

// Hosts are the owners of hosts. They belong to the goroutine of their graph.
type Hosts struct {
	// Owners are the namespaces by host. [AllNamespaces] owns shared hosts.
	Owners *derive.Collection[string, string]

	opts        HostOptions
	byLength    *derive.Collection[struct{}, []wildcardClaims]
	settled     derive.Value[map[string]wildcard]
	anyWildcard derive.Value[bool]
	wildcards   *derive.Collection[string, wildcard]
}

// NewHosts makes the owners of hosts out of a collection of objects. claims returns who claims
// with an object, and which hosts: names, wildcards and [AnyHost], also several times. It must
// depend only on its arguments. Other texts are skipped, and so is an object without a
// namespace.
func NewHosts[K comparable, V any](g *derive.Graph, from *derive.Collection[K, V],
	claims func(K, V) (Claimant, iter.Seq[string]), opts HostOptions) *Hosts {
	h, s := &Hosts{opts: opts}, &splitter{}
	yield := s.yield
	byHost := derive.GroupBy("claims of hosts", from, func(k K, v V, add func(string, Claimant)) {
		if by, hosts := claims(k, v); isNamespace(by.Namespace) {
			*s = splitter{by: by, add: add}
			hosts(yield)
		}
	}, Claimant.Compare)
	h.deriveWildcards(g, byHost)
	h.Owners = derive.Each("owners", derive.Each("tenures", byHost, h.tenure), ownerOf)
	return h
}

// splitter adds a claimant to each of its hosts once. Its memory serves all claimants.
type splitter struct {
	by   Claimant
	add  func(string, Claimant)
	last string
	more map[string]bool // former ones; nil: none
}

// yield takes a host, and wants more.
func (s *splitter) yield(host string) bool {
	if host == s.last || s.more[host] || host != AnyHost && !IsHost(host) {
		return true
	}
	if s.last != "" {
		if s.more == nil {
			s.more = map[string]bool{}
		}
		s.more[s.last] = true
	}
	s.last = host
	s.add(host, s.by)
	return true
}

// isNamespace keeps out texts that the map of hosts cannot hold, and that of shared hosts. The
// API server does so too, but not every object comes from there.
func isNamespace(name string) bool {
	for i := range len(name) {
		if c := name[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '.' {
			return false
		}
	}
	return name != ""
}

// tenure finds the namespace of a host.
func (h *Hosts) tenure(at *derive.Reads, host string, claims []Claimant, was tenure) (tenure, bool) {
	if strings.HasPrefix(host, "*.") {
		w, ok := h.wildcards.Get(at, host)
		return tenure{owner: w.owner}, ok
	}
	if h.IsShared(host) {
		return tenure{owner: AllNamespaces}, true
	}
	last := h.orEarlier(was.owner, host)
	first, kept, ok := firstClaim(claims, last, func(claim Claimant) bool {
		above := h.above(at, host, func(w *wildcard) bool { return w.stands(claim) })
		return host != AnyHost && above.covers(claim)
	})
	if still, keeps := h.keeps(at, last, kept, was.gone); keeps {
		return still, true
	}
	return tenure{owner: first.Namespace}, ok
}

// orEarlier returns the owner that an earlier process had, if there is none by now.
func (h *Hosts) orEarlier(owner, host string) string {
	if owner == "" && h.opts.Earlier != nil {
		return h.opts.Earlier(host)
	}
	return owner
}

// firstClaim returns the claim that gets a host. The last owner keeps it while it claims it.
// Otherwise it is the oldest claim that no wildcard of another namespace covers.
func firstClaim(claims []Claimant, last string, covered func(Claimant) bool) (first Claimant, kept, ok bool) {
	for _, c := range claims {
		if c.Namespace == last {
			return c, true, true
		}
		if !ok && !covered(c) {
			first, ok = c, true
		}
	}
	return first, false, ok
}

// IsShared reports whether all namespaces may use a host.
func (h *Hosts) IsShared(host string) bool {
	return slices.ContainsFunc(h.opts.Shared, func(s string) bool {
		return s == host || s == AnyHost || strings.HasPrefix(s, "*.") && strings.HasSuffix(host, s[1:])
	})
}

// NotOwned says which other namespace owns a host, by itself or by a wildcard. It is empty if
// the namespace may use the host.
func (h *Hosts) NotOwned(at *derive.Reads, host, namespace string) string {
	owner, by := "", ""
	owner, _ = h.Owners.Get(at, host)
	if owner == "" && host != AnyHost {
		if w := h.above(at, host, func(*wildcard) bool { return true }); w.host != "" {
			owner, by = w.owner, " with "+w.host
		}
	}
	if owner == "" || owner == namespace || owner == AllNamespaces {
		return ""
	}
	if host == AnyHost {
		host = "what no host matches"
	}
	return fmt.Sprintf("%s belongs to namespace %s%s, which claimed it first", host, owner, by)
}
