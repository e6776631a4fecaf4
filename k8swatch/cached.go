package k8swatch

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hapticsdk/haptic/k8swatch/internal/memapi"
)

// CachedOptions of a [Cached]. The zero value watches all namespaces, indexes by
// namespace and name, and keeps up to 64 MiB for 2m10s.
type CachedOptions struct {
	Namespace     string // one namespace; "" for all
	LabelSelector string // as in kubectl -l
	FieldSelector string // as in kubectl --field-selector

	// IndexBy is as in [Options], but on metadata alone, for nothing else is
	// watched: labels, annotations, names, owners.
	IndexBy []string

	// TTL is how long an object that was fetched is kept; it is fetched again
	// before that when it changes. Zero means 2m10s, negative that none is kept.
	TTL time.Duration

	// MaxBytes bounds what is kept, in bytes of the objects as they are encoded
	// for transport. Those that were not used for the longest time go first. An
	// object that is larger than the bound is never kept. Zero means 64 MiB.
	MaxBytes int64

	// Parallel bounds how many objects are fetched at a time. Zero means 8.
	Parallel int

	// As in [Options].
	Debounce               time.Duration
	OnChange               func(context.Context, Changes) error // Changes.Snapshot is of metadata
	MaxChanges             int
	OnSyncComplete         func(count int)
	CallOnChangeDuringSync bool
	NoWatchList            bool
	Logger                 *slog.Logger
}

// DefaultTTL is how long an object that was fetched is kept, unless
// [CachedOptions.TTL] says otherwise.
const DefaultTTL = 2*time.Minute + 10*time.Second

const (
	defaultMaxBytes = 64 << 20
	defaultParallel = 8
)

// Cached is a store for resources that are too big to be held, such as all
// Secrets of a cluster: it watches their metadata and fetches the objects that
// are asked for. Make one with [NewCached] and run it once. All methods may be
// called concurrently.
//
// What it returns is complete or an error, never a shorter list. Objects are
// shared and must not be changed. An object is at least as new as the metadata
// that it was found by, and may be newer.
type Cached[T Object] struct {
	watcher *Watcher
	fetched *fetched
}

// NewCached returns a store that fetches on demand. T is the type of the objects
// of the resource, see [TypeOf], or [Object]. What is wrong with the arguments is
// an [*OptionError], also an index path that needs more than metadata; nothing is
// requested before Run.
func NewCached[T Object](src MetadataSource, gvr schema.GroupVersionResource, opts *CachedOptions) (*Cached[T], error) {
	if opts == nil {
		opts = &CachedOptions{}
	}
	if err := given(src, gvr); err != nil {
		return nil, err
	}
	if opts.MaxBytes < 0 || opts.Parallel < 0 {
		return nil, &OptionError{Resource: gvr, Err: fmt.Errorf("MaxBytes %d, Parallel %d: want 0 or more", opts.MaxBytes, opts.Parallel)}
	}
	if err := fits[T](src, gvr); err != nil {
		return nil, err
	}
	w, err := newWatcher(src.MetadataListWatch, gvr, memapi.Kind{Type: reflect.TypeFor[*metav1.PartialObjectMetadata](), GVK: typesOf(src).KindFor(gvr).GVK}, &Options{
		Namespace: opts.Namespace, LabelSelector: opts.LabelSelector, FieldSelector: opts.FieldSelector,
		IndexBy: opts.IndexBy, Debounce: opts.Debounce,
		OnChange: opts.OnChange, MaxChanges: opts.MaxChanges, OnSyncComplete: opts.OnSyncComplete, CallOnChangeDuringSync: opts.CallOnChangeDuringSync,
		NoWatchList: opts.NoWatchList, Logger: opts.Logger,
	})
	if err != nil {
		return nil, err
	}
	w.intake.foreign = isForeign(src)
	return &Cached[T]{watcher: w, fetched: newFetched(src, gvr, opts, w.Snapshot)}, nil
}

// Run watches until ctx ends, and returns nil when every goroutine that it or a
// look-up started has ended; see [Watcher.Run]. The only error is [ErrStarted].
func (c *Cached[T]) Run(ctx context.Context) error {
	if c.watcher == nil {
		return unmade("Cached", "NewCached")
	}
	if !c.fetched.ran.CompareAndSwap(false, true) {
		return ErrStarted
	}
	defer c.fetched.stop()
	return c.watcher.Run(ctx)
}

// Get returns the objects whose index keys begin with the given ones, in the
// order of [Snapshot.Get], and fetches those that are not kept, each for at most
// 30 s. It waits for the initial sync first. The error is a [*SyncError] where the
// metadata cannot be had, a [*FetchError] where an object cannot, or that of ctx.
// Where several objects cannot be had, it names the first of them in this order,
// whichever failed first.
func (c *Cached[T]) Get(ctx context.Context, keys ...string) ([]T, error) {
	found, err := c.find(ctx, keys)
	if err != nil {
		return nil, err
	}
	return c.load(ctx, found)
}

// List returns all objects, which are all in memory then.
func (c *Cached[T]) List(ctx context.Context) ([]T, error) { return c.Get(ctx) }

func (c *Cached[T]) find(ctx context.Context, keys []string) ([]Object, error) {
	if c.fetched.ctx.Err() != nil {
		return nil, &SyncError{Resource: c.watcher.resource, Namespace: c.watcher.namespace, Verb: "get", Reason: ErrStopped}
	}
	if _, err := c.watcher.WaitForSync(ctx); err != nil {
		return nil, err
	}
	return c.watcher.Snapshot().Get(keys...), nil
}

// load fetches what is not kept. What is gone in the meantime is left out.
func (c *Cached[T]) load(ctx context.Context, found []Object) ([]T, error) {
	objs, err := c.fetched.getAll(ctx, found)
	if err != nil {
		return nil, err
	}
	result := make([]T, 0, len(objs))
	for _, o := range objs {
		if o == nil {
			continue
		}
		obj, ok := o.(T)
		if !ok {
			return nil, fmt.Errorf("k8swatch: the source sent a %T, not a %s", o, reflect.TypeFor[T]())
		}
		result = append(result, obj)
	}
	return result, nil
}

// Metadata returns what is known of the objects without fetching them: a
// snapshot of *metav1.PartialObjectMetadata.
func (c *Cached[T]) Metadata() *Snapshot { return c.watcher.Snapshot() }

// CacheStats is what a [Cached] holds and did.
type CacheStats struct {
	Objects int   // kept now
	Bytes   int64 // kept now, at most CachedOptions.MaxBytes
	Fetches int64 // that were sent, since the start
	Hits    int64 // objects that needed none
}

// Stats reports on the objects that are kept.
func (c *Cached[T]) Stats() CacheStats { return c.fetched.stats() }

// WaitForSync waits until the metadata of the initial objects is there; see
// [Watcher.WaitForSync].
func (c *Cached[T]) WaitForSync(ctx context.Context) (int, error) { return c.watcher.WaitForSync(ctx) }

// State returns how the watcher of the metadata is doing.
func (c *Cached[T]) State() State { return c.watcher.State() }

// ForceSync calls OnChange and lists the metadata again; see [Watcher.ForceSync].
func (c *Cached[T]) ForceSync() { c.watcher.ForceSync() }

// Refresh lists the metadata again, and waits for that; see [Watcher.Refresh].
func (c *Cached[T]) Refresh(ctx context.Context) error { return c.watcher.Refresh(ctx) }
