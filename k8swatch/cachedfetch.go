package k8swatch

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// version names one version of one object. An object is fetched and kept for the
// version of the metadata that it was asked for by, so that a new version that
// the watch tells of is never answered by an older object.
type version struct {
	namespace, name string
	uid             types.UID
	resource        string // metadata.resourceVersion
}

func versionOf(m Object) version {
	return version{m.GetNamespace(), m.GetName(), m.GetUID(), m.GetResourceVersion()}
}

// keeping is an object in the cache.
type keeping struct {
	asked, got version
	begun      int64 // number of its fetch: those that begin later are not older
	obj        Object
	bytes      int64
	until      time.Time
}

// flight is a fetch under way, for all that want the same version.
type flight struct {
	done    chan struct{}
	cancel  context.CancelFunc
	waiting int    // callers; the last that leaves cancels it
	obj     Object // nil: it is gone
	err     error
}

// fetched holds objects for a while, in bounded memory. Its methods may be called
// concurrently.
type fetched struct {
	src      MetadataSource
	resource schema.GroupVersionResource
	ttl      time.Duration
	maxBytes int64
	slots    chan struct{} // one for each fetch that may be under way

	mu      sync.Mutex
	started bool
	stopped bool
	used    *list.List // of *keeping, the last used first
	byName  map[objectName]*list.Element
	bytes   int64
	flights map[version]*flight
	flying  sync.WaitGroup
	counts  CacheStats
}

func newFetched(src MetadataSource, gvr schema.GroupVersionResource, ttl time.Duration, maxBytes int64, parallel int) *fetched {
	if ttl == 0 {
		ttl = defaultTTL
	}
	if maxBytes <= 0 {
		maxBytes = defaultMaxBytes
	}
	return &fetched{
		src: src, resource: gvr, ttl: ttl, maxBytes: maxBytes, slots: make(chan struct{}, parallel),
		used: list.New(), byName: map[objectName]*list.Element{}, flights: map[version]*flight{},
	}
}

// start reports whether it is the first.
func (f *fetched) start() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	first := !f.started
	f.started = true
	return first
}

// run drops what is too old or deleted until ctx ends. Look-ups never see it
// anyhow; this gives the memory back.
func (f *fetched) run(ctx context.Context, now func() *Snapshot) {
	if f.ttl < 0 {
		return
	}
	for sleep(ctx, max(f.ttl/8, time.Millisecond)) {
		known := now()
		f.mu.Lock()
		for e := f.used.Front(); e != nil; {
			k, next := e.Value.(*keeping), e.Next()
			m := known.ByName(k.asked.namespace, k.asked.name)
			if m == nil || !k.is(versionOf(m)) || !time.Now().Before(k.until) {
				f.drop(e)
			}
			e = next
		}
		f.mu.Unlock()
	}
}

// stop ends all fetches and waits for them.
func (f *fetched) stop() {
	f.mu.Lock()
	f.stopped = true
	for _, fl := range f.flights {
		fl.cancel()
	}
	f.used.Init()
	clear(f.byName)
	f.bytes = 0
	f.mu.Unlock()
	f.flying.Wait()
}

// is reports whether the object answers a question for a version: it was fetched
// for it, or turned out to be it.
func (k *keeping) is(v version) bool { return k.asked == v || k.got == v }

// kept returns the object of the version that the metadata tells of, or nil.
func (f *fetched) kept(m Object) Object {
	v := versionOf(m)
	f.mu.Lock()
	defer f.mu.Unlock()
	obj := f.lookup(v)
	if obj != nil {
		f.counts.Hits++
	}
	return obj
}

func (f *fetched) lookup(v version) Object {
	e := f.byName[objectName{v.namespace, v.name}]
	if e == nil {
		return nil
	}
	k := e.Value.(*keeping)
	if !time.Now().Before(k.until) {
		f.drop(e)
		return nil
	}
	if !k.is(v) { // newer or older than what a reader with a snapshot knows
		return nil
	}
	f.used.MoveToFront(e)
	return k.obj
}

// get fetches an object, or waits for the fetch that is under way. It returns
// nil where there is none any more.
func (f *fetched) get(ctx context.Context, m Object) (Object, error) {
	v := versionOf(m)
	if ctx.Err() != nil { // somebody else's fetch for the same list has failed
		return nil, ctx.Err()
	}
	f.mu.Lock()
	if f.stopped {
		f.mu.Unlock()
		return nil, f.failure(v, ErrStopped)
	}
	if obj := f.lookup(v); obj != nil { // fetched since kept was asked
		f.mu.Unlock()
		return obj, nil
	}
	fl := f.flights[v]
	if fl == nil {
		// The flight outlives the caller that began it, if others wait for it.
		flying, cancel := context.WithCancel(context.WithoutCancel(ctx))
		fl = &flight{done: make(chan struct{}), cancel: cancel}
		f.flights[v] = fl
		f.flying.Go(func() { f.fly(flying, v, fl) })
	}
	fl.waiting++
	f.mu.Unlock()

	select {
	case <-fl.done:
		return fl.obj, fl.err
	case <-ctx.Done():
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if fl.waiting--; fl.waiting == 0 {
		if f.flights[v] == fl {
			delete(f.flights, v) // who comes now begins a new one
		}
		fl.cancel()
	}
	return nil, ctx.Err()
}

func (f *fetched) fly(ctx context.Context, v version, fl *flight) {
	defer fl.cancel()
	obj, begun, err := f.fetch(ctx, v)
	var k *keeping
	if obj != nil {
		k = &keeping{asked: v, got: versionOf(obj), begun: begun, obj: obj, bytes: sizeOf(obj), until: time.Now().Add(f.ttl)}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	fl.obj, fl.err = obj, err
	if f.flights[v] == fl {
		delete(f.flights, v)
	}
	if k != nil && !f.stopped {
		f.keep(k)
	}
	close(fl.done)
}

// fetch returns nil where the object is gone, and the number of the fetch.
func (f *fetched) fetch(ctx context.Context, v version) (obj Object, begun int64, err error) {
	select {
	case f.slots <- struct{}{}:
		defer func() { <-f.slots }()
	case <-ctx.Done():
		return nil, 0, f.failure(v, f.why(ctx.Err()))
	}
	f.mu.Lock()
	f.counts.Fetches++
	begun = f.counts.Fetches
	f.mu.Unlock()
	if err := guard(func() (err error) { obj, err = f.src.Fetch(ctx, f.resource, v.namespace, v.name); return err }); err != nil {
		if gone(err) {
			return nil, 0, nil
		}
		return nil, 0, f.failure(v, f.why(err))
	}
	if obj == nil {
		return nil, 0, f.failure(v, errors.New("the source sent no object"))
	}
	trimCopies(obj)
	return obj, begun, nil
}

// why says whether an error comes from the end of Run.
func (f *fetched) why(err error) error {
	if f.ended() {
		return fmt.Errorf("%w: %w", ErrStopped, err)
	}
	return err
}

func (f *fetched) ended() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stopped
}

func (f *fetched) failure(v version, err error) error {
	return &FetchError{Resource: f.resource, Namespace: v.namespace, Name: v.name, Err: err}
}

// gone reports whether the server says that the object is not there, and not
// that it does not know the resource.
func gone(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) || apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
		return false
	}
	d := status.Status().Details
	return d != nil && d.Name != ""
}

// keep stores an object in place of older versions of it, and makes room.
func (f *fetched) keep(k *keeping) {
	name := objectName{k.asked.namespace, k.asked.name}
	if e := f.byName[name]; e != nil {
		if e.Value.(*keeping).begun > k.begun {
			return
		}
		f.drop(e)
	}
	if f.ttl < 0 || k.bytes > f.maxBytes {
		return
	}
	for f.bytes+k.bytes > f.maxBytes {
		f.drop(f.used.Back())
	}
	f.byName[name] = f.used.PushFront(k)
	f.bytes += k.bytes
}

func (f *fetched) drop(e *list.Element) {
	k := f.used.Remove(e).(*keeping)
	delete(f.byName, objectName{k.asked.namespace, k.asked.name})
	f.bytes -= k.bytes
}

func (f *fetched) stats() CacheStats {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.counts
	s.Objects, s.Bytes = f.used.Len(), f.bytes
	return s
}

// sizeOf is the size of an object in bytes, as protobuf where it has that form
// and about as JSON otherwise.
func sizeOf(obj Object) int64 {
	if sized, ok := obj.(interface{ Size() int }); ok {
		return int64(sized.Size())
	}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return jsonSize(u.Object)
	}
	return 0
}

func jsonSize(v any) int64 {
	const punctuation = 4
	switch v := v.(type) {
	case map[string]any:
		n := int64(punctuation)
		for k, e := range v {
			n += int64(len(k)) + punctuation + jsonSize(e)
		}
		return n
	case []any:
		n := int64(punctuation)
		for _, e := range v {
			n += 1 + jsonSize(e)
		}
		return n
	case string:
		return int64(len(v)+strings.Count(v, "\n")) + punctuation
	}
	return 2 * punctuation
}
