package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/rendering"
	"github.com/hapticsdk/haptic/reconcile/internal/quarantine"
)

// A refusal by an instance is about a resource that the validator accepted: the instance has
// another version of HAProxy. All instances get one configuration, so the loop quarantines the
// resource for all: it serves the version that this instance has. The loop tries the
// resource again when it changes, when the instance leaves, when its time comes, and when the
// quarantine does not help. That is so for an instance that refuses more than
// QuarantineTries resources, refuses more often in a row, or names no resource.

// report says what an instance refuses in a configuration.
type report struct {
	worker *worker
	of     *validated
	faults []Fault
}

// invalid reports whether an error is about the configuration, not about the instance. A
// full disk, a failed reload or a time-out is no resource's fault.
func invalid(err error) bool {
	return errors.Is(err, dataplane.ErrInvalid) || errors.Is(err, dataplane.ErrUnsupported)
}

// isVerdict reports whether an error is about a configuration. Errors about the renderer,
// the validator or HAProxy are not, such as a missing binary or a time-out. To quarantine a
// resource for those would hit the innocent.
func isVerdict(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return false
	}
	var known located
	return errors.As(err, &known) || len(tracesOf(err)) > 0 ||
		errors.Is(err, dataplane.ErrInvalid) || errors.Is(err, dataplane.ErrInvalidConfig)
}

// report keeps the refusal of an instance for the next reconciliation, if that may quarantine
// something.
func (l *Loop) report(w *worker, of *validated, err error) {
	if l.opts.NoQuarantine || !invalid(err) {
		return
	}
	r := report{worker: w, of: of}
	var e *ConfigError
	if errors.As(err, &e) {
		r.faults = slices.DeleteFunc(slices.Clone(e.Faults), func(f Fault) bool { _, ok := f.Culprit(); return !ok })
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	name := w.target.Name()
	if l.workers[name] != w || w.gaveUp != "" && w.rounds > 0 || len(r.faults) == 0 && !l.refusesSomething(name) {
		return
	}
	l.reports = append(slices.DeleteFunc(l.reports, func(r report) bool { return r.worker == w }), r)
	l.trigger(name + " refused the configuration")
}

// refusesSomething reports whether a resource is in quarantine because of an instance. The
// caller holds l.mu.
func (l *Loop) refusesSomething(name string) bool {
	return slices.ContainsFunc(l.state.Quarantined, func(q Quarantined) bool { return slices.Contains(q.Instances, name) })
}

// withdrawSoon asks for a reconciliation if an instance left whose refusals put resources in
// quarantine. The caller holds l.mu.
func (l *Loop) withdrawSoon() {
	if i := slices.IndexFunc(l.left, l.refusesSomething); i >= 0 {
		l.trigger(l.left[i] + " left, which refused something")
	}
}

// refetched tells the renderer that an instance refused its configuration. It reports
// whether the renderer makes the configuration again without the fetched contents. The
// renderer says so once, but it holds for all instances that refuse the configuration.
func (l *Loop) refetched(v *validated, err error) bool {
	l.refusing.Lock()
	defer l.refusing.Unlock()
	again := l.settled(v.rendered(), err)
	l.mu.Lock()
	defer l.mu.Unlock()
	if again {
		l.refetch = v.id
	}
	return l.refetch == v.id
}

// collectRefusals quarantines what instances refused since the last reconciliation. It withdraws what
// instances refused that left. The caller holds l.rendering.
func (l *Loop) collectRefusals() (changes []quarantine.Change) {
	l.mu.Lock()
	reports, left := l.reports, l.left
	l.reports, l.left = nil, nil
	l.mu.Unlock()
	for _, name := range left {
		l.quarantine.Withdraw(name)
	}
	for _, r := range reports {
		changes = append(changes, l.refuses(r)...)
	}
	return changes
}

// refuses quarantines what an instance refuses, if that may help.
func (l *Loop) refuses(r report) (changes []quarantine.Change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w, name, newest := r.worker, r.worker.target.Name(), l.sched.newest
	if l.workers[name] != w || !r.of.same(l.sched.instances[name].failed) || newest.objects == nil {
		return nil // its last failure is another one
	}
	fresh, known := l.fresh(name, r)
	if e := l.sched.instances[name]; len(fresh) > 0 && e.failures == 1 && !e.want.same(r.of) {
		return nil // it gets another configuration at once, which may be valid
	}
	moved := func(f refused) bool {
		return !quarantine.Same(newest.objects.Get(f.key), f.version) && !r.of.same(newest)
	}
	if known || len(fresh) > 0 && !slices.ContainsFunc(fresh, func(f refused) bool { return !moved(f) }) {
		return nil // it gets another configuration already
	}
	w.rounds++
	w.gaveUp = l.hopeless(r, fresh)
	if w.gaveUp != "" {
		if w.rounds == 1 && !l.refusesSomething(name) {
			w.rounds = 0 // nothing is quarantined for it: it may report again
		}
		if !strings.Contains(w.public.Error, w.gaveUp) {
			w.public.Error += " (" + w.gaveUp + ")"
		}
		l.quarantine.Withdraw(name)
		return nil
	}
	took := l.sched.instances[name].took
	for _, f := range fresh {
		var good any
		if took != nil && took.objects != nil {
			good = took.objects.Get(f.key)
		}
		changes = append(changes, l.quarantine.Refuse(f.key, newest.objects.Get(f.key), good, f.fault, name, time.Now())...)
	}
	return changes
}

// refused is an object that an instance refuses.
type refused struct {
	key     rendering.Key
	version any
	fault   quarantine.Fault
}

// fresh returns the objects that a report names and that are not held back yet. known is true
// if the report names only held ones. The caller holds l.mu.
func (l *Loop) fresh(name string, r report) (fresh []refused, known bool) {
	for _, f := range r.faults {
		if !strings.HasPrefix(f.Message, name+": ") {
			f.Message = name + ": " + f.Message
		}
		one := faultsOf(&ConfigError{Faults: []Fault{f}})[0]
		for _, obj := range one.Objects {
			key, _ := keyOf(obj)
			if slices.Contains(r.of.without, key) {
				continue // it was left out, which did not help
			}
			version := l.sched.newest.objects.Get(key)
			if l.quarantine.Is(key) {
				known = true
				l.quarantine.AlsoRefuse(key, obj, name)
			} else if version != nil && !slices.ContainsFunc(fresh, func(f refused) bool { return f.key == key }) {
				if r.of.same(l.sched.newest) { // it may have another version, but the same text
					obj = version
				}
				fresh = append(fresh, refused{key, obj, one})
			}
			break
		}
	}
	return fresh, known && len(fresh) == 0
}

// hopeless says why quarantining more for an instance would not help, "" if it may help. The
// caller holds l.mu.
func (l *Loop) hopeless(r report, fresh []refused) string {
	name, held := r.worker.target.Name(), 0
	for _, h := range l.quarantine.All() {
		if slices.Contains(h.Instances, name) {
			held++
		}
	}
	switch {
	case len(fresh) == 0:
		return "the instance refuses the configuration without all resources of that line, too: look at the template"
	case r.worker.rounds > l.opts.QuarantineTries || held+len(fresh) > l.opts.QuarantineTries:
		return "the instance refuses more resources than the controller may quarantine at once"
	}
	for _, f := range fresh {
		if !l.hasOther(f.key.Kind, fresh) {
			return fmt.Sprintf("%s is refused for every %s: correct the template", f.fault.About.(Fault).Template, f.key.Kind)
		}
	}
	return ""
}

// hasOther reports whether the configuration has an object of a kind that is not refused.
func (l *Loop) hasOther(kind string, fresh []refused) bool {
	for obj := range l.sched.newest.objects.All() {
		if key, ok := keyOf(obj); ok && key.Kind == kind && !l.quarantine.Is(key) && !slices.ContainsFunc(fresh, func(f refused) bool { return f.key == key }) {
			return true
		}
	}
	return false
}

// withName returns a sorted list that contains a name.
func withName(list []string, name string) []string {
	if slices.Contains(list, name) {
		return list
	}
	list = append(slices.Clone(list), name)
	slices.Sort(list)
	return list
}

// explain finds what wrote the line that an instance refused, and for which resource. It
// returns any other error unchanged, and so one without a line.
func (l *Loop) explain(ctx context.Context, v *validated, err error) error {
	if !errors.Is(err, dataplane.ErrInvalid) && !errors.Is(err, dataplane.ErrReload) && !errors.Is(err, dataplane.ErrUnsupported) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, l.live.Load().RenderTimeout)
	defer cancel()
	if e := v.rendered().Explain(ctx, "deploy", err); len(e.Faults) > 0 {
		return e
	}
	return err
}
