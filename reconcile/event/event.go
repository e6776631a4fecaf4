// Package event says what events tell of themselves. Logs, metrics, pages and traces
// (package observe) know no event by its type: what is to be said, shown or counted
// of one stands in its method Report, in the file that declares it.
package event

import (
	"log/slog"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
)

// Event is what every event is that logs, pages, metrics and traces show: it says
// all of itself in one place. An event of a program's own shows in all of them
// once it has this method.
type Event interface {
	// Report says what happened. It is called for each observer, from several
	// goroutines, also on the zero value.
	Report() Report
}

// Report is what an event says of itself. No secret is in it.
type Report struct {
	// Name is that of the kind of event, such as "reconciliation.completed": in
	// the past tense, and the same for ever.
	Name string

	// Level is Info where something changed, Warn where a person should look, and
	// Error where HAProxy is kept from being up to date.
	Level slog.Level

	// Sentence says what happened, for people. If empty, the event is not worth a
	// line of a log.
	Sentence string

	Reconciliation uint64            // its number; 0: none
	Instance       string            // that it is about; "": none
	Took           time.Duration     // 0: it took no time
	Err            error             // that the sentence tells of; nil: none
	Result         *dataplane.Result // of a deployment; nil: none, or not known

	// Repeat counts how often the same went on in a row, with this time; 0 and 1: it
	// is the first. Logs and pages have a line at 1, 2, 4, 8 …, and where Err is
	// another than before. Events are the same by name, instance and Fields.
	Repeat int

	// Ends are the names of the events that this one takes back. It has a line, whatever
	// Repeat is, where one of them had one since the last time.
	Ends []string

	// Fields are what else people search a log for: "hash", "resource", "source".
	Fields []slog.Attr

	// Metrics are what the event counts: always the same ones by name and label,
	// so that the zero value declares them.
	Metrics []Metric
}

// Metric is one thing that an event counts. Its name has the prefix "haptic_".
type Metric struct {
	Kind  MetricKind
	Name  string
	Help  string
	Value float64 // where it has no label

	Label string             // name of its label; "": none
	By    map[string]float64 // value by label; those that are missing are 0 from now on
}

// MetricKind says what becomes of the value of a [Metric].
type MetricKind int

// The kinds.
const (
	Counter MetricKind = iota // it grows by the value
	Gauge                     // it is the value
	Seconds                   // a histogram without a label gets the value
)

// One is 1 for true, and 0 for false: how much a counter of such events grows.
func One(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
