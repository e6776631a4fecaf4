package reconcile

import "time"

// A reconciliation pays with time for the time that it took. Rendering then takes 1/price
// of one core on average: 5 %. One that leads to deployments pays at least paceLeast for
// these. With 10,000 Ingresses, 7 of them a second take 5 % of a core in all, and a change
// that comes under a storm waits 150 ms at most.
//
// A controller saves the time that it does not spend, up to paceSaved: 20 changes in a
// row, or a new Ingress and its Service, wait for gather alone after a quiet time, also
// where a reconciliation takes 100 ms.
const (
	price     = 20
	paceLeast = 150 * time.Millisecond
	paceSaved = 3 * time.Second

	// gather is how long a change waits for those that belong to it. Writes of one apply
	// are a few milliseconds apart, and each deployment costs about as much.
	gather = 20 * time.Millisecond
)

// pacer spaces reconciliations: the first trigger acts at once, those that
// follow wait until the hold is over, however many they are.
//
// It bounds what rendering costs. MinInterval bounds the reloads.
type pacer struct {
	until time.Time // end of the hold
	limit time.Time // the same after a failure
	paid  time.Time // until when the time is spent
}

// at says when a trigger at now may act. What failed is likely to fail again, and a
// search for what is at fault is dear: then the hold is as long as may be.
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

// acted records a reconciliation from start to end. The next one begins at most so much
// later than start. After one that found nothing to deploy, as with a Service that no
// Ingress names so far, there is nothing to gather.
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
	if most := p.until.Add(paceSaved); most.Before(p.paid) { // what the hold does not pay is remitted
		p.paid = most
	}
}

// isRefused reports whether an instance refused what it got last.
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
