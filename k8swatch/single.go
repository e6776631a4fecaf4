package k8swatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync/atomic"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hapticsdk/haptic/internal/jsonpath"
)

// SingleOptions of a [Single]. The zero value ignores status-only updates and
// calls nothing.
type SingleOptions[T Object] struct {
	// IncludeStatus also delivers updates that changed only the status. [Single.Get]
	// returns the newest status in any case.
	IncludeStatus bool

	// OnChange is called at once, without debouncing. The first call has the result of
	// the initial sync, an object or none; later calls have a change each. Calls never
	// overlap. Updates during a call are delivered as one. A creation does not hide an
	// earlier deletion. If OnChange returns an error or panics, the watcher logs that.
	// It calls it again with the then current state, after 0.2 to 10 s of back-off. The
	// context ends with Run.
	OnChange func(context.Context, SingleChange[T]) error

	// IgnoreFields is as in [Options]. An update that changed only ignored fields is
	// not delivered.
	IgnoreFields []string

	NoWatchList bool         // as in [Options]
	Logger      *slog.Logger // nil means slog.Default()
}

// SingleChange is a change of the object of a [Single].
type SingleChange[T Object] struct {
	Object  T    // the current object; nil with Deleted
	Deleted bool // the object was deleted or, with Initial, did not exist at the start
	Created bool // the object did not exist before, as far as OnChange knows
	Initial bool // the first call
}

// Single watches one named object, such as a ConfigMap or Secret of settings, and
// requests no other. It tells versions apart by uid and resource version. It never uses
// the generation, which Secrets and ConfigMaps do not have. Make one with [NewSingle]
// and run it once. All methods may be called concurrently.
type Single[T Object] struct {
	watcher         *Watcher
	namespace, name string
	opts            SingleOptions[T]
	status          *jsonpath.Bound // nil where the type has no status

	// Only the notifier of the watcher uses these.
	reported Object
	called   bool // OnChange has succeeded once
	failed   bool // the last call failed

	forced atomic.Bool // call OnChange in any case
}

// NewSingle returns a watcher of one object. The namespace of cluster-scoped objects is
// "". T is the type of the objects of the resource, see [TypeOf], or [Object]. A bad
// argument is an [*OptionError]. NewSingle sends no request before Run.
func NewSingle[T Object](src Source, gvr schema.GroupVersionResource, namespace, name string, opts *SingleOptions[T]) (*Single[T], error) {
	if opts == nil {
		opts = &SingleOptions[T]{}
	}
	if err := given(src, gvr); err != nil {
		return nil, err
	}
	if name == "" {
		return nil, &OptionError{Resource: gvr, Err: errors.New("a single watcher needs the name of an object")}
	}
	if err := fits[T](src, gvr); err != nil {
		return nil, err
	}
	s := &Single[T]{namespace: namespace, name: name, opts: *opts}
	path, err := jsonpath.CompileField("status")
	if err != nil {
		return nil, err
	}
	if bound, err := path.Bind(typesOf(src).KindFor(gvr).Type); err == nil {
		s.status = bound
	}
	o := &Options{
		Namespace:     namespace,
		FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String(),
		IgnoreFields:  opts.IgnoreFields,
		Debounce:      -1,
		NoWatchList:   opts.NoWatchList,
		Logger:        logger(opts.Logger).With("object", namespace+"/"+name),
	}
	if opts.OnChange != nil {
		o.OnChange = func(ctx context.Context, _ Changes) error { return s.notify(ctx) }
		o.MaxChanges, o.OnSyncComplete = -1, func(int) { s.watcher.notify.force() } // OnChange also learns that there is no object
	}
	if s.watcher, err = New(src, gvr, o); err != nil {
		return nil, err
	}
	return s, nil
}

// fits returns an error if T is not the type of the objects of a resource.
func fits[T Object](src Source, gvr schema.GroupVersionResource) error {
	want, have := reflect.TypeFor[T](), typesOf(src).KindFor(gvr).Type
	if have == nil {
		have = reflect.TypeFor[*unstructured.Unstructured]()
	}
	if want == have || (want.Kind() == reflect.Interface && have.Implements(want)) {
		return nil
	}
	return &OptionError{Resource: gvr, Err: fmt.Errorf("its objects are %s, not %s%s", have, want, unregistered(gvr, have))}
}

// Run watches until ctx ends, and returns nil when every goroutine that it
// started has ended; see [Watcher.Run]. The only error is [ErrStarted].
func (s *Single[T]) Run(ctx context.Context) error {
	if s.watcher == nil {
		return unmade("Single", "NewSingle")
	}
	return s.watcher.Run(ctx)
}

// Get returns the last known object, and whether it exists. While the source does not
// answer it returns the earlier state; see [Single.State]. The object is shared and
// must not be changed.
func (s *Single[T]) Get() (obj T, ok bool) {
	if o := s.watcher.Snapshot().ByName(s.namespace, s.name); o != nil {
		return o.(T), true
	}
	return obj, false
}

// WaitForSync waits until the watcher knows whether the object exists, and returns 1 or
// 0; see [Watcher.WaitForSync].
func (s *Single[T]) WaitForSync(ctx context.Context) (int, error) { return s.watcher.WaitForSync(ctx) }

// Synced reports whether the watcher knows if the object exists.
func (s *Single[T]) Synced() bool { return s.watcher.Synced() }

// State returns the state of the watcher.
func (s *Single[T]) State() State { return s.watcher.State() }

// ForceSync calls OnChange at once, even without a change, and reads the object again;
// see [Watcher.ForceSync].
func (s *Single[T]) ForceSync() {
	s.forced.Store(true)
	s.watcher.ForceSync()
}

// notify calls OnChange until it knows the current state. It compares that with the state
// of the last call, so that it queues nothing and delivers nothing twice.
func (s *Single[T]) notify(ctx context.Context) error {
	for s.watcher.Synced() && ctx.Err() == nil {
		forced := s.forced.Swap(false)
		c, next, changed := s.next()
		// A failed call may have done half of its work. It is repeated even if the
		// object is back to the state before it.
		if !changed && !s.failed && !forced {
			return nil
		}
		s.failed = true
		if err := s.opts.OnChange(ctx, c); err != nil {
			return err
		}
		s.reported, s.called, s.failed = next, true, false
	}
	return nil
}

// next returns the change to deliver, if any, and the state that OnChange then knows.
func (s *Single[T]) next() (c SingleChange[T], next Object, changed bool) {
	now, ok := s.Get()
	c.Initial = !s.called
	switch {
	case !ok || s.reported != nil && s.reported.GetUID() != now.GetUID():
		c.Deleted = true // the next call delivers the new object
		return c, nil, c.Initial || s.reported != nil
	case s.reported == nil:
		c.Object, c.Created = now, true
		return c, now, true
	}
	c.Object = now
	return c, now, s.reported.GetResourceVersion() != now.GetResourceVersion() && !s.same(s.reported, now)
}

// same reports whether two versions of the object are equal, apart from the resource
// version and, unless IncludeStatus is set, the status.
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
