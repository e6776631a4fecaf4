package k8swatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
)

// named is the store of a watcher with [OnlyNamed], as its reflector sees it. It gets metadata,
// and fetches what is named into the store of an intake. Its lock is taken before that of the
// store.
type named struct {
	OnlyNamed
	in        *intake
	health    *health
	namespace string
	source    MetadataSource
	inline    bool // a fetch takes no time: it is done at once

	mu     sync.Mutex
	ctx    context.Context // of Run; nil before it
	flying sync.WaitGroup
	listed bool // known is complete
	known  map[types.NamespacedName]edition
	wants  map[types.NamespacedName]*want
	names  map[string]int // wants of a namespace
	spaces map[string]*space
	turn   []string // namespaces with objects to fetch; that of the next one is the first
	busy   int      // fetches
	failed bool     // the last fetch failed
	budget budget
}

// edition is one version of one object under a name. The zero value is none.
type edition struct {
	uid     types.UID
	version string
}

func editionOf(o Object) edition { return edition{o.GetUID(), o.GetResourceVersion()} }

// mostMissing is how many names of a namespace there may be beyond the objects that it has room for.
const mostMissing = 1000

// space is a namespace with something named.
type space struct{ queue []*want }

// want is an object that is named, or was.
type want struct {
	of      types.NamespacedName
	namers  int           // objects that name it
	asked   edition       // the metadata for which it was fetched last
	has     edition       // what was fetched
	waits   bool          // in the queue, on its way, or pausing after a failure
	settled chan struct{} // closed when it needs no fetch; nil: nobody waits for that
	pause   *wait.Backoff // after failures
	held                  // its part of the budget
}

var _ cache.TransformingStore = (*named)(nil)

func newNamed(src MetadataSource, w *Watcher, opts OnlyNamed) *named {
	n := &named{
		OnlyNamed: opts.orUsual(), in: w.intake, health: w.health, namespace: w.namespace, source: src, inline: !isForeign(src),
		known: map[types.NamespacedName]edition{}, wants: map[types.NamespacedName]*want{}, names: map[string]int{}, spaces: map[string]*space{},
	}
	n.budget = newBudget(n.BytesPerNamespace, n.Bytes)
	n.in.initial = true
	for _, of := range n.Always {
		n.name(of)
	}
	return n
}

// start allows fetches until ctx ends. Then wait for those that are on their way with stop.
func (n *named) start(ctx context.Context) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ctx = ctx
	n.dispatch()
}

func (n *named) stop() {
	n.mu.Lock() // after it, no fetch begins
	n.mu.Unlock()
	n.flying.Wait()
}

// name notes that an object names another one. It reports whether that counts: then release undoes
// it. One of a namespace that is not watched does not, nor one of too many.
func (n *named) name(of types.NamespacedName) bool {
	if n.namespace != "" && of.Namespace != n.namespace {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	w := n.wants[of]
	if w == nil && int64(n.names[of.Namespace]) >= n.BytesPerNamespace/overhead+mostMissing {
		return false // so many objects cannot be held: each takes overhead
	}
	if w == nil {
		w = &want{of: of}
		n.wants[of] = w
		n.names[of.Namespace]++
	}
	w.namers++
	n.budget.use(w)
	n.enqueue(w)
	return true
}

// release undoes name.
func (n *named) release(of types.NamespacedName) {
	n.mu.Lock()
	defer n.mu.Unlock()
	w := n.wants[of]
	w.namers--
	switch {
	case w.namers > 0:
	case w.bytes == 0:
		n.forget(w)
	default:
		n.budget.leave(w)
		n.offer()
	}
}

// forget drops an object that nothing names, or that has to make room.
func (n *named) forget(w *want) {
	n.remove(w)
	n.drop(w)
	n.tell(w)
}

func (n *named) drop(w *want) {
	delete(n.wants, w.of)
	n.names[w.of.Namespace]--
	if n.names[w.of.Namespace] == 0 {
		delete(n.names, w.of.Namespace)
	}
}

// remove takes an object out of the store.
func (n *named) remove(w *want) {
	n.in.remove(w.of)
	n.budget.remove(w)
	w.has, w.asked = edition{}, edition{}
}

// await waits until an object needs no fetch, and reports whether that came before the end of ctx.
func (n *named) await(ctx context.Context, of types.NamespacedName) bool {
	settled := n.unsettled(of)
	if settled == nil {
		return true
	}
	select {
	case <-settled:
		return true
	case <-ctx.Done():
		return false
	}
}

// unsettled returns nil for an object that needs no fetch, and otherwise what is closed once it
// needs none.
func (n *named) unsettled(of types.NamespacedName) <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	w := n.wants[of]
	if w == nil || n.isSettled(w) {
		return nil
	}
	if w.settled == nil {
		w.settled = make(chan struct{})
	}
	return w.settled
}

func (n *named) isSettled(w *want) bool {
	now, exists := n.known[w.of]
	return n.listed && (!exists || !w.waits && (w.asked == now || w.has == now))
}

// tell wakes who waits for an object, if it needs no fetch.
func (n *named) tell(w *want) {
	if w.settled != nil && (n.isSettled(w) || n.wants[w.of] != w) {
		close(w.settled)
		w.settled = nil
	}
}

// enqueue makes sure that an object is fetched if it has to be.
func (n *named) enqueue(w *want) {
	if w.waits || !n.listed || n.wants[w.of] != w || n.isSettled(w) {
		n.tell(w)
		return
	}
	w.waits = true
	if n.inline {
		n.arrived(w, n.known[w.of], n.ask(context.Background(), w.of, ""))
		return
	}
	s := n.spaces[w.of.Namespace]
	if s == nil {
		s = &space{}
		n.spaces[w.of.Namespace] = s
		n.turn = append(n.turn, w.of.Namespace)
	}
	s.queue = append(s.queue, w)
	n.dispatch()
}

// dispatch begins fetches, for each namespace in turn.
func (n *named) dispatch() {
	for n.ctx != nil && n.ctx.Err() == nil && n.busy < n.Parallel && len(n.turn) > 0 {
		namespace := n.turn[0]
		s := n.spaces[namespace]
		w := s.queue[0]
		n.turn, s.queue = n.turn[1:], s.queue[1:]
		if len(s.queue) > 0 {
			n.turn = append(n.turn, namespace)
		} else {
			delete(n.spaces, namespace)
		}
		asked, exists := n.known[w.of]
		if !exists || n.wants[w.of] != w {
			w.waits = false
			n.tell(w)
			continue
		}
		n.busy++
		since := asked.version
		if w.pause != nil {
			since = "" // the last fetch failed
		}
		n.flying.Go(func() {
			ctx, cancel := context.WithTimeout(n.ctx, fetchTimeout)
			defer cancel()
			got := n.ask(ctx, w.of, since)
			n.mu.Lock()
			defer n.mu.Unlock()
			n.busy--
			n.arrived(w, asked, got)
			n.dispatch()
		})
	}
}

// answer is that to a fetch.
type answer struct {
	obj Object
	err error
}

// ask fetches an object that is no older than a version; "": as it is now.
func (n *named) ask(ctx context.Context, of types.NamespacedName, since string) (got answer) {
	got.err = guard(func() (err error) {
		if cluster, ok := n.source.(*Cluster); ok {
			got.obj, err = cluster.fetchSince(ctx, n.in.resource, of.Namespace, of.Name, since)
			return err
		}
		got.obj, err = n.source.Fetch(ctx, n.in.resource, of.Namespace, of.Name)
		return err
	})
	return got
}

// arrived takes the answer to a fetch.
func (n *named) arrived(w *want, asked edition, got answer) {
	w.waits = false
	now, exists := n.known[w.of]
	switch {
	case !exists || n.wants[w.of] != w: // it is gone, or nothing names it
	case got.err != nil && !gone(got.err):
		n.fail(w, got.err)
		return
	case got.err == nil && got.obj != nil && got.obj.GetUID() == now.uid:
		n.take(w, got.obj)
		w.asked = asked
	default: // there is none by that name, or another one: the watch will say so, too
		w.asked = asked
	}
	w.pause = nil
	if n.failed {
		n.failed = false
		n.health.well(verbGet)
	}
	n.enqueue(w) // if a newer version is known by now
}

// fail fetches an object again after a pause.
func (n *named) fail(w *want, err error) {
	if n.ctx == nil || n.ctx.Err() != nil {
		return
	}
	n.failed = true
	n.health.failed(verbGet, fmt.Errorf("%s: %w", w.of, err))
	if w.pause == nil {
		pause := pauses()
		w.pause = &pause
	}
	w.waits = true
	time.AfterFunc(w.pause.Step(), func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		w.waits = false
		n.enqueue(w)
	})
}

// take stores an object, or what stands for it if there is no room.
func (n *named) take(w *want, obj Object) {
	other, had := w.has.uid != "" && w.has.uid != obj.GetUID(), w.bytes
	w.has = editionOf(obj)
	p, size := n.in.prepare(obj), int64(0)
	if p.err == nil {
		size = sizeOf(p.entry.Object()) + overhead
		if why := n.budget.room(w, size); why != "" {
			p.err = errors.New(why)
		}
	}
	if n.in.accept(p) {
		for one := n.budget.tooMuch(w, size-w.bytes); one != nil; one = n.budget.tooMuch(w, size-w.bytes) {
			n.forget(one)
		}
		n.budget.set(w, size)
		n.in.store.Put(p.entry)
		if size < had {
			n.offer()
		}
		return
	}
	if other && w.namers == 0 {
		n.forget(w)
		return
	}
	if w.bytes == 0 || other {
		n.budget.remove(w)
		if stub, err := n.in.stub(obj, p.err.Error()); err == nil {
			n.in.store.Put(stub)
		}
	}
	if size > 0 {
		n.budget.withhold(w, size)
	}
	if w.bytes < had {
		n.offer()
	}
}

// offer fetches what is withheld again, as far as there is room by now.
func (n *named) offer() {
	for _, w := range n.budget.fitting() {
		w.asked, w.has.version = edition{}, ""
		n.enqueue(w)
	}
}

// Transformer implements cache.TransformingStore.
func (n *named) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		n.in.prepared()
		return n.prepare(obj), nil
	}
}

// prepare keeps the names and versions of metadata.
func (n *named) prepare(obj any) *prepared {
	if p, ok := obj.(*prepared); ok {
		return p
	}
	o, ok := obj.(Object)
	if !ok {
		return &prepared{err: fmt.Errorf("%T is no metadata of an object", obj)}
	}
	return &prepared{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}, edition: editionOf(o)}
}

// Add implements cache.ReflectorStore.
func (n *named) Add(obj any) error {
	p := n.prepare(obj)
	if p.err != nil {
		return nil //nolint:nilerr // it has no name
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.known[p.NamespacedName] = p.edition
	if w := n.wants[p.NamespacedName]; w != nil {
		n.enqueue(w)
	}
	return nil
}

// Update implements cache.ReflectorStore.
func (n *named) Update(obj any) error { return n.Add(obj) }

// Delete implements cache.ReflectorStore.
func (n *named) Delete(obj any) error {
	of, ok := nameOfDeleted(obj)
	if !ok {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.known, of)
	n.deleted(of)
	return nil
}

// deleted drops an object that the source has no longer.
func (n *named) deleted(of types.NamespacedName) {
	w := n.wants[of]
	if w == nil {
		return
	}
	n.remove(w)
	n.tell(w)
	if w.namers == 0 {
		n.drop(w)
	}
	n.offer()
}

// Replace implements cache.ReflectorStore. It returns when all that is named by now is fetched,
// and after [mostHold] from the second time on.
func (n *named) Replace(objs []any, _ string) error {
	n.mu.Lock()
	known := make(map[types.NamespacedName]edition, len(objs))
	for _, obj := range objs {
		if p := n.prepare(obj); p.err == nil {
			known[p.NamespacedName] = p.edition
		}
	}
	n.known, n.listed = known, true
	var all []reference
	for of, w := range n.wants {
		if _, exists := known[of]; !exists {
			n.deleted(of)
		} else {
			n.enqueue(w)
			all = append(all, reference{n, of})
		}
	}
	initial := n.in.initial
	n.mu.Unlock()
	if err := n.in.awaitAll(all, initial); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.in.initial = false
	n.in.replaced()
	if initial {
		n.in.initially()
	}
	return nil
}

// Resync implements cache.ReflectorStore. It does nothing.
func (n *named) Resync() error { return nil }
