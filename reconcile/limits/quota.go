package limits

import (
	"cmp"
	"fmt"

	"github.com/hapticsdk/haptic/k8swatch/derive"
)

// Bound is what namespaces may take of something.
type Bound struct {
	Name      string // what its flags begin with: "servers" of servers-per-namespace and servers-of-all
	Namespace int    // for one namespace
	All       int    // for all namespaces together; 0: no bound
	Scale     int    // amounts are so many times the numbers of the flags; 0: as many
}

// Quota is what each namespace may take of a [Bound]: the bound of a namespace, or less where
// all together ask for more than there is. Those that ask for little then keep it, and the
// rest is shared in equal parts. So no namespace takes what another needs.
type Quota struct {
	bound Bound
	level *derive.Collection[struct{}, int] // no item: nothing is asked for, or there is no bound of all
}

// NewQuota makes the quota of a bound. sums are the amounts that namespaces ask for.
func NewQuota(name string, sums *derive.Collection[string, int], bound Bound) *Quota {
	q := &Quota{bound: bound}
	if bound.All == 0 {
		return q
	}
	asked := func(n int) int { return min(n, bound.Namespace) }
	total := derive.Sum(name+", of all", sums, func(_ string, n int, add func(struct{}, int)) { add(struct{}{}, asked(n)) })
	sorted := derive.Sorted(name+", by amount", sums, cmp.Compare[int])
	q.level = derive.Each(name+", of each", total, func(at *derive.Reads, _ struct{}, n, _ int) (int, bool) {
		if n <= bound.All {
			return bound.Namespace, true
		}
		all, left := sorted.Get(at), bound.All
		waiting := all.Len()
		for sum := range all.All() {
			equal := left / waiting
			if asked(sum) > equal {
				return equal, true
			}
			left, waiting = left-asked(sum), waiting-1
		}
		return bound.Namespace, true
	})
	return q
}

// Most returns how much a namespace may take.
func (q *Quota) Most(at *derive.Reads) int {
	if q.level == nil {
		return q.bound.Namespace
	}
	if level, ok := q.level.Get(at, struct{}{}); ok {
		return level
	}
	return q.bound.Namespace
}

// Over says what a namespace exceeds, with the flag that changes it: "more than the 100 servers
// of one namespace (servers-per-namespace)".
func (q *Quota) Over(at *derive.Reads, things string) string {
	scale := max(1, q.bound.Scale)
	if most := q.Most(at); most < q.bound.Namespace {
		return fmt.Sprintf("more than %s %s, its share of the %s of all namespaces (%s-of-all)",
			Figure(most/scale), things, Figure(q.bound.All/scale), q.bound.Name)
	}
	return fmt.Sprintf("more than the %s %s of one namespace (%s-per-namespace)", Figure(q.bound.Namespace/scale), things, q.bound.Name)
}
