package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
)

// fail finds out which resources and template lines a failure comes from.
func (a *attempt) fail(ctx context.Context, timeout time.Duration, stage string, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var origins Origins
	var cfg *dataplane.Config
	if a.rendered != nil {
		origins, cfg = a.rendered.Origins, a.rendered.Config
	}
	_ = Guard(func() error { a.err = Blame(ctx, stage, err, cfg, origins); return nil })
	if a.err == nil { // the origins panicked
		a.err = &ConfigError{Stage: stage, Err: err}
	}
	a.verdict = isVerdict(err)
}

// search looks for the resources without which the configuration is valid.
type search struct {
	loop    *Loop
	start   []Resource // left out from the beginning
	due     []Resource // resources that this search tries; nil: none
	proven  bool       // the current configuration is valid without due
	began   time.Time
	blamed  []culprit
	aside   []Resource           // left out until they are tried, not known to be at fault
	closed  *closed              // namespaces whose changes are all left out; nil: none
	bare    map[identity]bool    // left out without a replacement: the earlier version is at fault, too
	olds    map[Resource]bool    // earlier versions among the suspects of halve
	good    map[identity]version // resources of the last valid configuration; nil: not read yet
	last    *attempt
	why     string // why no resource is at fault
	tired   bool   // it ended after QuarantineTries rounds
	yielded bool   // this try ended early, because a reconciliation waits
	short   bool   // this try ended in the middle of an attempt

	restarts int // of halving, because more changed meanwhile

	cut     *attempt // the attempt that took longer than the leash
	hung    int      // number of such attempts
	hangs   Fault    // the fault of the last of them
	patient bool     // attempts have no leash any more

	spoilt    bool // something bad of another namespace broke this try
	undecided bool // it is not known which of due is at fault
}

func (s *search) excluded() []Resource {
	more := slices.Clone(s.aside)
	for _, c := range s.blamed {
		more = append(more, c.resource)
	}
	all := slices.Clone(s.start)
	known := newExcluded(all).resources
	for _, r := range more {
		if id := r.identity(); !known[id] {
			known[id] = true
			all = append(all, r)
		}
	}
	return all
}

// futile reports whether this try found all its resources at fault again.
func (s *search) futile() bool {
	return len(s.due) > 0 && !slices.ContainsFunc(s.due, func(r Resource) bool { return indexOf(s.blamed, r.identity()) < 0 })
}

// caught reports whether this try found some of its resources at fault.
func (s *search) caught() bool {
	return slices.ContainsFunc(s.due, func(r Resource) bool { return indexOf(s.blamed, r.identity()) >= 0 })
}

// run leaves out more and more until the configuration is valid, and returns the first
// attempt. Each round leaves out all resources known to be at fault, and changes beside
// them. If no line names a resource, the round finds one by leaving out halves.
func (s *search) run(ctx context.Context) (first *attempt) {
	q := &s.loop.quarantine
	s.began = time.Now()
	s.bare = map[identity]bool{}
	first = s.without(ctx, nil)
	s.last = first
	s.isolate(ctx)
	if s.last.err == nil || !s.last.verdict || s.loop.opts.NoQuarantine {
		return first
	}
	key := fmt.Sprintf("%s of %d", s.last.key(), len(s.known(ctx))) // with more resources the answer may differ
	if q.gaveUp == key {
		s.why = q.why
		return first
	}
	for round := 0; s.last.err != nil && s.last.verdict && ctx.Err() == nil; round++ {
		if s.tired = round == s.loop.opts.QuarantineTries; s.tired {
			break
		}
		steps := s.steps()
		culprits := s.culprits(ctx)
		s.why = s.whyTemplates(ctx, culprits)
		if s.why == "" && len(culprits) == 0 && s.steps() == steps {
			if s.why = s.whyRenderer(ctx, s.last); s.why == "" {
				culprits = s.unnamed(ctx)
			}
		}
		if s.isolate(ctx) {
			continue
		}
		if s.why != "" {
			q.gaveUp, q.why = key, s.why
		}
		s.setAside(ctx, culprits)
		if s.why != "" || len(culprits) == 0 && s.steps() == steps {
			break
		}
		s.blame(ctx, culprits)
		waits := len(s.due) > 0 && len(s.loop.wake) > 0
		if s.yielded = waits && (s.caught() || !s.proven); s.yielded || s.futile() {
			break
		}
		if s.last.err != nil {
			s.last = s.without(ctx, nil)
			s.isolate(ctx)
		}
	}
	return first
}

// blame leaves out culprits, from the next attempt on. If a resource is left out without a
// replacement already, its absence may be their fault.
func (s *search) blame(ctx context.Context, culprits []culprit) {
	i := slices.IndexFunc(s.blamed, func(c culprit) bool { return s.before(ctx, c.resource).object == nil })
	for _, c := range culprits {
		if i >= 0 {
			c.after = s.blamed[i].resource.identity()
		}
		s.blamed = append(s.blamed, c)
	}
}

// steps grows with what is left out beside the resources at fault.
func (s *search) steps() int { return len(s.aside) + s.closed.len() + len(s.bare) }

// culprits returns, for each fault, the innermost resource being rendered that may be at
// fault.
func (s *search) culprits(ctx context.Context) (culprits []culprit) {
	out := newExcluded(s.excluded()).resources
	found := map[identity]bool{}
	for _, f := range s.last.err.Faults {
		r, ok := s.atFault(ctx, f, out)
		switch {
		case !ok:
			continue
		case s.last.stands(r):
			s.strip(r)
			continue
		}
		// The line is still wrong without an inner resource: the outer one is at fault.
		s.blamed = slices.DeleteFunc(s.blamed, func(c culprit) bool {
			return c.resource != r && c.fault.still(f) && slices.Contains(c.fault.Resources, r)
		})
		if s.proven && r.Namespace != s.due[0].Namespace {
			s.spoil(ctx, r)
		} else if !found[r.identity()] {
			found[r.identity()] = true
			culprits = append(culprits, culprit{resource: r, fault: f})
		}
	}
	return culprits
}

// atFault returns the innermost resource of a fault that may be at fault. One that changed
// comes first, before those of the last valid configuration and before replacements.
func (s *search) atFault(ctx context.Context, f Fault, out map[identity]bool) (r Resource, ok bool) {
	var old, same Resource
	for _, r := range slices.Backward(f.Resources) {
		switch {
		case s.proven && s.innocent(ctx, r): // the configuration without due is valid with it
		case s.last.stands(r):
			old = r
		case out[r.identity()]: // leaving it out did not help
		case !s.innocent(ctx, r):
			return r, true
		case old == Resource{} && same == Resource{}:
			same = r
		}
	}
	same = cmp.Or(same, old)
	return same, same != Resource{}
}

// suspects returns the resources that are new or changed since the last valid configuration,
// and not left out yet.
func (s *search) suspects(ctx context.Context) []Resource {
	return s.changed(ctx, s.last, s.excluded())
}

// changed returns the suspects of an attempt, without those excluded.
func (s *search) changed(ctx context.Context, a *attempt, excluded []Resource) []Resource {
	out := newExcluded(excluded).resources
	return slices.DeleteFunc(a.known(ctx), func(r Resource) bool { return s.innocent(ctx, r) || out[r.identity()] })
}

// unnamed finds one resource at fault if no line names one: the only resource of a try, or
// one found by halves.
func (s *search) unnamed(ctx context.Context) []culprit {
	suspects := s.suspects(ctx)
	if !s.proven {
		return s.halve(ctx, suspects)
	}
	s.spoilt = slices.ContainsFunc(suspects, func(r Resource) bool { return r.Namespace != s.due[0].Namespace })
	s.closeAll(ctx, suspects, func(r Resource) bool { return r.Namespace != s.due[0].Namespace && among(s.start, r.Namespace) })
	s.undecided = len(s.due) > 1
	if s.spoilt || s.undecided {
		return nil
	}
	return []culprit{{resource: s.due[0], fault: s.fault(s.due[0])}}
}

// fault is what is wrong with a resource that no line names.
func (s *search) fault(r Resource) Fault {
	f := Fault{Message: s.last.err.Err.Error()}
	if faults := s.last.err.Faults; len(faults) > 0 {
		f = faults[0]
	}
	f.Resources = []Resource{r}
	return f
}

// without makes an attempt that leaves out more. For an earlier version among some, it
// leaves the resource out without a replacement.
func (s *search) without(ctx context.Context, some []Resource) *attempt {
	l := leaving{resources: s.excluded(), before: map[identity]version{}, closed: s.closed, bare: maps.Clone(s.bare)}
	for _, r := range some {
		if s.olds[r] {
			l.bare[r.identity()] = true
		} else {
			l.resources = append(l.resources, r)
		}
	}
	for _, r := range l.resources {
		if v := s.before(ctx, r); v.object != nil {
			l.before[r.identity()] = v
		}
	}
	if !s.maySetAside() || s.patient || s.loop.opts.NoQuarantine {
		return s.loop.attempt(ctx, l)
	}
	bounded, end := context.WithTimeout(ctx, s.loop.leash())
	defer end()
	a := s.loop.attempt(bounded, l)
	if a.err != nil && !a.verdict && bounded.Err() != nil && ctx.Err() == nil {
		s.cut = a
		a.err.Err = fmt.Errorf("the attempt took longer than %s, and the controller tries the changed resources separately: %w", s.loop.leash(), a.err.Err)
	}
	return a
}

// hostile closes namespaces that have suspects and changed during the search, and reports
// whether it closed any.
func (s *search) hostile(ctx context.Context, meanwhile, suspects []Resource) bool {
	return s.closeAll(ctx, meanwhile, func(r Resource) bool { return s.maySetAside() && among(suspects, r.Namespace) })
}

// halve finds one resource at fault by leaving out halves of the suspects. If that is
// enough, it sets aside those that were at fault before. After searchPatience it sets aside
// the rest of a namespace.
func (s *search) halve(ctx context.Context, suspects []Resource) []culprit {
	old := slices.DeleteFunc(slices.Clone(suspects), func(r Resource) bool { return !s.offended(r) })
	if s.maySetAside() && len(old) > 0 {
		if a := s.without(ctx, old); a.err == nil {
			s.last, s.aside = a, append(s.aside, old...)
			return nil
		}
	}
	suspects, valid := s.withoutAll(ctx, suspects)
	few, enough := 0, len(suspects) // to leave out
	if valid == nil && s.why != "" {
		suspects, valid = s.withoutOld(ctx, suspects)
		few, enough = enough, len(suspects)
	}
	if valid == nil {
		return nil
	}
	for enough-few > 1 {
		n := (few + enough) / 2
		if namespace := suspects[n].Namespace; namespace != "" && s.impatient() {
			if n = border(suspects, few, n, enough); n == few {
				s.close(ctx, namespace)
				s.bare[bareSpace(namespace)] = s.olds[suspects[n]] || s.bare[bareSpace(namespace)]
				return nil
			}
		}
		a := s.without(ctx, suspects[:n])
		if a.err != nil && !a.verdict {
			return nil
		}
		meanwhile := slices.DeleteFunc(s.changed(ctx, a, a.excluded), func(r Resource) bool { return slices.Contains(suspects, r) })
		switch {
		case len(meanwhile) > 0: // these may decide, and not the other suspects
			if s.restarts++; s.restarts > s.loop.opts.QuarantineTries || s.hostile(ctx, meanwhile, suspects) {
				return nil
			}
			changed := newExcluded(meanwhile).resources
			suspects = slices.DeleteFunc(suspects, func(r Resource) bool { return changed[r.identity()] })
			return s.halve(ctx, slices.Concat(suspects, meanwhile))
		case a.err == nil:
			enough, valid = n, a
		default:
			few = n
		}
	}
	found := culprit{resource: suspects[enough-1], fault: s.fault(suspects[enough-1])}
	if s.olds[found.resource] {
		s.strip(found.resource)
		return nil
	}
	if enough == 1 {
		s.last = valid
	}
	return []culprit{found}
}

// withoutAll returns a valid attempt without all suspects and without later changes; nil if
// there is none.
func (s *search) withoutAll(ctx context.Context, suspects []Resource) (all []Resource, valid *attempt) {
	byNamespace(suspects)
	s.olds = nil
	if len(suspects) == 0 {
		s.why = "no resource is known to be at fault: correct the templates"
		return nil, nil
	}
	valid = s.without(ctx, suspects)
	for range s.loop.opts.QuarantineTries {
		if valid.err == nil || !valid.verdict {
			break
		}
		meanwhile := s.changed(ctx, valid, valid.excluded)
		if len(meanwhile) == 0 {
			s.why = cmp.Or(s.whyRenderer(ctx, valid), "the configuration is invalid without the changed resources, too: correct the templates")
			return suspects, nil
		}
		if s.hostile(ctx, meanwhile, suspects) {
			return nil, nil // it changes faster than the search
		}
		suspects = append(suspects, meanwhile...)
		byNamespace(suspects)
		valid = s.without(ctx, suspects)
	}
	if valid.err != nil {
		return nil, nil
	}
	return suspects, valid
}

func byNamespace(all []Resource) {
	slices.SortStableFunc(all, func(a, b Resource) int { return strings.Compare(a.Namespace, b.Namespace) })
}

// among reports whether some resources include one of a namespace.
func among(some []Resource, namespace string) bool {
	return slices.ContainsFunc(some, func(r Resource) bool { return r.Namespace == namespace })
}

// border returns where the namespace of a suspect ends. If that is not before enough, it
// returns where the namespace begins.
func border(suspects []Resource, few, n, enough int) int {
	namespace, end := suspects[n].Namespace, n
	for end < enough && suspects[end].Namespace == namespace {
		end++
	}
	if end < enough {
		return end
	}
	for n > few && suspects[n-1].Namespace == namespace {
		n--
	}
	return n
}
