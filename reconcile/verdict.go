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

// A late verdict is about a resource that an instance refuses although the validator
// accepted it, because the instance has another version. All instances get one
// configuration, so the loop leaves the resource out for all. The verdict ends when the
// resource changes, when the instance leaves, and when the loop tries the resource again. It
// also ends when it does not help. That is so for an instance that refuses more than
// QuarantineTries resources, refuses as often in a row, or names no resource.

// report says what an instance refuses in a configuration.
type report struct {
	worker *worker
	of     *validated
	faults []Fault
}

// culprit is a resource with its fault.
type culprit struct {
	resource  Resource
	fault     Fault
	instances []string // that refuse it; nil: the validator does
	before    version  // the version that these instances have
	after     identity // a resource left out when this one was found; zero: none
}

// indexOf returns the index of an object in all, or -1.
func indexOf(all []culprit, id identity) int {
	return slices.IndexFunc(all, func(c culprit) bool { return c.resource.identity() == id })
}

// invalid reports whether an error is about the configuration, not about the instance. A
// full disk, a failed reload or a time-out is no resource's fault.
func invalid(err error) bool {
	return errors.Is(err, dataplane.ErrInvalid) || errors.Is(err, dataplane.ErrUnsupported)
}

// isVerdict reports whether an error is about a configuration. Errors about the renderer,
// the validator or HAProxy are not, such as a missing binary or a time-out. Leaving a
// resource out for those would hit the innocent.
func isVerdict(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return false
	}
	var known located
	return errors.As(err, &known) || len(tracesOf(err)) > 0 ||
		errors.Is(err, dataplane.ErrInvalid) || errors.Is(err, dataplane.ErrInvalidConfig)
}

// report keeps the refusal of an instance for the next reconciliation, if a verdict may
// follow from it.
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

// hear makes late verdicts of the refusals since the last reconciliation. It withdraws the
// verdicts of instances that left. The caller holds l.rendering.
func (l *Loop) hear(ctx context.Context) {
	q := &l.quarantine
	l.mu.Lock()
	reports, left, newest := l.reports, l.left, l.sched.newest
	l.reports, l.left = nil, nil
	l.mu.Unlock()
	for _, name := range left {
		q.withdraw(name)
	}
	if len(reports) == 0 {
		return
	}
	now := resourcesIn(ctx, newest.origins)
	has := l.had(ctx, reports)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range reports {
		w, name := r.worker, r.worker.target.Name()
		if l.workers[name] != w || !r.of.same(l.sched.instances[name].failed) {
			continue // its last failure is another one
		}
		fresh, known := q.fresh(name, r)
		for i, c := range fresh {
			if n := slices.IndexFunc(has[w], func(v version) bool { return v.identity() == c.resource.identity() }); n >= 0 {
				fresh[i].before = has[w][n]
			}
		}
		if r.of.same(newest) { // a resource may have another version, but the same text
			for i, c := range fresh {
				if n := slices.IndexFunc(now, func(r Resource) bool { return r.identity() == c.resource.identity() }); n >= 0 {
					fresh[i].resource = now[n]
				}
			}
		}
		if e := l.sched.instances[name]; len(fresh) > 0 && e.failures == 1 && !e.want.same(r.of) {
			continue // it gets another configuration at once, which may be valid
		}
		if known || len(fresh) > 0 && !slices.ContainsFunc(fresh, func(c culprit) bool { return slices.Contains(now, c.resource) }) {
			continue // it gets another configuration already
		}
		w.rounds++
		if w.gaveUp = l.hopeless(r, fresh, now); w.gaveUp != "" {
			if w.rounds == 1 && !l.refusesSomething(name) {
				w.rounds = 0 // nothing was left out for it: it may report again
			}
			if !strings.Contains(w.public.Error, w.gaveUp) {
				w.public.Error += " (" + w.gaveUp + ")"
			}
			q.withdraw(name)
			continue
		}
		q.pending = append(q.pending, fresh...)
	}
}

// had returns the resources in the last accepted configuration of each reporting instance.
// The instance may accept those versions again.
func (l *Loop) had(ctx context.Context, reports []report) map[*worker][]version {
	l.mu.Lock()
	have := map[*worker]*validated{}
	for _, r := range reports {
		if name := r.worker.target.Name(); l.workers[name] == r.worker {
			have[r.worker] = l.sched.instances[name].took
		}
	}
	l.mu.Unlock()
	all := map[*worker][]version{}
	for w, v := range have {
		if v != nil {
			all[w], _ = versionsIn(ctx, v.origins) // after an error resources are left out
		}
	}
	return all
}

// fresh returns the resources that a report names and that are not left out yet. If another
// instance refused one first, fresh adds this instance to the verdict. known is true if the
// report names only such resources.
func (q *quarantine) fresh(name string, r report) (fresh []culprit, known bool) {
	for _, f := range r.faults {
		for _, resource := range slices.Backward(f.Resources) {
			id := resource.identity()
			if slices.ContainsFunc(r.of.without, func(r Resource) bool { return r.identity() == id }) {
				continue // it was left out, which did not help
			}
			if v := q.rulings[id]; q.isOut(id) {
				known = true
				if v.Before == resource { // it is refused, too: leave it out from now on
					v.before = version{}
				}
				if len(v.Instances) > 0 {
					v.Instances = withName(v.Instances, name)
				}
			} else if i := indexOf(q.pending, id); i >= 0 {
				known = true
				q.pending[i].instances = withName(q.pending[i].instances, name)
			} else if indexOf(fresh, id) < 0 {
				if !strings.HasPrefix(f.Message, name+": ") {
					f.Message = name + ": " + f.Message
				}
				fresh = append(fresh, culprit{resource: resource, fault: f, instances: []string{name}})
			}
			break
		}
	}
	return fresh, known && len(fresh) == 0
}

// hopeless says why leaving out more for an instance would not help, "" if it may help.
func (l *Loop) hopeless(r report, fresh []culprit, now []Resource) string {
	q, name := &l.quarantine, r.worker.target.Name()
	held := 0
	for _, v := range q.out() {
		if slices.Contains(v.Instances, name) {
			held++
		}
	}
	switch {
	case len(fresh) == 0:
		return "the instance refuses the configuration without all resources of that line, too: look at the template"
	case r.worker.rounds > l.opts.QuarantineTries || held+len(fresh) > l.opts.QuarantineTries:
		return "the instance refuses more resources than the controller may quarantine at once"
	}
	for _, c := range fresh {
		if !slices.ContainsFunc(now, func(r Resource) bool {
			return r.Kind == c.resource.Kind && !q.isOut(r.identity()) && indexOf(fresh, r.identity()) < 0
		}) {
			return fmt.Sprintf("%s is refused for every %s: correct the template", c.fault.Template, c.resource.Kind)
		}
	}
	return ""
}

// withdraw takes back the verdicts of an instance. If no other instance shares a verdict,
// the loop tries the resource again at once.
func (q *quarantine) withdraw(name string) {
	for _, v := range q.out() {
		if !slices.Contains(v.Instances, name) {
			continue
		}
		v.Instances = slices.DeleteFunc(slices.Clone(v.Instances), func(n string) bool { return n == name })
		if len(v.Instances) == 0 {
			v.withdrawn, v.RetryAt, v.relapses, v.Tries = true, time.Time{}, 0, 0
		}
	}
	q.pending = slices.DeleteFunc(q.pending, func(c culprit) bool { return slices.Equal(c.instances, []string{name}) })
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

// whyTemplates says why a template is at fault, or "". It is if its line is wrong for every
// resource of a kind, and one of these holds: there are several such resources, the line
// prints nothing of the only one, or the line was right for that one with the templates
// before. Templates that have made a valid configuration are never at fault.
func (s *search) whyTemplates(ctx context.Context, culprits []culprit) string {
	if s.loop.quarantine.proven || len(culprits) == 0 {
		return ""
	}
	type place struct {
		file, kind string
		line       int
	}
	of := func(c culprit) place { return place{c.fault.Template.File, c.resource.Kind, c.fault.Template.Line} }
	now, ever, all := map[place]int{}, map[place]int{}, map[string]int{}
	for i, c := range slices.Concat(culprits, s.blamed) {
		ever[of(c)]++
		if i < len(culprits) {
			now[of(c)]++
		}
	}
	for _, r := range s.known(ctx) {
		all[r.Kind]++
	}
	before := s.valid(ctx)
	for _, c := range culprits {
		p := of(c)
		if p.line > 0 && now[p] >= all[p.kind] && (ever[p] > 1 || c.fault.fixed() || before[c.resource.identity()].object != nil) {
			return fmt.Sprintf("%s is wrong for every %s: correct the template", c.fault.Template, p.kind)
		}
	}
	return ""
}

// whyRenderer says which resources an attempt has although it had to leave them out, or "".
func (s *search) whyRenderer(ctx context.Context, a *attempt) string {
	var ignored []Resource
	is := func(r Resource) bool {
		_, asked := a.left.now(r.identity())
		return a.left.resources[r.identity()] && !asked
	}
	for _, f := range a.err.Faults {
		ignored = append(ignored, f.Resources...)
	}
	ignored = slices.DeleteFunc(append(ignored, a.known(ctx)...), func(r Resource) bool { return !is(r) })
	return didNotAsk(ignored)
}

// didNotAsk says that a renderer has resources that it had to leave out, "" for none.
func didNotAsk(all []Resource) string {
	if len(all) == 0 {
		return ""
	}
	others := newExcluded(all).resources
	return fmt.Sprintf("the renderer did not ask about %s%s, so that it cannot be left out: read objects with k8swatch.Read and the context of the render, or ask reconcile.ToRender about each",
		all[0], andMore(len(others)-1))
}

// ignored adds to the errors of instances that the renderer still has a resource that they
// refuse.
func (l *Loop) ignored(origins Origins, c culprit) {
	if !slices.Contains(resourcesIn(context.Background(), origins), c.resource) {
		return // it changed or was deleted meanwhile
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range c.instances {
		if w := l.workers[name]; w != nil && w.public.Error != "" {
			w.public.Error += " (" + didNotAsk([]Resource{c.resource}) + ")"
		}
	}
}

// still reports whether a fault is there again, although other resources are left out.
func (f Fault) still(now Fault) bool {
	none := dataplane.Position{}
	return f.Template == now.Template && (f.Position == none) == (now.Position == none) && (f.Position != none || f.Message == now.Message)
}

// fixed reports whether a template line prints nothing of any resource.
func (f Fault) fixed() bool {
	return f.Position != (dataplane.Position{}) && f.Template.Text != "" &&
		!strings.Contains(f.Template.Text, "{{") && !strings.Contains(f.Template.Text, "show")
}

// hasten moves up the next tries of resources that were found while v was left out, so they
// are tried with v.
func (q *quarantine) hasten(v *ruling) {
	for _, w := range q.rulings {
		if w.after == v.Resource.identity() && v.RetryAt.Before(w.RetryAt) {
			w.RetryAt = v.RetryAt
		}
	}
}

// askAll asks about all objects of a configuration if the render did not ask about some that
// it had to leave out. They may exist although nothing reads them any more.
func (l *Loop) askAll(s *search) {
	left := s.last.left
	for id := range left.resources {
		if _, asked := left.now(id); !asked {
			_ = resourcesIn(context.Background(), s.last.rendered.Origins)
			return
		}
	}
}

// explain finds what wrote the line that an instance refused, and for which resource. It
// returns any other error unchanged, and so one without a line.
func (l *Loop) explain(ctx context.Context, v *validated, err error) error {
	if !errors.Is(err, dataplane.ErrInvalid) && !errors.Is(err, dataplane.ErrReload) && !errors.Is(err, dataplane.ErrUnsupported) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, l.live.Load().RenderTimeout)
	defer cancel()
	var blamed *ConfigError
	_ = Guard(func() error { blamed = Blame(ctx, "deploy", err, v.config, v.origins); return nil })
	if blamed == nil || len(blamed.Faults) == 0 {
		return err
	}
	return blamed
}
