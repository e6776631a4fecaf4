package settings

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/internal/strictyaml"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
)

// liveWatcher watches one resource for as long as some settings name it.
type liveWatcher struct {
	watched
	resource WatchedResource
	full     *k8swatch.Watcher                 // nil for a resource fetched on demand
	onDemand *k8swatch.Cached[k8swatch.Object] // instead of full
	stop     context.CancelFunc
}

// watched has the methods that both kinds of watchers share.
type watched interface {
	Run(ctx context.Context) error
	WaitForSync(ctx context.Context) (objects int, err error)
	Refresh(ctx context.Context) error
	State() k8swatch.State
}

// watch gives a program its watchers. It keeps watchers of the same resources, starts new ones
// for the others, and waits for the new ones, which it returns.
func (l *Live) watch(ctx context.Context, use, before *inUse) (started []*liveWatcher, err error) {
	use.watchers = map[string]*liveWatcher{}
	known := []*liveWatcher{}
	if before != nil {
		known = slices.Collect(maps.Values(before.watchers))
	}
	for _, r := range use.program.resources {
		i := slices.IndexFunc(known, func(w *liveWatcher) bool { return w.resource.same(r.watch) })
		if i < 0 {
			w, err := l.start(r)
			if err != nil {
				return started, Errors{use.program.settings.doc.Problem(strictyaml.Child("watchedResources", r.name), "%v", err)}
			}
			i, started, known = len(known), append(started, w), append(known, w)
		}
		use.watchers[r.name] = known[i]
	}
	begin := time.Now()
	for _, w := range started {
		if _, err := w.WaitForSync(ctx); err != nil {
			return started, err
		}
	}
	use.synced = time.Since(begin)
	return started, nil
}

// start makes a watcher and runs it.
func (l *Live) start(r programResource) (*liveWatcher, error) {
	w, err := l.newWatcher(r)
	if err != nil {
		return nil, err
	}
	if err := l.running.Err(); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(l.running)
	w.stop = stop
	l.wg.Go(func() { _ = w.Run(ctx) }) // the only error is ErrStarted
	return w, nil
}

func (l *Live) newWatcher(r programResource) (w *liveWatcher, err error) {
	w = &liveWatcher{resource: r.watch}
	changed := func(_ context.Context, c k8swatch.Changes) error {
		l.changed(w, c, c.Snapshot.Count(r.gvr))
		return nil
	}
	if r.watch.Store != StoreOnDemand {
		opts := r.watch.options()
		opts.Debounce, opts.OnChange, opts.Logger = -1, changed, l.log
		w.full, err = k8swatch.New(l.opts.Source, r.gvr, opts)
		w.watched = w.full
		return w, err
	}
	source, ok := l.opts.Source.(k8swatch.MetadataSource)
	if !ok {
		return nil, fmt.Errorf("store on-demand needs a source of metadata, such as a cluster; a %T is none", l.opts.Source)
	}
	w.onDemand, err = k8swatch.NewCached[k8swatch.Object](source, r.gvr, &k8swatch.CachedOptions{
		Namespace: r.watch.Namespace, LabelSelector: r.watch.LabelSelector, FieldSelector: r.watch.FieldSelector,
		IndexBy: r.watch.IndexBy, TTL: r.watch.CacheTTL.Duration, Debounce: -1, OnChange: changed, Logger: l.log,
	})
	w.watched = w.onDemand
	return w, err
}

// refreshTime bounds beginTerm: so long can an unreadable resource delay the others.
const refreshTime = 10 * time.Second

// beginTerm lists everything again: the previous leader may have deployed a change that a
// watch has missed.
func (l *Live) beginTerm(ctx context.Context) {
	l.mu.Lock()
	use := l.current
	l.mu.Unlock()
	if use == nil {
		return
	}
	bounded, cancel := context.WithTimeout(ctx, refreshTime)
	defer cancel()
	var all sync.WaitGroup
	for name, w := range use.watchers {
		all.Go(func() {
			if err := w.Refresh(bounded); err != nil && ctx.Err() == nil {
				l.log.Warn("the new leader could not read a resource again: its objects may be older than what is deployed", "resource", name, "error", err)
			}
		})
	}
	all.Wait()
}

// options returns the options of a watcher that holds all objects.
func (r WatchedResource) options() *k8swatch.Options {
	return &k8swatch.Options{Namespace: r.Namespace, LabelSelector: r.LabelSelector, FieldSelector: r.FieldSelector,
		IndexBy: r.IndexBy, IgnoreFields: r.IgnoreFields}
}

// end stops watchers; Run waits for them.
func (l *Live) end(watchers []*liveWatcher) {
	for _, w := range watchers {
		w.stop()
	}
}

// changed is called by the watchers. It publishes the change under each name that the settings
// in use have for the watcher. A watcher that is only being checked has no name: if its
// settings take effect, they are rendered anyway.
func (l *Live) changed(w *liveWatcher, c k8swatch.Changes, objects int) {
	var names []string
	l.mu.Lock()
	loop := l.loop
	if l.current != nil {
		for name, one := range l.current.watchers {
			if one == w {
				names = append(names, name)
			}
		}
	}
	l.mu.Unlock()
	slices.Sort(names)
	for _, name := range names {
		eventbus.Publish(
			l.opts.Bus,
			reconcile.ResourceIndexUpdated{Resource: name, Created: c.Created, Modified: c.Modified, Deleted: c.Deleted, Objects: objects},
		)
		if name == haproxyPods {
			l.discovery.Look()
		}
	}
	if loop != nil && len(names) > 0 {
		loop.Trigger(strings.Join(names, ", ") + ": " + c.String())
	}
}

// newest takes a snapshot of the resources of the settings in use.
func (l *Live) newest() *k8swatch.GroupSnapshot {
	l.mu.Lock()
	defer l.mu.Unlock()
	return k8swatch.SnapshotOf(l.current.full()...)
}

// full returns the watchers that hold all objects.
func (use *inUse) full() (all []*k8swatch.Watcher) {
	if use != nil {
		for _, w := range use.watchers {
			if w.full != nil {
				all = append(all, w.full)
			}
		}
	}
	return all
}

// read returns the resources of a program's watchers as the loop shows them. The loop may know
// none of a program that is not in use yet.
func (l *Live) read(use *inUse) Stores {
	all := l.view.Snapshot()
	if full := use.full(); slices.ContainsFunc(full, func(w *k8swatch.Watcher) bool { return all.Of(w) == nil }) {
		all = l.view.In(k8swatch.SnapshotOf(full...))
	}
	stores := make(Stores, len(use.watchers))
	for name, w := range use.watchers {
		if w.full != nil {
			stores[name] = storeOf(all.Of(w.full))
			continue
		}
		metadata := w.onDemand.Metadata()
		stores[name] = Store{
			Len:      metadata.Len(),
			Revision: metadata.Revision() + 1,
			snapshot: metadata,
			Get: func(ctx context.Context, keys []string) ([]k8swatch.Object, error) {
				return w.onDemand.Get(ctx, keys...)
			},
		}
	}
	return stores
}

// difference returns the names of new and unneeded watchers, and the unneeded watchers.
func difference(before, use *inUse) (started, stopped []string, gone []*liveWatcher) {
	old := map[string]*liveWatcher{}
	if before != nil {
		old = before.watchers
	}
	kept := slices.Collect(maps.Values(use.watchers))
	for name, w := range use.watchers {
		if !slices.Contains(slices.Collect(maps.Values(old)), w) {
			started = append(started, name)
		}
	}
	for name, w := range old {
		if !slices.Contains(kept, w) {
			stopped, gone = append(stopped, name), append(gone, w) // twice if it has two names, which is harmless
		}
	}
	slices.Sort(started)
	slices.Sort(stopped)
	return started, stopped, gone
}
