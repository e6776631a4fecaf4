package reconcile

import (
	"errors"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
)

// Each reconciliation uses up price times the time that it took. Rendering then takes
// 1/price of one core on average: 5 %. A reconciliation that leads to deployments uses up at
// least paceLeast. With 10,000 Ingresses, 7 reconciliations a second take 5 % of a core in
// all. A change during a storm then waits 150 ms at most.
//
// The loop saves unused time, up to paceSaved. After a quiet time 20 changes in a row, or a
// new Ingress and its Service, wait for gather alone. That holds even if a reconciliation
// takes 100 ms.
const (
	price     = 20
	paceLeast = 150 * time.Millisecond
	paceSaved = 3 * time.Second

	// gather is how long a change waits for others that belong to it. The writes of one
	// apply are a few milliseconds apart, and each deployment costs about as much.
	gather = 20 * time.Millisecond
)

// pacer spaces reconciliations. The first trigger acts at once; all that follow wait until
// the hold is over.
//
// It bounds the cost of rendering. MinInterval bounds the reloads.
type pacer struct {
	until time.Time // end of the hold
	limit time.Time // the same after a failure
	paid  time.Time // all time before this instant is used up
}

// at returns when a trigger at now may act. After a failure the hold is as long as possible:
// the next attempt is likely to fail, too, and a search for resources at fault is expensive.
func (p *pacer) at(now time.Time, failed bool) time.Time {
	until := p.until
	if failed {
		until = p.limit
	}
	if now.Before(until) {
		return until
	}
	return now
}

// acted records a reconciliation from start to end. The hold ends at most so much later than
// start. If there was nothing to deploy, there is nothing to gather: no Ingress names a new
// Service yet, for example.
func (p *pacer) acted(start, end time.Time, most time.Duration, unchanged bool) {
	took := end.Sub(start)
	hold, cost := 2*took, price*took
	if !unchanged {
		hold, cost = max(hold, gather), max(cost, paceLeast)
	}
	p.until, p.limit = end.Add(hold), start.Add(most)
	if p.paid.Before(start) {
		p.paid = start
	}
	p.paid = p.paid.Add(cost)
	if spent := p.paid.Add(-paceSaved); spent.After(p.until) {
		p.until = spent
	}
	if p.limit.Before(p.until) {
		p.until = p.limit
	}
	if most := p.until.Add(paceSaved); most.Before(p.paid) { // a longer debt is dropped
		p.paid = most
	}
}

// backOff returns the wait after so many failures in a row, 1 or more: it doubles from first
// to most.
func backOff(first, most time.Duration, failures int) time.Duration {
	wait := first
	for range failures - 1 {
		wait *= 2
		if wait >= most {
			return most
		}
	}
	return min(wait, most)
}

// retryable reports whether the same deployment may succeed soon. A failed reload may: the
// cause, such as a port in use, is often outside of the configuration, which passed
// validation.
func retryable(err error) bool {
	var panicked *PanicError
	if errors.As(err, &panicked) {
		return false
	}
	return errors.Is(err, dataplane.ErrReload) || dataplane.Retryable(err)
}

// isRefused reports whether an instance refused its last configuration.
func (l *Loop) isRefused() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.sched.instances {
		if e.hopeless && (e.fits || !e.probe) {
			return true
		}
	}
	return false
}
