package reconcile

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hapticsdk/haptic/eventbus"
)

// Quarantined is a resource that is left out of the configuration, because
// that is not valid with it.
type Quarantined struct {
	Resource Resource  `json:"resource"` // in the version that is left out: any other is tried at once
	Fault    Fault     `json:"fault"`    // what is wrong with it
	Since    time.Time `json:"since"`
	RetryAt  time.Time `json:"retryAt"` // when it is tried again, since what it depends on may have changed
	Trials   int       `json:"trials"`  // that failed

	// Instances refuse it, though the validator takes it; sorted by name. Empty:
	// it is the validator that does not take it.
	Instances []string `json:"instances,omitempty"`

	recorded bool // by the Recorder
	hangs    bool // a trial takes as long as a render may
	freed    bool // no instance refuses it any more
	changed  bool // since an instance refused it
}

// String reads as one line of a log.
func (q Quarantined) String() string { return q.Resource.located() + ": " + q.Fault.String() }

// quarantine is what the loop leaves out. It is guarded by Loop.rendering; what
// others see of it is in Loop.state.
type quarantine struct {
	held map[Resource]*Quarantined // by object

	pending []accusation // found by a search that had to end before its time
	proven  bool         // the templates of now have made a valid configuration
	valid   Origins      // of the last valid configuration
	gaveUp  string       // the failure for which a search found no resource to blame
	why     string       // and why it found none

	inquiry *inquiry           // at an instance; nil: none
	waiting []answer           // refusals that wait for it to end
	proved  []accusation       // without which an instance took the rest
	weary   map[string]fatigue // by instance
}

// object is what stays of a resource when it changes.
func (r Resource) object() Resource {
	r.UID, r.Version, r.Source = "", "", ""
	return r
}

// excluded is what is left out because of h. What an instance refuses is left
// out however it changes, until that instance has been asked: others are not to
// have it and to lose it again at each change of something that is still wrong.
func (h *Quarantined) excluded() Resource {
	r := h.Resource
	if len(h.Instances) > 0 {
		r.Version, r.UID, r.Source = anyVersion, "", ""
	}
	return r
}

// resources returns what is in quarantine, but for what is due to be tried here,
// not at an instance.
func (q *quarantine) resources(now time.Time) (rest, due []Resource) {
	for _, h := range q.sorted() {
		switch {
		case h.freed:
		case len(h.Instances) > 0 || h.RetryAt.After(now):
			rest = append(rest, h.excluded())
		default:
			due = append(due, h.Resource)
		}
	}
	return rest, due
}

func (q *quarantine) sorted() []*Quarantined { return sortedHeld(q.held) }

func sortedHeld(held map[Resource]*Quarantined) []*Quarantined {
	all := slices.Collect(maps.Values(held))
	slices.SortFunc(all, func(a, b *Quarantined) int {
		return cmp.Or(strings.Compare(a.Resource.Kind, b.Resource.Kind), strings.Compare(a.Resource.Namespace, b.Resource.Namespace),
			strings.Compare(a.Resource.Name, b.Resource.Name))
	})
	return all
}

// Release tries all that is in quarantine again at once. Call it when the
// renderer means something else from now on, such as after a change of the
// templates: what was wrong may be right. It never blocks.
func (l *Loop) Release() {
	l.mu.Lock()
	l.release = true
	l.mu.Unlock()
	l.Trigger("release from quarantine")
}

// takeRelease does what Release asked for. The caller holds l.rendering.
func (l *Loop) takeRelease() {
	l.mu.Lock()
	release := l.release
	l.release = false
	l.mu.Unlock()
	if !release {
		return
	}
	q := &l.quarantine
	for _, h := range q.held {
		h.RetryAt, h.Trials = time.Time{}, 0
	}
	q.pending, q.proven, q.gaveUp = nil, false, ""
	l.forgetInquiry()
	q.waiting, q.proved, q.weary = nil, nil, nil
	l.mu.Lock()
	defer l.mu.Unlock()
	for name := range l.workers {
		l.forgive(name)
	}
}

// forgive has an instance say once more what it makes of what it refused. The
// caller holds l.mu.
func (l *Loop) forgive(name string) {
	if w := l.workers[name]; w != nil {
		l.sched.forgive(name)
		w.poke()
	}
}

// showQuarantine gives others a copy. The caller holds l.rendering.
func (l *Loop) showQuarantine() {
	var public []Quarantined
	for _, h := range l.quarantine.sorted() {
		public = append(public, *h)
	}
	l.mu.Lock()
	l.state.Quarantined = public
	l.mu.Unlock()
}

// nextTrial says when something in quarantine is due; zero for never.
func (l *Loop) nextTrial() (at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at = l.inquiring
	for _, h := range l.state.Quarantined {
		due := h.RetryAt
		if blocked := !l.inquiring.IsZero() || l.state.LastError != ""; blocked && (len(h.Instances) > 0 || h.freed) {
			// Its turn comes when the instance that is asked has answered.
			if soon := time.Now().Add(l.timing().deployTimeout); due.Before(soon) {
				due = soon
			}
		}
		if at.IsZero() || due.Before(at) {
			at = due
		}
	}
	return at
}

// settle makes a valid configuration of as much as possible, in the last attempt
// of the search; where that failed, too, first is the one to speak of.
func (l *Loop) settle(ctx context.Context) (first *attempt, s *search) {
	l.takeRelease()
	q := &l.quarantine
	now := time.Now()
	rest, due := q.resources(now)
	if len(due) > 0 {
		s := newSearch(l, rest)
		s.trial = true
		if first := s.run(ctx); s.last.err == nil || ctx.Err() != nil {
			return first, s
		}
		// A trial that fails as a whole must not disturb.
		for _, r := range due {
			l.postpone(q.held[r.object()], now)
		}
		l.showQuarantine()
		rest = append(rest, due...)
	}
	s = newSearch(l, rest)
	return s.run(ctx), s
}

// postpone notes that a resource was tried and is still wrong.
func (l *Loop) postpone(h *Quarantined, now time.Time) {
	h.Trials++
	l.schedule(h, now)
}

// schedule says when a resource is tried next. Nothing else is rendered while a
// trial hangs, so that one is rare from the beginning.
func (l *Loop) schedule(h *Quarantined, now time.Time) {
	t := timing{retryBase: l.opts.TrialBase, retryMax: l.opts.TrialMax}
	h.RetryAt = now.Add(t.backOff(h.Trials + 1))
	if h.hangs {
		h.RetryAt = now.Add(l.opts.TrialMax)
	}
}

// adopt makes the outcome of a search that found a valid configuration the
// quarantine of now.
func (l *Loop) adopt(id uint64, s *search) {
	q, now := &l.quarantine, time.Now()
	before := q.held
	q.held = make(map[Resource]*Quarantined, len(s.last.excluded))
	accused := map[Resource]accusation{}
	for _, a := range s.accused {
		accused[a.resource] = a
	}
	for _, excluded := range s.last.excluded {
		r, ok := s.last.left.leftOut(excluded)
		if !ok {
			continue // changed, deleted, or nobody asks for it any more
		}
		a, guilty := accused[excluded]
		h := before[r.object()]
		switch {
		case h != nil && excluded == h.excluded() && len(h.Instances) > 0:
			if h.Resource.UID != r.UID || h.Resource.Version != r.Version {
				h.Resource, h.changed, h.RetryAt, h.Trials = r, true, now, 0
			}
		case h == nil || h.Resource.UID != r.UID || h.Resource.Version != r.Version:
			h = &Quarantined{Resource: r, Fault: a.fault, Since: now, hangs: a.hangs, Instances: a.instances}
			l.schedule(h, now)
			eventbus.Publish(l.bus, ResourceQuarantined{ID: id, Quarantined: *h})
		case guilty:
			h.Fault, h.hangs, h.Instances, h.freed = a.fault, a.hangs, a.instances, false
			l.postpone(h, now)
		}
		q.held[r.object()] = h
	}
	for _, h := range sortedHeld(before) {
		if q.held[h.Resource.object()] == nil {
			l.released(id, h, s)
		}
	}
	l.forgiveChanged()
	q.pending, q.proved, q.proven, q.valid, q.gaveUp = nil, nil, true, s.last.rendered.Origins, ""
	for _, h := range q.sorted() {
		h.recorded = h.recorded || l.record(h.Resource, eventWarning, "Quarantined", "left out of the configuration: "+h.Fault.String())
	}
	if len(before)+len(q.held) > 0 {
		l.showQuarantine()
	}
}

// forgiveChanged asks again whoever was proved to refuse something that has
// changed since: it may be right now, or is to be left out as it is now.
func (l *Loop) forgiveChanged() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.quarantine.proved {
		if l.quarantine.held[p.resource.object()] != nil {
			continue
		}
		for _, name := range p.instances {
			l.forgive(name)
		}
	}
}

// released reports that a resource is no longer left out.
func (l *Loop) released(id uint64, h *Quarantined, s *search) {
	reason := "it changed or was deleted"
	switch {
	case h.changed || slices.Contains(s.last.excluded, h.excluded()):
	case h.freed:
		reason = "no instance refuses it any more"
	default:
		reason = "the configuration is valid with it again"
	}
	eventbus.Publish(l.bus, ResourceReleased{ID: id, Resource: h.Resource, Reason: reason})
	if h.recorded {
		l.record(h.Resource, eventNormal, "Released", "no longer left out of the configuration: "+reason)
	}
}
