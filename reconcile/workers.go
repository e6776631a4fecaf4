package reconcile

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/hapticsdk/haptic/eventbus"
)

// SetTargets says which instances the loop deploys to from now on. A target that stays (the
// same value) goes on undisturbed. A new one gets the newest validated configuration at
// once. The loop forgets a target that goes, and its state. A target must not be nil and
// needs a name of its own and a type that can be compared. Otherwise SetTargets returns an
// error and changes nothing.
func (l *Loop) SetTargets(targets ...Target) error {
	names := map[string]bool{}
	for i, t := range targets {
		if isNil(t) {
			return fmt.Errorf("reconcile: target %d of %d is nil", i+1, len(targets))
		} else if !reflect.ValueOf(t).Comparable() {
			return fmt.Errorf("reconcile: targets of type %T cannot be compared: make it a pointer", t)
		}
		name := t.Name()
		if name == "" {
			return fmt.Errorf("reconcile: target %d of %d has no name", i+1, len(targets))
		}
		if names[name] {
			return fmt.Errorf("reconcile: two targets have the name %q", name)
		}
		names[name] = true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.targets
	l.targets = slices.Clone(targets)
	close(l.changed)
	l.changed = make(chan struct{})

	event := InstancesChanged{Added: missing(before, targets), Removed: missing(targets, before)}
	for _, t := range targets {
		event.Instances = append(event.Instances, t.Name())
	}
	if len(event.Added)+len(event.Removed) > 0 {
		eventbus.Publish(l.bus, event)
	}
	for _, name := range event.Removed {
		l.left = withName(l.left, name)
	}
	l.publishRollout(nil)
	l.withdrawSoon()
	return nil
}

// missing returns the names of those targets that are not in list.
func missing(list, targets []Target) (names []string) {
	for _, t := range targets {
		if !slices.Contains(list, t) {
			names = append(names, t.Name())
		}
	}
	return names
}

// runWorkers keeps one worker for each target, until ctx ends.
func (l *Loop) runWorkers(ctx context.Context) {
	var wg sync.WaitGroup
	if l.opts.Leader != nil {
		wg.Go(func() { l.followLeader(ctx) })
	}
	for {
		l.mu.Lock()
		changed := l.changed
		l.dropWorkers(l.targets)
		for _, t := range l.targets {
			if l.workers[t.Name()] == nil {
				w := l.addWorker(t)
				ctx, cancel := context.WithCancel(ctx)
				w.stop = cancel
				wg.Go(func() { w.run(ctx) })
			}
		}
		l.mu.Unlock()
		select {
		case <-ctx.Done():
			l.mu.Lock()
			led := l.sched.leading // an election that ends with the loop takes nothing back
			l.mu.Unlock()
			wg.Wait() // calls under way may still end well
			l.mu.Lock()
			l.publishUnfinished(led, time.Now())
			l.dropWorkers(nil)
			l.mu.Unlock()
			return
		case <-changed:
		}
	}
}

// dropWorkers stops the workers whose targets are no longer wanted, and forgets their
// instances. The caller holds l.mu.
func (l *Loop) dropWorkers(wanted []Target) {
	for name, w := range l.workers {
		if !slices.Contains(wanted, w.target) {
			w.stop()
			delete(l.workers, name)
			l.sched.left(name)
		}
	}
}

// addWorker makes the worker of a target, with the newest configuration to deploy. The
// caller holds l.mu.
func (l *Loop) addWorker(t Target) *worker {
	_, probe := t.(Prober)
	w := &worker{loop: l, target: t, wake: make(chan struct{}, 1), stop: func() {}, public: l.unknown(t)}
	w.born = l.sched.arrived(t.Name(), probe)
	l.workers[t.Name()] = w
	return w
}

// unknown returns the state of an instance before its first call. The caller holds l.mu.
func (l *Loop) unknown(t Target) InstanceState {
	p := InstanceState{Name: t.Name()}
	if v := l.sched.newest; v != nil {
		p.StaleSince = v.at
	}
	return p
}

// pokeWorkers makes all workers ask the schedule again. The caller holds l.mu.
func (l *Loop) pokeWorkers() {
	for _, w := range l.workers {
		w.poke()
	}
}
