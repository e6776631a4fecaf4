package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
)

// attempt is one render and its validation, with some resources left out.
type attempt struct {
	excluded []Resource
	left     *Excluded
	rendered *Rendered // after a render that failed it may have origins alone, or be nil
	err      error     // mostly a *ConfigError
	blamed   *ConfigError
	verdict  bool // the error is about the resources or the templates: with fewer of the one it may be gone

	renderTook, validateTook time.Duration
}

// attempt renders and validates. Where it fails because of what the renderer
// itself brought along, such as what it fetched, it is done again without that:
// no resource is to be blamed for it.
func (l *Loop) attempt(ctx context.Context, excluded []Resource) *attempt {
	for range 2 {
		a := l.tryOnce(ctx, excluded)
		if a.err == nil || !a.verdict || !l.settled(a.rendered, a.err) {
			return a
		}
	}
	return l.tryOnce(ctx, excluded)
}

// settled tells the renderer what became of what it rendered, and reports
// whether another render may do better.
func (l *Loop) settled(r *Rendered, outcome error) (again bool) {
	settler, ok := l.opts.Renderer.(Settler)
	if !ok || r == nil || r.Config == nil {
		return false
	}
	failed := guard(func() error { again = settler.Settle(r.Config, outcome); return nil })
	return again && failed == nil
}

func (l *Loop) tryOnce(ctx context.Context, excluded []Resource) *attempt {
	a := &attempt{excluded: excluded, left: newExcluded(excluded)}
	if len(excluded) > 0 {
		ctx = context.WithValue(ctx, excludedKey{}, a.left)
	}
	start := time.Now()
	defer func(began time.Time) {
		l.attempts++
		eventbus.Publish(l.bus, AttemptCompleted{ID: l.lastID, Excluded: len(a.excluded), At: began,
			RenderTook: a.renderTook, ValidateTook: a.validateTook, Err: a.err})
	}(start)
	var err error
	a.rendered, err = l.render(ctx)
	a.renderTook = time.Since(start)
	if err != nil {
		a.fail(ctx, l.live.Load().RenderTimeout, "render", err)
		return a
	}
	if l.opts.Validator == nil {
		return a
	}
	start = time.Now()
	err = guard(func() error { return l.opts.Validator.Validate(ctx, a.rendered.Config) })
	a.validateTook = time.Since(start)
	if err != nil {
		a.fail(ctx, l.live.Load().RenderTimeout, "validate", err)
	}
	return a
}

// fail finds out whom a failure is to be blamed on.
func (a *attempt) fail(ctx context.Context, timeout time.Duration, stage string, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var origins Origins
	var cfg *dataplane.Config
	if a.rendered != nil {
		origins, cfg = a.rendered.Origins, a.rendered.Config
	}
	_ = guard(func() error { a.blamed = blame(ctx, stage, err, cfg, origins); return nil })
	if a.blamed == nil { // whoever knows the origins panicked
		a.blamed = &ConfigError{Stage: stage, Err: err}
	}
	a.err = a.blamed
	a.verdict = isVerdict(err)
}

// isVerdict tells an error about a configuration from one about the renderer, the
// validator or HAProxy, such as a binary that is not there or a time-out: to leave
// something out because of that would blame the innocent.
func isVerdict(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return false
	}
	var known located
	return errors.As(err, &known) || len(tracesOf(err)) > 0 ||
		errors.Is(err, dataplane.ErrInvalid) || errors.Is(err, dataplane.ErrInvalidConfig)
}

// key tells failures apart.
func (a *attempt) key() string {
	if a.rendered != nil && a.rendered.Config != nil {
		return a.rendered.Config.Hash()
	}
	return a.err.Error()
}

// accusation blames a resource for a fault.
type accusation struct {
	resource  Resource
	fault     Fault
	instances []string // that refuse it; nil: the validator does
}

// search looks for the resources without which the configuration is valid.
type search struct {
	loop    *Loop
	start   []Resource // left out from the beginning
	due     []Resource // that a trial is about; nil: it is none
	accused []accusation
	last    *attempt
	why     string // no resource is to blame
	tired   bool   // it ended before its time
}

func (s *search) excluded() []Resource {
	all := slices.Clone(s.start)
	for _, a := range s.accused {
		if !containsResource(all, a.resource.identity()) {
			all = append(all, a.resource)
		}
	}
	return all
}

// futile reports a trial of resources that are all still at fault.
func (s *search) futile() bool {
	return len(s.due) > 0 && !slices.ContainsFunc(s.due, func(r Resource) bool {
		return !slices.ContainsFunc(s.accused, func(a accusation) bool { return a.resource.identity() == r.identity() })
	})
}

// run leaves out more and more until the configuration is valid, and returns
// the first attempt. Each round takes all that is known to be at fault; where
// nothing says who is, it takes halves.
func (s *search) run(ctx context.Context) (first *attempt) {
	q := &s.loop.quarantine
	first = s.loop.attempt(ctx, s.excluded())
	s.last = first
	if first.err == nil || !first.verdict || s.loop.opts.NoQuarantine {
		return first
	}
	if q.gaveUp == first.key() {
		s.why = q.why
		return first
	}
	for round := 0; s.last.err != nil; round++ {
		if ctx.Err() != nil || !s.last.verdict {
			return first
		}
		if round == s.loop.opts.QuarantineTries {
			s.tired = true
			return first
		}
		culprits := s.byPosition(ctx)
		if s.why == "" && len(culprits) == 0 {
			culprits = s.bySearch(ctx)
		}
		if len(culprits) == 0 {
			if s.why != "" {
				q.gaveUp, q.why = first.key(), s.why
			}
			return first
		}
		s.accused = append(s.accused, culprits...)
		if s.futile() {
			return first
		}
		if s.last.err != nil {
			s.last = s.loop.attempt(ctx, s.excluded())
		}
	}
	return first
}

// byPosition takes those whom the lines that are wrong belong to.
func (s *search) byPosition(ctx context.Context) []accusation {
	culprits := s.culprits()
	if s.templatesAreWrong(ctx, culprits) {
		return nil
	}
	return culprits
}

// culprits are, for each fault, the innermost of the resources that were being
// rendered.
func (s *search) culprits() (culprits []accusation) {
	excluded := s.excluded()
	for _, f := range s.last.blamed.Faults {
		for i, r := range slices.Backward(f.Resources) {
			if containsResource(excluded, r.identity()) {
				continue // leaving it out did not help
			}
			s.spare(f, f.Resources[i])
			if !slices.ContainsFunc(culprits, func(a accusation) bool { return a.resource == r }) {
				culprits = append(culprits, accusation{resource: r, fault: f})
			}
			break
		}
	}
	return culprits
}

// spare takes an accusation back that did not help: the same line of a
// template is wrong without that resource too, for one further out.
func (s *search) spare(f Fault, culprit Resource) {
	s.accused = slices.DeleteFunc(s.accused, func(a accusation) bool {
		return a.resource != culprit && a.fault.Template == f.Template && slices.Contains(a.fault.Resources, culprit)
	})
}

// templatesAreWrong reports that a line of a template is wrong for every
// resource of a kind that there is, or for the only one without printing
// anything of it, or although that was right with the templates before: with
// templates that were valid before it is the resources all the same.
func (s *search) templatesAreWrong(ctx context.Context, culprits []accusation) bool {
	if s.loop.quarantine.proven || len(culprits) == 0 {
		return false
	}
	all, before := countKinds(s.known(ctx, s.last)), map[identity]bool{}
	for _, r := range resourcesIn(ctx, s.loop.quarantine.valid) {
		before[r.identity()] = true
	}
	type line struct {
		file, kind string
		line       int
	}
	at := map[line]map[Resource]bool{}
	for _, a := range slices.Concat(culprits, s.accused) {
		l := line{a.fault.Template.File, a.resource.Kind, a.fault.Template.Line}
		if at[l] == nil {
			at[l] = map[Resource]bool{}
		}
		at[l][a.resource] = true
	}
	for _, a := range culprits {
		t := a.fault.Template
		wrong := at[line{t.File, a.resource.Kind, t.Line}]
		now := 0
		for _, c := range culprits {
			if wrong[c.resource] {
				now++
			}
		}
		if t.Line > 0 && now >= all[a.resource.Kind] && (len(wrong) > 1 || a.fault.fixed() || before[a.resource.identity()]) {
			s.why = fmt.Sprintf("%s is wrong for every %s, so the template is to blame", t, a.resource.Kind)
			return true
		}
	}
	return false
}

// fixed reports a line of a template that prints nothing of any resource.
func (f Fault) fixed() bool {
	return f.Position != (dataplane.Position{}) && f.Template.Text != "" &&
		!strings.Contains(f.Template.Text, "{{") && !strings.Contains(f.Template.Text, "show")
}

func countKinds(resources []Resource) map[string]int {
	count := map[string]int{}
	for _, r := range resources {
		count[r.Kind]++
	}
	return count
}

// known returns all resources that an attempt was made of.
func (s *search) known(ctx context.Context, a *attempt) []Resource {
	if a.rendered == nil {
		return nil
	}
	return resourcesIn(ctx, a.rendered.Origins)
}

func resourcesIn(ctx context.Context, origins Origins) (found []Resource) {
	if origins == nil {
		return nil
	}
	var owners []any
	if guard(func() (err error) { owners, err = origins.Owners(ctx); return err }) != nil {
		return nil
	}
	seen := map[Resource]bool{}
	for _, o := range owners {
		for _, r := range resourcesOf([]any{o}) {
			if !seen[r] {
				seen[r] = true
				found = append(found, r)
			}
		}
	}
	return found
}

// bySearch finds one culprit by leaving out halves of what is new or changed
// since the last valid configuration.
func (s *search) bySearch(ctx context.Context) []accusation {
	excluded := s.excluded()
	innocent := map[Resource]bool{}
	for _, r := range slices.Concat(excluded, resourcesIn(ctx, s.loop.quarantine.valid)) {
		innocent[r] = true
	}
	suspects := slices.DeleteFunc(s.known(ctx, s.last), func(r Resource) bool { return innocent[r] })
	if len(suspects) == 0 {
		s.why = "no resource is known to be at fault, so the templates are to blame"
		return nil
	}
	without := func(n int) *attempt {
		return s.loop.attempt(ctx, slices.Concat(excluded, suspects[:n]))
	}
	valid := without(len(suspects))
	if valid.err != nil {
		if valid.verdict {
			s.why = "it is as wrong without every resource that changed, so the templates are to blame"
		}
		return nil
	}
	few, enough := 0, len(suspects) // to leave out
	for enough-few > 1 {
		n := (few + enough) / 2
		a := without(n)
		switch {
		case a.err == nil:
			enough, valid = n, a
		case a.verdict:
			few = n
		default:
			return nil
		}
	}
	fault := Fault{Message: s.last.blamed.Err.Error()}
	if faults := s.last.blamed.Faults; len(faults) > 0 {
		fault = faults[0]
	}
	culprit := suspects[enough-1]
	fault.Resources = []Resource{culprit}
	if enough == 1 {
		s.last = valid
	}
	return []accusation{{resource: culprit, fault: fault}}
}
