package observe

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/internal/printable"
	"github.com/hapticsdk/haptic/reconcile/event"
)

// Comment logs one line for each [event.Event] with a sentence, until the bus is closed: each
// reconciliation that changed something, each deployment, each failure, each refused resource.
// A repeated failure has a line at the 1st, 2nd, 4th, 8th … time, and for each new cause. A
// nil log is slog.Default(). On a nil bus, Comment logs nothing.
//
// The message is the sentence. The attributes are for searching: "reconciliation", "instance",
// "took", the fields of the report such as "hash" and "resource", and the event's name as
// "event".
func Comment(bus *eventbus.Bus, log *slog.Logger) *eventbus.Subscription {
	if log == nil {
		log = slog.Default()
	}
	reported := repeats{}
	return eventbus.Subscribe(bus, func(ctx context.Context, d eventbus.Delivery[any]) {
		if r := reportOf(d.Event); r.Sentence != "" && reported.worth(r) {
			log.LogAttrs(ctx, r.Level, printable.Text(r.Sentence), attrs(r)...)
		}
	})
}

// repeats holds the logged causes of each event that repeats. A key without causes is an event
// that has had a line and that no other event has taken back since.
type repeats map[string]map[string]bool

// worth reports whether a line says something new; see [event.Report.Repeat] and
// [event.Report.Ends].
func (s repeats) worth(r event.Report) bool {
	if len(s) > maxSaid*maxSaid { // it also keeps instances that are gone
		clear(s)
	}
	reported := s.news(r)
	line := func(name string) string { return fmt.Sprint("line", name, r.Instance) }
	for _, name := range r.Ends {
		_, open := s[line(name)]
		reported = reported || open
		delete(s, line(name))
	}
	if reported && len(r.Ends) == 0 {
		s[line(r.Name)] = nil
	}
	return reported
}

// news reports whether an event is worth a line by itself.
func (s repeats) news(r event.Report) bool {
	if r.Repeat == 0 {
		return true
	}
	of, cause := fmt.Sprint(r.Name, r.Instance, r.Fields), ""
	if r.Err != nil {
		cause = shape(r.Err.Error())
	}
	if s[of] == nil || r.Repeat == 1 {
		s[of] = map[string]bool{}
	}
	fresh := !s[of][cause] && len(s[of]) < maxSaid
	if fresh {
		s[of][cause] = true
	}
	return fresh || r.Repeat&(r.Repeat-1) == 0
}

// reportOf returns the report of an event, or an empty one for other values.
func reportOf(v any) (r event.Report) {
	if e, ok := v.(event.Event); ok {
		r = e.Report()
	}
	return r
}

func attrs(r event.Report) []slog.Attr {
	var all []slog.Attr
	if r.Reconciliation != 0 {
		all = append(all, slog.Uint64("reconciliation", r.Reconciliation))
	}
	if r.Instance != "" {
		all = append(all, slog.String("instance", printable.Text(r.Instance)))
	}
	if r.Took != 0 {
		all = append(all, slog.String("took", r.Took.Round(100*time.Microsecond).String()))
	}
	for _, a := range r.Fields {
		switch v := a.Value.Any().(type) {
		case string:
			a.Value = slog.StringValue(printable.Text(v))
		case []string:
			a.Value = slog.StringValue(printable.Text(fmt.Sprint(v)))
		}
		all = append(all, a)
	}
	return append(all, slog.String("event", r.Name))
}

// Printable returns a writer to a terminal or a log. It escapes what a terminal or log would
// not show as text: control characters other than line feed and tab, and marks of the writing
// direction. Use it for errors and plans, which quote resources and instances. Each call of
// Write is a text of its own.
func Printable(w io.Writer) io.Writer { return printer{w} }

type printer struct{ to io.Writer }

func (p printer) Write(text []byte) (int, error) {
	if _, err := io.WriteString(p.to, printable.Text(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}
