package eventbus

import "fmt"

// Policy says what a subscription does with events that come faster than its
// handler takes them. The zero value is [Lossless].
type Policy struct {
	begin  Begin
	lossy  int
	latest any // a func() queue[E] for the E of the subscription
}

// Lossless delivers every event, in order. It never drops and never holds up a
// publisher: what waits is kept in memory, and the most that ever waited is
// reported as the watermark.
var Lossless = Policy{}

// Latest delivers, of events with the same key that wait, only the newest. It
// takes the place of the oldest, so a key that changes without end neither
// starves nor is starved; keys are in the order of their first undelivered
// event. [Delivery.Missed] counts the events that the delivered one replaced.
//
// E must be the event type of the subscription; [Subscribe] panics otherwise.
// key must be pure and quick, as it runs under a lock of the subscription. An
// event for which it panics is dropped, logged and counted as a panic.
func Latest[E any, K comparable](key func(E) K) Policy {
	return Policy{latest: func() queue[E] { return &latestQueue[E, K]{key: key, at: map[K]uint64{}} }}
}

// Lossy keeps at most n events waiting (below 1 counts as 1) and drops the
// oldest for a newer one. [Delivery.Missed] counts the events that were
// dropped since the delivery before.
func Lossy(n int) Policy { return Policy{lossy: max(n, 1)} }

// From returns the policy for a subscription that, when it is made after
// [Bus.Start], begins with events of the past. They and those that are published
// meanwhile come in one order, each exactly once. The policy holds for them too:
// Latest(key).From(Everything) begins with the last value of each key.
//
// Before Start it changes nothing: all subscribers begin with the first event.
func (p Policy) From(begin Begin) Policy {
	p.begin = begin
	return p
}

// String returns "lossless", "latest" or "lossy(n)".
func (p Policy) String() string {
	switch {
	case p.latest != nil:
		return "latest"
	case p.lossy > 0:
		return fmt.Sprintf("lossy(%d)", p.lossy)
	}
	return "lossless"
}

// queue is what waits for a bounded subscriber. Its methods are called under
// subscriber.mu.
type queue[E any] interface {
	add(Delivery[E]) (lost int)
	next() (Delivery[E], bool)
	size() int
}

// lossyQueue is a ring that overwrites its oldest.
type lossyQueue[E any] struct {
	limit  int
	buf    []Delivery[E]
	first  int // index in buf of the oldest
	n      int
	missed uint64
}

func (q *lossyQueue[E]) add(d Delivery[E]) int {
	if q.n < q.limit && q.n == len(q.buf) {
		q.grow()
	}
	q.buf[(q.first+q.n)%len(q.buf)] = d
	if q.n < q.limit {
		q.n++
		return 0
	}
	q.first = (q.first + 1) % len(q.buf)
	q.missed++
	return 1
}

// grow doubles the ring, up to the limit: an idle observer with room for many
// events should not pay for it.
func (q *lossyQueue[E]) grow() {
	buf := make([]Delivery[E], min(q.limit, max(8, 2*len(q.buf))))
	for i := range q.n {
		buf[i] = q.buf[(q.first+i)%len(q.buf)]
	}
	q.buf, q.first = buf, 0
}

func (q *lossyQueue[E]) next() (Delivery[E], bool) {
	if q.n == 0 {
		return Delivery[E]{}, false
	}
	d := q.buf[q.first]
	q.buf[q.first] = Delivery[E]{} // do not keep what it points to
	q.first = (q.first + 1) % len(q.buf)
	q.n--
	d.Missed, q.missed = q.missed, 0
	return d, true
}

func (q *lossyQueue[E]) size() int { return q.n }

// latestQueue is a queue with one place for each key that waits.
type latestQueue[E any, K comparable] struct {
	key   func(E) K
	at    map[K]uint64 // place of a key, counted from the first ever
	base  uint64       // place of wait[0]
	wait  []keyed[E, K]
	taken int // leading entries of wait that were delivered
}

type keyed[E any, K comparable] struct {
	key K
	d   Delivery[E]
}

func (q *latestQueue[E, K]) add(d Delivery[E]) int {
	k := q.key(d.Event)
	if place, ok := q.at[k]; ok {
		old := &q.wait[place-q.base].d
		d.Missed = old.Missed + 1
		*old = d
		return 1
	}
	q.at[k] = q.base + uint64(len(q.wait))
	q.wait = append(q.wait, keyed[E, K]{k, d})
	return 0
}

func (q *latestQueue[E, K]) next() (Delivery[E], bool) {
	if q.taken == len(q.wait) {
		return Delivery[E]{}, false
	}
	e := q.wait[q.taken]
	q.wait[q.taken] = keyed[E, K]{} // do not keep what it points to
	q.taken++
	delete(q.at, e.key)
	if 2*q.taken >= len(q.wait) { // each entry is moved at most once per delivery
		n := copy(q.wait, q.wait[q.taken:])
		clear(q.wait[n:])
		q.wait = q.wait[:n]
		q.base += uint64(q.taken)
		q.taken = 0
	}
	return e.d, true
}

func (q *latestQueue[E, K]) size() int { return len(q.wait) - q.taken }
