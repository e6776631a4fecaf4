package limits

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/hapticsdk/haptic/k8swatch/derive"
)

// Bound is what namespaces may take of something.
type Bound struct {
	Name      string // what its flags begin with: "servers" of servers-per-namespace and servers-of-all
	Namespace int    // for one namespace
	All       int    // for all namespaces together; 0: no bound
	Item      int    // what a usual item takes; 0: 1
	Scale     int    // amounts are so many times the numbers of the flags; 0: as many
}

// Quota is what each namespace may take of a [Bound]: the bound of a namespace, or less where
// all together ask for more than there is. Namespaces that ask for less than an equal part get
// all of it. The others get equal parts of the rest or, where those are too small for an item,
// one item each while there is room: first those that had one before, then by name.
type Quota struct {
	bound Bound
	parts *derive.Collection[struct{}, *parts] // no item: nothing is asked for, or there is no bound of all
}

// parts are what namespaces get.
type parts struct {
	each int
	none map[string]bool // those without a part
}

func (p *parts) equal(other *parts) bool {
	return p.each == other.each && maps.Equal(p.none, other.none)
}

// ask is how much a namespace asks for.
type ask struct {
	namespace string
	n         int
}

func (a ask) compare(other ask) int {
	return cmp.Or(cmp.Compare(a.n, other.n), cmp.Compare(a.namespace, other.namespace))
}

// step is what namespaces ask for, and what they asked for in the last accepted transaction.
type step struct {
	sum          int
	asks, before derive.Ordered[ask]
}

// NewQuota makes the quota of a bound. sums are the amounts that namespaces ask for.
func NewQuota(name string, sums *derive.Collection[string, int], bound Bound) *Quota {
	q := &Quota{bound: bound}
	if bound.All == 0 {
		return q
	}
	total := derive.Sum(name+", of all", sums, func(_ string, n int, add func(struct{}, int)) { add(struct{}{}, min(n, bound.Namespace)) })
	sorted := derive.SortBy(name+", by amount", sums, func(namespace string, n int, add func(struct{}, ask)) {
		add(struct{}{}, ask{namespace, min(n, bound.Namespace)})
	}, ask.compare)
	steps := derive.Each(name+", before and now", total, func(at *derive.Reads, _ struct{}, n int, was *step) (*step, bool) {
		now := &step{sum: n}
		now.asks, _ = sorted.Get(at, struct{}{})
		if was != nil {
			now.before = was.asks
		}
		return now, true
	})
	q.parts = derive.Each(name+", of each", steps, func(_ *derive.Reads, _ struct{}, s *step, was *parts) (*parts, bool) {
		if s.sum <= bound.All {
			return &parts{each: bound.Namespace}, true
		}
		had := map[string]bool{}
		for a := range s.before.All() {
			had[a.namespace] = was == nil || !was.none[a.namespace]
		}
		return bound.share(s.asks.Slice(), had), true
	}).Equal((*parts).equal)
	return q
}

// share divides a bound among namespaces that ask for more than there is. had are those that
// had a part before.
func (b Bound) share(asks []ask, had map[string]bool) *parts {
	left, item := b.All, max(1, b.Item)
	for len(asks) > 0 && asks[0].n <= left/len(asks) {
		left, asks = left-asks[0].n, asks[1:]
	}
	if len(asks) == 0 || left/len(asks) >= item {
		return &parts{each: left / max(1, len(asks))}
	}
	now := &parts{each: item, none: map[string]bool{}}
	room := left / item
	slices.SortStableFunc(asks, func(x, y ask) int { // asks is a copy
		return cmp.Or(-compareBool(had[x.namespace], had[y.namespace]), cmp.Compare(x.namespace, y.namespace))
	})
	for _, a := range asks[min(room, len(asks)):] {
		now.none[a.namespace] = true
	}
	return now
}

func compareBool(x, y bool) int {
	switch {
	case x == y:
		return 0
	case x:
		return 1
	}
	return -1
}

// Most returns how much a namespace may take.
func (q *Quota) Most(at *derive.Reads, namespace string) int {
	if q.parts == nil {
		return q.bound.Namespace
	}
	p, ok := q.parts.Get(at, struct{}{})
	switch {
	case !ok:
		return q.bound.Namespace
	case p.none[namespace]:
		return 0
	}
	return p.each
}

// Over says what a namespace exceeds, with the flag that changes it: "more than the 100 servers
// of one namespace (servers-per-namespace)".
func (q *Quota) Over(at *derive.Reads, namespace, things string) string {
	scale := max(1, q.bound.Scale)
	if most := q.Most(at, namespace); most < q.bound.Namespace {
		return fmt.Sprintf("more than %s %s, its share of the %s of all namespaces (%s-of-all)",
			Figure(most/scale), things, Figure(q.bound.All/scale), q.bound.Name)
	}
	return fmt.Sprintf("more than the %s %s of one namespace (%s-per-namespace)", Figure(q.bound.Namespace/scale), things, q.bound.Name)
}
