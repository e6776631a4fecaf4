package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
)

// What only an instance refuses, because it is of another version than the
// validator, would keep every further change away from it. So the resource at
// fault is left out as any other is. All instances get one configuration, so it
// is left out of that of all of them: but only once the instance that refused it
// has proved that it takes the rest. It is asked to, and no other instance
// notices. An instance that refuses whatever it gets harms nobody but itself.
//
// For the same reason a resource that changes stays left out until the instance
// that refused it has been asked about what it is now: most changes are of its
// status, or mend something else. An instance that does not answer holds it back
// no longer than one that hangs can: then all get it.

// inquiry finds out without which resources an instance takes the configuration
// that it refused or, where again is set, whether it takes one with resources
// that it refused once.
type inquiry struct {
	instance string
	born     uint64         // of the instance in the schedule
	again    []*Quarantined // one that is due to be tried, or all that have changed
	accused  []accusation
	of       []Resource // that the refused configuration was made of
	rounds   int
	asked    *validated // whose answer is awaited; nil: it is still to be asked
	until    time.Time  // when the answer must be there
}

// answer is what an instance made of a configuration.
type answer struct {
	instance string
	born     uint64
	to       *validated
	asked    bool         // for an inquiry; otherwise it was to be deployed, and was refused
	refused  *ConfigError // for what it has of some resource
	failed   bool         // for another reason, or that is not known to belong to a resource
}

// fatigue is what stays of an inquiry that came to nothing: the next one is not
// for each new configuration.
type fatigue struct {
	failures int
	until    time.Time
}

// refusal is what an error says against resources; nil for nothing. It must be
// about the configuration, not about the instance: a full disk, a reload that
// failed and an answer that did not come are nobody's fault.
func (l *Loop) refusal(err error) *ConfigError {
	if l.opts.NoQuarantine || !invalid(err) {
		return nil
	}
	var e *ConfigError
	if !errors.As(err, &e) || !slices.ContainsFunc(e.Faults, func(f Fault) bool { _, ok := f.Culprit(); return ok }) {
		return nil
	}
	return e
}

// invalid reports an error about the configuration, not about the instance.
func invalid(err error) bool {
	return errors.Is(err, dataplane.ErrInvalid) || errors.Is(err, dataplane.ErrUnsupported)
}

// note keeps what an instance answered for the next reconciliation, in place of
// what it answered before. The caller holds l.mu.
func (l *Loop) note(a answer) {
	l.answers = slices.DeleteFunc(l.answers, func(b answer) bool { return a.instance == b.instance && a.asked == b.asked })
	l.answers = append(l.answers, a)
}

// hear draws the conclusions from what instances answered since the last
// reconciliation, and returns what they said. The caller holds l.rendering.
func (l *Loop) hear(ctx context.Context, id uint64) (heard []answer) {
	q := &l.quarantine
	l.mu.Lock()
	heard, l.answers = l.answers, nil
	returned := l.returned
	l.returned = nil
	here := map[string]bool{}
	for _, t := range l.targets {
		here[t.Name()] = true
	}
	refusals := slices.DeleteFunc(slices.Concat(q.waiting, heard), func(a answer) bool {
		return a.asked || !l.sched.refuses(a.instance, a.born, a.to)
	})
	i := q.inquiry
	lost := i != nil && i.asked != nil && (!l.sched.asking(i.instance, i.born, i.asked) || !time.Now().Before(i.until))
	l.mu.Unlock()

	for _, a := range heard {
		if a.asked && i != nil && i.asked == a.to {
			l.conclude(id, a)
			lost = false
		}
	}
	if lost { // the instance went or does not answer, or another process leads
		l.abandon()
	}
	q.waiting = nil
	for _, a := range refusals {
		l.complain(ctx, a)
	}
	for name := range q.weary {
		if !here[name] {
			delete(q.weary, name)
		}
	}
	for _, h := range q.held {
		h.forget(func(name string) bool { return !here[name] })
		if slices.ContainsFunc(h.Instances, func(name string) bool { return slices.Contains(returned, name) }) {
			h.RetryAt = time.Now()
		}
	}
	return heard
}

// abandon ends an inquiry to which there is no answer. What changed waits for it
// no longer: whoever still refuses it will say so. The caller holds l.rendering.
func (l *Loop) abandon() {
	i := l.quarantine.inquiry
	l.forgetInquiry()
	for _, h := range i.again {
		if h.changed {
			h.forget(func(string) bool { return true })
			l.Trigger("there is no answer of " + i.instance + " about " + h.Resource.String())
		}
	}
}

// forgetInquiry ends an inquiry without any conclusion.
func (l *Loop) forgetInquiry() {
	i := l.quarantine.inquiry
	l.quarantine.inquiry = nil
	if i == nil || i.asked == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sched.unask(i.instance, i.born, i.asked)
	if w := l.workers[i.instance]; w != nil {
		w.poke()
	}
}

// concluded lets the instances go on that were asked. The caller holds
// l.rendering.
func (l *Loop) concluded(heard []answer) {
	var until time.Time
	if i := l.quarantine.inquiry; i != nil && i.asked != nil {
		until = i.until
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inquiring = until
	for _, a := range heard {
		if w := l.workers[a.instance]; a.asked && w != nil {
			l.sched.concluded(a.instance, a.born, a.to)
			w.poke()
		}
	}
}

// complain begins an inquiry for what an instance refused, unless it is known
// already who is at fault.
func (l *Loop) complain(ctx context.Context, a answer) {
	q := &l.quarantine
	switch {
	case q.knows(a) || time.Now().Before(q.weary[a.instance].until):
	case q.inquiry != nil && q.inquiry.instance == a.instance && q.inquiry.again == nil:
	case q.inquiry != nil:
		q.waiting = append(q.waiting, a)
	default:
		q.inquiry = &inquiry{instance: a.instance, born: a.born, of: resourcesIn(ctx, a.to.origins)}
		l.accuse(a)
	}
}

// refusedBy returns what is left out because of an instance.
func (q *quarantine) refusedBy(name string) []*Quarantined {
	return slices.DeleteFunc(q.sorted(), func(h *Quarantined) bool { return !slices.Contains(h.Instances, name) })
}

// knows reports whether all that an instance complains of is left out already,
// or about to be, because of others; it is then noted that this one refuses it,
// too.
func (q *quarantine) knows(a answer) bool {
	known := true
	for _, f := range a.refused.Faults {
		r, ok := f.Culprit()
		if !ok {
			continue
		}
		if h := q.held[r.object()]; h != nil && len(h.Instances) > 0 {
			h.Instances = withName(h.Instances, a.instance)
			continue
		}
		i := slices.IndexFunc(q.proved, func(p accusation) bool { return p.resource == r })
		if i >= 0 {
			q.proved[i].instances = withName(q.proved[i].instances, a.instance)
		}
		known = known && i >= 0
	}
	return known
}

// withName returns a list, sorted, that has a name.
func withName(list []string, name string) []string {
	if slices.Contains(list, name) {
		return list
	}
	list = append(slices.Clone(list), name)
	slices.Sort(list)
	return list
}

// conclude takes the answer to an inquiry.
func (l *Loop) conclude(id uint64, a answer) {
	q := &l.quarantine
	i := q.inquiry
	switch {
	case i.again != nil && a.refused != nil:
		l.refusedAgain(id, a)
	case i.again != nil && a.failed:
		l.abandon()
	case i.again != nil:
		q.inquiry = nil
		for _, h := range i.again {
			changed := h.changed
			h.forget(func(name string) bool { return changed || name == a.instance })
			h.RetryAt = time.Now() // the next of them is asked
		}
	case a.refused != nil:
		i.asked = nil
		l.accuse(a)
	case a.failed:
		l.giveUp("")
	default: // it takes the rest
		delete(q.weary, i.instance)
		q.proved, q.inquiry = append(q.proved, i.accused...), nil
	}
}

// of names the instance that a fault comes from.
func (f Fault) of(instance string) Fault {
	if !strings.HasPrefix(f.Message, instance+": ") {
		f.Message = instance + ": " + f.Message
	}
	return f
}

// accuse adds those to an inquiry whom the instance blames now, or gives up.
func (l *Loop) accuse(a answer) {
	q := &l.quarantine
	i := q.inquiry
	if i.rounds++; i.rounds > l.opts.QuarantineTries {
		l.giveUp(tooMany)
		return
	}
	blamed := *a.refused
	blamed.Faults = slices.DeleteFunc(slices.Clone(blamed.Faults), func(f Fault) bool { return q.dealtWith(f, a.to) })
	if len(blamed.Faults) == 0 {
		q.inquiry = nil // it has what was left out meanwhile
		return
	}
	s := &search{loop: l, start: a.to.without, accused: i.accused, last: &attempt{blamed: &blamed, err: &blamed}}
	culprits := s.culprits()
	if len(culprits) == 0 {
		l.giveUp("it is refused without every resource that it was written for, too")
		return
	}
	for _, c := range culprits {
		c.fault, c.instances = c.fault.of(i.instance), []string{i.instance}
		s.accused = slices.DeleteFunc(s.accused, func(b accusation) bool { return b.resource.object() == c.resource.object() })
		s.accused = append(s.accused, c)
	}
	i.accused = s.accused
	if len(i.accused)+len(q.refusedBy(i.instance)) > l.opts.QuarantineTries {
		l.giveUp(tooMany)
	} else if t, kind := i.allOfAKind(q); kind != "" {
		l.giveUp(fmt.Sprintf("%s is refused for every %s, so the template is to blame", t, kind))
	}
}

const tooMany = "it refuses more than may be left out at once"

// dealtWith reports a fault of a resource that is left out by now, though it was
// not of what was refused.
func (q *quarantine) dealtWith(f Fault, refused *validated) bool {
	r, ok := f.Culprit()
	if !ok {
		return false
	}
	if slices.ContainsFunc(refused.without, func(x Resource) bool { return x.object() == r.object() }) {
		return false
	}
	h := q.held[r.object()]
	return h != nil && !h.freed && (len(h.Instances) > 0 || h.Resource == r) ||
		slices.ContainsFunc(q.proved, func(p accusation) bool { return p.resource == r })
}

// allOfAKind finds a kind of which nothing would be left: neither what is accused
// nor what is left out already, for whatever reason.
func (i *inquiry) allOfAKind(q *quarantine) (TemplateLine, string) {
	out := map[Resource]bool{}
	for object, h := range q.held {
		out[object] = !h.freed
	}
	for _, a := range i.accused {
		out[a.resource.object()] = true
	}
	for _, a := range i.accused {
		if !slices.ContainsFunc(i.of, func(r Resource) bool { return r.Kind == a.resource.Kind && !out[r.object()] }) {
			return a.fault.Template, a.resource.Kind
		}
	}
	return TemplateLine{}, ""
}

// giveUp ends an inquiry: nobody is left out. The instance keeps what it has, its
// error says why, and it is not asked again soon.
func (l *Loop) giveUp(why string) {
	q := &l.quarantine
	i := q.inquiry
	l.forgetInquiry()
	f := q.weary[i.instance]
	f.failures++
	f.until = time.Now().Add(timing{retryBase: l.opts.TrialBase, retryMax: l.opts.TrialMax}.backOff(f.failures))
	if q.weary == nil {
		q.weary = map[string]fatigue{}
	}
	q.weary[i.instance] = f
	l.mu.Lock()
	defer l.mu.Unlock()
	if w := l.workers[i.instance]; w != nil && w.born == i.born && w.public.Error != "" && why != "" {
		w.public.Error += " (" + why + ")"
	}
}

// inquire asks an instance what an inquiry has to know next, and begins one for
// what is due in quarantine. The caller holds l.rendering.
func (l *Loop) inquire(ctx context.Context, id uint64) {
	q := &l.quarantine
	defer func() {
		if q.inquiry == nil && len(q.waiting) > 0 {
			l.Trigger("another instance refused the configuration, too")
		}
	}()
	if q.inquiry == nil {
		q.inquiry = l.dueAgain()
	}
	i := q.inquiry
	if i == nil || i.asked != nil {
		return
	}
	if i.again != nil {
		for _, h := range i.again {
			l.schedule(h, time.Now()) // whatever comes of it
		}
		l.showQuarantine()
	}
	if !l.leading() {
		l.abandon()
		return
	}
	excluded := q.excluded(i.again)
	for _, a := range i.accused {
		excluded = append(excluded, a.resource)
	}
	a := l.attempt(ctx, excluded)
	switch {
	case a.err != nil && ctx.Err() != nil:
		return // the loop ends
	case a.err != nil && i.again == nil:
		l.giveUp("")
		return
	case a.err != nil: // what changed is for the validator to refuse now
		l.abandon()
		return
	}
	v := &validated{id: id, config: a.rendered.Config, origins: a.rendered.Origins, at: time.Now(), without: excluded}
	if !l.ask(i, v) {
		l.abandon()
	}
}

// ask hands a configuration to the instance of an inquiry. It reports false where
// there is nothing to ask, or nobody.
func (l *Loop) ask(i *inquiry, v *validated) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if v.same(l.sched.newest) {
		// What was at fault has changed meanwhile, or it makes no difference any more.
		for _, h := range i.again {
			h.forget(func(string) bool { return true })
			l.trigger("no instance refuses " + h.Resource.String() + " any more")
		}
		return false
	}
	if !l.sched.asks(i.instance, i.born, v) {
		return false
	}
	// The call under way may run into its time-out, and so may its own.
	t := l.timing()
	i.asked, i.until = v, v.at.Add(2*t.deployTimeout+t.minInterval)
	l.workers[i.instance].poke()
	return true
}
