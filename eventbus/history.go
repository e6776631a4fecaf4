package eventbus

import (
	"cmp"
	"reflect"
	"slices"
)

// Begin says where a subscription begins that is made after [Bus.Start]; see
// [Policy.From].
type Begin int

const (
	// Now receives what is published from now on. It is the default.
	Now Begin = iota
	// Last receives the newest event there was first: of the type E, or, where E
	// is an interface, of each type that implements it.
	Last
	// Everything receives what the bus keeps first: see [Options].History. Where
	// that is not all there was, Missed of the first delivery says how many
	// events the history had let go.
	Everything
)

// String returns "now", "last" or "everything".
func (b Begin) String() string {
	switch b {
	case Now:
		return "now"
	case Last:
		return "last"
	case Everything:
		return "everything"
	}
	return "?"
}

// Unlimited, as [Options].History, keeps every event until the end of the bus.
const Unlimited = -1

// kept is an event of the history and its place in the order of the bus.
type kept struct {
	it  item
	seq uint64
}

// history keeps the newest events of one type for late subscribers. Bus.mu
// guards it.
type history struct {
	limit int // below 0: none
	ring  []kept
	next  int    // place in a full ring of the oldest
	total uint64 // events there ever were
}

func (h *history) add(it item, seq uint64) {
	h.total++
	if len(h.ring) != h.limit {
		h.ring = append(h.ring, kept{it, seq})
		return
	}
	h.ring[h.next] = kept{it, seq}
	if h.next++; h.next == h.limit {
		h.next = 0
	}
}

// newest returns the last event there was; there was one.
func (h *history) newest() kept {
	return h.ring[(h.next+len(h.ring)-1)%len(h.ring)]
}

// historyOf returns the history of events of type typ. The caller holds mu.
func (b *Bus) historyOf(typ reflect.Type) *history {
	h, ok := b.histories[typ]
	if !ok {
		h = &history{limit: b.keep}
		b.histories[typ] = h
	}
	return h
}

// backlog returns the events with which a subscription to typ begins, and how
// many it asked for that are gone. Whatever is published later has a higher
// place than all of them. The caller holds mu, as do publishers: putting them
// in order is left to the subscription.
func (b *Bus) backlog(typ reflect.Type, begin Begin) (events []kept, gone uint64) {
	if begin == Now {
		return nil, 0
	}
	for t, h := range b.histories {
		switch {
		case h.total == 0 || t != typ && (typ.Kind() != reflect.Interface || !t.Implements(typ)):
		case begin == Last:
			events = append(events, h.newest())
		default:
			events = append(events, h.ring...)
			gone += h.total - uint64(len(h.ring))
		}
	}
	return events, gone
}

func sortKept(events []kept) {
	slices.SortFunc(events, func(a, b kept) int { return cmp.Compare(a.seq, b.seq) })
}

// kept returns how many events the histories hold. The caller holds mu.
func (b *Bus) kept() (n uint64) {
	for _, h := range b.histories {
		n += uint64(len(h.ring))
	}
	return n
}
