package k8swatch

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/hapticsdk/haptic/k8swatch/internal/memapi"
)

// Watcher keeps the objects of one resource, indexed and trimmed, and reports changes.
// Make one with [New] and run it once, alone or in a [Group]. All methods may be called
// concurrently.
type Watcher struct {
	resource  schema.GroupVersionResource
	namespace string
	intake    *intake
	named     *named // nil without OnlyNamed
	requests  *requests
	reflector *cache.Reflector
	notify    *notifier
	health    *health

	mu      sync.Mutex
	started bool
	cancel  context.CancelFunc // ends the current round; nil before the first
	round   int                // number of the current round
	group   *Group             // nil: in none; set before Run
}

// listWatchFunc is ListWatch or MetadataListWatch of a source.
type listWatchFunc func(schema.GroupVersionResource, string, func(*metav1.ListOptions)) (cache.ListerWatcherWithContext, error)

// New returns a watcher of one resource. It checks all options and returns an error for
// a bad selector, an unsupported JSONPath, or a path that a typed resource does not
// have. It sends no request before Run.
func New(src Source, gvr schema.GroupVersionResource, opts *Options) (*Watcher, error) {
	if opts == nil {
		opts = &Options{}
	}
	if err := given(src, gvr); err != nil {
		return nil, err
	}
	kind := typesOf(src).KindFor(gvr)
	if opts.OnlyNamed == nil {
		w, err := newWatcher(src.ListWatch, gvr, kind, opts)
		if err == nil {
			w.intake.foreign = isForeign(src)
		}
		return w, err
	}
	whole, ok := src.(MetadataSource)
	if !ok {
		return nil, &OptionError{Resource: gvr, Err: fmt.Errorf("OnlyNamed: a %T has no metadata alone: want a MetadataSource, such as a Cluster", src)}
	}
	w, err := newWatcher(whole.MetadataListWatch, gvr, kind, opts)
	if err != nil {
		return nil, err
	}
	w.intake.foreign = isForeign(src)
	w.named = newNamed(whole, w, *opts.OnlyNamed)
	w.requests.prepare = w.named.prepare
	w.reflect(w.named)
	return w, nil
}

// newWatcher makes a watcher of objects of a kind. The zero kind means unstructured objects.
func newWatcher(listWatch listWatchFunc, gvr schema.GroupVersionResource, kind memapi.Kind, opts *Options) (*Watcher, error) {
	in, err := newIntake(gvr, kind, opts)
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
	w.notify.max, w.notify.snapshot = maxChanges(opts.MaxChanges), func(with func()) *GroupSnapshot { return snapshotOf(with, w) }
	if opts.OnChange != nil {
		in.store.MaxChanged = w.notify.max
	}
	w.requests = &requests{inner: lw, health: w.health, prepare: in.prepare}
	w.requests.noStream.Store(opts.NoWatchList)
	in.prepared, in.replaced, in.committed, in.initially = w.requests.progress, w.requests.listed, w.committed, w.initially
	if in.namer != nil {
		in.block = w.health.block
	}
	in.round = func() context.Context { return w.requests.round }
	w.reflect(in)
	return w, nil
}

// reflect makes the reflector, which fills a store.
func (w *Watcher) reflect(into cache.TransformingStore) {
	w.reflector = cache.NewReflectorWithOptions(w.requests, nil, into,
		cache.ReflectorOptions{Name: w.resource.String(), TypeDescription: w.resource.Resource})
	w.reflector.MaxInternalErrorRetryDuration = rewatchErrors
}

// Resource returns the watched resource.
func (w *Watcher) Resource() schema.GroupVersionResource { return w.resource }

// Namespace is the watched namespace, "" for all.
func (w *Watcher) Namespace() string { return w.namespace }

// Run watches until ctx ends, and returns nil when every goroutine that it started has
// ended. It retries all failures without end, every 0.2 to 2 s; see [Watcher.State].
// The only error is [ErrStarted].
func (w *Watcher) Run(ctx context.Context) error {
	if w.intake == nil {
		return unmade("Watcher", "New")
	}
	w.mu.Lock()
	if w.started {
		w.mu.Unlock()
		return ErrStarted
	}
	w.started = true
	w.mu.Unlock()

	var callbacks sync.WaitGroup
	callbacks.Go(func() { w.notify.run(ctx) })
	if w.named != nil {
		w.named.start(ctx)
		defer w.named.stop()
	}
	if w.intake.namer != nil {
		w.intake.namer.start(ctx)
		defer w.intake.namer.stop()
	}
	w.rounds(ctx)
	callbacks.Wait()
	w.health.stop()
	return nil
}

// rounds lists and watches again and again. One reflector serves all rounds. A later
// list is therefore never older than the content of the store.
func (w *Watcher) rounds(ctx context.Context) {
	silent := klog.NewContext(context.Background(), logr.Discard())
	pause := pauses()
	for ctx.Err() == nil {
		round, cancel := context.WithCancel(ctx)
		w.mu.Lock()
		w.cancel = cancel
		w.round++
		w.requests.round, w.requests.number = round, w.round
		w.mu.Unlock()
		begun := time.Now()
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

// ForceSync calls OnChange at once, even without a change, and lists everything again.
// If the list differs from the store, the watcher delivers the difference as a change.
// Before the initial sync is complete ForceSync does not call OnChange. While the
// watcher does not run, it does nothing.
func (w *Watcher) ForceSync() {
	if w.Synced() {
		w.notify.force()
	}
	w.relist()
}

// relist ends the current round and returns the number of the next one.
func (w *Watcher) relist() (round int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cancel != nil {
		w.cancel()
	}
	return w.round + 1
}

// Refresh lists everything again. It returns once the store has all that the source had
// when Refresh was called, even if the watch missed changes. OnChange gets a difference
// as usual. The errors are those of [Watcher.WaitForSync].
func (w *Watcher) Refresh(ctx context.Context) error {
	_, err := w.health.wait(ctx, w.relist())
	return err
}

// Snapshot returns the current objects. It works at all times. Before the first sync it
// is empty; while the source does not answer it shows the last known state.
func (w *Watcher) Snapshot() *Snapshot { return w.intake.snapshot(w.intake.store.Snapshot()) }

// Synced reports whether the initial objects are all in the store.
func (w *Watcher) Synced() bool { return w.health.isSynced() }

// WaitForSync waits until the initial objects are in the store and returns their
// number. It returns a [*SyncError] at once where waiting has no foreseeable end: the
// request is forbidden, the resource is not installed, or the watcher has stopped. If
// ctx ends first, the SyncError names the obstacle. The watcher goes on trying, and
// WaitForSync may be called again.
func (w *Watcher) WaitForSync(ctx context.Context) (int, error) { return w.health.wait(ctx, 0) }

// State returns how the watcher is doing.
func (w *Watcher) State() State {
	s := w.health.state()
	now := w.Snapshot()
	s.Objects, s.Revision, s.Refused = now.Len(), now.Revision(), w.intake.refusals()
	return s
}

// committed gets each change of the store from the intake, while the store is locked.
func (w *Watcher) committed(b batch) {
	b.watcher = w
	w.notify.add(b)
	if w.group != nil {
		w.group.committed(b)
	}
}

// initially is called once by the intake, when the initial objects are in the store.
func (w *Watcher) initially() {
	count := w.intake.store.Len()
	w.health.syncedNow(count)
	w.notify.syncComplete(count)
	if w.group != nil {
		w.group.initially()
	}
}

const (
	minRedeliver = 200 * time.Millisecond
	maxRedeliver = 10 * time.Second
)

// notifier calls OnChange and OnSyncComplete from one goroutine. It holds sums and a
// bounded list instead of events, so a slow callback costs no memory.
type notifier struct {
	log        *slog.Logger
	hold       time.Duration
	onChange   func(context.Context, Changes) error
	onSync     func(int)
	duringSync bool
	max        int                              // how many objects Changes lists
	snapshot   func(with func()) *GroupSnapshot // calls with while no store can change
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

// force makes run call OnChange at once, even without changes.
func (n *notifier) force() {
	if n.onChange == nil {
		return
	}
	n.mu.Lock()
	n.pending.max, n.pending.any = n.max, true
	select {
	case n.forced <- struct{}{}:
	default:
	}
	n.mu.Unlock() // take empties both pending and forced, or neither
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
	default: // run is awake already, or will be
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
				cause, _, _ := strings.Cut(err.Error(), "\n") // without the stack of a panic
				failures++
				if failures&(failures-1) == 0 || said != cause { // at each doubling
					said = cause
					n.log.Error("OnChange failed; it will be called again", "in", pause, "failures", failures, "error", err)
				}
				n.mu.Lock()
				p.Snapshot = nil  // the next call has its own
				p.join(n.pending) // newer changes come after those that failed
				n.pending = p
				n.mu.Unlock()
				n.signal()
			}
		}
		if p.InitialSync {
			n.tellSynced(synced)
		}
		if !pauseUntil(ctx, pause, n.forced) {
			return
		}
	}
}

// tellSynced calls OnSyncComplete if there is a count to deliver.
func (n *notifier) tellSynced(count int) {
	if count < 0 {
		return
	}
	if err := guard(func() error { n.onSync(count); return nil }); err != nil {
		n.log.Error("OnSyncComplete failed", "error", err)
	}
}

// take returns the pending changes, with the snapshot after them.
func (n *notifier) take() (p pending, synced int) {
	taken := func() {
		n.mu.Lock()
		p, synced, n.pending, n.synced = n.pending, n.synced, pending{}, -1
		select {
		case <-n.forced: // this call delivers it
		default:
		}
		n.mu.Unlock()
	}
	n.mu.Lock()
	any := n.pending.any
	n.mu.Unlock()
	if !any { // no snapshot: it would make the next change copy nodes
		n.mu.Lock()
		synced, n.synced = n.synced, -1
		n.mu.Unlock()
		return p, synced
	}
	snapshot := n.snapshot(taken)
	p.Snapshot = snapshot
	if p.Total() == 0 {
		p.From, p.To = snapshot.Revision(), snapshot.Revision()
	}
	return p, synced
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

func sleep(ctx context.Context, d time.Duration) bool { return pauseUntil(ctx, d, nil) }

// pauseUntil sleeps until d has passed, wake fires, or ctx ends. It reports whether ctx
// lives.
func pauseUntil(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-wake:
	case <-ctx.Done():
		return false
	}
	return true
}
