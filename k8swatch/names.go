package k8swatch

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// mostHold is how long an object waits for what it names, so that a source that does not answer
// delays no change for long.
const mostHold = time.Second

// progressEvery is how often a wait for what a list names tells that it goes on.
const progressEvery = 5 * time.Second

// reference is an object that another one names.
type reference struct {
	in *named
	of types.NamespacedName
}

// namer notes what the objects of a watcher name in watchers with [OnlyNamed]. An object is stored
// once these are, so that no snapshot has it without them.
type namer struct {
	in    *intake
	names func(o Object, name func(*Watcher, types.NamespacedName))

	mu    sync.Mutex
	ctx   context.Context // of Run
	waits sync.WaitGroup
	by    map[types.NamespacedName][]reference // what an object names, stored or waiting
	held  map[types.NamespacedName]*prepared   // waiting
}

func newNamer(in *intake, names func(Object, func(*Watcher, types.NamespacedName))) *namer {
	return &namer{in: in, names: names, by: map[types.NamespacedName][]reference{}, held: map[types.NamespacedName]*prepared{}}
}

// start is called before the first object. Objects wait until ctx ends. Then wait for the
// goroutines with stop.
func (r *namer) start(ctx context.Context) { r.ctx = ctx }

func (r *namer) stop() {
	r.mu.Lock() // after it, no wait begins
	r.mu.Unlock()
	r.waits.Wait()
}

// read returns what an object names.
func (r *namer) read(o Object) (all []reference) {
	r.names(o, func(w *Watcher, of types.NamespacedName) {
		if w != nil && w.named != nil {
			all = append(all, reference{w.named, of})
		}
	})
	return all
}

// note makes the references of an object those of its new version; none: it is gone.
func (r *namer) note(of types.NamespacedName, now []reference) {
	now = slices.DeleteFunc(slices.Clone(now), func(ref reference) bool { return !ref.in.name(ref.of) })
	for _, ref := range r.by[of] {
		ref.in.release(ref.of)
	}
	if len(now) == 0 {
		delete(r.by, of)
	} else {
		r.by[of] = now
	}
}

// add stores an object once what it names is stored, and [mostHold] later at the latest.
func (r *namer) add(p *prepared) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.note(p.NamespacedName, p.names)
	var unsettled []<-chan struct{}
	for _, ref := range p.names {
		if c := ref.in.unsettled(ref.of); c != nil {
			unsettled = append(unsettled, c)
		}
	}
	if len(unsettled) == 0 || r.ctx == nil || r.ctx.Err() != nil {
		delete(r.held, p.NamespacedName)
		r.in.store.Put(p.entry)
		return
	}
	r.held[p.NamespacedName] = p
	r.waits.Go(func() {
		ctx, cancel := context.WithTimeout(r.ctx, mostHold)
		defer cancel()
		for _, c := range unsettled {
			select {
			case <-c:
			case <-ctx.Done():
			}
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.held[p.NamespacedName] == p {
			delete(r.held, p.NamespacedName)
			r.in.store.Put(p.entry)
		}
	})
}

// remove drops an object.
func (r *namer) remove(of types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.held, of)
	r.note(of, nil)
	r.in.remove(of)
}

// replace waits for what the objects of a list name. They are stored next.
func (r *namer) replace(objs []*prepared, initial bool) error {
	r.mu.Lock()
	listed := make(map[types.NamespacedName]bool, len(objs))
	var all []reference
	for _, p := range objs {
		listed[p.NamespacedName] = true
		if p.err == nil {
			r.note(p.NamespacedName, p.names)
			all = append(all, p.names...)
		}
	}
	for of := range r.by {
		if !listed[of] {
			r.note(of, nil)
		}
	}
	clear(r.held)
	r.mu.Unlock()
	return r.in.awaitAll(all, initial)
}

// awaitAll waits until the source has answered for all references: without end for the initial
// objects, and [mostHold] for later lists. The error is that of the round.
func (in *intake) awaitAll(all []reference, initial bool) error {
	round := in.round()
	ctx, cancel := context.WithTimeout(round, mostHold)
	if initial {
		cancel()
		ctx, cancel = context.WithCancel(round)
	}
	defer cancel()
	alive := time.NewTicker(progressEvery)
	defer alive.Stop()
	defer in.block(nil)
	for _, ref := range all {
		for c := ref.in.unsettled(ref.of); c != nil; {
			obstacle, changed := ref.in.health.obstacle()
			in.block(obstacle)
			select {
			case <-c:
				c = nil
			case <-changed:
			case <-alive.C:
				in.prepared() // the list goes on
			case <-ctx.Done():
				return round.Err()
			}
		}
	}
	return round.Err()
}
