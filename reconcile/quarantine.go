package reconcile

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hapticsdk/haptic/eventbus"
)

// Quarantined is a resource with which the configuration is not valid. The loop serves its
// version of the last valid configuration, or leaves it out.
type Quarantined struct {
	Resource Resource  `json:"resource"`        // in the version that was at fault
	Before   Resource  `json:"before,omitzero"` // the version that is served instead; zero: none
	Fault    Fault     `json:"fault"`           // what is wrong with it
	Since    time.Time `json:"since"`
	RetryAt  time.Time `json:"retryAt"` // when the loop tries it again, changed or not
	Tries    int       `json:"tries"`   // failed tries of this version

	// Instances refuse it, although the validator accepts it; sorted by name. Empty: the
	// validator refuses it.
	Instances []string `json:"instances,omitempty"`
}

// String returns one line for a log.
func (q Quarantined) String() string { return q.Resource.located() + ": " + q.what() }

// what says what is wrong, and which version is served.
func (q Quarantined) what() string {
	if q.Before != (Resource{}) {
		return q.Fault.String() + "; the earlier version is served"
	}
	return q.Fault.String() + "; left out"
}

// ruling records an object that was at fault. It sticks to the object: after a change the
// object stays in quarantine until a try shows that it is right. The loop keeps the ruling
// for QuarantineMax after the release, so an object that fails again and again waits longer each
// time.
type ruling struct {
	Quarantined
	before    version   // the object that Before names
	after     identity  // another resource left out, whose absence may be the cause
	seen      Resource  // the version that the last render left out
	judged    time.Time // when it was last at fault, or another version failed its try
	relapses  int       // how often it was at fault again after a change or a release
	changed   bool      // the object changed since judged
	withdrawn bool      // the verdicts of all its instances were taken back
	aside     bool      // left out together with others, not known to be at fault
	told      bool      // an event named it, although it is only set aside
	released  time.Time // zero: it is still left out
	recorded  bool      // the Recorder has it
}

// relapseWait is how long a changed object waits for its try after the first relapse. The
// wait doubles with each further relapse, up to QuarantineMax.
const relapseWait = time.Second

// lateFactor times QuarantineMax is the longest wait of a resource that an instance refuses: each
// try of it changes all instances.
const lateFactor = 24

// quarantine holds what the loop leaves out. Loop.rendering guards it; Loop.state has a copy
// for others.
type quarantine struct {
	rulings map[identity]*ruling
	turns   map[string]uint64 // the reconciliation before the last try of a namespace
	pending []culprit         // what the next search leaves out from the beginning
	proven  bool              // the current templates have made a valid configuration
	valid   Origins           // of the last valid configuration
	gaveUp  string            // the failure for which a search found no resource to blame
	why     string            // and why it found none

	news     []ResourceQuarantined // not published yet
	released []ResourceReleased
	innocent []ResourceReleased // only set aside before: all tries of a reconciliation make one line
}

// out returns the rulings of all resources left out, sorted by kind and name.
func (q *quarantine) out() []*ruling {
	all := slices.DeleteFunc(slices.Collect(maps.Values(q.rulings)), func(v *ruling) bool { return !v.released.IsZero() })
	slices.SortFunc(all, func(a, b *ruling) int {
		return cmp.Or(strings.Compare(a.Resource.Kind, b.Resource.Kind), strings.Compare(a.Resource.Namespace, b.Resource.Namespace),
			strings.Compare(a.Resource.Name, b.Resource.Name), strings.Compare(a.Resource.APIVersion, b.Resource.APIVersion))
	})
	return all
}

// isOut reports whether an object is left out.
func (q *quarantine) isOut(id identity) bool {
	v := q.rulings[id]
	return v != nil && v.released.IsZero()
}

// resources returns the resources left out: those due for a try, and the others.
func (q *quarantine) resources(now time.Time) (others, due []Resource) {
	for _, v := range q.out() {
		if v.RetryAt.After(now) {
			others = append(others, v.Resource)
		} else {
			due = append(due, v.Resource)
		}
	}
	return others, due
}

// Release tries all quarantined resources again at once. Call it when the renderer changes
// its meaning, such as after a change of the templates: wrong resources may be right now. It
// never blocks.
func (l *Loop) Release() {
	l.mu.Lock()
	l.release = true
	l.mu.Unlock()
	l.Trigger("release from quarantine")
}

// takeRelease carries out Release. The caller holds l.rendering.
func (l *Loop) takeRelease() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.release {
		return
	}
	l.release = false
	q := &l.quarantine
	for _, v := range q.rulings {
		v.RetryAt, v.Tries, v.relapses = time.Time{}, 0, 0
	}
	q.pending, q.proven, q.gaveUp = nil, false, ""
	for _, w := range l.workers {
		w.rounds, w.gaveUp = 0, ""
	}
}

// adopt makes the result of a successful search the current quarantine. The caller holds
// l.rendering.
func (l *Loop) adopt(id uint64, s *search) {
	q, now := &l.quarantine, time.Now()
	l.askAll(s)
	for _, c := range s.blamed {
		if _, asked := s.last.left.now(c.resource.identity()); asked {
			l.judge(id, c, s.last.left.stands(c.resource.identity()), now)
		} else if len(c.instances) > 0 {
			l.ignored(s.last.rendered.Origins, c)
		}
	}
	left, aside := s.last.left, s.last.left.besides()
	for _, r := range s.aside {
		if is, asked := left.now(r.identity()); asked {
			aside[r.identity()] = is
		}
	}
	for _, r := range aside {
		q.setAside(r, left.stands(r.identity()), now)
		if v := q.rulings[r.identity()]; s.hung > 0 {
			v.Fault = s.hangs
			if !v.told { // published at once: a try may take as long as a render
				v.told = true
				q.news = append(q.news, ResourceQuarantined{ID: id, Quarantined: v.Quarantined})
			}
		}
		s.last.excluded = append(s.last.excluded, r)
	}
	s.last.aside = len(aside)
	for _, v := range q.out() {
		is, asked := left.now(v.Resource.identity())
		switch {
		case v.aside && aside[v.Resource.identity()] == v.Resource:
		case !left.resources[v.Resource.identity()]:
			l.releaseOne(id, v, false, now)
		case !asked:
			l.releaseOne(id, v, true, now)
		default:
			l.notice(v, is)
			l.stands(id, v, left.stands(v.Resource.identity()))
		}
	}
	maps.DeleteFunc(q.rulings, func(_ identity, v *ruling) bool {
		return !v.released.IsZero() && (v.judged.IsZero() || now.Sub(v.released) > l.opts.QuarantineMax)
	})
	q.pending, q.proven, q.valid, q.gaveUp = nil, true, s.last.rendered.Origins, ""
	l.showQuarantine()
}

// stands notes which version of a quarantined resource is served.
func (l *Loop) stands(id uint64, v *ruling, before version) {
	if v.before = before; v.Before == before.Resource {
		return
	}
	v.Before, v.recorded = before.Resource, false
	if v.aside {
		return // no event named it
	}
	l.quarantine.news = append(l.quarantine.news, ResourceQuarantined{ID: id, Quarantined: v.Quarantined})
}

// notice records the version that a render left out. It makes the loop try a new version
// soon.
func (l *Loop) notice(v *ruling, is Resource) {
	if is.UID == v.Resource.UID && is.Version == v.Resource.Version {
		return
	}
	if v.changed = true; is == v.seen {
		return // its try is over, or still to come
	}
	v.seen, v.Tries = is, 0
	if at := v.judged.Add(l.relapseWait(v.relapses)); at.Before(v.RetryAt) {
		v.RetryAt = at
	}
	l.quarantine.hasten(v)
}

// setAside leaves a resource out until the try that follows at once.
func (q *quarantine) setAside(r Resource, before version, now time.Time) {
	v := q.rulings[r.identity()]
	if v == nil {
		v = &ruling{}
		q.rulings[r.identity()] = v
	}
	v.before = before
	v.Quarantined = Quarantined{Resource: r, Before: before.Resource, Since: now, RetryAt: now,
		Fault: Fault{Message: "it changed together with what is at fault, and waits until it is tried"}}
	v.seen, v.aside, v.changed, v.withdrawn, v.released = r, true, false, false, time.Time{}
}

// tooLong describes the fault of a resource whose attempt was cut: the template line that
// hangs, if known.
func tooLong(a *attempt, limit time.Duration, then string) (f Fault) {
	if len(a.err.Faults) > 0 {
		f.Template = a.err.Faults[0].Template
	}
	what := "rendering"
	if a.err.Stage == "validate" {
		what = "validating"
	}
	f.Message = fmt.Sprintf("%s takes longer than %s%s", what, limit.Round(100*time.Millisecond), then)
	return f
}

// relapseWait returns how long a changed object waits after so many relapses.
func (l *Loop) relapseWait(relapses int) time.Duration {
	if relapses == 0 {
		return 0
	}
	return backOff(relapseWait, l.opts.QuarantineMax, relapses)
}

// judge leaves a resource out from now on. If a try of the same version fails, it publishes
// nothing.
func (l *Loop) judge(id uint64, c culprit, before version, now time.Time) {
	q, r := &l.quarantine, c.resource
	v := q.rulings[r.identity()]
	again := v != nil && v.released.IsZero() && !v.aside && v.Resource.UID == r.UID && v.Resource.Version == r.Version
	same := again && v.Before == before.Resource
	switch {
	case v == nil:
		v = &ruling{Quarantined: Quarantined{Since: now}}
		q.rulings[r.identity()] = v
	case again:
		v.Tries++
	default:
		if v.Tries = 0; !v.judged.IsZero() {
			v.relapses++
		}
		if !v.released.IsZero() {
			v.Since, v.released = now, time.Time{}
		}
	}
	v.Resource, v.seen, v.Fault, v.Instances, v.after = r, r, c.fault, c.instances, c.after
	v.before, v.Before = before, before.Resource
	v.judged, v.aside, v.told, v.changed, v.withdrawn, v.recorded = now, false, false, false, false, v.recorded && same
	l.postpone(v, now)
	if !same {
		q.news = append(q.news, ResourceQuarantined{ID: id, Quarantined: v.Quarantined})
	}
}

// postpone sets the next try of a resource that does not change.
func (l *Loop) postpone(v *ruling, now time.Time) {
	base, most, failures := l.opts.QuarantineBase, l.opts.QuarantineMax, v.Tries+1
	if len(v.Instances) > 0 { // a try releases it first, so each failure is a relapse
		most, failures = lateFactor*most, v.relapses+1
	}
	v.RetryAt = now.Add(backOff(base, most, failures))
}

// releaseOne takes a resource out of quarantine, and says why.
func (l *Loop) releaseOne(id uint64, v *ruling, gone bool, now time.Time) {
	reason := "the configuration is valid with it again"
	switch {
	case gone || v.changed:
		reason = "it changed or was deleted"
	case v.withdrawn:
		reason = "no instance refuses it any more"
	case len(v.Instances) > 0:
		reason = "the controller tries it again at the instances that refused it"
	}
	v.before, v.Before = version{}, Resource{}
	v.RetryAt = time.Time{}
	l.quarantine.hasten(v)
	aside, told := v.aside, v.told
	v.released, v.aside, v.told = now, false, false
	e := ResourceReleased{ID: id, Resource: v.Resource, Reason: reason}
	switch {
	case aside && !told: // no event named it
	case aside:
		l.quarantine.innocent = append(l.quarantine.innocent, e)
	default:
		l.quarantine.released = append(l.quarantine.released, e)
	}
	if v.recorded {
		l.record(v.Resource, eventNormal, "Released", "released from quarantine: "+reason)
	}
	v.recorded = false
}

// tellQuarantine publishes new quarantines and releases.
func (l *Loop) tellQuarantine() {
	q := &l.quarantine
	all := make([]Quarantined, len(q.news))
	for i, e := range q.news {
		all[i] = e.Quarantined
	}
	for i, a := range AlikeQuarantined(all) {
		q.news[i].Alike = a
		eventbus.Publish(l.bus, q.news[i])
	}
	l.tellReleased(q.released)
	q.news, q.released = nil, nil
}

func (l *Loop) tellReleased(all []ResourceReleased) {
	for i, a := range alike(all, func(e ResourceReleased) (name, cause string) { return e.Resource.String(), e.Reason }) {
		all[i].Alike = a
		eventbus.Publish(l.bus, all[i])
	}
}

// tellInnocent publishes which resources were set aside without a fault.
func (l *Loop) tellInnocent() {
	all := l.quarantine.innocent
	for i := range all {
		all[i].ID = l.lastID
	}
	l.tellReleased(all)
	l.quarantine.innocent = nil
}

// showQuarantine updates the public copy, and tells the Recorder and the bus what is new.
// The caller holds l.rendering.
func (l *Loop) showQuarantine() {
	l.tellQuarantine()
	var public []Quarantined
	for _, v := range l.quarantine.out() {
		v.recorded = v.recorded || !v.aside && l.record(v.Resource, eventWarning, "Quarantined", "the configuration is not valid with it: "+v.what())
		public = append(public, v.Quarantined)
	}
	l.mu.Lock()
	l.state.Quarantined = public
	l.withdrawSoon()
	l.mu.Unlock()
}

// nextTrial returns when the next quarantined resource is due; zero means never. After a
// failed reconciliation the loop tries none.
func (l *Loop) nextTrial() (at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state.LastError != "" {
		return at
	}
	for _, v := range l.state.Quarantined {
		if at.IsZero() || v.RetryAt.Before(at) {
			at = v.RetryAt
		}
	}
	return at
}

// Quarantines reports whether such an error makes the loop leave out a resource.
func (l *Loop) Quarantines(e *ConfigError) bool {
	return !l.opts.NoQuarantine && isVerdict(e.Err) &&
		slices.ContainsFunc(e.Faults, func(f Fault) bool { _, ok := f.Culprit(); return ok })
}
