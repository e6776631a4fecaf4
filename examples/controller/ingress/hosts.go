package ingress

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/hapticsdk/haptic/k8swatch/derive"
)

// A host belongs to the namespace that claimed it first. It keeps the host while one of its
// Ingresses claims it by a rule or by spec.tls; a quarantined Ingress counts too. A wildcard
// includes all names below it that are free. If several namespaces claim a free host at once,
// the older Ingress gets it. Rules without a host and the default backend count as one more
// host. Without owners, tenants of one cluster could take each other's hosts, path by path.

// Host is a claimed host.
type Host struct {
	Name      string // "shop.demo.test", "*.demo.test", or "*" for rules without a host
	Namespace string // its owner; "*": all namespaces
}

func (h *Host) compare(other *Host) int { return cmp.Compare(h.Name, other.Name) }

// byLength puts the longest first.
func (h *Host) byLength(other *Host) int {
	return cmp.Or(cmp.Compare(len(other.Name), len(h.Name)), h.compare(other))
}

// CheckSharedHost checks an entry of [Options.Shared].
func CheckSharedHost(host string) error {
	if problem := hostProblem(host); problem != "" && host != anyHost {
		return errors.New(problem)
	}
	return nil
}

// everybody stands for the namespace of shared hosts. No namespace has that name.
const everybody = "*"

func (m *Model) isShared(host string) bool {
	return slices.ContainsFunc(m.Shared, func(s string) bool {
		return s == host || s == anyHost || strings.HasPrefix(s, "*.") && strings.HasSuffix(host, s[1:])
	})
}

// claimHosts adds an Ingress to the claims of its hosts.
func claimHosts(_ Name, ing *networkingv1.Ingress, add func(string, *networkingv1.Ingress)) {
	if ing.Namespace == "" || nameProblem(ing.Namespace) != "" {
		return
	}
	last, many := "", map[string]bool(nil)
	for host := range hostsOf(ing) {
		if host == last || many[host] || host != anyHost && !isHost(host) {
			continue
		}
		if last != "" {
			if many == nil {
				many = map[string]bool{}
			}
			many[last] = true
		}
		last = host
		add(host, ing)
	}
}

// ownerOf returns the owner of a host: the last one, while it claims it, or else the namespace
// of the oldest claim that no wildcard of another namespace covers.
func ownerOf(claims []*networkingv1.Ingress, last string, covered func(by *networkingv1.Ingress) bool) (first *networkingv1.Ingress, kept bool) {
	for _, ing := range claims {
		if ing.Namespace == last {
			return ing, true
		}
		if first == nil && !covered(ing) {
			first = ing
		}
	}
	return first, false
}

// wildcard is a wildcard with its owner.
type wildcard struct {
	host   string
	owner  string
	by     *networkingv1.Ingress // the claim that won
	kept   bool                  // it was the owner before
	shared bool
}

// covers reports whether a wildcard takes a name below it from a claim.
func (w *wildcard) covers(claim *networkingv1.Ingress) bool {
	return !w.shared && w.owner != claim.Namespace && (w.kept || byAge(w.by, claim) < 0)
}

// stands reports whether the wildcard was there before a claim, or belongs to its namespace.
func (w *wildcard) stands(claim *networkingv1.Ingress) bool {
	return w.kept || w.shared || byAge(w.by, claim) < 0
}

// wildcardClaims are the claims of a wildcard.
type wildcardClaims struct {
	host string
	all  []*networkingv1.Ingress
}

func (w *wildcardClaims) byLength(other *wildcardClaims) int {
	return cmp.Or(cmp.Compare(len(w.host), len(other.host)), cmp.Compare(w.host, other.host))
}

func onlyWildcards(host string, all []*networkingv1.Ingress, add func(string, *wildcardClaims)) {
	if strings.HasPrefix(host, "*.") {
		add(host, &wildcardClaims{host, all})
	}
}

// settleWildcards finds the owners of all wildcards, the shortest first: a wildcard may cover
// another one.
func (m *Model) settleWildcards(at *derive.Reads, was map[string]wildcard) map[string]wildcard {
	now := map[string]wildcard{}
	for _, c := range m.wildcardClaims.Get(at) {
		last := was[c.host].owner
		if was == nil {
			last = m.earlier.owner(c.host)
		}
		by, kept := ownerOf(c.all, last, func(claim *networkingv1.Ingress) bool {
			above := closest(c.host, func(host string) (wildcard, bool) { w, ok := now[host]; return w, ok && w.stands(claim) })
			return above.covers(claim)
		})
		if m.isShared(c.host) {
			now[c.host] = wildcard{host: c.host, owner: everybody, by: c.all[0], shared: true}
		} else if by != nil {
			now[c.host] = wildcard{host: c.host, owner: by.Namespace, by: by, kept: kept}
		}
	}
	return now
}

// closest returns the closest wildcard above a host; the zero one if there is none.
func closest(host string, get func(string) (wildcard, bool)) wildcard {
	name := strings.TrimPrefix(host, "*.")
	for i := strings.IndexByte(name, '.'); i >= 0; i = strings.IndexByte(name, '.') {
		if w, ok := get("*" + name[i:]); ok {
			return w
		}
		name = name[i+1:]
	}
	return wildcard{by: noIngress, shared: true}
}

// noIngress is older than all others.
var noIngress = &networkingv1.Ingress{} // constant in effect

// ownWildcard takes the wildcard of a host out of all.
func (m *Model) ownWildcard(at *derive.Reads, host string, _ *wildcardClaims, _ wildcard) (wildcard, bool) {
	w, ok := m.allWildcards.Get(at)[host]
	return w, ok
}

// above returns the closest wildcard with an owner that was there before a claim, or now.
func (m *Model) above(at *derive.Reads, host string, stands func(*wildcard) bool) wildcard {
	if !m.hasWildcards.Get(at) {
		return wildcard{by: noIngress, shared: true}
	}
	return closest(host, func(host string) (wildcard, bool) {
		w, ok := m.wildcards.Get(at, host)
		if was, had := m.wildcards.Was(host); had && was.owner == w.owner {
			w.kept = true
		}
		return w, ok && stands(&w)
	})
}

// owner finds the namespace of a host.
func (m *Model) owner(at *derive.Reads, host string, claims []*networkingv1.Ingress, was string) (string, bool) {
	if strings.HasPrefix(host, "*.") {
		w, ok := m.wildcards.Get(at, host)
		return w.owner, ok
	}
	if m.isShared(host) {
		return everybody, true
	}
	if was == "" {
		was = m.earlier.owner(host)
	}
	first, _ := ownerOf(claims, was, func(claim *networkingv1.Ingress) bool {
		above := m.above(at, host, func(w *wildcard) bool { return w.stands(claim) })
		return host != anyHost && above.covers(claim)
	})
	if first == nil {
		return "", false
	}
	return first.Namespace, true
}

// notOwned names the owner of a host that a namespace may not use.
func (m *Model) notOwned(at *derive.Reads, host, namespace string) string {
	owner, by := "", ""
	if owner, _ = m.owners.Get(at, host); owner == "" && host != anyHost {
		if w := m.above(at, host, func(*wildcard) bool { return true }); w.host != "" {
			owner, by = w.owner, " with "+w.host
		}
	}
	if owner == "" || owner == namespace || owner == everybody {
		return ""
	}
	if host == anyHost {
		host = "what no host matches"
	}
	return fmt.Sprintf("%s belongs to namespace %s%s, which claimed it first", host, owner, by)
}

// listed makes the entry of a host in the map. There is none for a host without paths if the
// wildcard of the same namespace covers it.
func (m *Model) listed(at *derive.Reads, name, owner string, was *Host) (*Host, bool) {
	if i := strings.IndexByte(name, '.'); i >= 0 && name[0] != '*' {
		if w, ok := m.wildcards.Get(at, "*"+name[i:]); ok && w.owner == owner {
			if paths, _ := m.linesOfHost.Get(at, name); paths == 0 {
				return nil, false
			}
		}
	}
	if was != nil && was.Namespace == owner {
		return was, true
	}
	return &Host{name, owner}, true
}

// belowDot makes the entry of a wildcard in the map of wildcards.
func belowDot(name string, h *Host, add func(string, *Host)) {
	if strings.HasPrefix(name, "*.") {
		add(name, &Host{strings.TrimPrefix(name, "*"), h.Namespace})
	}
}
