package k8swatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
)

// fetchTimeout ends a fetch without an answer, because other look-ups may wait for it.
const fetchTimeout = 30 * time.Second

// version names one version of one object. An object is fetched and kept under the
// version of its metadata. So once the watch reports a new version, a look-up never
// returns an older object.
type version struct {
	types.NamespacedName
	uid      types.UID
	resource string // metadata.resourceVersion
}

func versionOf(m Object) version {
	return version{types.NamespacedName{Namespace: m.GetNamespace(), Name: m.GetName()}, m.GetUID(), m.GetResourceVersion()}
}

// keeping is an object in the cache.
type keeping struct {
	version
	obj    Object
	bytes  int64
	expire *time.Timer // drops it
}

// fetched holds objects for a while, in bounded memory. Its methods may be called
// concurrently.
type fetched struct {
	src      MetadataSource
	resource schema.GroupVersionResource
	typ      reflect.Type     // of the objects
	known    func() *Snapshot // the metadata
	ttl      time.Duration
	maxBytes int64
	slots    chan struct{} // one for each concurrent fetch
	flights  singleflight.Group
	ctx      context.Context // of all fetches; it ends with Run
	cancel   context.CancelFunc
	ran      atomic.Bool

	mu     sync.Mutex
	kept   *lru.Cache // of *keeping by name
	flying sync.WaitGroup
	counts CacheStats
}

func newFetched(src MetadataSource, gvr schema.GroupVersionResource, opts *CachedOptions, known func() *Snapshot) *fetched {
	f := &fetched{src: src, resource: gvr, typ: goType(typesOf(src).KindFor(gvr).Type), known: known, ttl: opts.TTL, maxBytes: opts.MaxBytes}
	if f.ttl == 0 {
		f.ttl = DefaultTTL
	}
	if f.maxBytes <= 0 {
		f.maxBytes = defaultMaxBytes
	}
	parallel := opts.Parallel
	if parallel <= 0 {
		parallel = defaultParallel
	}
	f.slots = make(chan struct{}, parallel)
	f.ctx, f.cancel = context.WithCancel(context.Background())
	f.kept = lru.NewWithEvictionFunc(0, func(_ lru.Key, value any) {
		k := value.(*keeping)
		k.expire.Stop()
		f.counts.Bytes -= k.bytes
	})
	return f
}

// stop ends all fetches and waits for them.
func (f *fetched) stop() {
	f.mu.Lock()
	f.cancel()
	f.kept.Clear()
	f.mu.Unlock()
	f.flying.Wait()
}

// getAll returns an object for each entry of found, nil if it was deleted meanwhile.
// Fetches begin in order, and none begins after a failed one. The error is that of the
// first object in order that failed, or of ctx.
func (f *fetched) getAll(ctx context.Context, found []Object) ([]Object, error) {
	objs := make([]Object, len(found))
	var all errgroup.Group
	all.SetLimit(cap(f.slots))
	var mu sync.Mutex
	var failed error
	first := len(found) // index of the first that failed
	for i, m := range found {
		objs[i] = f.hit(versionOf(m))
		if objs[i] != nil {
			continue
		}
		all.Go(func() error {
			mu.Lock()
			useless := i > first
			mu.Unlock()
			if useless {
				return nil
			}
			obj, err := f.get(ctx, versionOf(m))
			mu.Lock()
			defer mu.Unlock()
			objs[i] = obj
			if err != nil && i < first {
				first, failed = i, err
			}
			return nil
		})
	}
	_ = all.Wait()
	if failed != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return objs, failed
}

// hit returns the object of a version if it is kept, or nil.
func (f *fetched) hit(v version) Object {
	f.mu.Lock()
	defer f.mu.Unlock()
	if k, ok := f.kept.Get(v.NamespacedName); ok && k.(*keeping).version == v {
		f.counts.Hits++
		return k.(*keeping).obj
	}
	return nil
}

// get fetches an object, or waits for a fetch that has begun. When ctx ends, the fetch
// goes on. It returns nil if the object was deleted.
func (f *fetched) get(ctx context.Context, v version) (obj Object, err error) {
	done := make(chan struct{})
	f.mu.Lock()
	if f.ctx.Err() != nil {
		f.mu.Unlock()
		return nil, f.failure(v, ErrStopped)
	}
	var got any
	var failed error
	f.flying.Go(func() {
		defer close(done)
		got, failed, _ = f.flights.Do(fmt.Sprint(v.NamespacedName, v.uid, v.resource), func() (any, error) { return f.fetch(v) })
	})
	f.mu.Unlock()
	select {
	case <-done:
		obj, _ = got.(Object)
		return obj, failed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// fetch returns nil if the object was deleted.
func (f *fetched) fetch(v version) (obj Object, err error) {
	select {
	case f.slots <- struct{}{}:
		defer func() { <-f.slots }()
	case <-f.ctx.Done():
		return nil, f.failure(v, ErrStopped)
	}
	f.mu.Lock()
	f.counts.Fetches++
	f.mu.Unlock()
	ctx, cancel := context.WithTimeout(f.ctx, fetchTimeout)
	defer cancel()
	err = guard(func() (err error) { obj, err = f.src.Fetch(ctx, f.resource, v.Namespace, v.Name); return err })
	switch {
	case err == nil && obj == nil:
		err = errors.New("the source sent no object")
	case err == nil:
		if obj, err = decoded(obj, f.typ); err != nil {
			return nil, f.failure(v, err)
		}
		trim(obj, isForeign(f.src))
		f.keep(v, obj)
		return obj, nil
	case gone(err):
		return nil, nil
	case f.ctx.Err() != nil:
		err = fmt.Errorf("%w: %w", ErrStopped, err)
	}
	return nil, f.failure(v, err)
}

func (f *fetched) failure(v version, err error) error {
	return &FetchError{Resource: f.resource, Namespace: v.Namespace, Name: v.Name, Err: err}
}

// gone reports whether the server says that the object does not exist. A 404 for an
// unknown resource does not count.
func gone(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) || apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
		return false
	}
	d := status.Status().Details
	return d != nil && d.Name != ""
}

// keep stores an object if its version is still the newest known one, and makes room for it.
func (f *fetched) keep(v version, obj Object) {
	size := sizeOf(obj)
	now := f.known().ByName(v.Namespace, v.Name)
	f.mu.Lock()
	defer f.mu.Unlock()
	if now == nil || versionOf(now) != v || f.ttl < 0 || f.ctx.Err() != nil {
		return
	}
	f.kept.Remove(v.NamespacedName)
	if size > f.maxBytes {
		return
	}
	for f.counts.Bytes+size > f.maxBytes {
		f.kept.RemoveOldest()
	}
	k := &keeping{version: v, obj: obj, bytes: size}
	k.expire = time.AfterFunc(f.ttl, func() { f.drop(k) })
	f.kept.Add(v.NamespacedName, k)
	f.counts.Bytes += size
}

func (f *fetched) drop(k *keeping) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now, ok := f.kept.Get(k.NamespacedName); ok && now == any(k) {
		f.kept.Remove(k.NamespacedName)
	}
}

func (f *fetched) stats() CacheStats {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.counts
	s.Objects = f.kept.Len()
	return s
}

// sizeOf returns the size of an object in bytes, as protobuf or else as JSON.
func sizeOf(obj Object) int64 {
	if sized, ok := obj.(interface{ Size() int }); ok {
		return int64(sized.Size())
	}
	text, _ := json.Marshal(obj)
	return int64(len(text))
}
