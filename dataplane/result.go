package dataplane

import (
	"fmt"
	"strings"
	"time"
)

// Result says what a Sync did.
type Result struct {
	Plan      *Plan         `json:"plan"`               // what differed when the Sync began
	Reloads   int           `json:"reloads"`            // reloads it took: 0 or 1
	Commands  int           `json:"commands"`           // commands that changed the running process
	Files     int           `json:"files"`              // files written or deleted, haproxy.cfg among them
	Duration  time.Duration `json:"duration"`           // in nanoseconds
	Hash      string        `json:"hash"`               // [Config.Hash] of what is now deployed
	WorkerPID int           `json:"workerPID"`          // process that serves now; 0 if not known or none runs
	Fallback  string        `json:"fallback,omitempty"` // why a change without reload became a reload
}

// String tells the outcome in one line.
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
		count(r.Reloads, "reload"), count(r.Commands, "command"), count(r.Files, "file"))
	if r.Fallback != "" {
		b.WriteString("; reloaded because ")
		b.WriteString(r.Fallback)
	}
	return b.String()
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
