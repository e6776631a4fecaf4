package templating

import (
	"context"
	"fmt"
	"runtime"
	"runtime/metrics"
	"time"
)

// DefaultMaxMemory bounds how much the heap may grow during a render, unless
// [Options.MaxMemory] is set: 512 MiB.
const DefaultMaxMemory = 512 << 20

// watchEvery is the interval at which watch reads the memory of a long render. It does not
// watch a shorter render: other bounds limit each single step.
const watchEvery = 5 * time.Millisecond

// watch ends the returned context, with a cause that wraps ErrTooLarge, when the heap of
// the process grows by more than a bound. It covers all memory of a render: joined texts,
// lists, maps, and the notes about lines. end ends the watch.
func watch(ctx context.Context, most int) (watched context.Context, end func()) {
	watched, cancel := context.WithCancelCause(ctx)
	done, ended := make(chan struct{}), make(chan struct{})
	timer := time.AfterFunc(watchEvery, func() {
		defer close(ended)
		if grows(done, uint64(most)) {
			cancel(fmt.Errorf("%w: the process took more than %d bytes of memory more while this was rendered", ErrTooLarge, most))
		}
	})
	return watched, func() {
		close(done)
		if !timer.Stop() {
			<-ended
		}
		cancel(nil)
	}
}

// grows waits until the heap has grown by more than a bound, and reports true, or until
// done is closed. It collects garbage before it reports true, unless the heap has grown by
// twice the bound.
func grows(done <-chan struct{}, most uint64) bool {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	heap := func() uint64 {
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	bound := heap() + most
	for limit := bound; ; {
		now := heap()
		if now+most < bound { // a part of the heap at the start was garbage
			bound = now + most
			limit = bound
		}
		if now > bound+most {
			return true
		}
		if now > limit {
			runtime.GC()
			now = heap()
			if now > bound {
				return true
			}
			limit = max(bound, now+most/2)
		}
		select {
		case <-done:
			return false
		case <-tick.C:
		}
	}
}
