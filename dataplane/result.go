package dataplane

import (
	"fmt"
	"strings"
	"time"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/internal/phrase"
)

// Result says what a Sync did.
type Result struct {
	Plan      *Plan         `json:"plan"`               // what differed when the Sync began
	Left      *Plan         `json:"left,omitempty"`     // what still differs: it waits for a reload (see [WithoutReload])
	Started   bool          `json:"started,omitempty"`  // HAProxy was started with it, which is no reload
	Reloads   int           `json:"reloads"`            // reloads it took: 0 or 1, or one for each try after a conflict
	Commands  int           `json:"commands"`           // commands that changed the running process
	Files     int           `json:"files"`              // files written or deleted, haproxy.cfg among them
	Pending   bool          `json:"pending,omitempty"`  // the process has the change, and [Client.Store] has to store it
	Duration  time.Duration `json:"duration"`           // in nanoseconds
	Hash      string        `json:"hash"`               // [Config.Hash] of what is now deployed
	WorkerPID int           `json:"workerPID"`          // process that serves now; 0 if unknown or if none runs
	Fallback  string        `json:"fallback,omitempty"` // why a change without reload became a reload
}

// String describes the outcome in one line.
func (r *Result) String() string {
	if r == nil {
		return "nothing done"
	}
	hash := r.Hash
	if len(hash) > 8 {
		hash = hash[:8]
	}
	var b strings.Builder
	fmt.Fprintf(&b, "configuration %s in %s: %s; %s, %s, %s", hash, r.Duration.Round(100*time.Microsecond), r.Plan.Summary(),
		phrase.Count(r.Reloads, "reload"), phrase.Count(r.Commands, "command"), phrase.Count(r.Files, "file"))
	if r.Started {
		b.WriteString("; HAProxy started")
	}
	if !r.Left.Empty() {
		fmt.Fprintf(&b, "; %s for a reload", r.Left.waiting())
	}
	if r.Pending {
		b.WriteString("; not stored yet")
	}
	if r.Fallback != "" {
		b.WriteString("; reloaded because ")
		b.WriteString(r.Fallback)
	}
	return b.String()
}

func (p *Plan) waiting() string {
	if len(p.Ops) == 1 {
		return "1 operation waits"
	}
	return fmt.Sprintf("%d operations wait", len(p.Ops))
}

// resultOf converts an outcome; nil stays nil.
func resultOf(o *change.Outcome, start time.Time) *Result {
	if o == nil {
		return nil
	}
	r := &Result{
		Plan: planOf(o.Steps), Started: o.Started, Reloads: o.Reloads, Commands: o.Commands, Files: o.Files,
		Duration: time.Since(start), Hash: o.Hash, WorkerPID: o.WorkerPID, Pending: o.Pending, Fallback: o.Fallback,
	}
	if len(o.Left) > 0 {
		r.Left = planOf(o.Left)
	}
	return r
}
