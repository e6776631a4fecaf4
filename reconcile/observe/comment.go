package observe

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/reconcile/event"
)

// Comment logs, until the bus is closed, one line for each [event.Event] with
// a sentence: each reconciliation that changed something, each deployment, each
// failure, each resource that is refused. If log is nil, it is slog.Default().
//
// The message is the sentence. The attributes are for searching:
// "reconciliation", "instance", "took", the fields of the report such as "hash"
// and "resource", and "event", the name of the event.
func Comment(bus *eventbus.Bus, log *slog.Logger) *eventbus.Subscription {
	if log == nil {
		log = slog.Default()
	}
	return eventbus.Subscribe(bus, func(ctx context.Context, d eventbus.Delivery[any]) {
		if r := reportOf(d.Event); r.Sentence != "" {
			log.LogAttrs(ctx, r.Level, r.Sentence, attrs(r)...)
		}
	})
}

// reportOf is what an event says; nothing for one that says nothing of itself.
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
		all = append(all, slog.String("instance", r.Instance))
	}
	if r.Took != 0 {
		all = append(all, slog.String("took", r.Took.Round(100*time.Microsecond).String()))
	}
	return slices.Concat(all, r.Fields, []slog.Attr{slog.String("event", r.Name)})
}
