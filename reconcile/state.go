package reconcile

import (
	"slices"
	"strings"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
)

// State is what a [Loop] knows at one instant. It holds no configuration text
// and no secret.
type State struct {
	Reconciliation uint64    `json:"reconciliation"` // number of the newest validated configuration
	Rendered       string    `json:"rendered"`       // hash of the newest render
	Validated      string    `json:"validated"`      // hash of the newest validated configuration
	ValidatedAt    time.Time `json:"validatedAt"`
	Leading        bool      `json:"leading"`
	Reached        bool      `json:"reached"`             // an instance with fitting versions answered once; it may be gone
	LastError      string    `json:"lastError,omitempty"` // of the newest reconciliation; empty if it succeeded
	LastErrorAt    time.Time `json:"lastErrorAt,omitzero"`

	Stopped   bool          `json:"-"` // no Run, Once or Preview is under way
	StallTime time.Duration `json:"-"` // of [Options], as it is now, or the time-outs if those are longer

	Refused     []Refusal       `json:"refused,omitempty"`
	Quarantined []Quarantined   `json:"quarantined,omitempty"` // and what is held back; sorted by kind and name
	Instances   []InstanceState `json:"instances"`             // sorted by name; until Run as Once left them
}

// InstanceState is what a [Loop] knows of one instance.
type InstanceState struct {
	Name       string            `json:"name"`
	HAProxy    string            `json:"haproxy,omitempty"`   // version that a [Prober] found, such as 3.2; empty: not known
	API        string            `json:"api,omitempty"`       // version of the Dataplane API
	Unfit      string            `json:"unfit,omitempty"`     // why its versions do not fit: it is not deployed to, and does not count for Ready
	Hash       string            `json:"hash"`                // of the configuration deployed last
	DeployedAt time.Time         `json:"deployedAt,omitzero"` // and when that was
	StaleSince time.Time         `json:"staleSince,omitzero"` // zero: it has the newest validated configuration
	Error      string            `json:"error,omitempty"`     // of the last deployment; empty if it succeeded
	Waits      string            `json:"waits,omitempty"`     // why a reload waits for old workers to end; it is no failure
	Failures   int               `json:"failures,omitempty"`  // in a row
	RetryAt    time.Time         `json:"retryAt,omitzero"`
	Reloads    uint64            `json:"reloads"`  // since the instance is known
	Commands   uint64            `json:"commands"` // runtime commands since then
	Last       *dataplane.Result `json:"last,omitempty"`
}

// Ready reports whether there is a validated configuration and every instance has one. In a
// process that does not lead, it suffices that no instance fails. At least one instance must
// be there. If all are gone that once answered, the loop stays ready. A loop without targets
// is never ready: a program that deploys by itself checks whether Validated is set.
func (s State) Ready() bool {
	if s.Validated == "" {
		return false
	}
	counts := 0
	for _, e := range s.Instances {
		if e.Unfit != "" {
			continue
		}
		counts++
		if s.Leading && e.Hash == "" || !s.Leading && e.Error != "" {
			return false
		}
	}
	return counts > 0 || len(s.Instances) == 0 && s.Reached
}

// State returns one consistent snapshot of the loop.
func (l *Loop) State() State {
	leading := l.leading()
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.state
	s.Leading, s.Stopped, s.StallTime = leading, !l.running, l.live.Load().stallTime()
	s.Refused, s.Quarantined = slices.Clone(s.Refused), slices.Clone(s.Quarantined)
	if l.sched.newest != nil {
		s.Reconciliation, s.Validated, s.ValidatedAt = l.sched.newest.id, l.sched.newest.config.Hash(), l.sched.newest.at
	}
	for _, t := range l.targets {
		if w := l.workers[t.Name()]; w != nil && w.target == t {
			s.Instances = append(s.Instances, w.public)
		} else {
			s.Instances = append(s.Instances, l.unknown(t))
		}
	}
	slices.SortFunc(s.Instances, func(a, b InstanceState) int { return strings.Compare(a.Name, b.Name) })
	return s
}

// Validated returns the newest validated configuration, nil before the first.
func (l *Loop) Validated() *dataplane.Config {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sched.newest == nil {
		return nil
	}
	return l.sched.newest.config
}
