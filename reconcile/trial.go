package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hapticsdk/haptic/eventbus"
)

// searchPatience is how long a search looks one by one for the resources at fault in a
// namespace.
const searchPatience = 250 * time.Millisecond

// maySetAside reports whether the search may leave out resources that are not known to be at
// fault. It may if there is a valid configuration, and a try follows.
func (s *search) maySetAside() bool { return s.loop.quarantine.proven && len(s.due) == 0 }

func (s *search) impatient() bool { return s.maySetAside() && time.Since(s.began) > searchPatience }

// setAside leaves out, beside each resource at fault, changed ones of its namespace that
// were at fault before. It leaves out all changes of the namespace once the search takes
// longer than searchPatience, or once QuarantineTries of it were at fault. Otherwise a
// tenant with many bad objects would stall all others for a validation each. A try then
// finds the innocent ones.
func (s *search) setAside(ctx context.Context, culprits []culprit) {
	if !s.maySetAside() || len(culprits) == 0 {
		return
	}
	hostile, all, offences := map[string]bool{}, map[string]bool{}, map[string]int{}
	for id, v := range s.loop.quarantine.rulings {
		if !v.judged.IsZero() {
			offences[id.namespace]++
			all[id.namespace] = offences[id.namespace] >= s.loop.opts.QuarantineTries
		}
	}
	for _, c := range s.blamed {
		all[c.resource.Namespace] = all[c.resource.Namespace] || s.impatient()
	}
	for _, c := range culprits {
		hostile[c.resource.Namespace] = c.resource.Namespace != ""
	}
	for namespace := range hostile {
		if hostile[namespace] && all[namespace] {
			s.close(ctx, namespace)
		}
	}
	for _, r := range s.suspects(ctx) {
		if hostile[r.Namespace] && !all[r.Namespace] && s.offended(r) && indexOf(culprits, r.identity()) < 0 {
			s.aside = append(s.aside, r)
		}
	}
}

// spoil sets aside a resource of another namespace that changed just now and broke this try.
// The next reconciliation finds out what it is at fault for.
func (s *search) spoil(ctx context.Context, r Resource) {
	switch s.spoilt = true; {
	case r.Namespace != "" && time.Since(s.began) > searchPatience:
		s.close(ctx, r.Namespace)
	default:
		s.aside = append(s.aside, r)
	}
}

// leash is the least time that an attempt with several changes may take. Without a valid
// configuration only the time-outs bound an attempt.
const leash = time.Second

// leash returns how long an attempt may take: the constant leash or, if longer, twice the
// sum of the longest validation of a valid configuration and the last valid render.
func (l *Loop) leash() time.Duration { return max(leash, 2*(l.longest+l.rendered)) }

// isolate sets aside the changes of an attempt that was cut, and tries again without them.
// Otherwise one object that makes a template or haproxy hang would hold up all other changes
// until the time-out, each time. It reports whether an attempt was cut.
func (s *search) isolate(ctx context.Context) (was bool) {
	l := s.loop
	for ; s.cut != nil && ctx.Err() == nil; was = true {
		changed, steps := s.changed(ctx, s.cut, s.excluded()), s.steps()
		s.hangs = tooLong(s.cut, l.leash(), fmt.Sprintf(" since it changed: the controller sets it aside and tries it separately for up to %s", l.live.Load().RenderTimeout))
		s.cut, s.hung = nil, s.hung+1
		if s.hung > 1 { // it changes faster than it can be set aside
			s.closeAll(ctx, changed, func(Resource) bool { return true })
		} else {
			s.aside = append(s.aside, changed...)
		}
		s.patient = s.steps() == steps
		s.last = s.without(ctx, nil)
	}
	return was
}

// closed are namespaces whose changes since the last valid configuration are all left out,
// including changes during the search.
type closed struct {
	namespaces map[string]bool
	valid      map[identity]version
	kinds      map[string]bool // kinds that a configuration reads; others show no change
}

func (c *closed) has(r Resource) bool {
	return c != nil && c.namespaces[r.Namespace] && c.kinds[r.Kind] && c.valid[r.identity()].Resource != r
}

func (c *closed) len() int {
	if c == nil {
		return 0
	}
	return len(c.namespaces)
}

func (s *search) close(ctx context.Context, namespace string) {
	c := &closed{map[string]bool{namespace: true}, s.valid(ctx), map[string]bool{}}
	if s.closed != nil {
		maps.Copy(c.namespaces, s.closed.namespaces)
	}
	for id := range c.valid {
		c.kinds[id.kind] = true
	}
	for _, r := range s.known(ctx) {
		c.kinds[r.Kind] = true
	}
	s.closed = c
}

// closeAll closes the namespaces of the resources that are hostile, and reports whether it
// closed any.
func (s *search) closeAll(ctx context.Context, some []Resource, hostile func(r Resource) bool) bool {
	before := s.closed.len()
	for _, r := range some {
		if r.Namespace != "" && (s.closed == nil || !s.closed.namespaces[r.Namespace]) && hostile(r) {
			s.close(ctx, r.Namespace)
		}
	}
	return s.closed.len() > before
}

// valid returns the resources of the last valid configuration.
func (s *search) valid(ctx context.Context) map[identity]version {
	if s.good == nil {
		all, err := versionsIn(ctx, s.loop.quarantine.valid)
		if err != nil {
			return nil
		}
		s.good = make(map[identity]version, len(all))
		for _, v := range all {
			s.good[v.identity()] = v
		}
	}
	return s.good
}

// innocent reports whether the last valid configuration has a resource in this version.
func (s *search) innocent(ctx context.Context, r Resource) bool {
	return s.valid(ctx)[r.identity()].Resource == r
}

// before returns the version that may replace a resource. It comes from the instance that
// refuses the resource, from quarantine, or from the last valid configuration.
func (s *search) before(ctx context.Context, r Resource) (v version) {
	id := r.identity()
	if i := indexOf(s.blamed, id); i >= 0 && s.blamed[i].before.object != nil {
		v = s.blamed[i].before
	} else if s.loop.quarantine.isOut(id) {
		v = s.loop.quarantine.rulings[id].before
	} else {
		v = s.valid(ctx)[id]
	}
	if v.Resource == r {
		return version{} // it did not change, and is at fault now
	}
	return v
}

// stands reports whether r is the version that replaced another one in this attempt.
func (a *attempt) stands(r Resource) bool {
	return a.left.stands(r.identity()).Resource == r && r != Resource{}
}

// strip also leaves out the earlier version of a resource, because that one is at fault.
// After searchPatience it does so for all quarantined resources of the namespace.
func (s *search) strip(r Resource) {
	s.bare[r.identity()] = true
	if s.impatient() {
		s.bare[bareSpace(r.Namespace)] = true
	}
}

// withoutOld follows a withoutAll that was as wrong. It also leaves out the earlier versions
// that replace other resources.
func (s *search) withoutOld(ctx context.Context, suspects []Resource) (all []Resource, valid *attempt) {
	var olds []Resource
	s.olds = map[Resource]bool{}
	for _, r := range slices.Concat(s.excluded(), suspects) {
		if v := s.before(ctx, r); v.object != nil && !s.bare[r.identity()] {
			olds, s.olds[v.Resource] = append(olds, v.Resource), true
		}
	}
	byNamespace(olds)
	all = slices.Concat(suspects, olds)
	if len(olds) == 0 {
		return nil, nil
	}
	if valid = s.without(ctx, all); valid.err != nil {
		return nil, nil
	}
	s.why = ""
	return all, valid
}

// offended reports whether a resource was at fault lately.
func (s *search) offended(r Resource) bool {
	v := s.loop.quarantine.rulings[r.identity()]
	return v != nil && !v.judged.IsZero()
}

// trials tries the quarantined resources that are due, one namespace after the other, so
// that no tenant spoils the tries of another. The namespace with the oldest last try comes
// first, then the one with the fewest resources. It stops when a reconciliation is asked
// for. It returns the newest configuration that it made, or nil.
func (l *Loop) trials(ctx context.Context, patience time.Duration) (newest *validated) {
	_, due := l.quarantine.resources(time.Now())
	count, turns := map[string]int{}, l.quarantine.turns
	for _, r := range due {
		count[r.Namespace]++
	}
	maps.DeleteFunc(turns, func(namespace string, _ uint64) bool { return count[namespace] == 0 })
	for _, namespace := range slices.SortedFunc(maps.Keys(count), func(a, b string) int {
		return cmp.Or(cmp.Compare(turns[a], turns[b]), count[a]-count[b], strings.Compare(a, b))
	}) {
		turns[namespace] = l.lastID
		delete(count, namespace)
		if v := l.trial(ctx, namespace, patience, len(count) > 0); v != nil {
			newest = v
		}
		if len(l.wake) > 0 || ctx.Err() != nil {
			break
		}
	}
	return newest
}

// trialPatience is how long a try may hold up a reconciliation. If twice the time of the
// attempts before is longer, that counts.
const trialPatience = 500 * time.Millisecond

// yielding returns a context that ends when a reconciliation waits, but not before patience
// is over.
func (l *Loop) yielding(ctx context.Context, patience time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	timer := time.AfterFunc(patience, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if ctx.Err() != nil {
			return
		}
		if l.hurry = cancel; len(l.wake) > 0 {
			cancel()
		}
	})
	return ctx, func() {
		timer.Stop()
		cancel()
		l.mu.Lock()
		defer l.mu.Unlock()
		l.hurry = func() {}
	}
}

// trial renders and validates once more with the due resources of a namespace. If that is
// valid with some of them, it returns the newest configuration, otherwise nil. A failed try
// is an unchanged reconciliation. A try that takes several attempts goes on in the next
// reconciliation, if one is asked for already.
func (l *Loop) trial(ctx context.Context, namespace string, patience time.Duration, more bool) *validated {
	now := time.Now()
	others, all := l.quarantine.resources(now)
	var due []Resource
	for _, r := range all {
		if r.Namespace == namespace {
			due = append(due, r)
		} else {
			others = append(others, r)
		}
	}
	if len(due) == 0 {
		return nil
	}
	reasons := []string{"a try of " + due[0].String() + andMore(len(due)-1)}
	id, start := l.begin(reasons)
	if tried := l.quarantine.rulings[due[0].identity()].Tries; patience < leash { // a try that was cut gets more time
		patience = min(patience*time.Duration(1+tried), leash)
	}
	s := &search{loop: l, start: others, due: due, proven: true}
	bounded, end := l.yielding(ctx, patience)
	if more { // the next namespace waits, too
		end()
		bounded, end = context.WithTimeout(ctx, patience)
	}
	s.run(bounded)
	s.short = bounded.Err() != nil
	end()
	if s.last.err == nil {
		v := l.found(id, s)
		l.complete(v, reasons, start)
		return v
	}
	if ctx.Err() != nil {
		return nil
	}
	l.sentence(id, s, now)
	l.showQuarantine()
	l.mu.Lock()
	hash := l.sched.newest.config.Hash()
	l.mu.Unlock()
	eventbus.Publish(l.bus, ReconciliationCompleted{ID: id, Hash: hash, Unchanged: true, Took: time.Since(start), Reasons: reasons, Attempts: l.attempts})
	return nil
}

// sentence sets when the resources of a failed try are tried again. They stay due if the try
// found some of them at fault, or if another namespace spoilt it. If the try did not tell
// which one is at fault, half of them stay due.
func (l *Loop) sentence(id uint64, s *search, now time.Time) {
	progress := s.caught()
	s.undecided = s.undecided || !s.last.verdict && len(s.due) > 1 // it was cut, or took too long
	for i, r := range s.due {
		if n := indexOf(s.blamed, r.identity()); n >= 0 {
			l.judge(id, s.blamed[n], l.quarantine.rulings[r.identity()].before, now)
		} else if !progress && !s.spoilt && (!s.undecided || i >= len(s.due)/2) {
			v := l.quarantine.rulings[r.identity()]
			if v.told && len(s.due) == 1 && !s.short && !s.last.verdict { // it had all its time
				v.told, v.aside, v.Fault = false, false, tooLong(s.last, s.last.renderTook+s.last.validateTook, ", apart from others, too")
				l.quarantine.news = append(l.quarantine.news, ResourceQuarantined{ID: id, Quarantined: v.Quarantined})
			}
			l.inVain(id, r, now)
			if s.short { // it may need more time, or hang for ever
				v.RetryAt = now.Add(backOff(relapseWait, l.opts.QuarantineMax, v.Tries))
			}
		}
	}
}

// inVain notes a failed try of a resource.
func (l *Loop) inVain(id uint64, r Resource, now time.Time) {
	v := l.quarantine.rulings[r.identity()]
	if v.aside && !v.told {
		l.quarantine.news = append(l.quarantine.news, ResourceQuarantined{ID: id, Quarantined: v.Quarantined})
	}
	v.aside = false
	if v.changed && v.Tries == 0 {
		v.relapses, v.judged = v.relapses+1, time.Now()
	}
	v.Tries++
	l.postpone(v, now)
}

// withDue searches once more, with the quarantined resources that are due, if nothing is
// valid without them. It returns nil if that fails, too.
func (l *Loop) withDue(ctx context.Context, id uint64, without *search) *search {
	q, now := &l.quarantine, time.Now()
	if without.last.err == nil || !without.last.verdict || without.tired || l.opts.NoQuarantine || ctx.Err() != nil {
		return nil
	}
	for _, v := range q.out() {
		if is, asked := without.last.left.now(v.Resource.identity()); asked {
			l.notice(v, is)
		}
	}
	others, due := q.resources(now)
	if len(due) == 0 {
		return nil
	}
	gaveUp, why := q.gaveUp, q.why
	s := &search{loop: l, start: others, due: due}
	if s.run(ctx); s.last.err == nil {
		return s
	}
	q.gaveUp, q.why = gaveUp, why // the search without them is not made again
	if ctx.Err() == nil && !s.yielded {
		for _, r := range due {
			l.inVain(id, r, now)
		}
		l.tellQuarantine()
	}
	return nil
}
