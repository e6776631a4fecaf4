package reconcile

import (
	"slices"
	"sync/atomic"
)

// forgetter is a [Target] that remembers what it deployed, as [dataplane.Client]
// does. It is told when another process may have deployed since, and before each check
// for drift.
type forgetter interface {
	Forget()
}

// Forget implements forgetter.
func (r *remote) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.client.Forget()
}

// terms notices that a term begins, whoever asks first whether this process
// leads. Nothing of what was deployed in an earlier term counts then.
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
