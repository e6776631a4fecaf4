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

	// IndexBy is as in [Options], but only for metadata: labels, annotations, names, owners.
	IndexBy []string

	// TTL is how long a fetched object is kept. If the object changes before that, it
	// is fetched again. Zero means 2m10s, negative means that no object is kept.
	TTL time.Duration

	// MaxBytes bounds the kept objects, in bytes of their encoding for transport. The
	// least recently used ones go first. An object larger than the bound is never kept.
	// Zero means 64 MiB.
	MaxBytes int64

	// Parallel bounds the number of concurrent fetches. Zero means 8.
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

// DefaultTTL is how long a fetched object is kept, unless [CachedOptions.TTL] says otherwise.
const DefaultTTL = 2*time.Minute + 10*time.Second

const (
	defaultMaxBytes = 64 << 20
	defaultParallel = 8
)

// Cached is a store for resources that are too big for memory, such as all Secrets of a
// cluster. It watches their metadata and fetches objects on demand. Make one with
// [NewCached] and run it once. All methods may be called concurrently.
//
// A look-up returns a complete list or an error, never a shorter list. Objects are
// shared and must not be changed. An object is at least as new as the metadata that a
// look-up found, and may be newer.
type Cached[T Object] struct {
	watcher *Watcher
	fetched *fetched
}

// NewCached returns a store that fetches on demand. T is the type of the objects of the
// resource, see [TypeOf], or [Object]. A bad argument is an [*OptionError], and so is
// an index path that needs more than metadata. NewCached sends no request before Run.
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
	w, err := newWatcher(
		src.MetadataListWatch,
		gvr,
		memapi.Kind{Type: reflect.TypeFor[*metav1.PartialObjectMetadata](), GVK: typesOf(src).KindFor(gvr).GVK},
		&Options{
			Namespace: opts.Namespace, LabelSelector: opts.LabelSelector, FieldSelector: opts.FieldSelector,
			IndexBy: opts.IndexBy, Debounce: opts.Debounce,
			OnChange: opts.OnChange, MaxChanges: opts.MaxChanges, OnSyncComplete: opts.OnSyncComplete, CallOnChangeDuringSync: opts.CallOnChangeDuringSync,
			NoWatchList: opts.NoWatchList, Logger: opts.Logger,
		},
	)
	if err != nil {
		return nil, err
	}
	w.intake.foreign = isForeign(src)
	return &Cached[T]{watcher: w, fetched: newFetched(src, gvr, opts, w.Snapshot)}, nil
}

// Run watches until ctx ends. It returns nil when every goroutine of Run and of
// look-ups has ended; see [Watcher.Run]. The only error is [ErrStarted].
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

// Get returns the objects whose index keys begin with the given ones, in the order of
// [Snapshot.Get]. It first waits for the initial sync. Then it fetches the objects that are
// not kept, each for at most 30 s. The error is a [*SyncError] if the metadata is missing, a
// [*FetchError] if an object cannot be fetched, or the error of ctx. If several fetches fail,
// the error names the first object in this order, not the first failure.
func (c *Cached[T]) Get(ctx context.Context, keys ...string) ([]T, error) {
	found, err := c.find(ctx, keys)
	if err != nil {
		return nil, err
	}
	return c.load(ctx, found)
}

// List fetches all objects into memory and returns them.
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

// load fetches the objects that are not kept. It omits objects that were deleted meanwhile.
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

// Metadata returns the metadata of the objects, without fetching them: a snapshot of
// *metav1.PartialObjectMetadata.
func (c *Cached[T]) Metadata() *Snapshot { return c.watcher.Snapshot() }

// CacheStats describes the content and the work of a [Cached].
type CacheStats struct {
	Objects int   // kept now
	Bytes   int64 // kept now, at most CachedOptions.MaxBytes
	Fetches int64 // fetches sent since the start
	Hits    int64 // look-ups of objects that needed no fetch
}

// Stats reports on the objects that are kept.
func (c *Cached[T]) Stats() CacheStats { return c.fetched.stats() }

// WaitForSync waits until the metadata of the initial objects is in the store; see
// [Watcher.WaitForSync].
func (c *Cached[T]) WaitForSync(ctx context.Context) (int, error) { return c.watcher.WaitForSync(ctx) }

// State returns the state of the watcher of the metadata.
func (c *Cached[T]) State() State { return c.watcher.State() }

// ForceSync calls OnChange and lists the metadata again; see [Watcher.ForceSync].
func (c *Cached[T]) ForceSync() { c.watcher.ForceSync() }

// Refresh lists the metadata again and waits for the list; see [Watcher.Refresh].
func (c *Cached[T]) Refresh(ctx context.Context) error { return c.watcher.Refresh(ctx) }
