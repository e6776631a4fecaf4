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

// flapTime is how long after its end a failure that begins again counts as a repetition.
const flapTime = 5 * time.Minute

// lateTime is for a failure whose beginning had no line. The failure gets one if it lasts for
// lateTime times the number of its beginnings. A shorter time would log failures that only
// come and go.
const lateTime = 10 * time.Second

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
	Times     int  // how often this began in a short time, with this one
	Late      bool // the failure began before, without a line, and goes on
}

func (e ComponentFailed) Report() event.Report {
	r := event.Report{Name: "component.failed", Level: slog.LevelError, Err: e.Err, Repeat: repeat(e.Late, e.Times), Fields: componentField(e.Component),
		Sentence: e.Component + ": " + list(causes(e.Err), 3, "; ") + again(e.Times)}
	if e.Probe == Reported {
		r.Level = slog.LevelWarn
	}
	return r
}

// ComponentRecovered takes a [ComponentFailed] back, for the causes in Of.
type ComponentRecovered struct {
	Component string
	Of        string        // names of the causes: "shop.yaml"; "": all of the component
	Lasted    time.Duration // since the failure was found
	Times     int           // as in [ComponentFailed]
	Late      bool          // as in [ComponentFailed]
}

func (e ComponentRecovered) Report() event.Report {
	s := e.Component + ": in order again after " + brief(e.Lasted) + again(e.Times)
	if e.Of != "" {
		s += ": " + e.Of
	}
	return event.Report{Name: "component.recovered", Level: slog.LevelInfo, Repeat: repeat(e.Late, e.Times), Fields: componentField(e.Component), Sentence: s}
}

func componentField(name string) []slog.Attr { return []slog.Attr{slog.String("component", name)} }

// repeat returns the count for [event.Report.Repeat]: 0 gives a late failure a line in any
// case.
func repeat(late bool, times int) int {
	if late {
		return 0
	}
	return times
}

func again(times int) string {
	if times < 2 {
		return ""
	}
	return fmt.Sprintf(" (%d times in a short time)", times)
}

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
				f.check.story.tell(o.bus, f, time.Now())
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
	name         string
	began, ended time.Time // ended is zero while it lasts
	times        int
	late         bool            // its beginning had no line, but the failure goes on
	said         map[string]bool // its published texts
}

// tell publishes the changes that a finding brings to the story.
func (s *story) tell(bus *eventbus.Bus, f finding, now time.Time) {
	if *s == nil {
		*s = story{}
	}
	fresh, late := ComponentFailed{Component: f.Component, Probe: f.Probe}, ComponentFailed{Component: f.Component, Probe: f.Probe, Late: true}
	there := map[string]bool{}
	for _, cause := range f.causes {
		key := subject(cause.Error())
		there[key] = true
		c := (*s)[key]
		if c == nil {
			c = &chapter{name: place.ReplaceAllString(before(cause.Error()), ""), began: now, times: 1, said: map[string]bool{}}
			(*s)[key] = c
		} else if !c.ended.IsZero() {
			c.began, c.ended, c.times, c.late = now, time.Time{}, c.times+1, false
			clear(c.said)
		}
		if text := shape(cause.Error()); !c.said[text] && len(c.said) < maxSaid {
			c.said[text] = true
			fresh.add(cause, c.times)
		} else if !c.late && c.times&(c.times-1) != 0 && now.Sub(c.began) > time.Duration(c.times)*lateTime {
			c.late = true
			late.add(cause, c.times)
		}
	}
	for _, e := range []ComponentFailed{fresh, late} {
		if e.Err != nil {
			eventbus.Publish(bus, e)
		}
	}
	s.close(bus, f, there, now)
}

// add adds a cause to an event. Times is the least of its causes.
func (e *ComponentFailed) add(cause error, times int) {
	if e.Err == nil || times < e.Times {
		e.Times = times
	}
	e.Err = errors.Join(e.Err, cause)
}

// close publishes the causes that are gone.
func (s *story) close(bus *eventbus.Bus, f finding, there map[string]bool, now time.Time) {
	var gone []*chapter
	for _, key := range slices.Sorted(maps.Keys(*s)) {
		switch c := (*s)[key]; {
		case there[key]:
		case c.ended.IsZero():
			c.ended = now
			gone = append(gone, c)
		case now.Sub(c.ended) > flapTime:
			delete(*s, key)
		}
	}
	if len(gone) == 0 {
		return
	}
	e := ComponentRecovered{Component: f.Component, Times: gone[0].times}
	began := gone[0].began
	var names []error
	for _, c := range gone {
		e.Times, e.Late = min(e.Times, c.times), e.Late || c.late
		names = append(names, errors.New(c.name))
		if c.began.Before(began) {
			began = c.began
		}
	}
	if e.Lasted = now.Sub(began); len(there) > 0 {
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
