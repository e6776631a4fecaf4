package eventbus

import "sync"

// defaultRing is the size of a zero Ring.
const defaultRing = 128

// Ring keeps the newest values added to it, such as a history of events or errors. It
// may be used by several goroutines. The zero value keeps 128.
type Ring[T any] struct {
	mu    sync.Mutex
	size  int
	buf   []T
	total uint64 // values ever added; in a full ring, the oldest is at total%size
}

// NewRing returns a ring that keeps n values, or 128 if n is below 1.
func NewRing[T any](n int) *Ring[T] { return &Ring[T]{size: n} }

// Add adds v. A full ring forgets its oldest value.
func (r *Ring[T]) Add(v T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.size < 1 {
		r.size = defaultRing
	}
	if len(r.buf) < r.size {
		r.buf = append(r.buf, v)
	} else {
		r.buf[r.total%uint64(r.size)] = v
	}
	r.total++
}

// All returns a copy of the kept values, the oldest first.
func (r *Ring[T]) All() []T {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last(len(r.buf))
}

// Last returns a copy of the newest n values, or of all if there are fewer. The oldest
// is first.
func (r *Ring[T]) Last(n int) []T {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last(n)
}

func (r *Ring[T]) last(n int) []T {
	n = max(0, min(n, len(r.buf)))
	out := make([]T, 0, n)
	for i := r.total - uint64(n); i < r.total; i++ {
		out = append(out, r.buf[i%uint64(r.size)])
	}
	return out
}
