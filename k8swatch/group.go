package k8swatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hapticsdk/haptic/internal/rendering"
	"github.com/hapticsdk/haptic/k8swatch/internal/store"
)

// GroupOptions of a [Group]. The fields are those of [Options], for all watchers
// together. OnSyncComplete is called when the last watcher is synced. All changes
// before that belong to the initial sync.
type GroupOptions struct {
	Debounce               time.Duration
	OnChange               func(context.Context, Changes) error
	MaxChanges             int
	OnSyncComplete         func(count int)
	CallOnChangeDuringSync bool
	Logger                 *slog.Logger
}

// Group runs several watchers and reads them at one instant. Its OnChange gets the
// changes of all of them: the first at once, the following ones held and delivered
// together. All methods may be called concurrently.
type Group struct {
	notify *notifier

	mu       sync.Mutex
	members  []*Watcher
	running  bool
	unsynced int
	count    int
	revision Revision
	complete chan struct{} // closed when the last watcher is synced
}

// NewGroup returns a group without watchers.
func NewGroup(opts *GroupOptions) *Group {
	if opts == nil {
		opts = &GroupOptions{}
	}
	g := &Group{
		notify:   newNotifier(logger(opts.Logger), opts.Debounce, opts.OnChange, opts.OnSyncComplete, opts.CallOnChangeDuringSync),
		complete: make(chan struct{}),
	}
	g.notify.max = maxChanges(opts.MaxChanges)
	g.notify.snapshot = func(with func()) *GroupSnapshot { return snapshotOf(with, g.Watchers()...) }
	return g
}

// Add puts watchers into the group, which will run them. A watcher belongs to one group
// at most. The error is [ErrInGroup], [ErrGroupRunning] or [ErrStarted]. Then Add has
// added none of the watchers.
func (g *Group) Add(watchers ...*Watcher) error {
	if g.notify == nil {
		return unmade("Group", "NewGroup")
	}
	for i, w := range watchers {
		switch {
		case w == nil:
			return fmt.Errorf("k8swatch: Group.Add: watcher %d is nil: see the error of its New", i)
		case w.intake == nil:
			return fmt.Errorf("k8swatch: Group.Add: watcher %d is not made by New", i)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.running {
		return ErrGroupRunning
	}
	for i, w := range watchers {
		if err := w.join(g); err != nil {
			for _, done := range watchers[:i] {
				done.leave()
			}
			return fmt.Errorf("k8swatch: %s: %w", w.resource.Resource, err)
		}
	}
	g.members = append(g.members, watchers...)
	return nil
}

func (w *Watcher) join(g *Group) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.started:
		return ErrStarted
	case w.group != nil:
		return ErrInGroup
	}
	w.group = g
	if g.notify.onChange != nil {
		w.intake.store.MaxChanged = max(w.intake.store.MaxChanged, g.notify.max)
	}
	return nil
}

func (w *Watcher) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.group = nil
}

// committed gets each change of a store, while the store is locked.
func (g *Group) committed(b batch) {
	g.mu.Lock()
	defer g.mu.Unlock()                                            // to the end, so that revisions are delivered in order
	if b.InitialSync || g.unsynced > 0 && b.watcher.named != nil { // the last object may name some
		g.count += b.Created - b.Deleted
	}
	b.InitialSync = g.unsynced > 0
	b.From, b.To = g.revision, g.revision+b.To-b.From
	g.revision = b.To
	g.notify.add(b)
}

// initially is called when the initial objects of a watcher are in its store.
func (g *Group) initially() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.unsynced--
	if g.unsynced == 0 {
		g.notify.syncComplete(g.count)
		close(g.complete)
	}
}

// Run runs all watchers until ctx ends and returns nil when every goroutine has
// ended. The only error is [ErrStarted].
func (g *Group) Run(ctx context.Context) error {
	if g.notify == nil {
		return unmade("Group", "NewGroup")
	}
	g.mu.Lock()
	if g.running {
		g.mu.Unlock()
		return ErrStarted
	}
	g.running, g.unsynced = true, len(g.members)
	members := g.members
	g.mu.Unlock()

	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error { g.notify.run(ctx); return nil })
	for _, w := range members {
		all.Go(func() error { return w.Run(ctx) })
	}
	if len(members) == 0 {
		g.notify.syncComplete(0)
	}
	return all.Wait()
}

// WaitForSync waits until all watchers are synced and returns the number of initial
// objects. It gives up as soon as one watcher does; see [Watcher.WaitForSync]. If
// several watchers have failed by then, the error is that of the first one added.
func (g *Group) WaitForSync(ctx context.Context) (int, error) {
	members := g.Watchers()
	errs := make([]error, len(members))
	all, each := errgroup.WithContext(ctx)
	for i, w := range members {
		all.Go(func() error {
			_, errs[i] = w.WaitForSync(each)
			return errs[i]
		})
	}
	err := all.Wait()
	for _, e := range slices.Backward(errs) {
		if e != nil && (ctx.Err() != nil || !errors.Is(e, context.Canceled)) { // not one that another's error ended
			err = e
		}
	}
	if err != nil || len(members) == 0 {
		return 0, err
	}
	select { // changes stored from here on are not part of the initial sync
	case <-g.complete:
		return g.count, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// Synced reports whether all watchers are synced.
func (g *Group) Synced() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, w := range g.members {
		if !w.Synced() {
			return false
		}
	}
	return true
}

// Watchers returns the watchers of the group in the order of Add.
func (g *Group) Watchers() []*Watcher {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.members)
}

// States returns the state of each resource. If several watchers share a resource, for
// example in different namespaces, the state is the worst of theirs. Not synced is
// worse than stale, and stale is worse than well. Among equals it is that of the first
// one added. [Group.Watchers] and [Watcher.State] tell them apart.
func (g *Group) States() map[schema.GroupVersionResource]State {
	members := g.Watchers()
	states := make(map[schema.GroupVersionResource]State, len(members))
	for _, w := range members {
		state := w.State()
		if other, ok := states[w.resource]; !ok || worse(state, other) {
			states[w.resource] = state
		}
	}
	return states
}

// worse reports whether state a is worse than state b.
func worse(a, b State) bool {
	if a.Synced != b.Synced {
		return !a.Synced
	}
	return a.Phase != PhaseSynced && b.Phase == PhaseSynced
}

// ForceSync calls OnChange and lists all resources again; see [Watcher.ForceSync].
func (g *Group) ForceSync() {
	select {
	case <-g.complete:
		g.notify.force()
	default:
	}
	for _, w := range g.Watchers() {
		w.ForceSync()
	}
}

// Refresh lists all resources again and waits for the lists; see [Watcher.Refresh]. A new
// leader calls it before its first deployment. The leader before it may have deployed changes
// that a watch of this process missed. The error joins those of the watchers.
func (g *Group) Refresh(ctx context.Context) error {
	members := g.Watchers()
	errs := make([]error, len(members))
	var all sync.WaitGroup
	for i, w := range members {
		all.Go(func() { errs[i] = w.Refresh(ctx) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// GroupSnapshot is the state of several watchers at one instant. It is immutable and
// safe for concurrent use.
type GroupSnapshot struct {
	of       map[*Watcher]*Snapshot
	byGVR    map[schema.GroupVersionResource]*Snapshot
	revision Revision

	base    *GroupSnapshot        // as the stores have it; nil: this one is
	instead map[rendering.Key]any // what a View shows in place of some objects of base
}

// Of returns the snapshot of one watcher, or nil if SnapshotOf did not read it.
func (s *GroupSnapshot) Of(w *Watcher) *Snapshot { return s.of[w] }

// Resource returns the snapshot of the first watcher of a resource, or nil.
func (s *GroupSnapshot) Resource(gvr schema.GroupVersionResource) *Snapshot { return s.byGVR[gvr] }

// Count is the number of objects of a resource in all its watchers.
func (s *GroupSnapshot) Count(gvr schema.GroupVersionResource) (n int) {
	for w, part := range s.of {
		if w.resource == gvr {
			n += part.Len()
		}
	}
	return n
}

// Revision is the sum of the revisions of the parts. Each change raises it.
func (s *GroupSnapshot) Revision() Revision { return s.revision }

// Snapshot reads all watchers at one instant; see [SnapshotOf].
func (g *Group) Snapshot() *GroupSnapshot { return SnapshotOf(g.Watchers()...) }

// SnapshotOf reads watchers at one instant: no change of any of them falls between two
// of the parts. They need not be in one [Group], and the set may differ between calls.
func SnapshotOf(watchers ...*Watcher) *GroupSnapshot { return snapshotOf(func() {}, watchers...) }

// snapshotOf calls with while none of the watchers can change.
func snapshotOf(with func(), watchers ...*Watcher) *GroupSnapshot {
	stores := make([]*store.Store, len(watchers))
	for i, w := range watchers {
		stores[i] = w.intake.store
	}
	s := &GroupSnapshot{of: map[*Watcher]*Snapshot{}, byGVR: map[schema.GroupVersionResource]*Snapshot{}}
	for i, held := range store.SnapshotsWith(with, stores...) {
		w := watchers[i]
		if s.of[w] != nil {
			continue
		}
		s.of[w] = w.intake.snapshot(held)
		if s.byGVR[w.resource] == nil {
			s.byGVR[w.resource] = s.of[w]
		}
		s.revision += s.of[w].Revision()
	}
	return s
}
