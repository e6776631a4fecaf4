package derive

// Input is a collection whose values come from outside.
type Input[K comparable, V any] struct{ *Collection[K, V] }

// NewInput makes an input. name is for errors and explanations.
func NewInput[K comparable, V any](g *Graph, name string) *Input[K, V] {
	return &Input[K, V]{newCollection[K, V](g, name)}
}

// Set gives a key a value, in the open transaction. It opens one if there is none.
func (in *Input[K, V]) Set(key K, value V) { in.set(key, value, true) }

// Delete removes the value of a key, in the open transaction.
func (in *Input[K, V]) Delete(key K) {
	if in.find(key) != nil {
		var none V
		in.set(key, none, false)
	}
}

func (in *Input[K, V]) set(key K, value V, has bool) {
	in.g.begin()
	slot := in.slot(key)
	in.put(slot, value, has)
	if it := in.at(slot); it.undo > 0 {
		it.when = int32(in.g.number)
	}
}

// Each makes a collection with one item for each value of another, by the same keys. The
// function returns the item, and whether there is one. was is its last accepted value: the
// zero value if there was none. The function must depend only on its arguments and on what
// it reads with at.
func Each[K comparable, V, R any](name string, from *Collection[K, V], item func(at *Reads, key K, value V, was R) (R, bool)) *Collection[K, R] {
	c := newCollectionOf[K, R](from.g, name, from.index)
	c.make = func(at *Reads, slot int32) (r R, has bool) {
		if of := from.at(slot); of.has {
			return item(at, c.index.keys[slot], of.value, c.was(slot))
		}
		return r, false
	}
	follow(c, from)
	return c
}

// follow marks the item of each key that gets another value.
func follow[K comparable, V, R any](c *Collection[K, R], from *Collection[K, V]) {
	from.listeners = append(from.listeners, func(slot int32, _ K, _, _ V, _, _ bool) {
		c.reserve(len(from.items))
		c.mark(slot, refOf(from.id, slot))
	})
}

// Batch makes a collection as [Each] does, for items that are computed together at a fraction
// of the cost. The items of a group have one function call, one list of reads, and share an
// error. Only items that must be computed are among keys. The function returns one item a key.
func Batch[K comparable, V, R any](name string, from *Collection[K, V], group func(K) any, items func(at *Reads, keys []K) []R) *Collection[K, R] {
	c := newCollectionOf[K, R](from.g, name, from.index)
	c.group = group
	c.batch = func(at *Reads, slots []int32) []made[R] {
		all, keys := make([]made[R], len(slots)), make([]K, 0, len(slots))
		for i, slot := range slots {
			all[i].has = from.at(slot).has
			if all[i].has {
				keys = append(keys, c.index.keys[slot])
			}
		}
		if len(keys) == 0 {
			return all
		}
		values := items(at, keys)
		for i := range all {
			if all[i].has && at.err == nil {
				all[i].value, values = values[0], values[1:]
			}
		}
		return all
	}
	follow(c, from)
	return c
}

// Value is a single computed value.
type Value[V any] struct{ c *Collection[struct{}, V] }

// One makes a single value. It is computed again if something changes that it read.
func One[V any](g *Graph, name string, value func(at *Reads, was V) V) Value[V] {
	c := newCollection[struct{}, V](g, name)
	c.make = func(at *Reads, slot int32) (V, bool) { return value(at, c.was(slot)), true }
	c.single = true
	c.mark(c.slot(struct{}{}), noRef)
	return Value[V]{c}
}

// Equal is [Collection.Equal].
func (v Value[V]) Equal(equal func(a, b V) bool) Value[V] {
	v.c.equal = equal
	return v
}

// Get returns the value. at is nil outside of a function.
func (v Value[V]) Get(at *Reads) V {
	value, _ := v.c.Get(at, struct{}{})
	return value
}

// Merge makes a collection of the values of two. A key that both have gets the value of a.
func Merge[K comparable, V any](name string, a, b *Collection[K, V]) *Collection[K, V] {
	c := newCollection[K, V](a.g, name)
	c.make = func(_ *Reads, slot int32) (V, bool) {
		key := c.index.keys[slot]
		if v, ok := a.Get(nil, key); ok {
			return v, true
		}
		return b.Get(nil, key)
	}
	for _, from := range []*Collection[K, V]{a, b} {
		from.listeners = append(from.listeners, func(of int32, key K, _, _ V, _, _ bool) {
			c.mark(c.slot(key), refOf(from.id, of))
		})
	}
	return c
}
