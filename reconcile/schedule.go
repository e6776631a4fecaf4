package reconcile

import (
	"time"

	"github.com/hapticsdk/haptic/dataplane"
)

// validated is the one value that travels from validation to deployment: what
// was validated is what is deployed.
type validated struct {
	id      uint64
	config  *dataplane.Config
	origins Origins // may be nil
	at      time.Time
}

func (v *validated) same(o *validated) bool {
	return v == o || v != nil && o != nil && v.config.Hash() == o.config.Hash()
}

// rendered is v as its renderer knows it.
func (v *validated) rendered() *Rendered { return &Rendered{Config: v.config, Origins: v.origins} }

// timing holds the intervals of the schedule, all set.
type timing struct {
	minInterval time.Duration // between two reloads of one endpoint
	drift       time.Duration // idle time after which an endpoint is checked
	retryBase   time.Duration // first wait after a failure; doubles
	retryMax    time.Duration
}

// backOff is the wait after so many failures in a row, 1 or more.
func (t timing) backOff(failures int) time.Duration {
	wait := t.retryBase
	for range failures - 1 {
		if wait *= 2; wait >= t.retryMax {
			return t.retryMax
		}
	}
	return wait
}

// endpointState is all that the schedule of one endpoint depends on.
type endpointState struct {
	want     *validated // the newest validated configuration: the one pending slot
	have     *validated // what the last successful deployment left there
	probed   *validated // found to need a reload when only a runtime change was allowed
	failed   *validated // what the last attempt, a failure, wanted
	failures int        // in a row
	hopeless bool       // the last failure cannot be mended by trying again

	lastEnd    time.Time // of the last attempt
	lastReload time.Time
	leading    bool
	term       int // counts those of leadership
}

// step is what an endpoint does next.
type step int

const (
	stepWait    step = iota // until the time given, or a change of state where it is zero
	stepDeploy              // deploy want, whatever it takes
	stepRuntime             // deploy want if that takes no reload
	stepCheck               // deploy want, which should be there already
)

// next is the schedule of one endpoint: a pure function of its state and the
// time.
//
//	leading  want          failed   reloaded lately  -> step
//	no       -             -        -                   wait for leadership
//	-        none          -        -                   wait for a configuration
//	yes      failed        yes      -                   wait for the back-off, then deploy
//	yes      not have      -        no                  deploy
//	yes      not have      -        yes                 deploy if it takes no reload, else wait for the interval
//	yes      have          -        -                   wait for the drift interval, then check
func (e *endpointState) next(t timing, now time.Time) (step, time.Time) {
	if e.want == nil || !e.leading {
		return stepWait, time.Time{}
	}
	if e.failures > 0 && e.want.same(e.failed) {
		if at := e.retryAt(t); now.Before(at) {
			return stepWait, at
		}
		return e.deploy(t, now)
	}
	if !e.want.same(e.have) {
		return e.deploy(t, now)
	}
	if at := e.lastEnd.Add(t.drift); now.Before(at) {
		return stepWait, at
	}
	return stepCheck, time.Time{}
}

// deploy keeps the minimum interval between reloads; what takes no reload need
// not wait for an interval that exists because of reloads.
func (e *endpointState) deploy(t timing, now time.Time) (step, time.Time) {
	at := e.lastReload.Add(t.minInterval)
	switch {
	case e.lastReload.IsZero() || !now.Before(at):
		return stepDeploy, time.Time{}
	case e.want.same(e.probed):
		return stepWait, at
	}
	return stepRuntime, time.Time{}
}

// retryAt is when a failed deployment is tried again: doubling from retryBase
// to retryMax, or after the drift interval where trying again cannot help.
func (e *endpointState) retryAt(t timing) time.Time {
	if e.hopeless {
		return e.lastEnd.Add(t.drift)
	}
	return e.lastEnd.Add(t.backOff(e.failures))
}

// newTerm forgets what this process left at the endpoint, and takes from an
// attempt under way that it may say so: another process may have led since.
func (e *endpointState) newTerm() {
	e.have = nil
	e.term++
}

// succeeded and failedWith record how an attempt at v ended.
func (e *endpointState) succeeded(v *validated, reloads int, now time.Time) {
	e.have, e.failed, e.failures, e.hopeless = v, nil, 0, false
	e.ended(reloads, now)
}

func (e *endpointState) failedWith(v *validated, reloads int, hopeless bool, now time.Time) {
	e.failed, e.hopeless = v, hopeless
	e.failures++
	// What the endpoint has now is not known any more: never trust a baseline
	// that a failure may have left.
	e.have = nil
	e.ended(reloads, now)
}

func (e *endpointState) ended(reloads int, now time.Time) {
	e.lastEnd = now
	if reloads > 0 {
		e.lastReload = now
	}
}

// pacer spaces reconciliations: the first trigger acts at once, those that
// follow wait until the hold is over, however many they are.
//
// The hold gathers changes that belong together, and bounds what a storm of
// triggers can cost. After a reconciliation that found nothing to deploy there
// is nothing to gather yet, as with a Service that no Ingress names so far: the
// hold then only bounds the cost, to a third of one core.
type pacer struct {
	hold  time.Duration
	until time.Time
}

// at says when a trigger at now may act.
func (p *pacer) at(now time.Time) time.Time {
	if now.Before(p.until) {
		return p.until
	}
	return now
}

// acted records a reconciliation from start to end.
func (p *pacer) acted(start, end time.Time, unchanged bool) {
	p.until = start.Add(p.hold)
	if short := end.Add(2 * end.Sub(start)); unchanged && short.Before(p.until) {
		p.until = short
	}
}
