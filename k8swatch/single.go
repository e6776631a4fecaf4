package k8swatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hapticsdk/haptic/internal/jsonpath"
)

// SingleOptions of a [Single]. The zero value ignores status-only updates and
// calls nothing.
type SingleOptions[T Object] struct {
	// IncludeStatus delivers updates that changed nothing but the status too.
	// [Single.Get] returns the newest status in any case.
	IncludeStatus bool

	// OnChange is called at once, without debouncing: first with what the initial
	// sync found, an object or none, then for each change. Calls never overlap.
	// While a call lasts, several updates become one; a deletion is not lost
	// behind a creation that follows it. When it returns an error or panics, that
	// is logged and OnChange is called again with back-off, 0.2 to 10 s, with what
	// holds then. The context ends with Run.
	OnChange func(context.Context, SingleChange[T]) error

	// IgnoreFields is as in [Options]. An update that changed only ignored fields
	// is not delivered.
	IgnoreFields []string

	NoWatchList bool         // as in [Options]
	Logger      *slog.Logger // nil means slog.Default()
}

// SingleChange is what happened to the object of a [Single].
type SingleChange[T Object] struct {
	Object  T    // as it is now; nil with Deleted
	Deleted bool // it is gone or, with Initial, was not there at the start
	Created bool // it was not there before, as far as OnChange was told
	Initial bool // the first call
}

// Single watches one named object, such as a ConfigMap or Secret of settings:
// nothing else travels. Versions are told apart by uid and resource version, never
// by generation, which Secrets and ConfigMaps do not have. Make one with
// [NewSingle] and run it once. All methods may be called concurrently.
type Single[T Object] struct {
	watcher         *Watcher
	namespace, name string
	opts            SingleOptions[T]
	status          *jsonpath.Bound // nil where the type has no status
	log             *slog.Logger
	wake            chan struct{} // of size 1: look again
	started         atomic.Bool
}

// NewSingle returns a watcher of one object. The namespace of cluster-scoped
// objects is "". T is the type of the objects of the resource, see [TypeOf], or
// [Object]. What is wrong with the arguments is an [*OptionError]; nothing is
// requested before Run.
func NewSingle[T Object](src Source, gvr schema.GroupVersionResource, namespace, name string, opts *SingleOptions[T]) (*Single[T], error) {
	if opts == nil {
		opts = &SingleOptions[T]{}
	}
	if name == "" {
		return nil, &OptionError{Resource: gvr, Err: errors.New("a single watcher needs the name of an object")}
	}
	if err := fits[T](gvr); err != nil {
		return nil, err
	}
	s := &Single[T]{
		namespace: namespace, name: name, opts: *opts, wake: make(chan struct{}, 1),
		log: logger(opts.Logger).With("resource", gvr.Resource, "object", namespace+"/"+name),
	}
	path, err := jsonpath.Compile("status")
	if err != nil {
		return nil, err
	}
	if bound, err := path.Bind(TypeOf(gvr)); err == nil {
		s.status = bound
	}
	s.watcher, err = New(src, gvr, &Options{
		Namespace:              namespace,
		FieldSelector:          fields.OneTermEqualSelector("metadata.name", name).String(),
		IgnoreFields:           opts.IgnoreFields,
		Debounce:               -1,
		CallOnChangeDuringSync: true,
		OnChange:               func(context.Context, Changes) error { s.signal(); return nil },
		OnSyncComplete:         func(int) { s.signal() },
		NoWatchList:            opts.NoWatchList,
		Logger:                 opts.Logger,
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// fits says what is wrong with T as the type of a resource's objects.
func fits[T Object](gvr schema.GroupVersionResource) error {
	want, have := reflect.TypeFor[T](), TypeOf(gvr)
	if have == nil {
		have = reflect.TypeFor[*unstructured.Unstructured]()
	}
	if want == have || (want.Kind() == reflect.Interface && have.Implements(want)) {
		return nil
	}
	return &OptionError{Resource: gvr, Err: fmt.Errorf("its objects are %s, not %s", have, want)}
}

// Run watches until ctx ends, and returns nil when every goroutine that it
// started has ended; see [Watcher.Run]. The only error is [ErrStarted].
func (s *Single[T]) Run(ctx context.Context) error {
	if !s.started.CompareAndSwap(false, true) {
		return ErrStarted
	}
	var calls sync.WaitGroup
	if s.opts.OnChange != nil {
		calls.Go(func() { s.deliver(ctx) })
	}
	err := s.watcher.Run(ctx)
	calls.Wait()
	return err
}

// Get returns the object as it was last seen, and whether it is there. While the
// source is away it is what was there before; see [Single.State]. The object is
// shared and must not be changed.
func (s *Single[T]) Get() (obj T, ok bool) {
	if o := s.watcher.Snapshot().ByName(s.namespace, s.name); o != nil {
		return o.(T), true
	}
	return obj, false
}

// WaitForSync waits until it is known whether the object is there, and returns 1
// or 0; see [Watcher.WaitForSync].
func (s *Single[T]) WaitForSync(ctx context.Context) (int, error) { return s.watcher.WaitForSync(ctx) }

// Synced reports whether it is known if the object is there.
func (s *Single[T]) Synced() bool { return s.watcher.Synced() }

// State returns how the watcher is doing.
func (s *Single[T]) State() State { return s.watcher.State() }

// ForceSync reads the object again, in the background.
func (s *Single[T]) ForceSync() { s.watcher.ForceSync() }

func (s *Single[T]) signal() {
	select {
	case s.wake <- struct{}{}:
	default: // it is awake already, or about to be
	}
}

// deliver calls OnChange until ctx ends. It compares what there is with what it
// told last, so that nothing is queued and nothing is told twice.
func (s *Single[T]) deliver(ctx context.Context) {
	told := Object(nil)
	initial := true
	var retry time.Duration // not 0 while the last call failed
	for {
		select {
		case <-s.wake:
		case <-ctx.Done():
			return
		}
		for s.watcher.Synced() && ctx.Err() == nil {
			c, next, changed := s.next(told, initial)
			// What failed may have done half of its work: it is called again even
			// where the object is back to what was told before.
			if !changed && retry == 0 {
				break
			}
			if err := guard(func() error { return s.opts.OnChange(ctx, c) }); err != nil {
				if ctx.Err() != nil {
					return
				}
				retry = min(max(2*retry, minRedeliver), maxRedeliver)
				s.log.Error("OnChange failed; it will be called again", "in", retry, "error", err)
				if !sleep(ctx, retry) {
					return
				}
				continue
			}
			told, initial, retry = next, false, 0
		}
	}
}

// next is the change to tell, if any, and what will have been told with it.
func (s *Single[T]) next(told Object, initial bool) (c SingleChange[T], next Object, changed bool) {
	now, ok := s.Get()
	c.Initial = initial
	switch {
	case !ok:
		c.Deleted = true
		return c, nil, initial || told != nil
	case told != nil && told.GetUID() != now.GetUID():
		c.Deleted = true // and then the new one
		return c, nil, true
	case told == nil:
		c.Object, c.Created = now, true
		return c, now, true
	}
	c.Object = now
	return c, now, told.GetResourceVersion() != now.GetResourceVersion() && !s.same(told, now)
}

// same reports whether two versions of the object differ in nothing but what
// counts updates and, unless that is asked for, the status.
func (s *Single[T]) same(a, b Object) bool {
	return apiequality.Semantic.DeepEqual(s.essence(a), s.essence(b))
}

func (s *Single[T]) essence(obj Object) Object {
	obj = obj.DeepCopyObject().(Object)
	obj.SetResourceVersion("")
	if s.status != nil && !s.opts.IncludeStatus {
		s.status.Delete(content(obj))
	}
	return obj
}
