package event_test

import (
	"fmt"
	"log/slog"

	"github.com/hapticsdk/haptic/reconcile/event"
)

// ShardMoved is an event of a program's own.
type ShardMoved struct{ Shard, To string }

// Report implements event.Event: published on a bus that package observe listens
// to, the event is a line of the log and of the page, and counts.
func (e ShardMoved) Report() event.Report {
	return event.Report{
		Name: "shard.moved", Level: slog.LevelInfo, Sentence: "shard " + e.Shard + " is at " + e.To + " now",
		Fields:  []slog.Attr{slog.String("shard", e.Shard)},
		Metrics: []event.Metric{{Kind: event.Counter, Name: "shards_moved_total", Help: "Shards that moved.", Value: 1}},
	}
}

func ExampleEvent() {
	var e event.Event = ShardMoved{Shard: "eu-1", To: "haproxy-2"}
	r := e.Report()
	fmt.Println(r.Level, r.Name+":", r.Sentence)
	fmt.Println(r.Metrics[0].Name, r.Metrics[0].Value)
	// Output:
	// INFO shard.moved: shard eu-1 is at haproxy-2 now
	// shards_moved_total 1
}

func ExampleOne() {
	failed := true
	fmt.Println(event.Metric{Name: "imports_failed_total", Value: event.One(failed)}.Value)
	// Output: 1
}
