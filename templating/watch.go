package templating

import (
	"context"
	"fmt"
	"runtime"
	"runtime/metrics"
	"time"
)

// DefaultMaxMemory is how much memory the process may take more while it renders
// unless [Options.MaxMemory] says otherwise: 512 MiB.
const DefaultMaxMemory = 512 << 20

// watchEvery is how often the memory of a long render is looked at. A short one is
// not watched at all: a single step that takes much is bounded before.
const watchEvery = 5 * time.Millisecond

// watch ends the returned context, with a cause that wraps ErrTooLarge, when the heap of
// the process grows by more than a bound. It sees all that a render takes: texts that
// are put together, lists, maps, and what is remembered of each line. end ends the watch.
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

// grows waits until the heap has grown by more than a bound and reports true, or until
// it is done. Garbage does not count: it is collected before the bound is said to be
// exceeded, unless that is exceeded twice over.
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
		if now+most < bound { // what the heap held at the start was garbage in part
			bound = now + most
			limit = bound
		}
		if now > bound+most {
			return true
		}
		if now > limit {
			runtime.GC()
			if now = heap(); now > bound {
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
