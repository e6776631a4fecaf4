package eventbus

import (
	"reflect"
	"sync"
)

// chunkSize is the number of events in a chunk: large enough that allocating
// one costs little per event, small enough that what it retains is little.
const chunkSize = 128

// chunk is one link of the log. items and next are written under Bus.mu and
// read without a lock: a reader looks only at what Bus.published covers, and
// the atomic store of published comes after the writes. A chunk is written to
// again only when subscriber.pos of all subscribers is beyond it, and that is
// stored after what was read, see Bus.reclaim.
type chunk struct {
	base  uint64 // number of events before items[0]
	items [chunkSize]item
	next  *chunk

	blocks []recycler // memory of items; under Bus.mu
}

// cursor is a place in the log: the next event to read is number pos, counted
// from 0, and lies in chunk or, when pos is just past its end, in chunk.next.
type cursor struct {
	chunk *chunk
	pos   uint64
}

// take returns the event at the cursor and moves on. The caller has made sure
// that pos is below Bus.published.
func (c *cursor) take() item {
	if c.pos-c.chunk.base == chunkSize {
		c.chunk = c.chunk.next
	}
	it := c.chunk.items[c.pos-c.chunk.base]
	c.pos++
	return it
}

// item is an event in the log: a *cell[E], or a *dynamic for those published
// through an interface type.
type item interface{ value() any }

type cell[E any] struct{ event E }

func (c *cell[E]) value() any { return c.event }

type dynamic struct{ event any }

func (d *dynamic) value() any { return d.event }

// as returns the event as an E, and whether it is one.
func as[E any](it item) (E, bool) {
	switch it := it.(type) {
	case *cell[E]:
		return it.event, true
	case *dynamic:
		e, ok := it.event.(E)
		return e, ok
	}
	var zero E
	return zero, false
}

// asInterface is as for an E that is an interface type. It copies the event to
// the heap, which as does not.
func asInterface[E any](it item) (E, bool) {
	e, ok := it.value().(E)
	return e, ok
}

func isInterface[E any]() bool { return reflect.TypeFor[E]().Kind() == reflect.Interface }

// slab hands out the cells of one event type for the chunk that is written to,
// so that publishing a struct takes no allocation of its own. Cells live as
// long as the chunk that refers to them.
type slab[E any] struct {
	history *history
	spare   sync.Pool // of *block[E]

	block *block[E] // cells come from here
	used  int       // cells handed out for the current chunk
	want  int       // the same for the chunk before: a good guess of what is needed
}

// block is memory for some cells of one chunk.
type block[E any] struct {
	slab   *slab[E]
	cells  []cell[E]
	prev   *block[E] // of the same chunk
	pinned bool      // the history may refer to it
}

// put stores e in a cell for c, which has room places left, 1 or more.
func (s *slab[E]) put(e E, c *chunk, room int) item {
	if s.block == nil || len(s.block.cells) == cap(s.block.cells) {
		s.grow(c, room)
	}
	b := s.block
	b.cells = append(b.cells, cell[E]{event: e})
	s.used++
	return &b.cells[len(b.cells)-1]
}

func (s *slab[E]) grow(c *chunk, room int) {
	n := min(room, max(s.want-s.used, s.used, 1))
	b, _ := s.spare.Get().(*block[E])
	if b == nil || cap(b.cells) < n {
		b = &block[E]{slab: s, cells: make([]cell[E], 0, n)}
	}
	b.prev, s.block = s.block, b
	c.blocks = append(c.blocks, b)
}

// reset lets go of the cells of a chunk that is full. What a history shorter than
// these keeps of them is copied, or one event would keep all in memory.
func (s *slab[E]) reset() {
	if s.used == 0 {
		s.want = 0
		return
	}
	if h := s.history; 0 < h.limit && h.limit < s.used {
		for i := range h.ring {
			if c, ok := h.ring[i].it.(*cell[E]); ok {
				c := *c
				h.ring[i].it = &c
			}
		}
	} else {
		for b := s.block; b != nil; b = b.prev {
			b.pinned = true
		}
	}
	s.block, s.want, s.used = nil, s.used, 0
}

// recycle gives back the memory of a block whose chunk nobody reads any more.
func (b *block[E]) recycle() {
	if b.pinned {
		return
	}
	clear(b.cells)
	b.cells, b.prev = b.cells[:0], nil
	b.slab.spare.Put(b)
}

type resetter interface{ reset() }

type recycler interface{ recycle() }

// reclaim gives back the chunks that all subscribers have left, to be written to
// again: a bus whose subscribers keep up allocates nothing. One who has read a
// chunk to its end still has to find the next one through it. The caller holds mu.
func (b *Bus) reclaim() {
	if !b.started || b.closed || b.head == b.tail {
		return
	}
	end := b.head.base + chunkSize
	if l := b.laggard; l != nil && l.pos.Load() <= end {
		return // as the last time
	}
	least := b.tail.base + 1
	b.laggard = nil
	for _, s := range b.subs {
		if pos := s.pos.Load(); pos < least {
			least, b.laggard = pos, s
		}
	}
	for b.head != b.tail && b.head.base+chunkSize < least {
		c := b.head
		b.head = c.next
		for _, bl := range c.blocks {
			bl.recycle()
		}
		clear(c.blocks)
		*c = chunk{blocks: c.blocks[:0]}
		b.spare.Put(c)
	}
}
