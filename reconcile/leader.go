package reconcile

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
)

// Leader says whether this process may deploy. Leading is asked before every
// call that changes a HAProxy and must be false as soon as another process may lead, even where
// this one was frozen in between.
//
// Nothing else keeps two processes apart. One that was frozen in the middle of a
// deployment makes no further changing call; of the one that was on its way then,
// an instance refuses only a configuration, for its version is an old one. Two
// that both go on believing that they lead, for the clock of one is wrong, take
// what the other deploys for drift, and undo it in turns.
type Leader interface {
	Leading() bool
}

// errNotLeading ends a deployment in the middle of which another process came
// to lead.
var errNotLeading = errors.New("another process leads")

func (l *Loop) leading() bool { return l.opts.Leader == nil || l.opts.Leader.Leading() }

// fence has leadership asked before each call that changes something.
func (l *Loop) fence() dataplane.SyncOption {
	return dataplane.WithFence(func() error {
		if !l.leading() {
			return errNotLeading
		}
		return nil
	})
}

// LeadershipChanged makes every instance ask its [Leader] again, at once, and
// deploy in a new term whatever was deployed in an older one: another process
// may have changed it in between.
func (l *Loop) LeadershipChanged() {
	l.forget()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sched.newTerm()
	l.pokeWorkers()
}

// leadershipPoll is how often a [Leader] is asked that reports no change.
const leadershipPoll = 250 * time.Millisecond

// followLeader wakes the workers when this process comes to lead or no longer
// does.
func (l *Loop) followLeader(ctx context.Context) {
	ticker := time.NewTicker(leadershipPoll)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		leading := l.leading()
		l.mu.Lock()
		if leading != l.sched.leading {
			l.sched.leads(leading)
			l.pokeWorkers()
		}
		l.mu.Unlock()
	}
}

// terms notices that a term begins, whoever asks first whether this process
// leads. What was deployed in an earlier term does not count then.
type terms struct {
	Leader
	led   atomic.Bool // when it was last asked
	began func()
}

// Leading implements [Leader].
func (t *terms) Leading() bool {
	leading := t.Leader.Leading()
	if before := t.led.Swap(leading); leading && !before {
		t.began()
	}
	return leading
}

// forgetter is a [Target] that remembers what it deployed, as [dataplane.Client]
// does. It is told when another process may have deployed since, and before each check
// for drift.
type forgetter interface {
	Forget()
}

// forget has all targets look at what their HAProxys have.
func (l *Loop) forget() {
	l.mu.Lock()
	targets := slices.Clone(l.targets)
	l.mu.Unlock()
	for _, t := range targets {
		if f, ok := t.(forgetter); ok {
			f.Forget()
		}
	}
}
