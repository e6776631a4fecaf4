package eventbus

import "reflect"

// chunkSize is the number of events in a chunk: large enough that allocating
// one costs little per event, small enough that what it retains is little.
const chunkSize = 128

// chunk is one link of the log. items and next are written under Bus.mu and
// read without a lock: a reader looks only at what Bus.published covers, and
// the atomic store of published comes after the writes.
type chunk struct {
	base  uint64 // number of events before items[0]
	items [chunkSize]item
	next  *chunk
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

	cells []cell[E]
	used  int // cells handed out for the current chunk
	want  int // the same for the chunk before: a good guess of what is needed
}

// put stores e; room is the number of places left in the chunk, 1 or more.
func (s *slab[E]) put(e E, room int) item {
	if len(s.cells) == cap(s.cells) {
		s.cells = make([]cell[E], 0, min(room, max(s.want, 2*cap(s.cells), 1)))
	}
	s.cells = append(s.cells, cell[E]{event: e})
	s.used++
	return &s.cells[len(s.cells)-1]
}

// reset lets go of the cells of a chunk that is full. What a history shorter than
// these keeps of them is copied, or one event would keep all in memory.
func (s *slab[E]) reset() {
	if h := s.history; 0 < h.limit && h.limit < s.used {
		for i := range h.ring {
			if c, ok := h.ring[i].it.(*cell[E]); ok {
				c := *c
				h.ring[i].it = &c
			}
		}
	}
	s.cells, s.want, s.used = nil, s.used, 0
}

type resetter interface{ reset() }
