package derive

// index gives each key a slot. Collections that are made item by item of one another share
// it: a key has one slot in all of them.
type index[K comparable] struct {
	slots map[K]int32
	keys  []K // by slot
	free  []int32
	users []indexUser
}

// indexUser is a collection with that index.
type indexUser interface {
	uses(slot int32) bool
	empty(slot int32)
}

func newIndex[K comparable]() *index[K] { return &index[K]{slots: map[K]int32{}} }

// slot returns the slot of a key, and whether it is a new one.
func (x *index[K]) slot(key K) (slot int32, fresh bool) {
	if slot, ok := x.slots[key]; ok {
		return slot, false
	}
	slot = int32(len(x.keys))
	if n := len(x.free); n > 0 {
		slot, x.free = x.free[n-1], x.free[:n-1]
		x.keys[slot] = key
	} else {
		x.keys = append(x.keys, key)
	}
	x.slots[key] = slot
	return slot, true
}

// release frees a slot that no collection uses.
func (x *index[K]) release(slot int32) {
	if at, there := x.slots[x.keys[slot]]; !there || at != slot {
		return // it is free
	}
	for _, user := range x.users {
		if user.uses(slot) {
			return
		}
	}
	for _, user := range x.users {
		user.empty(slot)
	}
	var none K
	delete(x.slots, x.keys[slot])
	x.keys[slot] = none
	x.free = append(x.free, slot)
}

// reserve makes room for the keys of the first transaction.
func (x *index[K]) reserve(n int) {
	if len(x.keys) == 0 {
		x.slots, x.keys = make(map[K]int32, n), make([]K, 0, n)
	}
}
