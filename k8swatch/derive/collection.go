package derive

import (
	"context"
	"iter"
	"reflect"
	"slices"
	"time"
)

// Collection has values by key. It is an [Input], or computed from collections made before
// it. The values are shared: do not change them.
type Collection[K comparable, V any] struct {
	g         *Graph
	id        int
	name      string
	index     *index[K]
	items     []item[V] // by slot; see at
	equal     func(a, b V) bool
	make      func(at *Reads, slot int32) (V, bool) // nil for an input, and for batches
	batch     func(at *Reads, slots []int32) []made[V]
	group     func(key K) any // of a batch
	forget    func()          // drops what waits for make; nil: nothing does
	single    bool            // its only item exists from the beginning, see One
	dirty     []int32
	undo      []former[V]
	touched   []int32 // items that may be without use after the transaction
	reports   map[int32][]any
	again     map[int32]time.Time
	listeners []func(slot int32, key K, was, is V, had, has bool)
	count     int
	one       [1]made[V] // what make returned last
}

// item is a place for a value. It stays while the key has a value, or a reader waits for one.
type item[V any] struct {
	value   V
	reads   []ref    // sorted
	readers *readers // nil: none
	why     ref      // what marked it last
	when    int32    // the transaction that computed it
	undo    int32    // 1 + its place in Collection.undo; 0: not changed in this transaction
	has     bool
	dirty   bool
}

// made is what a function returned for an item.
type made[V any] struct {
	value V
	has   bool
}

// former is an item before the open transaction.
type former[V any] struct {
	slot  int32
	when  int32
	why   ref
	value V
	has   bool
	reads []ref
	*rare
}

// rare is what few items have.
type rare struct {
	reports []any
	again   time.Time
}

// reportIndex is a collection of reports. It gets those that go and come.
type reportIndex struct {
	node int
	add  func(gone, come []any)
}

func newCollection[K comparable, V any](g *Graph, name string) *Collection[K, V] {
	return newCollectionOf[K, V](g, name, newIndex[K]())
}

// newCollectionOf makes a collection that shares an index.
func newCollectionOf[K comparable, V any](g *Graph, name string, x *index[K]) *Collection[K, V] {
	c := &Collection[K, V]{g: g, name: name, index: x, equal: defaultEqual[V]()}
	c.id = g.add(c)
	x.users = append(x.users, c)
	return c
}

// defaultEqual compares values of comparable types; others always differ.
func defaultEqual[V any]() func(a, b V) bool {
	if t := reflect.TypeFor[V](); t.Comparable() && t.Kind() != reflect.Interface {
		return func(a, b V) bool { return any(a) == any(b) }
	}
	return func(a, b V) bool { return false }
}

// Equal sets the function that says whether a value is as before, so that nothing that read
// it is computed again. The default is == for comparable types, so pointers are equal if they
// are the same; values of other types always differ. Set it before the first transaction. It
// returns the collection.
func (c *Collection[K, V]) Equal(equal func(a, b V) bool) *Collection[K, V] {
	c.equal = equal
	return c
}

// Name is the name of the collection, for errors and explanations.
func (c *Collection[K, V]) Name() string { return c.name }

// Len is the number of values.
func (c *Collection[K, V]) Len() int { return c.count }

// Get returns the value of a key, and whether there is one. at notes the read, also of a
// missing key; outside of a function it is nil. A function can only read collections made
// before its own: otherwise Get panics.
func (c *Collection[K, V]) Get(at *Reads, key K) (V, bool) {
	if at == nil {
		if it := c.find(key); it != nil {
			return it.value, it.has
		}
		var none V
		return none, false
	}
	if at.node <= c.id {
		panic("derive: " + at.g.nodes[at.node].label() + " reads " + c.name + ", which is made after it")
	}
	slot := c.slot(key)
	at.note(refOf(c.id, slot))
	it := c.at(slot)
	return it.value, it.has
}

// find returns the item of a key; nil: there is none.
func (c *Collection[K, V]) find(key K) *item[V] {
	if slot, ok := c.index.slots[key]; ok && int(slot) < len(c.items) {
		return &c.items[slot]
	}
	return nil
}

// at returns the item of a slot. It is valid until another slot is asked for.
func (c *Collection[K, V]) at(slot int32) *item[V] {
	if more := len(c.index.keys) - len(c.items); int(slot) >= len(c.items) {
		c.items = append(c.items, make([]item[V], more)...)
	}
	return &c.items[slot]
}

// Was returns the value of a key before the open transaction. It is not a read. Callers outside
// of functions see with it what changed. A function gets its own last value, and uses Was only
// to tell a value that stood before from one that is as new as its own.
func (c *Collection[K, V]) Was(key K) (value V, had bool) {
	it := c.find(key)
	if it == nil || c.g.fresh {
		return value, false
	}
	if it.undo > 0 {
		return c.undo[it.undo-1].value, c.undo[it.undo-1].has
	}
	return it.value, it.has
}

// HasReaders reports whether a function read the value of a key, or that there is none. An
// input may drop a value that nothing reads.
func (c *Collection[K, V]) HasReaders(key K) bool {
	it := c.find(key)
	return it != nil && it.readers.any()
}

// All iterates over the values in no particular order. Functions cannot use it: a [Sorted]
// list can be read as a whole.
func (c *Collection[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for i := range c.items {
			if it := &c.items[i]; it.has && !yield(c.index.keys[i], it.value) {
				return
			}
		}
	}
}

// Changed iterates over the keys whose values differ from those before the open transaction.
func (c *Collection[K, V]) Changed() iter.Seq[K] {
	return func(yield func(K) bool) {
		for i := range c.items {
			if it := &c.items[i]; c.g.fresh && it.has && !yield(c.index.keys[i]) {
				return
			}
		}
		for i := range c.undo {
			f := &c.undo[i]
			if it := &c.items[f.slot]; (it.has != f.has || it.has && !c.equal(it.value, f.value)) && !yield(c.index.keys[f.slot]) {
				return
			}
		}
	}
}

// slot returns the place of a key, and makes one.
func (c *Collection[K, V]) slot(key K) int32 {
	slot, fresh := c.index.slot(key)
	if fresh {
		c.touched = append(c.touched, slot)
	}
	return slot
}

// reserve makes room for the items of the first transaction.
func (c *Collection[K, V]) reserve(n int) {
	if len(c.items) == 0 && c.g.fresh {
		c.index.reserve(n)
		c.items = make([]item[V], 0, n)
	}
}

// log keeps an item as it was before the transaction. The first transaction needs no log: it
// begins with nothing.
func (c *Collection[K, V]) log(slot int32) *item[V] {
	it := c.at(slot)
	if it.undo == 0 && !c.g.fresh {
		f := former[V]{slot: slot, when: it.when, why: it.why, value: it.value, has: it.has, reads: it.reads}
		if reports, again := c.reports[slot], c.again[slot]; len(reports) > 0 || !again.IsZero() {
			f.rare = &rare{reports, again}
		}
		c.undo = append(c.undo, f)
		it.undo = int32(len(c.undo))
		c.touched = append(c.touched, slot)
	}
	return it
}

// put changes the value of an item, and marks all that read it. A function that splits
// values into groups may panic here: then the transaction can only be rolled back.
func (c *Collection[K, V]) put(slot int32, value V, has bool) {
	defer func() {
		if p := recover(); p != nil {
			c.g.broken = newItemError(&Reads{g: c.g, node: c.id}, c.index.keys[slot], p)
		}
	}()
	it := c.at(slot)
	if it.has == has && (!has || c.equal(it.value, value)) {
		return
	}
	it = c.log(slot)
	former, existed := it.value, it.has
	if !has {
		var none V
		value = none
	}
	it.value, it.has = value, has
	if has != existed {
		c.count += map[bool]int{true: 1, false: -1}[has]
	}
	for r := range it.readers.all() {
		c.g.nodes[r.node()].mark(r.slot(), refOf(c.id, slot))
	}
	for _, listen := range c.listeners {
		listen(slot, c.index.keys[slot], former, value, existed, has)
	}
}

func (c *Collection[K, V]) label() string      { return c.name }
func (c *Collection[K, V]) key(slot int32) any { return c.index.keys[slot] }
func (c *Collection[K, V]) isDirty() bool      { return len(c.dirty) > 0 }
func (c *Collection[K, V]) changedNow(slot int32) bool {
	return c.g.fresh || c.at(slot).undo > 0
}
func (c *Collection[K, V]) deadline(slot int32) time.Time { return c.again[slot] }

func (c *Collection[K, V]) addReader(slot int32, r ref) {
	it := c.at(slot)
	if it.readers == nil {
		it.readers = &readers{}
	}
	it.readers.add(r)
}

func (c *Collection[K, V]) dropReader(slot int32, r ref) {
	c.items[slot].readers.drop(r)
	c.touched = append(c.touched, slot)
}

func (c *Collection[K, V]) mark(slot int32, why ref) {
	if it := c.at(slot); !it.dirty {
		it.dirty = true
		c.log(slot).why = why
		c.dirty = append(c.dirty, slot)
	}
}

// markAll marks all items of a computed collection.
func (c *Collection[K, V]) markAll() {
	if c.make == nil && c.batch == nil {
		return
	}
	for i := range c.items {
		if it := &c.items[i]; it.has || len(it.reads) > 0 || len(c.reports[int32(i)]) > 0 {
			c.mark(int32(i), noRef)
		}
	}
}

// compute computes the marked items. Those that fail stay marked.
func (c *Collection[K, V]) compute(ctx context.Context) (errs []error) {
	todo := c.dirty
	c.dirty = nil
	if len(todo) == 0 {
		return nil
	}
	at := &Reads{g: c.g, node: c.id, ctx: ctx}
	for len(todo) > 0 {
		if err := ctx.Err(); err != nil || len(errs) == maxErrors {
			c.dirty = append(c.dirty, todo...)
			return append(errs, err)
		}
		n := c.batchSize(todo)
		at.reports, at.list, at.again, at.err = nil, at.list[:0], time.Time{}, nil
		if err := c.computeSome(at, todo[:n]); err != nil {
			c.dirty = append(c.dirty, todo[:n]...)
			errs = append(errs, err)
		}
		todo = todo[n:]
	}
	if c.forget != nil && len(errs) == 0 {
		c.forget()
	}
	return errs
}

// maxErrors bounds the errors of one Run.
const maxErrors = 100

// batchSize moves the items of the first one's batch to the front, and counts them.
func (c *Collection[K, V]) batchSize(todo []int32) int {
	if c.batch == nil {
		return 1
	}
	n, group := 1, c.group(c.index.keys[todo[0]])
	for i := 1; i < len(todo); i++ {
		if c.group(c.index.keys[todo[i]]) == group {
			todo[n], todo[i] = todo[i], todo[n]
			n++
		}
	}
	return n
}

// computeSome computes one item or, in a collection of batches, several that read the same.
func (c *Collection[K, V]) computeSome(at *Reads, slots []int32) error {
	all, err := c.call(at, slots)
	if err == nil {
		err = c.reportTo(at, slots[0])
	}
	if err != nil {
		return err
	}
	slices.Sort(at.list)
	reads, kept := slices.Compact(at.list), []ref(nil)
	for i, slot := range slots {
		it := c.log(slot)
		it.dirty, it.when = false, int32(c.g.number)
		c.g.computed++
		if !slices.Equal(it.reads, reads) {
			if kept == nil {
				kept = slices.Clip(slices.Clone(reads))
			}
			c.link(slot, kept)
		}
		c.setReportsOf(slot, at.reports)
		c.setAgain(slot, at.again)
		c.put(slot, all[i].value, all[i].has)
	}
	return c.g.broken
}

// call calls the function of an item, or of a batch. A panic is an error.
func (c *Collection[K, V]) call(at *Reads, slots []int32) (all []made[V], err error) {
	defer func() {
		if p := recover(); p != nil {
			err = newItemError(at, c.index.keys[slots[0]], p)
		}
	}()
	if c.batch != nil {
		all = c.batch(at, slots)
	} else {
		value, has := c.make(at, slots[0])
		c.one[0], all = made[V]{value, has}, c.one[:]
	}
	if at.err != nil {
		err = newItemError(at, c.index.keys[slots[0]], at.err)
	}
	return all, err
}

// reportTo checks that all collections of reports are made after this one.
func (c *Collection[K, V]) reportTo(at *Reads, slot int32) error {
	for _, l := range c.g.indexes {
		if l.node < c.id && len(at.reports) > 0 {
			return newItemError(at, c.index.keys[slot], "reports to "+c.g.nodes[l.node].label()+", which is made before it")
		}
	}
	return nil
}

// was is the last accepted value of an item.
func (c *Collection[K, V]) was(slot int32) V {
	it := &c.items[slot]
	switch {
	case c.g.fresh:
		var none V
		return none
	case it.undo > 0:
		return c.undo[it.undo-1].value
	}
	return it.value
}

// expire marks an item whose time has come.
func (c *Collection[K, V]) expire(slot int32) {
	c.mark(slot, noRef)
	c.setAgain(slot, time.Time{})
}

// link makes an item a reader of other items, in place of those that it read before. Several
// items may share the list.
func (c *Collection[K, V]) link(slot int32, reads []ref) {
	old, me := c.items[slot].reads, refOf(c.id, slot)
	if slices.Equal(old, reads) {
		return
	}
	c.log(slot).reads = reads
	for i, j := 0, 0; i < len(old) || j < len(reads); {
		switch {
		case j == len(reads) || i < len(old) && old[i] < reads[j]:
			c.g.nodes[old[i].node()].dropReader(old[i].slot(), me)
			i++
		case i == len(old) || reads[j] < old[i]:
			c.g.nodes[reads[j].node()].addReader(reads[j].slot(), me)
			j++
		default:
			i, j = i+1, j+1
		}
	}
}

func (c *Collection[K, V]) setReportsOf(slot int32, now []any) {
	was := c.reports[slot]
	if len(was)+len(now) == 0 {
		return
	}
	c.log(slot)
	c.setReports(slot, now)
	for _, l := range c.g.indexes {
		l.add(was, now)
	}
}

func (c *Collection[K, V]) setReports(slot int32, now []any) {
	if len(now) == 0 {
		delete(c.reports, slot)
		return
	}
	if c.reports == nil {
		c.reports = map[int32][]any{}
	}
	c.reports[slot] = now
}

// rollback restores the items as they were before the transaction.
func (c *Collection[K, V]) rollback() {
	for _, slot := range c.dirty {
		c.items[slot].dirty = false
	}
	c.dirty = nil
	if c.forget != nil {
		c.forget()
	}
	if c.g.fresh {
		c.clear()
		return
	}
	for i := range c.undo {
		f := &c.undo[i]
		c.link(f.slot, f.reads)
		it := &c.items[f.slot]
		if f.has != it.has {
			c.count += map[bool]int{true: 1, false: -1}[f.has]
		}
		it.value, it.has, it.when, it.why, it.reads = f.value, f.has, f.when, f.why, f.reads
		before := f.rare
		if before == nil {
			before = &rare{}
		}
		c.setReports(f.slot, before.reports)
		c.setAgain(f.slot, before.again)
	}
}

// clear makes the collection as it was before the first transaction.
func (c *Collection[K, V]) clear() {
	c.items, c.touched, c.reports, c.again, c.count = nil, nil, nil, nil, 0
	c.index.slots, c.index.keys, c.index.free = map[K]int32{}, nil, nil
	if c.single {
		var only K
		c.mark(c.slot(only), noRef)
	}
}

// settle ends a transaction: it forgets how items were, and frees those without use.
func (c *Collection[K, V]) settle() {
	for i := range c.undo {
		c.items[c.undo[i].slot].undo = 0
	}
	c.undo = reuse(c.undo)
	for _, slot := range c.touched {
		if !c.uses(slot) {
			c.index.release(slot)
		}
	}
	c.touched = reuse(c.touched)
}

// uses reports whether a slot has a value here, or something waits for one.
func (c *Collection[K, V]) uses(slot int32) bool {
	if int(slot) >= len(c.items) {
		return false
	}
	it := &c.items[slot]
	return it.has || it.dirty || it.readers.any() || len(it.reads) > 0 || len(c.reports[slot]) > 0
}

// empty forgets a slot that is not used.
func (c *Collection[K, V]) empty(slot int32) {
	delete(c.again, slot)
	if int(slot) < len(c.items) {
		c.items[slot] = item[V]{}
	}
}

// reuse empties a list, and gives back its memory after a large transaction.
func reuse[T any](list []T) []T {
	const large = 1000
	if cap(list) > large {
		return nil
	}
	clear(list)
	return list[:0]
}
