package settings

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/internal/panics"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/cases"
)

// Apply makes good settings take effect, and returns when they have. It waits until Run has
// begun, and for earlier calls. Settings that say the same as those in use need no work. The
// error is one of these:
//
//   - an [Errors]: the settings are wrong
//   - a [k8swatch.SyncError]: a new resource cannot be watched
//   - the error of a render or validation with the new settings
//   - the error of ctx or of Run's context, if that ended first; Apply does not publish this one
func (l *Live) Apply(ctx context.Context, s *Settings) error {
	name := "settings"
	if s.doc != nil {
		name = s.doc.File
	}
	return l.consider(ctx, &candidate{name: name, version: s.Version(), settings: s, errs: s.check()})
}

// ApplyYAML is [Parse] and [Live.Apply] in one; its error has the mistakes of both. name is
// the name of the file in errors.
func (l *Live) ApplyYAML(ctx context.Context, name string, data []byte) error {
	s, errs := read(name, data)
	c := &candidate{name: name, version: unreadable, settings: s, errs: errs}
	if s != nil {
		c.version = s.Version()
	}
	return l.consider(ctx, c)
}

// candidate is settings that may take effect.
type candidate struct {
	name, version string
	settings      *Settings // nil if nothing could be read
	errs          Errors    // of their structure
}

// unreadable stands for the version of settings that cannot be read.
const unreadable = "unreadable"

// consider does all of Apply.
func (l *Live) consider(caller context.Context, c *candidate) error {
	start := time.Now()
	select {
	case <-l.started:
	case <-caller.Done():
		return caller.Err()
	}
	l.checking.Lock()
	defer l.checking.Unlock()
	ctx, stop := context.WithTimeout(caller, l.opts.CheckTimeout)
	defer stop()
	defer context.AfterFunc(l.running, stop)()
	if err := cmp.Or(caller.Err(), l.running.Err()); err != nil {
		return err
	}
	l.begin(c)
	l.mu.Lock()
	before := l.current
	l.mu.Unlock()
	if before != nil && len(c.errs) == 0 && before.program.version == c.version {
		l.unchanged(c)
		return nil
	}
	eventbus.Publish(l.opts.Bus, Parsed{Name: c.name, Version: c.version})
	use, err := l.prepare(ctx, c, before)
	if err != nil {
		// The caller has gone, so this says nothing about the settings.
		if ended := cmp.Or(caller.Err(), l.running.Err()); ended != nil {
			return ended
		}
		return l.refuse(c, err, start)
	}
	l.swap(c, use, before, start)
	return nil
}

// prepare makes everything ready for a candidate.
func (l *Live) prepare(ctx context.Context, c *candidate, before *inUse) (*inUse, error) {
	start := time.Now()
	use, err := l.check(ctx, c, before)
	if err != nil {
		return nil, err
	}
	eventbus.Publish(l.opts.Bus, Validated{Name: c.name, Version: c.version, Took: time.Since(start)})
	started, err := l.watch(ctx, use, before)
	if err == nil {
		err = l.try(ctx, use)
		if before == nil && l.quarantines(err) {
			err = nil
		}
	}
	if err != nil {
		l.end(started)
		return nil, err
	}
	return use, nil
}

// check compiles, and makes all checks that need no resources of the cluster.
func (l *Live) check(ctx context.Context, c *candidate, before *inUse) (*inUse, error) {
	if c.settings == nil {
		return nil, c.errs.OrNil()
	}
	use := &inUse{}
	errs := c.errs
	program, wrong := compileProgram(c.settings, &l.opts.Program)
	errs = append(errs, wrong...)
	if len(wrong) == 0 {
		use.program, use.validator = program, l.validatorOf(program, before)
		errs = append(errs, runCases(ctx, use)...)
	}
	if l.opts.Check != nil {
		err := panics.Guard(func() error { return l.opts.Check(ctx, c.name, c.settings) })
		var own Errors
		if errors.As(err, &own) {
			errs = append(errs, own...)
		} else if err != nil {
			errs = append(errs, c.settings.doc.Problem("", "%v", err))
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return use, errs.OrNil()
}

// validatorOf returns the validator for the configurations of a program, or nil. It keeps the
// one in use if the folders are the same, because that one remembers its verdicts.
func (l *Live) validatorOf(p *Program, before *inUse) reconcile.Validator {
	switch {
	case l.opts.Validator == nil:
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.validator
	case before != nil && before.program.layout == p.layout:
		return before.validator
	}
	return l.opts.Validator(p.layout)
}

// runCases runs the cases of the settings.
func runCases(ctx context.Context, use *inUse) (wrong Errors) {
	runner := &cases.Runner{Renderer: use.program.CaseRenderer, Validator: use.validator}
	if v, ok := use.validator.(interface {
		Quietly(ctx context.Context, cfg *dataplane.Config) error
	}); ok { // without log lines: the log is for deployments
		runner.Validator = reconcile.ValidatorFunc(v.Quietly)
	}
	results := runner.Run(ctx, use.program.settings.Cases)
	for i := range results {
		if r := &results[i]; !r.Passed() {
			wrong = append(wrong, caseErrors(r)...)
		}
	}
	return wrong
}

// caseErrors returns the errors of a failed case. If HAProxy refuses a line, the error is at
// the template line that wrote it, which is the line to repair.
func caseErrors(r *cases.Result) (wrong Errors) {
	rest, failed := *r, &cases.Failed{Results: cases.Results{*r}}
	rest.Assertions = nil
	for _, a := range r.Assertions {
		at := a.Template
		if a.Problem == "" || at.File != r.File {
			rest.Assertions = append(rest.Assertions, a)
			continue
		}
		problem := strings.TrimPrefix(a.Problem, at.String()+": ")
		path := strings.TrimPrefix(at.String(), fmt.Sprintf("%s:%d: ", at.File, at.Line))
		wrong = append(wrong, &Error{File: at.File, Line: at.Line, Column: at.Column, Path: path, Err: failed,
			Message: fmt.Sprintf("%s; so the case %q fails (%s:%d)", problem, r.Name, r.File, a.Line)})
	}
	if !rest.Passed() {
		wrong = append(wrong, &Error{File: r.File, Line: r.Line, Column: 1, Path: "validationTests", Message: strings.TrimSpace(rest.String()), Err: failed})
	}
	return wrong
}

// try renders and validates with a program that is not in use yet. It reads quarantined
// resources as the loop does, but quarantines no others. If a resource is good with the
// settings in use and bad with the new ones, the new ones are at fault. The loop tries
// quarantined resources again once the new settings are in use. The first settings have none
// to compare with; see quarantines.
func (l *Live) try(ctx context.Context, use *inUse) error {
	l.mu.Lock()
	deployed := l.deployed
	l.mu.Unlock()
	use.program.templates.SetPrevious(deployed)
	var rendered *reconcile.Rendered
	err := panics.Guard(func() (err error) {
		rendered, err = use.program.Render(ctx, l.read(use))
		return err
	})
	if err != nil {
		return &trialError{rendered.Explain(ctx, "render", err)}
	}
	if use.validator == nil {
		return nil
	}
	if err := panics.Guard(func() error { return use.validator.Validate(ctx, rendered.Config) }); err != nil {
		use.program.templates.Settle(rendered.Config, err)
		return &trialError{rendered.Explain(ctx, "validate", err)}
	}
	return nil
}

// trialError says that settings are right in themselves, but give nothing valid with the
// current resources. Other resources may change that.
type trialError struct{ *reconcile.ConfigError }

func (e *trialError) Error() string {
	text := e.Err.Error()
	if e.Stage == "validate" { // validation knows no line of the settings
		text = strings.TrimPrefix(e.ConfigError.Error(), e.Stage+": ")
	}
	return e.Stage + " with the new settings: " + text
}

// quarantines reports whether the loop would quarantine the resource behind an error of try.
// One bad resource must not stop the first start.
func (l *Live) quarantines(err error) bool {
	l.mu.Lock()
	loop := l.loop
	l.mu.Unlock()
	var trial *trialError
	return loop != nil && errors.As(err, &trial) && loop.Quarantines(trial.ConfigError)
}

// swap puts a program to use.
func (l *Live) swap(c *candidate, use, before *inUse, start time.Time) {
	started, stopped, gone := difference(before, use)
	if before == nil || len(started) > 0 { // before anything in use changes
		eventbus.Publish(l.opts.Bus, reconcile.IndexSynchronized{Resources: l.read(use).counts(), Took: use.synced})
	}
	l.mu.Lock()
	loop := l.loop
	l.current = use
	use.program.templates.SetPrevious(l.deployed) // deployed may have changed meanwhile
	now := time.Now()
	l.state = State{Name: c.name, Version: c.version, AppliedAt: now}
	l.mu.Unlock()
	applied := Applied{Name: c.name, Version: c.version, Started: started, Stopped: stopped, Took: now.Sub(start)}
	if loop != nil {
		// check has checked the intervals: there is no error.
		_ = loop.SetIntervals(use.program.settings.Reconcile.options())
	}
	if l.opts.OnApply != nil {
		l.opts.OnApply(use.program)
	}
	eventbus.Publish(l.opts.Bus, applied)
	if err := l.discovery.Set(l.wanted(use)); err != nil { // check finds such settings
		l.log.Error("the settings select no instances", "error", err)
	}
	if before == nil {
		close(l.first)
	}
	if loop != nil {
		if len(loop.State().Quarantined) > 0 {
			loop.Release() // the new templates may accept them
		}
		loop.Trigger("settings")
	}
	l.rendering.Lock() // waits for a render with the old program
	l.rendering.Unlock()
	l.end(gone)
}

// State describes the settings of a [Live] at one instant.
type State struct {
	Name      string    `json:"name"`    // of the settings in use
	Version   string    `json:"version"` // "" before the first
	AppliedAt time.Time `json:"appliedAt,omitzero"`
	Candidate string    `json:"candidate,omitempty"` // version being checked, or refused last
	Error     string    `json:"error,omitempty"`     // why it was refused
	ErrorAt   time.Time `json:"errorAt,omitzero"`

	// Watched has the watches of the settings by their name there. It also has the watches of
	// FollowPods by kind and name, such as "Secret haproxy/credentials".
	Watched map[string]k8swatch.State `json:"watched,omitempty"`
}

// State returns one consistent snapshot.
func (l *Live) State() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.state
	if l.current != nil {
		s.Watched = make(map[string]k8swatch.State, len(l.current.watchers))
		for name, w := range l.current.watchers {
			s.Watched[name] = w.State()
		}
		maps.Copy(s.Watched, l.discovery.Watches())
	}
	return s
}

func (l *Live) begin(c *candidate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state.Candidate = c.version
}

// unchanged notes that the newest candidate is already in use.
func (l *Live) unchanged(c *candidate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state.Error != "" {
		eventbus.Publish(l.opts.Bus, Restored{Name: c.name, Version: c.version})
	}
	l.state.Name, l.state.Candidate, l.state.Error, l.state.ErrorAt = c.name, "", "", time.Time{}
}

// refuse reports an invalid candidate, but not twice the same in a row.
func (l *Live) refuse(c *candidate, err error, start time.Time) error {
	said := c.version + " " + err.Error()
	var sync *k8swatch.SyncError
	if errors.As(err, &sync) { // its words change from one request to the next
		said = fmt.Sprint(c.version, sync.Resource, sync.Reason)
	}
	l.mu.Lock()
	again := l.state.Error != "" && l.said == said
	l.said, l.state.Error, l.state.ErrorAt = said, err.Error(), time.Now()
	before := l.state.Version
	l.mu.Unlock()
	if !again {
		eventbus.Publish(l.opts.Bus, Invalid{Name: c.name, Version: c.version, Before: before, Err: err, Took: time.Since(start)})
	}
	return err
}
