package k8swatch

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/hapticsdk/haptic/k8swatch/internal/memapi"
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

	mu      sync.Mutex
	started bool
	cancel  context.CancelFunc // ends the current round; nil between rounds
	group   *Group             // nil: in none; set before Run
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
	w, err := newWatcher(src.ListWatch, gvr, typesOf(src).KindFor(gvr), opts)
	if err == nil {
		w.intake.foreign = isForeign(src)
	}
	return w, err
}

// newWatcher makes a watcher of objects of a kind, zero for unstructured ones.
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

// ForceSync calls OnChange at once, also where nothing changed, and lists everything
// again. A difference that the list finds is told as any other. Before the initial
// sync is complete there is no call; while the watcher does not run, nothing happens.
func (w *Watcher) ForceSync() {
	if w.Synced() {
		w.notify.force()
	}
	w.relist()
}

func (w *Watcher) relist() {
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

// committed is called by the intake for each change of the store, while that is locked.
func (w *Watcher) committed(b batch) {
	b.watcher = w
	w.notify.add(b)
	if w.group != nil {
		w.group.committed(b)
	}
}

// initially is called by the intake once, when the initial objects are in the store.
func (w *Watcher) initially() {
	count := w.intake.store.Len()
	w.health.syncedNow(count)
	w.notify.syncComplete(count)
	if w.group != nil {
		w.group.initially(count)
	}
}
