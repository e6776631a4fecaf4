package k8swatch

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// pageSize is that of client-go.
const pageSize = 500

// pages is the list-watch that the reflector sees. It lists page by page and
// keeps only what the store will hold of each, where the reflector would collect
// all objects as they were sent. And it ends with the round of the watcher:
// the reflector returns at once when its context ends, and leaves a list that is
// under way to itself; so its context never ends, but every request fails.
type pages struct {
	inner  cache.ListerWatcherWithContext
	intake *intake
	stops  sync.WaitGroup
}

var _ cache.ListerWatcherWithContext = (*pages)(nil)

// early is an object of a list that is not complete, with the entry that the
// store will have of it, or the reason why there is none. That is not tried
// again: the object is trimmed, and an ignored list position would take the next
// element with it.
type early struct {
	entry *entry
	obj   any // where there is no entry
	err   error
}

// GetObjectKind implements runtime.Object, so that a list can hold it.
func (*early) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object. Nothing of it ever changes.
func (e *early) DeepCopyObject() runtime.Object { return e }

type roundKey struct{}

// detach returns the context that the reflector gets for a round.
func detach(round context.Context) context.Context {
	return context.WithValue(context.WithoutCancel(round), roundKey{}, round)
}

// attach returns the context of the round.
func attach(ctx context.Context) context.Context {
	if round, ok := ctx.Value(roundKey{}).(context.Context); ok {
		return round
	}
	return ctx
}

// ListWithContext implements cache.ListerWatcherWithContext. The list is of the
// latest state: with a resource version the API server answers from its watch
// cache, and then in one piece whatever the limit.
func (p *pages) ListWithContext(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	ctx = attach(ctx)
	opts.ResourceVersion, opts.ResourceVersionMatch, opts.Limit = "", "", pageSize
	all := &internalversion.List{}
	for {
		page, err := p.inner.ListWithContext(ctx, opts)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err() // the reflector waits before it tries some other errors again
		case err == nil:
		case opts.Continue != "" && apierrors.IsResourceExpired(err):
			// The server forgot the state that the first pages were of.
			all.Items, opts.Continue, opts.Limit = nil, "", 0
			continue
		default:
			return nil, err
		}
		m, err := meta.ListAccessor(page)
		if err != nil {
			return nil, err
		}
		err = meta.EachListItemWithAlloc(page, func(obj runtime.Object) error {
			all.Items = append(all.Items, p.intake.early(obj))
			return nil
		})
		if err != nil {
			return nil, err
		}
		all.ResourceVersion = m.GetResourceVersion()
		if opts.Continue = m.GetContinue(); opts.Continue == "" {
			return all, nil
		}
	}
}

// WatchWithContext implements cache.ListerWatcherWithContext.
func (p *pages) WatchWithContext(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	ctx = attach(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	w, err := p.inner.WatchWithContext(ctx, opts)
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, err
	}
	p.stops.Add(1)
	kept := context.AfterFunc(ctx, func() {
		defer p.stops.Done()
		w.Stop()
	})
	return &roundWatch{Interface: w, stop: func() {
		if kept() {
			p.stops.Done()
		}
	}}, nil
}

// roundWatch is a watch that is stopped with its round.
type roundWatch struct {
	watch.Interface
	stop func() // of the waiting for the end of the round
}

// Stop implements watch.Interface.
func (w *roundWatch) Stop() {
	w.stop()
	w.Interface.Stop()
}

// wait returns when nothing of the rounds that have ended is left.
func (p *pages) wait() { p.stops.Wait() }

// List implements the older half of cache.ListerWatcher.
func (p *pages) List(opts metav1.ListOptions) (runtime.Object, error) {
	return p.ListWithContext(context.Background(), opts)
}

// Watch implements the older half of cache.ListerWatcher.
func (p *pages) Watch(opts metav1.ListOptions) (watch.Interface, error) {
	return p.WatchWithContext(context.Background(), opts)
}
