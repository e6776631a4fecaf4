package reconcile

import (
	"context"
	"errors"
	"time"

	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/reconcile/internal/quarantine"
)

// admit tries what a search held back, before the first configuration is deployed. Afterwards
// trials come between reconciliations, in the same goroutine.
func (l *Loop) admit(ctx context.Context, valid *attempt, changes []quarantine.Change) (*attempt, []quarantine.Change) {
	a, begun := valid, time.Now()
	for ctx.Err() == nil && time.Since(begun) < startPatience {
		t := l.quarantine.Trial(begun)
		if t == nil {
			break
		}
		bounded, end := context.WithTimeout(ctx, l.mostAttemptTime())
		a = l.attempt(bounded, t.Objects(), len(l.quarantine.All())-len(t.Keys))
		end()
		changes = append(changes, l.outcome(a, t, l.mostAttemptTime(), "")...)
	}
	if a.err != nil { // the renderer is to remember what is valid
		a = l.attempt(ctx, l.quarantine.Good(), len(l.quarantine.All()))
	}
	if a.err != nil {
		a = valid
	}
	return a, changes
}

// outcome tells quarantine how a trial ended.
func (l *Loop) outcome(a *attempt, t *quarantine.Trial, limit time.Duration, then string) []quarantine.Change {
	now := time.Now()
	switch {
	case a.err == nil:
		return t.Passed(now)
	case a.verdict:
		return t.Failed(faultsOf(a.err), now)
	case len(t.Keys) > 1 || !errors.Is(a.err.Err, context.DeadlineExceeded): // it says nothing about them
		t.Cut(now)
		return nil
	}
	return t.Failed([]quarantine.Fault{{About: tooLong(a, limit, then)}}, now)
}

// trialPatience is how long a trial may hold up a reconciliation. If twice the time of the
// attempts before is longer, that counts.
const trialPatience = 500 * time.Millisecond

// startPatience bounds the trials before the first configuration is deployed: until then, what
// a search set back in one step is not served.
const startPatience = 10 * time.Second

// hangPause is how long what hung before waits for a moment without other changes.
const hangPause = 30 * time.Second

// trials tries what is held back and due. It stops when a reconciliation is asked for. It
// returns the newest configuration that it made, or nil.
func (l *Loop) trials(ctx context.Context, patience time.Duration) (newest *validated) {
	for begun := time.Now(); ctx.Err() == nil; {
		t := l.quarantine.Trial(begun)
		if t == nil || t.Hangs && len(l.wake) > 0 && time.Since(l.hung) < hangPause {
			break
		}
		if t.Hangs {
			l.hung = time.Now()
		}
		if v := l.trial(ctx, t, patience); v != nil {
			newest = v
		}
		if len(l.wake) > 0 {
			break
		}
	}
	return newest
}

// trial renders and validates once more with some of what is held back. If that is valid, it
// returns the configuration, otherwise nil. A failed trial is an unchanged reconciliation.
func (l *Loop) trial(ctx context.Context, t *quarantine.Trial, patience time.Duration) *validated {
	reasons := []string{"a try of " + t.Keys[0].Kind + " " + t.Keys[0].Namespace + "/" + t.Keys[0].Name + andMore(len(t.Keys)-1)}
	id, start := l.begin(reasons)
	if patience < attemptTime { // a trial that was cut gets more time
		patience = min(patience*time.Duration(1+t.Tries), attemptTime)
	}
	bounded, end := l.yielding(ctx, patience)
	if t.Others || len(t.Keys) > 1 { // the next one waits, too
		end()
		bounded, end = context.WithTimeout(ctx, max(patience, l.mostAttemptTime()))
	}
	a := l.attempt(bounded, t.Objects(), len(l.quarantine.All())-len(t.Keys))
	cut := bounded.Err() != nil
	end()
	if ctx.Err() != nil && a.err != nil {
		return nil
	}
	if cut && a.err != nil {
		t.Cut(time.Now())
		l.showQuarantine()
	} else if changes := l.outcome(a, t, a.renderTook+a.validateTook, ", apart from others, too"); a.err == nil {
		v := l.found(id, a, changes)
		l.complete(v, reasons, start)
		return v
	} else {
		l.publishTogether(id, changes)
	}
	l.mu.Lock()
	hash := l.sched.newest.config.Hash()
	l.mu.Unlock()
	eventbus.Publish(l.bus, ReconciliationCompleted{ID: id, Hash: hash, Unchanged: true, Took: time.Since(start), Reasons: reasons, Attempts: l.attempts})
	return nil
}

// yielding returns a context that ends when a reconciliation waits, but not before patience
// is over.
func (l *Loop) yielding(ctx context.Context, patience time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	timer := time.AfterFunc(patience, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if ctx.Err() != nil {
			return
		}
		l.hurry = cancel
		if len(l.wake) > 0 {
			cancel()
		}
	})
	return ctx, func() {
		timer.Stop()
		cancel()
		l.mu.Lock()
		defer l.mu.Unlock()
		l.hurry = func() {}
	}
}
