package observe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/reconcile/event"
)

// askEvery is how often [Observer.Run] runs all checks. With the time that a check may take,
// an event follows its cause within two seconds.
const askEvery = time.Second

// reportPause is the least time between two lines that say that the same cause began. One
// that comes and goes has no more.
const reportPause = time.Minute

// maxSaid bounds the remembered texts. A text that is remembered has no second line.
const maxSaid = 64

// Events returns one value of each event of this package, without fields.
func Events() []event.Event { return []event.Event{ComponentFailed{}, ComponentRecovered{}} }

// ComponentFailed says that a check of [Health] found a new failure. [Observer.Run] publishes
// it once, however long the failure lasts.
type ComponentFailed struct {
	Component string
	Err       error // the new failure
	Probe     Probe
}

func (e ComponentFailed) Report() event.Report {
	r := event.Report{Name: "component.failed", Level: slog.LevelError, Err: e.Err, Fields: componentField(e.Component),
		Sentence: e.Component + ": " + list(causes(e.Err), 3, "; ")}
	if e.Probe == Reported {
		r.Level = slog.LevelWarn
	}
	return r
}

// ComponentRecovered takes a [ComponentFailed] back, for the causes in Of.
type ComponentRecovered struct {
	Component string
	Of        string        // names of the causes: "shop.yaml"; "": all of the component
	Lasted    time.Duration // since [ComponentFailed]
}

func (e ComponentRecovered) Report() event.Report {
	s := e.Component + ": in order again after " + brief(e.Lasted)
	if e.Of != "" {
		s += ": " + e.Of
	}
	return event.Report{Name: "component.recovered", Level: slog.LevelInfo, Fields: componentField(e.Component), Sentence: s}
}

func componentField(name string) []slog.Attr { return []slog.Attr{slog.String("component", name)} }

// Run makes all checks of Health each second until ctx ends, and publishes when a failure
// begins and ends. Without Run, pages, probes and metrics show failures, but the log does not.
// Run returns nil.
func (o *Observer) Run(ctx context.Context) error {
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		all := o.Health.findings()
		if ctx.Err() != nil {
			return nil // a check that ends with ctx has not failed
		}
		for _, f := range all {
			if !f.check.quiet {
				f.check.story.report(o.bus, f, time.Now())
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// story holds the published causes of a check, by name.
type story map[string]*chapter

// chapter is one cause.
type chapter struct {
	name     string
	last     time.Time       // when its beginning was published
	open     bool            // its end was not published yet
	reported map[string]bool // its published texts
}

// report publishes the changes that a finding brings to the story.
func (s *story) report(bus *eventbus.Bus, f finding, now time.Time) {
	if *s == nil {
		*s = story{}
	}
	var fresh []error
	there := map[string]bool{}
	for _, cause := range f.causes {
		key, text := subject(cause.Error()), shape(cause.Error())
		there[key] = true
		c := (*s)[key]
		if c == nil || !c.open && now.Sub(c.last) >= reportPause {
			c = &chapter{name: place.ReplaceAllString(before(cause.Error()), ""), last: now, open: true, reported: map[string]bool{}}
			(*s)[key] = c
		}
		if c.open && !c.reported[text] && len(c.reported) < maxSaid {
			c.reported[text] = true
			fresh = append(fresh, cause)
		}
	}
	if len(fresh) > 0 {
		eventbus.Publish(bus, ComponentFailed{Component: f.Component, Err: errors.Join(fresh...), Probe: f.Probe})
	}
	s.close(bus, f, there, now)
}

// close publishes the causes that are gone.
func (s *story) close(bus *eventbus.Bus, f finding, there map[string]bool, now time.Time) {
	var names []error
	began := now
	for _, key := range slices.Sorted(maps.Keys(*s)) {
		switch c := (*s)[key]; {
		case there[key]:
		case c.open:
			c.open = false
			names = append(names, errors.New(c.name))
			if c.last.Before(began) {
				began = c.last
			}
		case now.Sub(c.last) >= reportPause:
			delete(*s, key)
		}
	}
	if len(names) == 0 {
		return
	}
	e := ComponentRecovered{Component: f.Component, Lasted: now.Sub(began)}
	if len(there) > 0 {
		e.Of = list(names, 3, ", ")
	}
	eventbus.Publish(bus, e)
}

// causes returns the errors that [errors.Join] joined, at any depth.
func causes(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var texts []string
	for _, part := range joined.Unwrap() {
		texts = append(texts, part.Error())
	}
	if strings.Join(texts, "\n") != err.Error() { // err says more than its parts
		return []error{err}
	}
	var all []error
	for _, part := range joined.Unwrap() {
		all = append(all, causes(part)...)
	}
	return all
}

// list joins the first errors, and counts the others.
func list(errs []error, most int, separator string) string {
	var texts []string
	for _, err := range errs[:min(most, len(errs))] {
		texts = append(texts, err.Error())
	}
	if more := len(errs) - most; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, separator)
}

// before returns the part of a text that names a cause.
func before(text string) string {
	name, _, _ := strings.Cut(text, ": ")
	return name
}

// subject identifies a cause: by its name, without figures.
func subject(text string) string { return shape(before(text)) }

var (
	// place matches the line and the column after the name of a file.
	place = regexp.MustCompile(`(:\d+)+:?$`)
	// words matches the words of a text. figured matches words that may change from one time
	// to the next: counts, durations, sizes, times, addresses. "10-shop.yaml" is a name.
	words   = regexp.MustCompile(`\S+`)
	figured = regexp.MustCompile(`^\(?\d([\d.,:/>+%-]|[nuµm]?s|[mhTZ]|([kKMGT]i?)?B)*[).,:;]*$`)
)

// shape returns a text without its figures, and without lines and columns after names.
func shape(text string) string {
	return words.ReplaceAllStringFunc(text, func(word string) string {
		return place.ReplaceAllString(figured.ReplaceAllString(word, "#"), "#")
	})
}
