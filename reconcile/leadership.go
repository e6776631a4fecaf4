package reconcile

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
)

func (l *Loop) leading() bool { return l.opts.Leader == nil || l.opts.Leader.Leading() }

// errNotLeading ends a deployment if another process comes to lead in the middle of it.
var errNotLeading = errors.New("another process leads")

// fence makes each changing call ask for leadership first.
func (l *Loop) fence() dataplane.SyncOption {
	return dataplane.WithFence(func() error {
		if !l.leading() {
			return errNotLeading
		}
		return nil
	})
}

// LeadershipChanged makes the loop ask the [Leader] again for every instance, at once, and
// deploy everything again in a new term. Another process may have changed the instances in
// between.
func (l *Loop) LeadershipChanged() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.terms.end()
	l.sched.newTerm()
	l.rolls = time.Now()
	l.pokeWorkers()
}

// leadershipPoll is how often the loop asks a [Leader] that reports no change.
const leadershipPoll = 250 * time.Millisecond

// followLeader wakes the workers when this process starts or stops leading.
func (l *Loop) followLeader(ctx context.Context) {
	ticker := time.NewTicker(leadershipPoll)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-l.terms.ended():
		}
		l.beginTerm(ctx)
		leading := l.leading()
		l.mu.Lock()
		if leading != l.sched.leading {
			l.leads(leading)
			l.pokeWorkers()
		}
		l.mu.Unlock()
	}
}

// leads records whether this process deploys. When it stops, leads clears the errors of
// deployments: the next leader reports its own. The caller holds l.mu.
func (l *Loop) leads(leading bool) {
	for name, w := range l.workers {
		if e := l.sched.instances[name]; !leading && e != nil && (!e.probe || e.fits) {
			w.public.Error, w.public.Waits, w.public.Failures, w.public.RetryAt = "", "", 0, time.Time{}
		}
	}
	if leading && !l.sched.leading {
		l.rolls = time.Now()
	}
	l.sched.leads(leading)
}

// Term returns the number of the term in which this process deploys; 0: it does not. The
// number grows with each term, and is 1 or more without a [Leader].
func (l *Loop) Term() uint64 {
	if !l.leading() {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(l.sched.term, 1)
}

// terms is the [Leader] of a loop with Options.BeginTerm. In each term it says no until
// BeginTerm has returned, and a configuration rendered after that is valid.
type terms struct {
	leader Leader
	begin  func(context.Context)
	wake   chan struct{} // of size 1: another term may have begun

	number atomic.Uint64 // of the current term; it grows when one ends
	begins atomic.Uint64 // the newest for which BeginTerm was called
	begun  atomic.Uint64 // the newest for which it has returned
	fresh  atomic.Uint64 // the newest with a valid configuration
}

// newTerms puts terms in place of the Leader. It returns nil without BeginTerm.
func newTerms(o *Options) *terms {
	if o.Leader == nil || o.BeginTerm == nil {
		return nil
	}
	t := &terms{leader: o.Leader, begin: o.BeginTerm, wake: make(chan struct{}, 1)}
	t.number.Store(1)
	o.Leader = t
	return t
}

// Leading implements [Leader]. If it sees a loss of leadership, the term has ended for good.
func (t *terms) Leading() bool {
	n := t.number.Load()
	if t.leader.Leading() {
		return t.fresh.Load() == n
	}
	if t.begins.Load() == n {
		t.number.CompareAndSwap(n, n+1)
	}
	return false
}

// end ends the current term, if any, and wakes the loop to begin the next one.
func (t *terms) end() {
	if t == nil {
		return
	}
	t.number.Add(1)
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// ended returns the channel that end wakes.
func (t *terms) ended() <-chan struct{} {
	if t == nil {
		return nil
	}
	return t.wake
}

// beginTerm calls Options.BeginTerm if the current term still lacks the call.
func (l *Loop) beginTerm(ctx context.Context) {
	t := l.terms
	if t == nil || !t.leader.Leading() {
		return
	}
	if n := t.number.Load(); t.begun.Load() != n {
		t.begins.Store(n)
		if !l.callback("Options.BeginTerm", func() { t.begin(ctx) }) {
			return // this process does not lead; the next poll calls it again
		}
		t.begun.Store(n)
		l.Trigger("this process leads")
	}
}
