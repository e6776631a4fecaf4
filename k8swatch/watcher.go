package k8swatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// Watcher keeps the objects of one resource, indexed and trimmed, and tells when
// they change. Make one with [New] and run it once, alone or in a [Group]. All
// methods may be called concurrently.
type Watcher struct {
	resource  schema.GroupVersionResource
	namespace string
	intake    *intake
	requests  *requests
	reflector *cache.Reflector
	notify    *notifier
	health    *health

	mu       sync.Mutex
	started  bool
	cancel   context.CancelFunc // ends the current round; nil between rounds
	onCommit func(Changes, int) // the group's, if it is in one; set before Run
}

// listWatchFunc is a method of a source.
type listWatchFunc func(schema.GroupVersionResource, string, func(*metav1.ListOptions)) (cache.ListerWatcherWithContext, error)

// New returns a watcher of one resource. Everything that can be wrong in the
// options is an error here: a selector, a JSONPath that is not supported, a path
// that a typed resource does not have. Nothing is requested before Run.
func New(src Source, gvr schema.GroupVersionResource, opts *Options) (*Watcher, error) {
	if opts == nil {
		opts = &Options{}
	}
	if src == nil || gvr.Resource == "" || gvr.Version == "" {
		return nil, errors.New("k8swatch: New needs a source and a resource with its version")
	}
	w, err := newWatcher(src.ListWatch, gvr, TypeOf(gvr), opts)
	if err == nil {
		w.intake.foreign = isForeign(src)
	}
	return w, err
}

// newWatcher makes a watcher of objects of a type, nil for unstructured ones.
func newWatcher(listWatch listWatchFunc, gvr schema.GroupVersionResource, typ reflect.Type, opts *Options) (*Watcher, error) {
	in, err := newIntake(gvr, typ, opts)
	if err != nil {
		return nil, err
	}
	lw, err := listWatch(gvr, opts.Namespace, func(o *metav1.ListOptions) {
		o.LabelSelector, o.FieldSelector = opts.LabelSelector, opts.FieldSelector
	})
	if err != nil {
		return nil, &OptionError{Resource: gvr, Err: err}
	}
	w := &Watcher{
		resource: gvr, namespace: opts.Namespace, intake: in, health: newHealth(gvr, opts.Namespace),
		notify: newNotifier(in.log, opts.Debounce, opts.OnChange, opts.OnSyncComplete, opts.CallOnChangeDuringSync),
	}
	w.requests = &requests{inner: lw, health: w.health, prepare: in.prepare}
	w.requests.noStream.Store(opts.NoWatchList)
	in.prepared, in.replaced, in.committed = w.requests.progress, w.requests.listed, w.committed
	w.reflector = cache.NewReflectorWithOptions(w.requests, nil, in,
		cache.ReflectorOptions{Name: gvr.String(), TypeDescription: gvr.Resource})
	w.reflector.MaxInternalErrorRetryDuration = rewatchErrors
	return w, nil
}

// Resource says what is watched.
func (w *Watcher) Resource() schema.GroupVersionResource { return w.resource }

// Namespace is the namespace that is watched, "" for all.
func (w *Watcher) Namespace() string { return w.namespace }

// Run watches until ctx ends, and returns nil when every goroutine that it
// started has ended. Whatever goes wrong on the way is retried for as long as it
// takes, every 0.2 to 2 s; see [Watcher.State]. The only error is [ErrStarted].
func (w *Watcher) Run(ctx context.Context) error {
	w.mu.Lock()
	if w.started {
		w.mu.Unlock()
		return ErrStarted
	}
	w.started = true
	w.mu.Unlock()

	var callbacks sync.WaitGroup
	callbacks.Go(func() { w.notify.run(ctx) })
	w.rounds(ctx)
	callbacks.Wait()
	w.health.stop()
	return nil
}

// rounds lists and watches again and again. One reflector serves all rounds, so
// that a later list is never older than what the store holds.
func (w *Watcher) rounds(ctx context.Context) {
	silent := klog.NewContext(context.Background(), logr.Discard())
	pause := pauses()
	for ctx.Err() == nil {
		round, cancel := context.WithCancel(ctx)
		w.mu.Lock()
		w.cancel = cancel
		w.mu.Unlock()
		begun := time.Now()
		w.requests.round = round
		if err := w.reflector.ListAndWatchWithContext(silent); err != nil && round.Err() == nil {
			w.intake.log.Debug("list and watch ended", "error", err)
		}
		if time.Since(begun) > 2*maxPause {
			pause = pauses()
		}
		sleep(round, pause.Step()) // ForceSync ends the pause as well
		cancel()
		w.requests.stops.Wait()
	}
}

// ForceSync lists everything again and applies the differences, in the
// background. It does nothing while the watcher does not run.
func (w *Watcher) ForceSync() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cancel != nil {
		w.cancel()
	}
}

// Snapshot returns what is known now. It is readable at all times: empty before
// the first sync, as of the last contact while the source is away.
func (w *Watcher) Snapshot() *Snapshot { return w.intake.snapshot(w.intake.store.Snapshot()) }

// Synced reports whether the initial objects are all in the store.
func (w *Watcher) Synced() bool { return w.health.isSynced() }

// WaitForSync waits until the initial objects are in the store and returns their
// number. It gives up at once, with a [*SyncError], where waiting has no
// foreseeable end: the request is forbidden, the resource is not installed, the
// watcher was stopped. When ctx ends first the SyncError says what stood in the
// way. The watcher goes on trying; WaitForSync may be called again.
func (w *Watcher) WaitForSync(ctx context.Context) (int, error) { return w.health.wait(ctx) }

// State returns how the watcher is doing.
func (w *Watcher) State() State {
	s := w.health.state()
	now := w.Snapshot()
	s.Objects, s.Revision, s.Refused = now.Len(), now.Revision(), w.intake.refusals()
	return s
}

// committed is called by the intake after each change of the store, in order.
func (w *Watcher) committed(c Changes, initial bool) {
	c.InitialSync = initial
	if c.Total() > 0 {
		w.notify.add(c)
	}
	count := -1
	if initial {
		count = w.intake.store.Len()
		w.health.syncedNow(count)
		w.notify.syncComplete(count)
	}
	if w.onCommit != nil {
		w.onCommit(c, count)
	}
}

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
		n.mu.Lock()
		c, synced := n.pending, n.synced
		n.pending, n.synced = Changes{}, -1
		n.mu.Unlock()
		var pause time.Duration
		if c.Total() > 0 {
			pause = n.hold
			err := guard(func() error { return n.onChange(ctx, c) })
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
				n.pending = c.and(n.pending) // newer ones come after those that were not taken
				n.mu.Unlock()
				n.signal()
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
