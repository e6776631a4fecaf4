package k8swatch

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
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
	log       *slog.Logger
	store     *store
	intake    *intake
	list      *retrier
	pages     *pages
	reflector *cache.Reflector
	notify    *notifier
	health    *health

	mu       sync.Mutex
	started  bool
	inGroup  bool
	cancel   context.CancelFunc // ends the current round; nil between rounds
	onCommit func(Changes, int) // the group's; set before Run
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
	return newWatcher(src.ListWatch, gvr, TypeOf(gvr), opts)
}

// newWatcher makes a watcher of objects of a type, nil for unstructured ones.
func newWatcher(listWatch listWatchFunc, gvr schema.GroupVersionResource, typ reflect.Type, opts *Options) (*Watcher, error) {
	paths, err := opts.compile(typ)
	if err != nil {
		return nil, &OptionError{Resource: gvr, Err: err}
	}
	lw, err := listWatch(gvr, opts.Namespace, func(o *metav1.ListOptions) {
		o.LabelSelector, o.FieldSelector = opts.LabelSelector, opts.FieldSelector
	})
	if err != nil {
		return nil, &OptionError{Resource: gvr, Err: err}
	}
	log := logger(opts.Logger).With("resource", gvr.Resource)
	stored := newMeta(gvr, paths)
	stored.typ = typ
	w := &Watcher{
		resource: gvr, namespace: opts.Namespace, log: log, store: newStore(stored),
		health: newHealth(gvr, opts.Namespace),
		notify: newNotifier(log, opts.Debounce, opts.OnChange, opts.OnSyncComplete, opts.CallOnChangeDuringSync),
	}
	w.intake = newIntake(w.store, paths, log, w.committed)
	w.list = &retrier{inner: lw, health: w.health, intake: w.intake, deadline: streamDeadline}
	w.list.noStream.Store(opts.NoWatchList)
	w.intake.replaced = w.list.synced
	w.pages = &pages{inner: w.list, intake: w.intake}
	w.reflector = cache.NewReflectorWithOptions(w.pages, nil, w.intake,
		cache.ReflectorOptions{Name: gvr.String(), TypeDescription: gvr.Resource})
	w.reflector.MaxInternalErrorRetryDuration = rewatchErrors
	return w, nil
}

// OptionError is what [New] refuses.
type OptionError struct {
	Resource schema.GroupVersionResource
	Err      error
}

// Error implements error.
func (e *OptionError) Error() string {
	return "k8swatch: " + e.Resource.Resource + ": " + e.Err.Error()
}

// Unwrap implements errors.Is and errors.As.
func (e *OptionError) Unwrap() error { return e.Err }

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
	w.rounds(klog.NewContext(ctx, logr.Discard()))
	w.pages.wait()
	callbacks.Wait()
	w.health.stop()
	return nil
}

// rounds lists and watches again and again. One reflector serves all rounds, so
// that a later list is never older than what the store holds.
func (w *Watcher) rounds(ctx context.Context) {
	var pause backoff
	for ctx.Err() == nil {
		round, cancel := context.WithCancel(ctx)
		w.mu.Lock()
		w.cancel = cancel
		w.mu.Unlock()
		begun := time.Now()
		if err := w.reflector.ListAndWatchWithContext(detach(round)); err != nil && round.Err() == nil {
			w.log.Debug("list and watch ended", "error", err)
		}
		if time.Since(begun) > 2*maxPause {
			pause.reset()
		}
		pause.wait(round) // ForceSync ends the pause as well
		w.list.await(round, w.reflector.LastSyncResourceVersion())
		cancel()
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
func (w *Watcher) Snapshot() *Snapshot { return w.store.take() }

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
	s.Objects, s.Revision = w.store.size()
	s.Quarantined = w.intake.quarantined()
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
		count, _ = w.store.size()
		w.health.syncedNow(count)
		w.notify.syncComplete(count)
	}
	if w.onCommit != nil {
		w.onCommit(c, count)
	}
}
