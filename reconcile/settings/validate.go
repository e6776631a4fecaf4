package settings

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile/cases"
	"github.com/hapticsdk/haptic/reconcile/event"
)

// Events returns one value of each event of this package, without fields.
func Events() []event.Event {
	return []event.Event{Parsed{}, Validated{}, Invalid{}, Applied{}, CredentialsUpdated{}, CredentialsInvalid{}}
}

// The events below are what a [Live] publishes of settings. Name is the file or
// ConfigMap that they come from, Version that of [Settings.Version].

// Parsed says that new settings came and are being checked. What is wrong
// in the file follows as a Invalid.
type Parsed struct {
	Name, Version string
}

// Report implements [event.Event].
func (e Parsed) Report() event.Report {
	return event.Report{Name: "config.parsed", Level: slog.LevelDebug, Fields: versionFields(e.Name, e.Version)}
}

// Validated says that all validators accept the settings. Whether they
// render to something valid is found out next.
type Validated struct {
	Name, Version string
	Took          time.Duration
}

// Report implements [event.Event].
func (e Validated) Report() event.Report {
	return event.Report{Name: "config.validated", Level: slog.LevelDebug, Took: e.Took, Fields: versionFields(e.Name, e.Version)}
}

// Invalid says why settings do not take effect. Those before stay in use.
type Invalid struct {
	Name, Version string
	Err           error
	Took          time.Duration
}

// Report implements [event.Event].
func (e Invalid) Report() event.Report {
	return event.Report{Name: "config.invalid", Level: slog.LevelError, Took: e.Took, Err: e.Err,
		Sentence: fmt.Sprintf("the settings stay as they are, as version %s of %s is wrong: %v", e.Version, e.Name, e.Err),
		Metrics:  []event.Metric{{Name: "settings_invalid_total", Help: "Settings that were refused; those before stayed in use.", Value: 1}}}
}

// Applied says that settings are in use from now on.
type Applied struct {
	Name, Version    string
	Started, Stopped []string // watched resources that came and went; all others went on
	Took             time.Duration
}

// Report implements [event.Event].
func (e Applied) Report() event.Report {
	sentence := "new settings are in use: version " + e.Version + " of " + e.Name
	if len(e.Started) > 0 {
		sentence += ", watching now: " + strings.Join(e.Started, " ")
	}
	if len(e.Stopped) > 0 {
		sentence += ", no longer: " + strings.Join(e.Stopped, " ")
	}
	return event.Report{Name: "config.applied", Level: slog.LevelInfo, Took: e.Took, Sentence: sentence,
		Metrics: []event.Metric{{Name: "settings_applied_total", Help: "Settings that took effect.", Value: 1}}}
}

func versionFields(name, version string) []slog.Attr {
	return []slog.Attr{slog.String("name", name), slog.String("version", version)}
}

// ValidationRequest asks whether settings may take effect. Validators
// answer with a [ValidationResponse], or with an error that says what is
// wrong, best a [Errors]:
//
//	eventbus.Answer(bus, "hosts", func(ctx context.Context, q settings.ValidationRequest) (settings.ValidationResponse, error) {
//		...
//	})
//
// All are asked at once, so settings that another one refuses are among those
// that they see.
type ValidationRequest struct {
	Name, Version string
	Settings      *Settings // validators read it, all at once

	candidate *candidate
}

// ValidationResponse accepts settings.
type ValidationResponse struct{}

// candidate is settings that may take effect.
type candidate struct {
	name, version string
	settings      *Settings // nil where nothing could be read
	errs          Errors    // of reading

	once     sync.Once
	program  *Program
	problems Errors
}

// compile compiles the candidate, once.
func (c *candidate) compile(opts *ProgramOptions) (*Program, Errors) {
	c.once.Do(func() { c.program, c.problems = compileProgram(c.settings, opts) })
	return c.program, c.problems
}

// validators are those that every Live has.
var validators = []string{"structure", "templates", "cases"}

// answer lets the built-in validators answer on the bus. A candidate of another
// Live on the same bus is not theirs.
func (l *Live) answer() {
	checks := []func(context.Context, *candidate) error{
		func(_ context.Context, c *candidate) error {
			return append(slices.Clone(c.errs), c.settings.check()...).OrNil()
		},
		func(_ context.Context, c *candidate) error {
			_, errs := c.compile(&l.opts.Program)
			return errs.OrNil()
		},
		l.cases,
	}
	for i, name := range validators {
		eventbus.Answer(l.bus, name, func(ctx context.Context, q ValidationRequest) (ValidationResponse, error) {
			if q.candidate == nil {
				return ValidationResponse{}, nil
			}
			return ValidationResponse{}, checks[i](ctx, q.candidate)
		})
	}
}

// cases runs the cases that stand in the settings. Templates that do not compile
// are reported by another.
func (l *Live) cases(ctx context.Context, c *candidate) error {
	program, errs := c.compile(&l.opts.Program)
	if len(errs) > 0 || len(c.settings.Cases) == 0 {
		return nil
	}
	runner := &cases.Runner{Renderer: program.CaseRenderer, Validator: l.validatorOf(program)}
	results := runner.Run(ctx, c.settings.Cases)
	var wrong Errors
	for i := range results {
		if r := &results[i]; !r.Passed() {
			wrong = append(wrong, &Error{File: r.File, Line: r.Line, Column: 1, Path: "validationTests",
				Message: strings.TrimSpace(r.String()), Err: &cases.Failed{Results: results[i : i+1]}})
		}
	}
	return wrong.OrNil()
}

// check asks all validators.
func (l *Live) check(ctx context.Context, c *candidate) error {
	if c.settings == nil {
		return c.errs.OrNil()
	}
	q := ValidationRequest{Name: c.name, Version: c.version, Settings: c.settings, candidate: c}
	_, err := eventbus.Ask[ValidationResponse](ctx, l.bus, q, validators...)
	if err == nil {
		return nil
	}
	var asked *eventbus.AskError
	if !errors.As(err, &asked) {
		return err
	}
	return refusals(c, asked)
}

// refusals puts what validators said into one list.
func refusals(c *candidate, asked *eventbus.AskError) error {
	var all Errors
	for _, failed := range asked.Failed {
		var errs Errors
		var one *Error
		switch {
		case errors.As(failed.Err, &errs):
			all = append(all, errs...)
		case errors.As(failed.Err, &one):
			all = append(all, one)
		default:
			e := c.settings.doc.Problem("", "validator %v", failed)
			e.Err = failed
			all = append(all, e)
		}
	}
	if len(all) == 0 {
		return fmt.Errorf("validators: %w", asked)
	}
	return all.OrNil()
}

// State is what a [Live] knows of its settings at one instant.
type State struct {
	Name      string    `json:"name"`    // of those in use
	Version   string    `json:"version"` // "" before the first
	AppliedAt time.Time `json:"appliedAt,omitzero"`
	Candidate string    `json:"candidate,omitempty"` // version that is being checked, or was refused last
	Error     string    `json:"error,omitempty"`     // why it was refused
	ErrorAt   time.Time `json:"errorAt,omitzero"`

	// Watched are by name in the settings; what FollowPods reads besides is by
	// kind and name, such as "Secret haproxy/credentials".
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
			s.Watched[name] = w.state()
		}
		for name, state := range l.reads {
			s.Watched[name] = state()
		}
	}
	return s
}

func (l *Live) begin(c *candidate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state.Candidate = c.version
}

// unchanged notes that the newest candidate is what is in use.
func (l *Live) unchanged(c *candidate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state.Name, l.state.Candidate, l.state.Error, l.state.ErrorAt = c.name, "", "", time.Time{}
}

// refuse reports an invalid candidate, but not twice the same in a row.
func (l *Live) refuse(c *candidate, err error, start time.Time) error {
	said := c.version + " " + err.Error()
	var sync *k8swatch.SyncError
	if errors.As(err, &sync) { // whose words change from one request to the next
		said = fmt.Sprint(c.version, sync.Resource, sync.Reason)
	}
	l.mu.Lock()
	again := l.state.Error != "" && l.said == said
	l.said, l.state.Error, l.state.ErrorAt = said, err.Error(), time.Now()
	l.mu.Unlock()
	if !again {
		eventbus.Publish(l.opts.Bus, Invalid{Name: c.name, Version: c.version, Err: err, Took: time.Since(start)})
	}
	return err
}
