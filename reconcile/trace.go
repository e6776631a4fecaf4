package reconcile

import (
	"log/slog"
	"time"

	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/reconcile/event"
)

// AttemptCompleted says how one render and its validation went. Most
// reconciliations have one; where something is at fault, the search for what to
// leave out has several. It says when the attempt began, so that a trace can be
// made of it.
type AttemptCompleted struct {
	ID           uint64
	Excluded     int       // resources that were left out
	At           time.Time // when it began
	RenderTook   time.Duration
	ValidateTook time.Duration // 0 where nothing was rendered, or nobody validates
	Err          error         // nil: the configuration is valid
}

// Report implements [event.Event].
func (e AttemptCompleted) Report() event.Report {
	return event.Report{Name: "reconciliation.attempted", Level: slog.LevelDebug, Reconciliation: e.ID, Took: e.RenderTook + e.ValidateTook, Err: e.Err}
}

// attempted publishes what became of an attempt. The caller holds l.rendering.
func (l *Loop) attempted(a *attempt, began time.Time) {
	l.attempts++
	eventbus.Publish(l.bus, AttemptCompleted{ID: l.lastID, Excluded: len(a.excluded), At: began,
		RenderTook: a.renderTook, ValidateTook: a.validateTook, Err: a.err})
}
