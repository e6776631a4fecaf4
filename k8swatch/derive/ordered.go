package derive

import (
	"fmt"
	"iter"
	"slices"
)

// Ordered is a sorted list. It is stored in chunks of a few hundred values, so that a change
// copies a chunk and not the list. Lists share their chunks: do not change them.
type Ordered[V any] struct {
	chunks [][]V // none is empty
	len    int
}

// chunkLen is the number of values of a new chunk. A chunk is split when it is twice as long.
const chunkLen = 256

// OrderedOf returns a list of values, in their order.
func OrderedOf[V any](values []V) Ordered[V] {
	return Ordered[V]{slices.Collect(slices.Chunk(values, chunkLen)), len(values)}
}

// Len is the number of values.
func (o Ordered[V]) Len() int { return o.len }

// All iterates over the values in order.
func (o Ordered[V]) All() iter.Seq[V] {
	return func(yield func(V) bool) {
		for _, chunk := range o.chunks {
			for _, v := range chunk {
				if !yield(v) {
					return
				}
			}
		}
	}
}

// Chunks returns the parts of the list. A part that two lists share has the same address in
// both, which tells without a look at each value what differs.
func (o Ordered[V]) Chunks() [][]V { return o.chunks }

// Slice returns the values as a new slice.
func (o Ordered[V]) Slice() []V { return slices.Concat(o.chunks...) }

// Whole is [Ordered.Slice], for users that do not know the type.
func (o Ordered[V]) Whole() any { return o.Slice() }

// String prints the values as those of a slice.
func (o Ordered[V]) String() string { return fmt.Sprint(o.Slice()) }

// same reports whether two lists are stored in the same place.
func (o Ordered[V]) same(other Ordered[V]) bool {
	return len(o.chunks) == len(other.chunks) && (o.len == 0 || &o.chunks[0] == &other.chunks[0])
}

// apply returns another list: that after the sorted edits.
func (o Ordered[V]) apply(e *edits[V], compare func(a, b V) int) Ordered[V] {
	gone, come, now := e.gone, e.come, Ordered[V]{chunks: make([][]V, 0, len(o.chunks)+1)}
	if len(o.chunks) == 0 {
		now.add(e.apply(nil, compare), compare)
	}
	for i, chunk := range o.chunks {
		var here edits[V]
		if i == len(o.chunks)-1 {
			here = edits[V]{gone, come}
		} else {
			next := o.chunks[i+1][0]
			here.gone, gone = before(gone, next, compare)
			here.come, come = before(come, next, compare)
		}
		if len(here.gone)+len(here.come) > 0 {
			chunk = here.apply(chunk, compare)
		}
		now.add(chunk, compare)
	}
	return now
}

// before splits sorted edits at a value.
func before[V any](all []V, at V, compare func(a, b V) int) (first, rest []V) {
	if len(all) == 0 {
		return nil, nil
	}
	i, _ := slices.BinarySearchFunc(all, at, compare)
	return all[:i], all[i:]
}

// add appends a chunk: split if it is long, and joined with the last one if both are short.
// Values that compare as equal stay together, so that their edits meet them all.
func (o *Ordered[V]) add(chunk []V, compare func(a, b V) int) {
	o.len += len(chunk)
	if last := len(o.chunks) - 1; last >= 0 && len(chunk)+len(o.chunks[last]) <= chunkLen/2 {
		o.chunks[last] = slices.Concat(o.chunks[last], chunk)
		return
	}
	for len(chunk) > 2*chunkLen {
		at := chunkLen
		for at < len(chunk) && compare(chunk[at-1], chunk[at]) == 0 {
			at++
		}
		o.chunks, chunk = append(o.chunks, slices.Clip(chunk[:at])), chunk[at:]
	}
	if len(chunk) > 0 {
		o.chunks = append(o.chunks, chunk)
	}
}

// SortBy is [GroupBy] for groups of thousands: a change costs as much in a large group as in a
// small one.
func SortBy[K comparable, V any, G comparable, P any](
	name string,
	from *Collection[K, V],
	split func(key K, value V, add func(G, P)),
	compare func(a, b P) int,
) *Collection[G, Ordered[P]] {
	equal := defaultEqual[P]()
	c, wait := newGroups(from.g, name, groupKind[G, P, Ordered[P]]{
		apply: func(e *edits[P], list Ordered[P]) Ordered[P] {
			if !e.sort(compare, equal) {
				return list
			}
			return list.apply(e, compare)
		},
		len:   Ordered[P].Len,
		equal: Ordered[P].same,
	})
	splitInto(from, split, wait)
	return c
}

// List is a sorted list of all values of a collection.
type List[V any] struct {
	c *Collection[struct{}, Ordered[V]]
}

// Sorted makes a list that stays sorted. compare must tell any two values apart.
func Sorted[K comparable, V any](name string, from *Collection[K, V], compare func(a, b V) int) List[V] {
	return List[V]{SortBy(name, from, func(_ K, v V, add func(struct{}, V)) { add(struct{}{}, v) }, compare)}
}

// Get returns the list. at is nil outside of a function.
func (l List[V]) Get(at *Reads) Ordered[V] {
	list, _ := l.c.Get(at, struct{}{})
	return list
}
