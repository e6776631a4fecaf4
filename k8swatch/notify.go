package k8swatch

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"
)

const (
	minRedeliver = 200 * time.Millisecond
	maxRedeliver = 10 * time.Second
)

// notifier calls OnChange and OnSyncComplete from one goroutine. It holds sums,
// not events: a slow callback costs no memory.
type notifier struct {
	log        *slog.Logger
	hold       time.Duration
	onChange   func(context.Context, Changes) error
	onSync     func(int)
	duringSync bool
	wake       chan struct{}

	mu      sync.Mutex
	pending Changes
	synced  int // count to deliver; -1 when there is none
}

func newNotifier(log *slog.Logger, hold time.Duration, onChange func(context.Context, Changes) error, onSync func(int), duringSync bool) *notifier {
	return &notifier{
		log: log, hold: debounce(hold), onChange: onChange, onSync: onSync, duringSync: duringSync,
		wake: make(chan struct{}, 1), synced: -1,
	}
}

func (n *notifier) add(c Changes) {
	if n.onChange == nil || (c.InitialSync && !n.duringSync) {
		return
	}
	n.mu.Lock()
	n.pending = n.pending.and(c)
	n.mu.Unlock()
	n.signal()
}

func (n *notifier) syncComplete(count int) {
	if n.onSync == nil {
		return
	}
	n.mu.Lock()
	n.synced = count
	n.mu.Unlock()
	n.signal()
}

func (n *notifier) signal() {
	select {
	case n.wake <- struct{}{}:
	default: // it is awake already, or about to be
	}
}

func (n *notifier) take() (c Changes, synced int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	c, synced = n.pending, n.synced
	n.pending, n.synced = Changes{}, -1
	return c, synced
}

// run delivers until ctx ends: the first change at once, then no more than one
// call per hold time, or back-off time after a failure.
func (n *notifier) run(ctx context.Context) {
	var retry time.Duration
	for {
		select {
		case <-n.wake:
		case <-ctx.Done():
			return
		}
		c, synced := n.take()
		var pause time.Duration
		if c.Total() > 0 {
			pause = n.hold
			if err := n.deliver(ctx, c); err == nil {
				retry = 0
			} else if ctx.Err() == nil {
				retry = min(max(2*retry, minRedeliver), maxRedeliver)
				pause = retry
				n.log.Error("OnChange failed; it will be called again", "in", retry, "error", err)
				n.again(c)
			}
		}
		if synced >= 0 {
			if err := guard(func() error { n.onSync(synced); return nil }); err != nil {
				n.log.Error("OnSyncComplete failed", "error", err)
			}
		}
		if !sleep(ctx, pause) {
			return
		}
	}
}

func (n *notifier) deliver(ctx context.Context, c Changes) error {
	return guard(func() error { return n.onChange(ctx, c) })
}

// again puts changes that were not taken back in front of newer ones.
func (n *notifier) again(c Changes) {
	n.mu.Lock()
	n.pending = c.and(n.pending)
	n.mu.Unlock()
	n.signal()
}

// guard turns a panic of a callback into an error with its stack.
func guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return f()
}

func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
