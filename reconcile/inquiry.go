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

// What only an endpoint refuses, because it is of another version than the
// validator, would keep every further change away from it. So the resource at
// fault is left out as any other is. All endpoints get one configuration, so it
// is left out of that of all of them: but only once the endpoint that refused it
// has proved that it takes the rest. It is asked to, and no other endpoint
// notices. An endpoint that refuses whatever it gets harms nobody but itself.

// inquiry finds out without which resources an endpoint takes the configuration
// that it refused or, where again is set, whether it takes one with a resource
// that it refused once.
type inquiry struct {
	endpoint string
	born     uint64 // of the endpoint in the schedule
	again    *Quarantined
	accused  []accusation
	all      map[string]int // how many resources of each kind the refused configuration was made of
	rounds   int
	asked    *validated // whose answer is awaited; nil: it is still to be asked
}

// answer is what an endpoint made of a configuration.
type answer struct {
	endpoint string
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
// about the configuration, not about the endpoint: a full disk, a reload that
// failed and an answer that did not come are nobody's fault.
func (l *Loop) refusal(err error) *ConfigError {
	if l.opts.NoQuarantine || !errors.Is(err, dataplane.ErrInvalid) && !errors.Is(err, dataplane.ErrUnsupported) {
		return nil
	}
	var e *ConfigError
	if !errors.As(err, &e) || !slices.ContainsFunc(e.Faults, func(f Fault) bool { _, ok := f.Culprit(); return ok }) {
		return nil
	}
	return e
}

// note keeps what an endpoint answered for the next reconciliation, in place of
// what it answered before. The caller holds l.mu.
func (l *Loop) note(a answer) {
	l.answers = slices.DeleteFunc(l.answers, func(b answer) bool { return a.endpoint == b.endpoint && a.asked == b.asked })
	l.answers = append(l.answers, a)
}

// hear draws the conclusions from what endpoints answered since the last
// reconciliation, and returns what they said. The caller holds l.rendering.
func (l *Loop) hear(ctx context.Context) (heard []answer) {
	q := &l.quarantine
	l.mu.Lock()
	heard, l.answers = l.answers, nil
	returned := l.returned
	l.returned = nil
	here := map[string]bool{}
	for _, t := range l.targets {
		here[t.Name()] = true
	}
	lost := q.inquiry != nil && q.inquiry.asked != nil && !l.sched.asking(q.inquiry.endpoint, q.inquiry.born, q.inquiry.asked)
	l.mu.Unlock()

	for _, a := range heard {
		switch {
		case !a.asked:
			l.complain(ctx, a)
		case q.inquiry != nil && q.inquiry.asked == a.to:
			l.conclude(ctx, a)
			lost = false
		}
	}
	if lost { // the endpoint went, or another process leads
		q.inquiry = nil
	}
	for name := range q.weary {
		if !here[name] {
			delete(q.weary, name)
		}
	}
	for _, h := range q.held {
		h.forget(func(name string) bool { return !here[name] })
		if slices.ContainsFunc(h.Endpoints, func(name string) bool { return slices.Contains(returned, name) }) {
			h.RetryAt = time.Now()
		}
	}
	return heard
}

// concluded lets the endpoints go on that were asked. The caller holds
// l.rendering.
func (l *Loop) concluded(heard []answer) {
	inquiring := l.quarantine.inquiry != nil
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inquiring = inquiring
	for _, a := range heard {
		if w := l.workers[a.endpoint]; a.asked && w != nil {
			l.sched.concluded(a.endpoint, a.born)
			w.poke()
		}
	}
}

// cameBack has an endpoint asked again about what it refused before it went: it
// may be of another version now. The caller holds l.mu.
func (l *Loop) cameBack(name string) {
	if l.refusedSomething(name) {
		l.returned = append(l.returned, name)
		l.trigger(name + " is new again")
	}
}

// refusedSomething reports whether something is in quarantine because of an
// endpoint. The caller holds l.mu.
func (l *Loop) refusedSomething(name string) bool {
	return slices.ContainsFunc(l.state.Quarantined, func(h Quarantined) bool { return slices.Contains(h.Endpoints, name) })
}

// forget drops the endpoints that no longer count; one of which none is left is
// free.
func (h *Quarantined) forget(gone func(name string) bool) {
	if len(h.Endpoints) == 0 {
		return
	}
	h.Endpoints = slices.DeleteFunc(slices.Clone(h.Endpoints), gone) // a copy: it is in events
	h.freed = len(h.Endpoints) == 0
}

// complain begins an inquiry for what an endpoint refused, unless it is known
// already who is at fault.
func (l *Loop) complain(ctx context.Context, a answer) {
	q := &l.quarantine
	if q.knows(a) || q.inquiry != nil || time.Now().Before(q.weary[a.endpoint].until) {
		return // where another inquiry is under way, it will be refused again
	}
	q.inquiry = &inquiry{endpoint: a.endpoint, born: a.born, all: countKinds(resourcesIn(ctx, a.to.origins))}
	l.accuse(a.refused)
}

// knows reports whether all that an endpoint complains of is left out already,
// or about to be, because of others; it is then noted that this one refuses it,
// too.
func (q *quarantine) knows(a answer) bool {
	if q.inquiry != nil && q.inquiry.endpoint == a.endpoint {
		return true
	}
	known := true
	for _, f := range a.refused.Faults {
		r, ok := f.Culprit()
		if !ok {
			continue
		}
		if h := q.held[r.object()]; h != nil && h.Resource == r && len(h.Endpoints) > 0 {
			h.Endpoints = withName(h.Endpoints, a.endpoint)
			continue
		}
		lists := [][]accusation{q.proved}
		if q.inquiry != nil {
			lists = append(lists, q.inquiry.accused)
		}
		found := false
		for _, list := range lists {
			for i := range list {
				if list[i].resource == r {
					list[i].endpoints, found = withName(list[i].endpoints, a.endpoint), true
				}
			}
		}
		known = known && found
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
func (l *Loop) conclude(ctx context.Context, a answer) {
	q, now := &l.quarantine, time.Now()
	i := q.inquiry
	switch {
	case i.again != nil:
		q.inquiry = nil
		switch {
		case a.refused != nil:
			i.again.Trials++
			l.schedule(i.again, now)
		case !a.failed:
			i.again.forget(func(name string) bool { return name == a.endpoint })
			i.again.RetryAt = now // the next of them is asked
		}
	case a.refused != nil:
		i.asked = nil
		l.accuse(a.refused)
	case a.failed:
		l.giveUp("")
	default: // it takes the rest
		delete(q.weary, i.endpoint)
		q.proved, q.inquiry = append(q.proved, i.accused...), nil
	}
}

// accuse adds those to an inquiry whom the endpoint blames now, or gives up.
func (l *Loop) accuse(refused *ConfigError) {
	q := &l.quarantine
	i := q.inquiry
	if i.rounds++; i.rounds > l.opts.QuarantineTries {
		l.giveUp("it refuses more than may be left out at once")
		return
	}
	s := &search{loop: l, start: q.resourcesHeld(nil), accused: i.accused, last: &attempt{blamed: refused, err: refused}}
	culprits := s.culprits()
	if len(culprits) == 0 {
		l.giveUp("it is refused without every resource that it was written for, too")
		return
	}
	for _, c := range culprits {
		if !strings.Contains(c.fault.Message, i.endpoint) {
			c.fault.Message = i.endpoint + ": " + c.fault.Message
		}
		c.endpoints = []string{i.endpoint}
		s.accused = append(s.accused, c)
	}
	i.accused = s.accused
	if t, kind := i.allOfAKind(); kind != "" {
		l.giveUp(fmt.Sprintf("%s is refused for every %s, so the template is to blame", t, kind))
	}
}

// allOfAKind finds a line of a template that was refused for all resources of a
// kind that there are.
func (i *inquiry) allOfAKind() (TemplateLine, string) {
	for _, a := range i.accused {
		n := 0
		for _, b := range i.accused {
			if b.resource.Kind == a.resource.Kind && b.fault.Template.File == a.fault.Template.File && b.fault.Template.Line == a.fault.Template.Line {
				n++
			}
		}
		if n >= i.all[a.resource.Kind] {
			return a.fault.Template, a.resource.Kind
		}
	}
	return TemplateLine{}, ""
}

// giveUp ends an inquiry: nobody is left out. The endpoint keeps what it has, its
// error says why, and it is not asked again soon.
func (l *Loop) giveUp(why string) {
	q := &l.quarantine
	i := q.inquiry
	q.inquiry = nil
	if i.again != nil {
		return // it stays where it is
	}
	f := q.weary[i.endpoint]
	f.failures++
	f.until = time.Now().Add(timing{retryBase: l.opts.TrialBase, retryMax: l.opts.TrialMax}.backOff(f.failures))
	if q.weary == nil {
		q.weary = map[string]fatigue{}
	}
	q.weary[i.endpoint] = f
	l.mu.Lock()
	defer l.mu.Unlock()
	if w := l.workers[i.endpoint]; w != nil && w.born == i.born && w.public.Error != "" && why != "" {
		w.public.Error += " (" + why + ")"
	}
}

// inquire asks an endpoint what an inquiry has to know next, and begins one for
// what is due in quarantine. The caller holds l.rendering.
func (l *Loop) inquire(ctx context.Context, id uint64) {
	q := &l.quarantine
	if q.inquiry == nil {
		q.inquiry = l.dueAgain()
	}
	i := q.inquiry
	if i == nil || i.asked != nil {
		return
	}
	var again *Quarantined
	if again = i.again; again != nil {
		l.schedule(again, time.Now()) // whatever comes of it
		l.showQuarantine()
	}
	if !l.leading() {
		q.inquiry = nil
		return
	}
	excluded := q.resourcesHeld(again)
	for _, a := range i.accused {
		excluded = append(excluded, a.resource)
	}
	a := l.attempt(ctx, excluded)
	if a.err != nil {
		l.giveUp("")
		return
	}
	v := &validated{id: id, config: a.rendered.Config, origins: a.rendered.Origins, at: time.Now()}
	l.mu.Lock()
	defer l.mu.Unlock()
	same := v.same(l.sched.newest)
	switch {
	case same && again != nil: // nothing comes of it any more
		again.forget(func(string) bool { return true })
		l.trigger("no endpoint refuses " + again.Resource.String() + " any more")
		fallthrough
	case same: // what was at fault has changed meanwhile, or nobody asks what is excluded
		q.inquiry = nil
		return
	case !l.sched.asks(i.endpoint, i.born, v):
		q.inquiry = nil
		return
	}
	i.asked = v
	l.workers[i.endpoint].poke()
}

// dueAgain begins an inquiry for a resource that an endpoint refused and that is
// due to be tried: one at a time, for others may be at fault alone.
func (l *Loop) dueAgain() *inquiry {
	if len(l.quarantine.held) == 0 {
		return nil
	}
	now := time.Now()
	defer l.showQuarantine()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range l.quarantine.sorted() {
		if len(h.Endpoints) == 0 || h.RetryAt.After(now) {
			continue
		}
		for _, name := range h.Endpoints {
			if w := l.workers[name]; w != nil {
				return &inquiry{endpoint: name, born: w.born, again: h}
			}
		}
		l.schedule(h, now) // there is nobody to ask
	}
	return nil
}

// resourcesHeld returns all that is in quarantine, but for one.
func (q *quarantine) resourcesHeld(but *Quarantined) (held []Resource) {
	for _, h := range q.sorted() {
		if h != but && !h.freed {
			held = append(held, h.Resource)
		}
	}
	return held
}
