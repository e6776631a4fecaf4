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
	rendered *Rendered    // after a render that failed it may have origins alone, or be nil
	err      *ConfigError // nil: the configuration is valid
	verdict  bool         // the error is about the resources or the templates: with fewer of the one it may be gone

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
	failed := Guard(func() error { again = settler.Settle(r.Config, outcome); return nil })
	return again && failed == nil
}

func (l *Loop) tryOnce(ctx context.Context, excluded []Resource) *attempt {
	a := &attempt{excluded: excluded, left: newExcluded(excluded)}
	if len(excluded) > 0 {
		ctx = context.WithValue(ctx, excludedKey{}, a.left)
	}
	began := time.Now()
	var err error
	a.rendered, err = l.render(ctx)
	a.renderTook = time.Since(began)
	if err != nil {
		a.fail(ctx, l.live.Load().RenderTimeout, "render", err)
	} else if l.opts.Validator != nil {
		validating := time.Now()
		err = Guard(func() error { return l.opts.Validator.Validate(ctx, a.rendered.Config) })
		a.validateTook = time.Since(validating)
		if err != nil {
			a.fail(ctx, l.live.Load().RenderTimeout, "validate", err)
		}
	}
	l.attempts++
	eventbus.Publish(l.bus, AttemptCompleted{ID: l.lastID, Excluded: len(a.excluded), At: began,
		RenderTook: a.renderTook, ValidateTook: a.validateTook, Err: a.failure()})
	return a
}

func (l *Loop) render(ctx context.Context) (rendered *Rendered, err error) {
	ctx, cancel := context.WithTimeout(ctx, l.live.Load().RenderTimeout)
	defer cancel()
	err = Guard(func() (err error) {
		rendered, err = l.opts.Renderer.Render(ctx)
		return err
	})
	if err == nil && (rendered == nil || rendered.Config == nil) {
		err = errors.New("the renderer returned no configuration")
	}
	return rendered, err
}

// fail finds out what a failure is to be blamed on.
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

// failure is err, and a nil interface where that is nil.
func (a *attempt) failure() error {
	if a.err == nil {
		return nil
	}
	return a.err
}

// made is the configuration that was rendered; nil: none was.
func (a *attempt) made() *dataplane.Config {
	if a.rendered == nil {
		return nil
	}
	return a.rendered.Config
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
	if cfg := a.made(); cfg != nil {
		return cfg.Hash()
	}
	return a.err.Error()
}

// culprit is a resource with its fault.
type culprit struct {
	resource  Resource
	fault     Fault
	instances []string // that refuse it; nil: the validator does
}

// indexOf finds an object among culprits; -1: it is none of them.
func indexOf(all []culprit, id identity) int {
	return slices.IndexFunc(all, func(c culprit) bool { return c.resource.identity() == id })
}

// search looks for the resources without which the configuration is valid.
type search struct {
	loop    *Loop
	start   []Resource // left out from the beginning
	due     []Resource // that a trial is about; nil: it is none
	blamed  []culprit
	last    *attempt
	why     string // no resource is to blame
	tired   bool   // it ended before its time
	yielded bool   // so did this trial, as a reconciliation waits
}

func (s *search) excluded() []Resource {
	all := slices.Clone(s.start)
	known := newExcluded(all).resources
	for _, c := range s.blamed {
		if id := c.resource.identity(); !known[id] {
			known[id] = true
			all = append(all, c.resource)
		}
	}
	return all
}

// futile reports a trial of resources that are all still at fault.
func (s *search) futile() bool {
	return len(s.due) > 0 && !slices.ContainsFunc(s.due, func(r Resource) bool { return indexOf(s.blamed, r.identity()) < 0 })
}

// run leaves out more and more until the configuration is valid, and returns
// the first attempt. Each round takes all that is known to be at fault; where
// no line says what is, it takes halves.
func (s *search) run(ctx context.Context) (first *attempt) {
	q := &s.loop.quarantine
	first = s.loop.attempt(ctx, s.excluded())
	s.last = first
	if first.err == nil || !first.verdict || s.loop.opts.NoQuarantine {
		return first
	}
	key := fmt.Sprintf("%s of %d", first.key(), len(s.known(ctx))) // with more resources another one may be right
	if q.gaveUp == key {
		s.why = q.why
		return first
	}
	for round := 0; s.last.err != nil && s.last.verdict && ctx.Err() == nil; round++ {
		if s.tired = round == s.loop.opts.QuarantineTries; s.tired {
			break
		}
		culprits := s.culprits()
		if s.why = s.whyTemplates(ctx, culprits); s.why == "" && len(culprits) == 0 {
			culprits = s.halve(ctx)
		}
		if s.why != "" {
			q.gaveUp, q.why = key, s.why
		}
		if s.why != "" || len(culprits) == 0 {
			break
		}
		s.blamed = append(s.blamed, culprits...)
		if s.yielded = len(s.due) > 0 && len(s.loop.wake) > 0; s.yielded || s.futile() {
			break
		}
		if s.last.err != nil {
			s.last = s.loop.attempt(ctx, s.excluded())
		}
	}
	return first
}

// culprits are, for each fault, the innermost of the resources that were being
// rendered.
func (s *search) culprits() (culprits []culprit) {
	out := newExcluded(s.excluded()).resources
	found := map[identity]bool{}
	for _, f := range s.last.err.Faults {
		for _, r := range slices.Backward(f.Resources) {
			if out[r.identity()] {
				continue // leaving it out did not help
			}
			// The line is still wrong without an inner resource: blame the outer one.
			s.blamed = slices.DeleteFunc(s.blamed, func(c culprit) bool {
				return c.resource != r && c.fault.Template == f.Template && slices.Contains(c.fault.Resources, r)
			})
			if !found[r.identity()] {
				found[r.identity()] = true
				culprits = append(culprits, culprit{resource: r, fault: f})
			}
			break
		}
	}
	return culprits
}

// whyTemplates says why a template is to blame, or "". It is if its line is wrong for
// every resource of a kind where there are several, prints nothing of the only one,
// or was right for that one with the templates before. Templates that have made a
// valid configuration are never to blame.
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
	before := newExcluded(resourcesIn(ctx, s.loop.quarantine.valid)).resources
	for _, c := range culprits {
		p := of(c)
		if p.line > 0 && now[p] >= all[p.kind] && (ever[p] > 1 || c.fault.fixed() || before[c.resource.identity()]) {
			return fmt.Sprintf("%s is wrong for every %s, so the template is to blame", c.fault.Template, p.kind)
		}
	}
	return ""
}

// fixed reports a line of a template that prints nothing of any resource.
func (f Fault) fixed() bool {
	return f.Position != (dataplane.Position{}) && f.Template.Text != "" &&
		!strings.Contains(f.Template.Text, "{{") && !strings.Contains(f.Template.Text, "show")
}

// known returns all resources that the last attempt was made of.
func (s *search) known(ctx context.Context) []Resource {
	if s.last.rendered == nil {
		return nil
	}
	return resourcesIn(ctx, s.last.rendered.Origins)
}

// resourcesIn returns all resources that a configuration was made of.
func resourcesIn(ctx context.Context, origins Origins) (found []Resource) {
	if origins == nil {
		return nil
	}
	var owners []any
	if Guard(func() (err error) { owners, err = origins.Owners(ctx); return err }) != nil {
		return nil
	}
	seen := map[Resource]bool{}
	for _, o := range owners {
		for _, r := range ResourcesOf([]any{o}) {
			if !seen[r] {
				seen[r] = true
				found = append(found, r)
			}
		}
	}
	return found
}

// halve finds one culprit by leaving out halves of what is new or changed since
// the last valid configuration.
func (s *search) halve(ctx context.Context) []culprit {
	excluded, innocent := s.excluded(), map[Resource]bool{}
	out := newExcluded(excluded).resources
	for _, r := range resourcesIn(ctx, s.loop.quarantine.valid) {
		innocent[r] = true
	}
	suspects := slices.DeleteFunc(s.known(ctx), func(r Resource) bool { return innocent[r] || out[r.identity()] })
	if len(suspects) == 0 {
		s.why = "no resource is known to be at fault, so the templates are to blame"
		return nil
	}
	without := func(n int) *attempt { return s.loop.attempt(ctx, slices.Concat(excluded, suspects[:n])) }
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
		switch a := without(n); {
		case a.err == nil:
			enough, valid = n, a
		case a.verdict:
			few = n
		default:
			return nil
		}
	}
	fault := Fault{Message: s.last.err.Err.Error()}
	if faults := s.last.err.Faults; len(faults) > 0 {
		fault = faults[0]
	}
	fault.Resources = []Resource{suspects[enough-1]}
	if enough == 1 {
		s.last = valid
	}
	return []culprit{{resource: suspects[enough-1], fault: fault}}
}
