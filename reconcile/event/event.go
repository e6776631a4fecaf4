// Package event defines how events describe themselves. Logs, metrics, pages and traces
// (package observe) know no event by its type. An event's method Report has all that they
// say, show or count, in the file that declares the event:
//
//	type CacheCleared struct{ Entries int }
//
//	func (e CacheCleared) Report() event.Report {
//		return event.Report{
//			Name:     "cache.cleared",
//			Sentence: fmt.Sprintf("cleared the cache of %d entries", e.Entries),
//			Metrics:  []event.Metric{{Name: "cache_clears_total", Help: "Times that the cache was cleared.", Value: 1}},
//		}
//	}
package event

import (
	"log/slog"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
)

// Event is an event that logs, pages, metrics and traces show. It describes itself in one
// place. An event of your own program shows in all of them once it has this method.
type Event interface {
	// Report says what happened. Each observer calls it, from several goroutines, also on
	// the zero value.
	Report() Report
}

// Report is how an event describes itself. It has no secrets.
type Report struct {
	// Name is the kind of event, such as "reconciliation.completed": in the past tense, and
	// the same for ever.
	Name string

	// Level is Info if something changed, Warn if a person should look, and Error if HAProxy
	// cannot be brought up to date.
	Level slog.Level

	// Sentence says what happened, for people. If empty, the event has no line in a log.
	Sentence string

	Reconciliation uint64            // number of its reconciliation; 0: none
	Instance       string            // the one that it is about; "": none
	Took           time.Duration     // 0: it took no time
	Err            error             // the error in the sentence; nil: none
	Result         *dataplane.Result // of a deployment; nil: none, or not known

	// Repeat counts the same event in a row, with this one; 0 and 1 mean the first. Logs and
	// pages have a line at 1, 2, 4, 8 …, and whenever Err changes. Events are the same by
	// name, instance and Fields.
	Repeat int

	// Ends names the events that this one takes back. It has a line, whatever Repeat is, if
	// one of them had a line since the last time.
	Ends []string

	// Fields are other values that people search a log for: "hash", "resource", "source".
	Fields []slog.Attr

	// Metrics are what the event counts. They always have the same names and labels, so the
	// zero value declares them.
	Metrics []Metric
}

// Metric is one thing that an event counts. Its name has the prefix "haptic_".
type Metric struct {
	Kind  MetricKind
	Name  string
	Help  string
	Value float64 // if it has no label

	Label string             // name of its label; "": none
	By    map[string]float64 // value by label; those that are missing are 0 from now on
}

// MetricKind says how observers use the value of a [Metric].
type MetricKind int

// The kinds.
const (
	Counter MetricKind = iota // it grows by the value
	Gauge                     // it is the value
	Seconds                   // a histogram without a label gets the value
)

// One returns 1 for true, and 0 for false: how much a counter of such events grows.
func One(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
