package claims

import (
	"cmp"
	"strings"
	"time"

	"github.com/hapticsdk/haptic/k8swatch/derive"
)

// wildcard is a wildcard with its owner.
type wildcard struct {
	host   string
	owner  string
	by     Claimant // the claim that won
	kept   bool     // it was the owner before
	shared bool
	gone   time.Time // of the tenure
}

// covers reports whether a wildcard takes a name below it from a claim.
func (w *wildcard) covers(claim Claimant) bool {
	return !w.shared && w.owner != claim.Namespace && (w.kept || w.by.Compare(claim) < 0)
}

// stands reports whether the wildcard was there before a claim.
func (w *wildcard) stands(claim Claimant) bool {
	return w.kept || w.shared || w.by.Compare(claim) < 0
}

// noWildcard covers no name.
func noWildcard() wildcard { return wildcard{shared: true} }

// wildcardClaims are the claims of a wildcard.
type wildcardClaims struct {
	host   string
	claims []Claimant
}

func (w wildcardClaims) compare(other wildcardClaims) int {
	return cmp.Or(cmp.Compare(len(w.host), len(other.host)), cmp.Compare(w.host, other.host))
}

// deriveWildcards finds the owners of wildcards: of all together, as one may cover another,
// and then of each, so that a name reads only those above it.
func (h *Hosts) deriveWildcards(g *derive.Graph, byHost *derive.Collection[string, []Claimant]) {
	claims := derive.GroupBy("claims of wildcards", byHost, func(host string, all []Claimant, add func(string, Claimant)) {
		if strings.HasPrefix(host, "*.") {
			for _, c := range all {
				add(host, c)
			}
		}
	}, Claimant.Compare)
	h.byLength = derive.GroupBy("wildcards by length", claims, func(host string, all []Claimant, add func(struct{}, wildcardClaims)) {
		add(struct{}{}, wildcardClaims{host, all})
	}, wildcardClaims.compare)
	h.settled = derive.One(g, "owners of wildcards", h.settle)
	h.anyWildcard = derive.One(g, "any wildcard", func(at *derive.Reads, _ bool) bool {
		_, has := h.byLength.Get(at, struct{}{})
		return has
	})
	h.wildcards = derive.Each("wildcards", claims, func(at *derive.Reads, host string, _ []Claimant, _ wildcard) (wildcard, bool) {
		w, ok := h.settled.Get(at)[host]
		return w, ok
	})
}

// settle finds the owners of all wildcards, the shortest first: a wildcard may cover another
// one.
func (h *Hosts) settle(at *derive.Reads, was map[string]wildcard) map[string]wildcard {
	now := map[string]wildcard{}
	all, _ := h.byLength.Get(at, struct{}{})
	for _, c := range all {
		last := was[c.host].owner
		if was == nil {
			last = h.orEarlier("", c.host)
		}
		by, kept, ok := firstClaim(c.claims, last, func(claim Claimant) bool {
			above := closest(c.host, func(host string) (wildcard, bool) { w, ok := now[host]; return w, ok && w.stands(claim) })
			return above.covers(claim)
		})
		if h.IsShared(c.host) {
			now[c.host] = wildcard{host: c.host, owner: AllNamespaces, by: c.claims[0], shared: true}
			continue
		}
		if ok {
			now[c.host] = wildcard{host: c.host, owner: by.Namespace, by: by, kept: kept}
		}
		if still, keeps := h.keeps(at, last, kept, was[c.host].gone); keeps {
			now[c.host] = wildcard{host: c.host, owner: last, kept: true, gone: still.gone}
		}
	}
	return now
}

// closest returns the closest wildcard above a host.
func closest(host string, get func(string) (wildcard, bool)) wildcard {
	name := strings.TrimPrefix(host, "*.")
	for i := strings.IndexByte(name, '.'); i >= 0; i = strings.IndexByte(name, '.') {
		if w, ok := get("*" + name[i:]); ok {
			return w
		}
		name = name[i+1:]
	}
	return noWildcard()
}

// above returns the closest wildcard above a host that has an owner and stands.
func (h *Hosts) above(at *derive.Reads, host string, stands func(*wildcard) bool) wildcard {
	if !h.anyWildcard.Get(at) {
		return noWildcard()
	}
	return closest(host, func(host string) (wildcard, bool) {
		w, ok := h.wildcards.Get(at, host)
		if was, had := h.wildcards.Was(host); had && was.owner == w.owner {
			w.kept = true
		}
		return w, ok && stands(&w)
	})
}
