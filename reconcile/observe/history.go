package observe

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/reconcile"
)

// Entry is one event of a [History], in words.
type Entry struct {
	Time           time.Time `json:"time"` // when the history heard of it
	Seq            uint64    `json:"seq"`  // place in the order of the bus
	Level          string    `json:"level"`
	Event          string    `json:"event,omitempty"` // its name: "reconciliation.completed"
	Reconciliation uint64    `json:"reconciliation,omitempty"`
	Instance       string    `json:"instance,omitempty"`
	Text           string    `json:"text"`
}

// PlanEntry is what was done to one instance last, or was to be done.
type PlanEntry struct {
	Time           time.Time       `json:"time"` // when the history heard of it
	Reconciliation uint64          `json:"reconciliation"`
	Instance       string          `json:"instance"`
	Drift          bool            `json:"drift,omitempty"` // it repaired what somebody else had changed
	Plan           *dataplane.Plan `json:"plan"`
	Summary        string          `json:"summary"`
	Reloads        int             `json:"reloads"`
	Commands       int             `json:"commands"`
	Fallback       string          `json:"fallback,omitempty"`
	Took           time.Duration   `json:"took"` // in nanoseconds
	Error          string          `json:"error,omitempty"`
}

// History keeps the newest remarks of a commentator, for a debug page, and
// besides them the newest failures, which no storm of other events takes away,
// and the last plan of each instance.
type History struct {
	ring, failures *eventbus.Ring[Entry]

	mu     sync.Mutex
	plans  map[string]PlanEntry // by instance
	leader string
}

// failuresKept and plansKept bound what a history keeps of these.
const (
	failuresKept = 64
	plansKept    = maxInstances
)

// NewHistory subscribes to bus and keeps the last n remarks; n below 1 is 128.
func NewHistory(bus *eventbus.Bus, n int) *History {
	h := &History{ring: eventbus.NewRing[Entry](n), failures: eventbus.NewRing[Entry](failuresKept), plans: map[string]PlanEntry{}}
	var c commentator
	eventbus.Subscribe(bus, func(_ context.Context, d eventbus.Delivery[any]) {
		now := time.Now()
		h.keep(d.Event, now)
		r, ok := c.record(d.Event)
		if !ok {
			return
		}
		e := r.entry(d.Event)
		e.Time, e.Seq = now, d.Seq
		h.ring.Add(e)
		if r.level >= slog.LevelError {
			h.failures.Add(e)
		}
	})
	return h
}

// entry is the remark on an event as a history has it.
func (r remark) entry(event any) Entry {
	e := Entry{Level: r.level.String(), Text: r.text}
	if known, ok := event.(reconcile.Event); ok {
		e.Event = known.EventName()
	}
	for _, a := range r.attrs {
		switch a.Key {
		case "reconciliation":
			e.Reconciliation = a.Value.Uint64()
		case "instance":
			e.Instance = a.Value.String()
		case "resource", "fault", "because":
			e.Text += ": " + a.Value.String()
		}
	}
	return e
}

// keep remembers plans and the leader.
func (h *History) keep(event any, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch e := event.(type) {
	case reconcile.InstanceDeployed:
		h.plan(PlanEntry{Time: now, Reconciliation: e.ID, Instance: e.Instance, Took: e.Took}, e.Result)
	case reconcile.InstanceDeploymentFailed:
		h.plan(PlanEntry{Time: now, Reconciliation: e.ID, Instance: e.Instance, Took: e.Took, Error: text(e.Err)}, e.Result)
	case reconcile.DriftRepaired:
		h.plan(PlanEntry{Time: now, Reconciliation: e.ID, Instance: e.Instance, Drift: true}, e.Result)
	case reconcile.InstancesChanged:
		for _, name := range e.Removed {
			if !slices.Contains(e.Instances, name) { // else another one of that name has come
				delete(h.plans, name)
			}
		}
	case reconcile.LeaderObserved:
		h.leader = e.Identity
	case reconcile.LeaderBecame:
		h.leader = e.Identity
	}
}

// plan remembers one. The caller holds h.mu.
func (h *History) plan(p PlanEntry, r *dataplane.Result) {
	if r != nil {
		p.Plan, p.Reloads, p.Commands, p.Fallback = r.Plan, r.Reloads, r.Commands, r.Fallback
		if p.Took == 0 {
			p.Took = r.Duration
		}
	}
	if p.Plan.Empty() && p.Error == "" {
		return // the one before tells more
	}
	p.Summary = p.Plan.Summary()
	if _, ok := h.plans[p.Instance]; !ok && len(h.plans) >= plansKept {
		return
	}
	h.plans[p.Instance] = p
}

// All returns what is kept, the oldest first.
func (h *History) All() []Entry { return h.ring.All() }

// Last returns the newest n, the oldest of them first.
func (h *History) Last(n int) []Entry { return h.ring.Last(n) }

// Failures returns the newest remarks that are errors, the oldest first.
func (h *History) Failures() []Entry { return h.failures.All() }

// Plans returns, for each instance, the last deployment that changed something
// or failed, the newest first.
func (h *History) Plans() []PlanEntry {
	h.mu.Lock()
	plans := slices.Collect(maps.Values(h.plans))
	h.mu.Unlock()
	slices.SortFunc(plans, func(a, b PlanEntry) int {
		return cmp.Or(b.Time.Compare(a.Time), strings.Compare(a.Instance, b.Instance))
	})
	return plans
}

// Leader returns the identity of the process that leads, as it was observed
// last; "" where nobody said.
func (h *History) Leader() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.leader
}
