package derive

import "slices"

// GroupBy makes an index: the parts of all values, by group, in order. The function adds the
// parts of one value to their groups. It must depend only on its arguments, as it is called
// for former values too. compare must tell any two parts of a group apart. A group without
// parts does not exist. [Collection.Equal] of the result compares lists; by default all their
// parts, if their type is comparable. A change copies the list of its group: see [SortBy] for
// groups of thousands.
func GroupBy[K comparable, V any, G comparable, P any](
	name string,
	from *Collection[K, V],
	split func(key K, value V, add func(G, P)),
	compare func(a, b P) int,
) *Collection[G, []P] {
	c, wait := newGroups(from.g, name, listsOf[G](compare))
	splitInto(from, split, wait)
	return c
}

// splitInto keeps groups up to date with the parts of the values of a collection.
func splitInto[K comparable, V any, G comparable, P any](from *Collection[K, V], split func(key K, value V, add func(G, P)), wait func(G, P, bool, ref)) {
	from.listeners = append(from.listeners, func(of int32, key K, was, is V, had, has bool) {
		why := refOf(from.id, of)
		if had {
			split(key, was, func(g G, p P) { wait(g, p, false, why) })
		}
		if has {
			split(key, is, func(g G, p P) { wait(g, p, true, why) })
		}
	})
}

// edits are the parts that leave a group, and those that join it.
type edits[P any] struct{ gone, come []P }

// groupKind says what the value of a group is: a list L of parts P.
type groupKind[G comparable, P, L any] struct {
	apply func(e *edits[P], list L) L // the same list, if nothing differs
	len   func(L) int
	equal func(a, b L) bool
}

// listsOf are groups whose values are slices.
func listsOf[G comparable, P any](compare func(a, b P) int) groupKind[G, P, []P] {
	equal := defaultEqual[P]()
	return groupKind[G, P, []P]{
		apply: func(e *edits[P], list []P) []P {
			if !e.sort(compare, equal) {
				return list
			}
			return e.apply(list, compare)
		},
		len:   func(list []P) int { return len(list) },
		equal: func(a, b []P) bool { return slices.EqualFunc(a, b, equal) },
	}
}

func newGroups[G comparable, P, L any](g *Graph, name string, kind groupKind[G, P, L]) (c *Collection[G, L], wait func(G, P, bool, ref)) {
	c = newCollection[G, L](g, name)
	c.equal = kind.equal
	waiting := map[int32]*edits[P]{}
	c.make = func(_ *Reads, slot int32) (L, bool) {
		list := c.items[slot].value
		if e := waiting[slot]; e != nil {
			list = kind.apply(e, list)
			delete(waiting, slot)
		}
		return list, kind.len(list) > 0
	}
	c.forget = func() { clear(waiting) }
	return c, func(of G, part P, comes bool, why ref) {
		slot := c.slot(of)
		e := waiting[slot]
		if e == nil {
			e = &edits[P]{}
			waiting[slot] = e
		}
		if comes {
			e.come = append(e.come, part)
		} else {
			e.gone = append(e.gone, part)
		}
		c.mark(slot, why)
	}
}

// sort puts the edits in order, and reports whether they change anything.
func (e *edits[P]) sort(compare func(a, b P) int, equal func(a, b P) bool) bool {
	slices.SortStableFunc(e.gone, compare)
	slices.SortStableFunc(e.come, compare)
	return !slices.EqualFunc(e.gone, e.come, equal)
}

// apply returns another list: that after the sorted edits. A part that came and went several
// times counts as often, and as it came last.
func (e *edits[P]) apply(list []P, compare func(a, b P) int) []P {
	gone, come := e.gone, e.come
	now := make([]P, 0, max(0, len(list)+len(come)-len(gone)))
	for len(gone)+len(come) > 0 {
		part := come
		if len(come) == 0 || len(gone) > 0 && compare(gone[0], come[0]) < 0 {
			part = gone
		}
		one := part[0]
		at, _ := slices.BinarySearchFunc(list, one, compare)
		now, list = append(now, list[:at]...), list[at:]
		was, goes, comes := countOf(list, one, compare), countOf(gone, one, compare), countOf(come, one, compare)
		if comes > 0 {
			one = come[comes-1]
		} else if was > 0 {
			one = list[0]
		}
		for range was + comes - goes {
			now = append(now, one)
		}
		list, gone, come = list[was:], gone[goes:], come[comes:]
	}
	return append(now, list...)
}

// countOf counts the parts at the front of a list that are the same as one.
func countOf[P any](list []P, one P, compare func(a, b P) int) (n int) {
	for n < len(list) && compare(list[n], one) == 0 {
		n++
	}
	return n
}

// Sum adds up amounts by group, so that the cost of a change does not depend on the size of
// the group. The function adds the amounts of one value, and must depend only on its
// arguments. A sum of zero does not exist.
func Sum[K comparable, V any, G comparable](name string, from *Collection[K, V], amounts func(key K, value V, add func(G, int))) *Collection[G, int] {
	c := newCollection[G, int](from.g, name)
	waiting := map[int32]int{}
	c.make = func(_ *Reads, slot int32) (int, bool) {
		sum := c.items[slot].value + waiting[slot]
		delete(waiting, slot)
		return sum, sum != 0
	}
	c.forget = func() { clear(waiting) }
	add := func(why ref, sign int) func(G, int) {
		return func(of G, n int) {
			if n != 0 {
				slot := c.slot(of)
				waiting[slot] += sign * n
				c.mark(slot, why)
			}
		}
	}
	from.listeners = append(from.listeners, func(of int32, key K, was, is V, had, has bool) {
		if why := refOf(from.id, of); had || has {
			if had {
				amounts(key, was, add(why, -1))
			}
			if has {
				amounts(key, is, add(why, 1))
			}
		}
	})
	return c
}

// Report adds a report to the item that is being computed, such as a refusal or a warning. It
// is gone once the item is computed without it. [Reports] collects them.
func Report[R any](at *Reads, report R) { at.reports = append(at.reports, report) }

// Reports groups all reports of type R of the collections made before it, as [GroupBy] does.
// Equal reports of several items count several times.
func Reports[R any, G comparable](g *Graph, name string, group func(R) G, compare func(a, b R) int) *Collection[G, []R] {
	c, wait := newGroups(g, name, listsOf[G](compare))
	addAll := func(all []any, come bool) {
		for _, one := range all {
			if r, ok := one.(R); ok {
				wait(group(r), r, come, noRef)
			}
		}
	}
	g.indexes = append(g.indexes, reportIndex{c.id, func(gone, come []any) {
		addAll(gone, false)
		addAll(come, true)
	}})
	return c
}
