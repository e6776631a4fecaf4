package k8swatch

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"
	"time"
)

const (
	minRedeliver = 200 * time.Millisecond
	maxRedeliver = 10 * time.Second
)

// notifier calls OnChange and OnSyncComplete from one goroutine. It holds sums and a
// bounded list, not events: a slow callback costs no memory.
type notifier struct {
	log        *slog.Logger
	hold       time.Duration
	onChange   func(context.Context, Changes) error
	onSync     func(int)
	duringSync bool
	max        int                              // of objects that are listed
	snapshot   func(with func()) *GroupSnapshot // calls with while nothing can change
	wake       chan struct{}
	forced     chan struct{} // ends a pause

	mu      sync.Mutex
	pending pending
	synced  int // count to deliver; -1 when there is none
}

func newNotifier(log *slog.Logger, hold time.Duration, onChange func(context.Context, Changes) error, onSync func(int), duringSync bool) *notifier {
	return &notifier{
		log: log, hold: debounce(hold), onChange: onChange, onSync: onSync, duringSync: duringSync,
		wake: make(chan struct{}, 1), forced: make(chan struct{}, 1), synced: -1,
	}
}

func (n *notifier) add(b batch) {
	if n.onChange == nil || (b.InitialSync && !n.duringSync) {
		return
	}
	n.mu.Lock()
	n.pending.max = n.max
	n.pending.add(b)
	n.mu.Unlock()
	n.signal()
}

// force has OnChange called at once, changes or not.
func (n *notifier) force() {
	if n.onChange == nil {
		return
	}
	n.mu.Lock()
	n.pending.max, n.pending.any = n.max, true
	n.mu.Unlock()
	n.signal()
	select {
	case n.forced <- struct{}{}:
	default:
	}
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

// run delivers until ctx ends: the first change at once, then no more than one
// call per hold time, or back-off time after a failure.
func (n *notifier) run(ctx context.Context) {
	retry, failures, said := backoff(minRedeliver, maxRedeliver, 0), 0, ""
	for {
		select {
		case <-n.wake:
		case <-ctx.Done():
			return
		}
		p, synced := n.take()
		if !p.InitialSync {
			n.tellSynced(synced)
		}
		var pause time.Duration
		if p.any {
			pause = n.hold
			err := guard(func() error { return n.onChange(ctx, p.changes()) })
			if err == nil {
				if failures > 0 {
					n.log.Info("OnChange is in order again", "failures", failures)
				}
				retry, failures = backoff(minRedeliver, maxRedeliver, 0), 0
			} else if ctx.Err() == nil {
				pause = retry.Step()
				cause, _, _ := strings.Cut(err.Error(), "\n")                // without the stack of a panic
				if failures++; failures&(failures-1) == 0 || said != cause { // at each doubling
					said = cause
					n.log.Error("OnChange failed; it will be called again", "in", pause, "failures", failures, "error", err)
				}
				n.mu.Lock()
				p.join(n.pending) // newer ones come after those that were not taken
				n.pending = p
				n.mu.Unlock()
				n.signal()
			}
		}
		if p.InitialSync {
			n.tellSynced(synced)
		}
		if !n.pause(ctx, pause) {
			return
		}
	}
}

// tellSynced calls OnSyncComplete where there is a count.
func (n *notifier) tellSynced(count int) {
	if count < 0 {
		return
	}
	if err := guard(func() error { n.onSync(count); return nil }); err != nil {
		n.log.Error("OnSyncComplete failed", "error", err)
	}
}

// take returns what is to be told, with the state that it leads to.
func (n *notifier) take() (p pending, synced int) {
	taken := func() {
		n.mu.Lock()
		p, synced, n.pending, n.synced = n.pending, n.synced, pending{}, -1
		n.mu.Unlock()
		select {
		case <-n.forced: // it is being told
		default:
		}
	}
	n.mu.Lock()
	any := n.pending.any
	n.mu.Unlock()
	if !any { // a snapshot costs the next change some copies
		n.mu.Lock()
		synced, n.synced = n.synced, -1
		n.mu.Unlock()
		return p, synced
	}
	snapshot := n.snapshot(taken)
	if p.Snapshot = snapshot; p.Total() == 0 {
		p.From, p.To = snapshot.Revision(), snapshot.Revision()
	}
	return p, synced
}

// pause waits unless somebody forces a call.
func (n *notifier) pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-n.forced:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
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
