package derive

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"runtime/debug"
	"slices"
	"time"
)

// Reads notes what the function of an item reads. It is valid until the function returns.
type Reads struct {
	g       *Graph
	node    int
	ctx     context.Context
	list    []ref
	reports []any
	again   time.Time
	err     error
}

func (r *Reads) note(of ref) {
	if n := len(r.list); n == 0 || r.list[n-1] != of {
		r.list = append(r.list, of)
	}
}

// Context is that of [Graph.Run].
func (r *Reads) Context() context.Context { return r.ctx }

// Now is the time at which Run began. It is not a read: see [Reads.Again].
func (r *Reads) Now() time.Time { return r.g.now }

// Again has the item computed again at an instant, if nothing that it read changes before.
// [Graph.Next] says when to call Run. The earliest of several calls counts; an instant that
// is not after Now does not.
func (r *Reads) Again(when time.Time) {
	if when.After(r.g.now) && (r.again.IsZero() || when.Before(r.again)) {
		r.again = when
	}
}

// Fail makes Run return an error for this item; what the function returns does not count.
func (r *Reads) Fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

func (c *Collection[K, V]) setAgain(slot int32, when time.Time) {
	if when.Equal(c.again[slot]) {
		return
	}
	c.log(slot)
	if when.IsZero() {
		delete(c.again, slot)
		return
	}
	if c.again == nil {
		c.again = map[int32]time.Time{}
	}
	c.again[slot] = when
	c.g.addDue(due{when, refOf(c.id, slot)})
}

// ItemError is an item that could not be computed: its function panicked or called
// [Reads.Fail].
type ItemError struct {
	Item  Read   // its collection and key
	Reads []Read // what it had read by then
	Err   error
	Stack []byte // of a panic
}

func newItemError(at *Reads, key, cause any) *ItemError {
	e := &ItemError{Item: Read{at.g.nodes[at.node].label(), key, true}}
	err, ok := cause.(error)
	if !ok || at.err == nil {
		e.Stack = debug.Stack()
		err = fmt.Errorf("panic: %v", cause)
	}
	e.Err = err
	slices.Sort(at.list)
	for _, r := range slices.Compact(at.list) {
		e.Reads = append(e.Reads, at.g.read(r))
	}
	return e
}

func (e *ItemError) Error() string { return fmt.Sprintf("%s: %v", e.Item, e.Err) }

// Unwrap returns the cause.
func (e *ItemError) Unwrap() error { return e.Err }

// readers are the items that read an item: few of most, and thousands of some.
type readers struct {
	few  []ref
	many map[ref]struct{}
}

const manyReaders = 64

func (r *readers) any() bool { return r != nil && len(r.few)+len(r.many) > 0 }

func (r *readers) add(of ref) {
	switch {
	case r.many != nil:
		r.many[of] = struct{}{}
	case len(r.few) < manyReaders:
		r.few = append(r.few, of)
	default:
		r.many = make(map[ref]struct{}, 2*manyReaders)
		for _, one := range append(r.few, of) {
			r.many[one] = struct{}{}
		}
		r.few = nil
	}
}

func (r *readers) drop(of ref) {
	if delete(r.many, of); r.many != nil {
		return
	}
	if i := slices.Index(r.few, of); i >= 0 {
		last := len(r.few) - 1
		r.few[i] = r.few[last]
		r.few = r.few[:last]
	}
}

func (r *readers) all() iter.Seq[ref] {
	switch {
	case r == nil:
		return func(func(ref) bool) {}
	case r.many != nil:
		return maps.Keys(r.many)
	}
	return slices.Values(r.few)
}

// Explanation says how the value of a key came about.
type Explanation struct {
	Item        Read
	Reads       []Read // besides the item or group that it is made of
	Transaction int    // the number of the one that computed it last
	Why         string // what changed then: an item, or "its time came"
}

// Explain says what the item of a key read, and why it was computed. It returns false if
// there is no such item.
func (c *Collection[K, V]) Explain(key K) (e Explanation, ok bool) {
	it := c.find(key)
	if it == nil {
		return Explanation{}, false
	}
	slot := c.index.slots[key]
	e = Explanation{Item: c.g.read(refOf(c.id, slot)), Transaction: int(it.when), Why: "its time came"}
	for _, r := range it.reads {
		e.Reads = append(e.Reads, c.g.read(r))
	}
	switch {
	case c.make == nil:
		e.Why = "it was set"
	case it.why != noRef:
		e.Why = c.g.read(it.why).String() + " changed"
	}
	return e, it.has
}
