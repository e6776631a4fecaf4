package limits

import (
	"cmp"
	"iter"
	"maps"
	"math"

	"github.com/hapticsdk/haptic/k8swatch/derive"
)

// Order lists the items of a namespace. The first of them get what a [Budget] has.
type Order[K comparable] func(at *derive.Reads, namespace string) iter.Seq[K]

// OrderOf orders the items of a collection, for several budgets. split returns the namespace
// of an item, and by what to compare it, for example its age. keys decides where that is equal.
func OrderOf[K comparable, V, P any](name string, from *derive.Collection[K, V], split func(K, V) (namespace string, by P),
	compare func(a, b P) int, keys func(a, b K) int) Order[K] {
	type item struct {
		key K
		by  P
	}
	all := derive.SortBy(name, from, func(k K, v V, add func(string, item)) {
		namespace, by := split(k, v)
		add(namespace, item{k, by})
	}, func(a, b item) int { return cmp.Or(compare(a.by, b.by), keys(a.key, b.key)) })
	return func(at *derive.Reads, namespace string) iter.Seq[K] {
		list, _ := all.Get(at, namespace)
		return func(yield func(K) bool) {
			for one := range list.All() {
				if !yield(one.key) {
					return
				}
			}
		}
	}
}

// Budget shares what a namespace may take of something among the items that ask for it. The
// first in an order get it. It costs little while all asks together fit.
type Budget[K comparable] struct {
	*Quota
	crowded *derive.Collection[string, bool]
	shares  *derive.Collection[string, map[K]int]
}

// Cut says what becomes of an item that asks for more than is left.
type Cut int

const (
	Part  Cut = iota // it gets what is left
	Whole            // it gets zero
)

// NewBudget makes a budget of the items of a collection. amount says what an item asks for, and
// of which namespace; it must depend only on its arguments.
func NewBudget[K comparable, V any](name string, from *derive.Collection[K, V], amount func(K, V) (namespace string, n int),
	order Order[K], bound Bound, cut Cut) *Budget[K] {
	sums := derive.Sum(name, from, func(k K, v V, add func(string, int)) { add(amount(k, v)) })
	b := &Budget[K]{Quota: NewQuota(name, sums, bound)}
	b.crowded = derive.Each(name+", crowded", sums, func(at *derive.Reads, namespace string, n int, _ bool) (bool, bool) {
		return true, n > b.Most(at, namespace)
	})
	b.shares = derive.Each(name+", shares", b.crowded, func(at *derive.Reads, namespace string, _ bool, _ map[K]int) (map[K]int, bool) {
		shares, left := map[K]int{}, b.Most(at, namespace)
		for k := range order(at, namespace) {
			v, ok := from.Get(at, k)
			if !ok {
				continue
			}
			_, n := amount(k, v)
			if n > left && cut == Whole {
				n = 0
			}
			n = min(n, left)
			shares[k], left = n, left-n
		}
		return shares, true
	}).Equal(maps.Equal)
	return b
}

// Share returns how much of its ask an item gets. It is [math.MaxInt] while all asks of the
// namespace fit, and otherwise zero for an item that did not ask.
func (b *Budget[K]) Share(at *derive.Reads, namespace string, item K) int {
	if crowded, _ := b.crowded.Get(at, namespace); !crowded {
		return math.MaxInt
	}
	shares, _ := b.shares.Get(at, namespace)
	return shares[item]
}
