package reconcile

import (
	"time"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/rendering"
)

// validated is the one value that travels from validation to deployment: the loop deploys
// what it validated.
type validated struct {
	id       uint64
	config   *dataplane.Config
	origins  Origins // may be nil
	at       time.Time
	objects  rendering.Objects // that it was made of; nil without a View
	without  []rendering.Key   // quarantined objects that it lacks
	heldBack int               // so many are set back only until they are tried
	made     TemplateRendered

	deployed func(term uint64) // of its [Rendered]
}

func (v *validated) same(o *validated) bool {
	return v == o || v != nil && o != nil && v.config.Hash() == o.config.Hash()
}

// rendered returns v in the form that its renderer knows.
func (v *validated) rendered() *Rendered { return &Rendered{Config: v.config, Origins: v.origins} }

// probeBase and probeMax bound the back-off for an instance with an unfit version, or one
// that does not accept our credentials.
const probeBase, probeMax = 5 * time.Second, time.Minute

// schedule decides what each instance does, and when. It knows no clock, no goroutine and no
// network: its decisions follow from the events that it gets and their times. Its methods
// are these events, except next, which decides.
type schedule struct {
	newest    *validated // what every instance shall have
	leading   bool
	term      uint64 // counts terms of leadership
	born      uint64 // counts instances
	instances map[string]*instanceState
}

// instanceState is all that the schedule of one instance depends on.
type instanceState struct {
	born uint64 // tells it apart from an earlier instance of the same name
	busy uint64 // which instance of this name a call is made to; 0: none
	gone bool   // it left, and stays only until the call to it returns

	probe    bool // it must be probed before a deployment
	fits     bool // the probe found a version that fits
	want     *validated
	have     *validated // what the last successful deployment left there
	took     *validated // the same, but kept after a failure
	reloads  *validated // found to need a reload when only a runtime change was allowed
	failed   *validated // the configuration of the last call, if that failed
	failures int        // in a row
	cut      bool       // the last call was given up
	hopeless bool       // trying again cannot mend the last failure

	lastEnd    time.Time // of the last call
	lastReload time.Time
	heldUntil  time.Time // no reload before, as its old workers have to end first
}

// step is what an instance does next.
type step int

const (
	stepWait    step = iota // until the given time; if that is zero, until an event
	stepProbe               // find out its versions
	stepDeploy              // deploy want, whatever it takes
	stepRuntime             // deploy want if that takes no reload
	stepCheck               // deploy want, which should be there already
)

// call is a call to an instance that the schedule asks for.
type call struct {
	instance   string
	born, term uint64
	what       step
	want       *validated
	deadline   time.Time
	idle       time.Duration // for a check: time since the last call
}

// outcome is how a call ended.
type outcome struct {
	reloads  int
	waits    bool // at most a part was applied: the rest needs a reload
	changed  bool // that part was not empty
	held     bool // the reload has to wait for old workers to end
	failed   bool
	hopeless bool // trying again cannot help
	unknown  bool // it was given up: nothing failed, but the instance's state is not known
}

// accepted says that v was validated. The latest one wins.
func (s *schedule) accepted(v *validated) {
	s.newest = v
	for _, e := range s.instances {
		e.want = v
	}
}

// leads says whether this process may deploy. Another process may have led before. A new
// term therefore forgets what instances have, and tries earlier failures again at once.
func (s *schedule) leads(leading bool) {
	if leading && !s.leading {
		s.newTerm()
	}
	s.leading = leading
}

// hurry forgets all waits of an instance and what it has, so its call comes at once. It
// keeps only the number of failures.
func (s *schedule) hurry(name string) {
	e := s.instances[name]
	failures := e.failures
	e.forget()
	e.failures, e.fits, e.reloads = failures, false, nil
	e.lastEnd, e.lastReload, e.heldUntil = time.Time{}, time.Time{}, time.Time{}
}

func (s *schedule) newTerm() {
	s.term++
	for _, e := range s.instances {
		e.forget()
	}
}

// forget drops what another process may have changed since.
func (e *instanceState) forget() {
	e.have, e.took, e.failed, e.failures, e.hopeless = nil, nil, nil, 0, false
}

// arrived adds an instance. It shares one thing with an earlier instance of its name: a call
// to that one must return first. arrived returns the number that tells the two apart.
func (s *schedule) arrived(name string, probe bool) (born uint64) {
	s.born++
	e := &instanceState{born: s.born, probe: probe, want: s.newest}
	if before := s.instances[name]; before != nil {
		e.busy = before.busy
	}
	s.instances[name] = e
	return s.born
}

// left forgets an instance.
func (s *schedule) left(name string) {
	if e := s.instances[name]; e != nil && e.busy != 0 {
		s.instances[name] = &instanceState{busy: e.busy, gone: true}
		return
	}
	delete(s.instances, name)
}

// began says that a worker makes a call that next asked for.
func (s *schedule) began(c call) {
	s.instances[c.instance].busy = c.born
}

// ended records how a call ended. It reports whether the name still belongs to the instance
// that was called.
func (s *schedule) ended(c call, o outcome, now time.Time) bool {
	e := s.instances[c.instance]
	if e == nil {
		return false
	}
	if e.busy == c.born {
		e.busy = 0
	}
	if e.born != c.born {
		if e.gone && e.busy == 0 {
			delete(s.instances, c.instance)
		}
		return false
	}
	e.ended(c, o, now)
	if c.term != s.term { // another process may have led since
		e.forget()
	}
	return true
}

func (e *instanceState) ended(c call, o outcome, now time.Time) {
	if o.waits {
		e.reloads = c.want
		if o.changed { // it has a part of that now
			e.have = nil
		}
		if o.held {
			e.forget()
			e.heldUntil = now.Add(heldFor)
		}
		return
	}
	e.lastEnd, e.reloads, e.cut = now, nil, o.unknown
	if o.reloads > 0 {
		e.lastReload = now
	}
	switch {
	case o.unknown:
		e.have = nil
	case o.failed:
		// Forget what the instance has: a failure may have left anything there.
		e.have, e.failed, e.hopeless = nil, c.want, o.hopeless
		e.failures++
	default:
		e.failed, e.failures, e.hopeless = nil, 0, false
		if c.what == stepProbe {
			e.fits = true
		} else {
			e.have, e.took = c.want, c.want
		}
	}
}

// next decides what an instance does at now: make a call, or wait until the returned time.
// If that is zero, it waits for an event.
//
//	leading  want          failed   changed lately  -> step
//	-        -             -        -                  wait for a call under way to return
//	-        none          -        -                  wait for a configuration
//	-        not probed    no       -                  probe
//	-        not probed    yes      -                  wait for the back-off, then probe
//	no       -             -        -                  wait for leadership
//	yes      failed        yes      -                  wait for the back-off, then deploy
//	yes      not have      no       no                 deploy
//	yes      not have      no       by a reload        deploy if it takes no reload, else wait for the interval
//	yes      not have      no       old workers stay   the same, but wait for a second
//	yes      have          no       -                  wait for the drift interval, then check
func (s *schedule) next(name string, t *Options, now time.Time) (call, time.Time) {
	e := s.instances[name]
	if e == nil || e.gone || e.busy != 0 || e.want == nil {
		return call{}, time.Time{}
	}
	what, until := e.next(t, now, s.leading)
	if what == stepWait {
		return call{}, until
	}
	return call{name, e.born, s.term, what, e.want, now.Add(t.DeployTimeout), now.Sub(e.lastEnd)}, time.Time{}
}

func (e *instanceState) next(t *Options, now time.Time, leading bool) (step, time.Time) {
	if e.failures > 0 {
		if at := e.retryAt(t); now.Before(at) {
			return stepWait, at
		}
	}
	switch {
	case e.probe && !e.fits:
		return stepProbe, time.Time{}
	case !leading:
		return stepWait, time.Time{}
	case e.want.same(e.have):
	default:
		return e.deploy(t, now)
	}
	at := e.lastEnd.Add(t.DriftInterval)
	if spaced := e.spaced(t); spaced.After(at) { // the repair may need a reload
		at = spaced
	}
	if now.Before(at) {
		return stepWait, at
	}
	return stepCheck, time.Time{}
}

// deploy keeps the minimum interval between reloads. A change that needs no reload does not
// wait for it.
func (e *instanceState) deploy(t *Options, now time.Time) (step, time.Time) {
	at := e.spaced(t)
	switch {
	case !now.Before(at):
		return stepDeploy, time.Time{}
	case e.want.same(e.reloads):
		return stepWait, at
	}
	return stepRuntime, time.Time{}
}

// heldFor is how long the loop waits before it asks an instance with too many old workers
// again.
const heldFor = time.Second

// spaced returns when the next reload may come, at once if that is past.
func (e *instanceState) spaced(t *Options) time.Time {
	if at := e.lastReload.Add(t.MinInterval); !e.lastReload.IsZero() && at.After(e.heldUntil) {
		return at
	}
	return e.heldUntil
}

// retryAt returns when the loop calls a failed instance again: after RetryBase, doubling to
// RetryMax, or after the drift interval if trying again cannot help. Another configuration
// than the failed one waits less: not at all if that one was hopeless, otherwise RetryBase.
// A storm of configurations must not hammer a failing instance.
func (e *instanceState) retryAt(t *Options) time.Time {
	switch {
	case e.probe && !e.fits && e.hopeless:
		return e.lastEnd.Add(backOff(probeBase, probeMax, e.failures))
	case !e.want.same(e.failed) && e.hopeless:
		return e.lastEnd
	case !e.want.same(e.failed):
		return e.lastEnd.Add(t.RetryBase)
	case e.hopeless:
		return e.lastEnd.Add(t.DriftInterval)
	}
	return e.lastEnd.Add(backOff(t.RetryBase, t.RetryMax, e.failures))
}
