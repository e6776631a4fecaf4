package k8swatch

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"
)

// fetching is one look-up under way. Which of its fetches fails first depends on
// the network; which of them is told of must not. So one that fails ends those of
// the objects after it, and the ones before it go on: there may be another failure.
type fetching struct {
	mu     sync.Mutex
	first  int                  // place of the first object that failed, or behind the last
	err    error                // what became of that
	cancel []context.CancelFunc // of the fetches that began, by place
}

// begin returns the context of a fetch, or false where there is no use in it any
// more.
func (f *fetching) begin(ctx context.Context, place int) (context.Context, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if place > f.first {
		return nil, false
	}
	ctx, f.cancel[place] = context.WithCancel(ctx)
	return ctx, true
}

// end takes the outcome of a fetch that began.
func (f *fetching) end(place int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cancel[place]()
	if err == nil || place > f.first {
		return
	}
	f.first, f.err = place, err
	for _, cancel := range f.cancel[place+1:] {
		if cancel != nil {
			cancel()
		}
	}
}

// getAll returns an object for each that was found in the metadata, nil where it
// is gone meanwhile, and fetches those that are not kept, so many at a time. The
// error is that of the first object in order that has one, or of ctx.
func (f *fetched) getAll(ctx context.Context, found []Object, parallel int) ([]Object, error) {
	objs := make([]Object, len(found))
	under := &fetching{first: len(found), cancel: make([]context.CancelFunc, len(found))}
	var all errgroup.Group
	all.SetLimit(parallel)
	for i, m := range found {
		if objs[i] = f.kept(m); objs[i] != nil {
			continue
		}
		all.Go(func() error {
			each, ok := under.begin(ctx, i)
			if !ok {
				return nil
			}
			var err error
			objs[i], err = f.get(each, m)
			under.end(i, err)
			return nil
		})
	}
	_ = all.Wait()
	if under.err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return objs, under.err
}
