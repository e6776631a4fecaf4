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

	// Only the notifier of the watcher uses these.
	told   Object
	called bool // OnChange has been, with success
	failed bool // the last call did

	forced atomic.Bool // OnChange is to be called, whatever there is
}

// NewSingle returns a watcher of one object. The namespace of cluster-scoped
// objects is "". T is the type of the objects of the resource, see [TypeOf], or
// [Object]. What is wrong with the arguments is an [*OptionError]; nothing is
// requested before Run.
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
		o.OnChange = func(ctx context.Context, _ Changes) error { return s.tell(ctx) }
		o.MaxChanges, o.OnSyncComplete = -1, func(int) { s.watcher.notify.force() } // that there is nothing, too
	}
	if s.watcher, err = New(src, gvr, o); err != nil {
		return nil, err
	}
	return s, nil
}

// fits says what is wrong with T as the type of a resource's objects.
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

// ForceSync calls OnChange at once, also where nothing changed, and reads the object
// again; see [Watcher.ForceSync].
func (s *Single[T]) ForceSync() {
	s.forced.Store(true)
	s.watcher.ForceSync()
}

// tell calls OnChange until it was told what there is. It compares that with what
// it told last, so that nothing is queued and nothing is told twice.
func (s *Single[T]) tell(ctx context.Context) error {
	for s.watcher.Synced() && ctx.Err() == nil {
		forced := s.forced.Swap(false)
		c, next, changed := s.next()
		// What failed may have done half of its work: it is called again even
		// where the object is back to what was told before.
		if !changed && !s.failed && !forced {
			return nil
		}
		s.failed = true
		if err := s.opts.OnChange(ctx, c); err != nil {
			return err
		}
		s.told, s.called, s.failed = next, true, false
	}
	return nil
}

// next is the change to tell, if any, and what will have been told with it.
func (s *Single[T]) next() (c SingleChange[T], next Object, changed bool) {
	now, ok := s.Get()
	c.Initial = !s.called
	switch {
	case !ok || s.told != nil && s.told.GetUID() != now.GetUID():
		c.Deleted = true // and then the new one
		return c, nil, c.Initial || s.told != nil
	case s.told == nil:
		c.Object, c.Created = now, true
		return c, now, true
	}
	c.Object = now
	return c, now, s.told.GetResourceVersion() != now.GetResourceVersion() && !s.same(s.told, now)
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
