package reconcile

import (
	"slices"
	"time"

	"github.com/hapticsdk/haptic/eventbus"
)

// dueAgain begins an inquiry for what an instance refused and is to be tried: all
// that have changed together, and otherwise one at a time, for others may be at
// fault alone.
func (l *Loop) dueAgain() *inquiry {
	if len(l.quarantine.held) == 0 {
		return nil
	}
	now := time.Now()
	defer l.showQuarantine()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range l.quarantine.sorted() {
		if len(h.Instances) == 0 || h.RetryAt.After(now) {
			continue
		}
		for _, name := range h.Instances {
			w := l.workers[name]
			if w == nil {
				continue
			}
			again := []*Quarantined{h}
			if h.changed {
				again = slices.DeleteFunc(l.quarantine.refusedBy(name), func(h *Quarantined) bool { return !h.changed })
			}
			return &inquiry{instance: name, born: w.born, again: again}
		}
		l.schedule(h, now) // there is nobody to ask
		if h.changed && len(l.workers) == 0 {
			h.forget(func(string) bool { return true })
			l.trigger("there is no instance to ask about " + h.Resource.String())
		}
	}
	return nil
}

// excluded returns all that is left out, but for some.
func (q *quarantine) excluded(but []*Quarantined) (all []Resource) {
	for _, h := range q.sorted() {
		if !h.freed && !slices.Contains(but, h) {
			all = append(all, h.excluded())
		}
	}
	return all
}

// refusedAgain keeps what an instance still refuses where it is. Where that is
// nothing of what it was asked about, nobody knows what it thinks of that.
func (l *Loop) refusedAgain(id uint64, a answer) {
	q, now := &l.quarantine, time.Now()
	i := q.inquiry
	if len(i.again) == 1 && !i.again[0].changed {
		q.inquiry = nil
		i.again[0].Trials++
		l.schedule(i.again[0], now)
		return
	}
	known := false
	for _, f := range a.refused.Faults {
		r, _ := f.Culprit()
		for _, h := range i.again {
			if h.Resource.object() != r.object() {
				continue
			}
			known = true
			if h.Resource == r { // else it has changed again
				h.Fault, h.changed = f.of(i.instance), false
				h.recorded = false
				eventbus.Publish(l.bus, ResourceQuarantined{ID: id, Quarantined: *h})
			}
		}
	}
	if !known {
		l.abandon()
		return
	}
	q.inquiry = nil
	for _, h := range i.again {
		if h.changed {
			h.RetryAt = now // the others are asked about without it
		}
	}
}

// cameBack has an instance asked again about what it refused before it went: it
// may be of another version now. The caller holds l.mu.
func (l *Loop) cameBack(name string) {
	if l.refusedSomething(name) {
		l.returned = append(l.returned, name)
		l.trigger(name + " is new again")
	}
}

// refusedSomething reports whether something is in quarantine because of an
// instance. The caller holds l.mu.
func (l *Loop) refusedSomething(name string) bool {
	return slices.ContainsFunc(l.state.Quarantined, func(h Quarantined) bool { return slices.Contains(h.Instances, name) })
}

// forget drops the instances that no longer count; one of which none is left is
// free.
func (h *Quarantined) forget(gone func(name string) bool) {
	if len(h.Instances) == 0 {
		return
	}
	h.Instances = slices.DeleteFunc(slices.Clone(h.Instances), gone) // a copy: it is in events
	h.freed = len(h.Instances) == 0
}
