package kit

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/reconcile"
)

// These are values of GOGC: garbage collection starts at this percentage of the memory in use.
// A start makes most of its garbage in one second, and the default of 100 would take a sixth
// of that time. GOMEMLIMIT bounds both.
const garbageAtStart, garbageAtRest = 300, 50

// boundGarbage collects rarely until the first configuration is there. From then on it gives
// memory back when nothing has happened for a while. It keeps a GOGC of the environment.
func (p *Process) boundGarbage() {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(garbageAtStart)
	completed := make(chan struct{}, 1)
	eventbus.Subscribe(p.Bus, func(context.Context, eventbus.Delivery[reconcile.ReconciliationCompleted]) {
		select {
		case completed <- struct{}{}:
		default:
		}
	})
	p.Go("memory", func(ctx context.Context) error { return giveBack(ctx, completed) })
}

// quiet is the time without a reconciliation after which memory is given back, and worthwhile
// how many bytes of garbage are worth the collection.
const quiet, worthwhile = 5 * time.Second, 16 << 20

// giveBack collects garbage after the first reconciliation, and after the last one of many.
func giveBack(ctx context.Context, completed <-chan struct{}) error {
	var first, rest bool = true, false
	timer := time.NewTimer(quiet)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-completed:
			timer.Reset(quiet)
			rest = true
			if first {
				debug.SetGCPercent(garbageAtRest)
				debug.FreeOSMemory()
				first = false
			}
		case <-timer.C:
			if rest && garbage() > worthwhile {
				debug.FreeOSMemory()
			}
			rest = false
		}
	}
}

// garbage is about how many bytes of the heap nothing uses.
func garbage() uint64 {
	all := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(all)
	objects, free, live := all[0].Value.Uint64(), all[1].Value.Uint64(), all[2].Value.Uint64()
	return max(objects, live) - live + free
}
