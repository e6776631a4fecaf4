package fetch

import (
	"fmt"
	"log/slog"

	"github.com/hapticsdk/haptic/reconcile/event"
)

// Events returns one value of each event of this package, without fields.
func Events() []event.Event { return []event.Event{Updated{}, Accepted{}, Rejected{}, Withdrawn{}} }

// Updated says that a URL has a new content, which is pending from now on. No event shows a
// credential or the query of a URL.
type Updated struct {
	URL   string
	Bytes int
	Hash  string // of the content, shortened
}

func (e Updated) Report() event.Report {
	return event.Report{Name: "http.resource.updated", Level: slog.LevelInfo, Fields: []slog.Attr{slog.String("hash", e.Hash)},
		Sentence: fmt.Sprintf("fetched a new content of %s, %d bytes, which is used once it has been deployed", e.URL, e.Bytes)}
}

// Accepted says that a configuration made with this content is deployed.
type Accepted struct {
	URL  string
	Hash string
}

func (e Accepted) Report() event.Report {
	return event.Report{Name: "http.resource.accepted", Level: slog.LevelInfo, Fields: []slog.Attr{slog.String("hash", e.Hash)},
		Sentence: "the new content of " + e.URL + " is deployed",
		Metrics:  []event.Metric{{Name: "http_resources_accepted_total", Help: "Fetched contents that were deployed.", Value: 1}}}
}

// Rejected says that a configuration made with this content failed. The content accepted
// before is in use again. The store tries a rejected content again after each interval, but
// publishes only its first rejection in a row.
type Rejected struct {
	URL  string
	Hash string
	Err  error
}

func (e Rejected) Report() event.Report {
	return event.Report{Name: "http.resource.rejected", Level: slog.LevelWarn, Err: e.Err, Fields: []slog.Attr{slog.String("hash", e.Hash)},
		Sentence: fmt.Sprintf("the new content of %s is not used, the one from before stays: %v", e.URL, e.Err),
		Metrics:  []event.Metric{{Name: "http_resources_rejected_total", Help: "Fetched contents that no valid configuration could be made with.", Value: 1}}}
}

// Withdrawn takes a [Rejected] back: the server gives the accepted content again.
type Withdrawn struct {
	URL string
}

func (e Withdrawn) Report() event.Report {
	return event.Report{Name: "http.resource.withdrawn", Level: slog.LevelInfo, Sentence: e.URL + " is in order again: it has the content that is in use"}
}
