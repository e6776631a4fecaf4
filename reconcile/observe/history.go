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
	"github.com/hapticsdk/haptic/reconcile/event"
)

// entry is one event of a history, in words.
type entry struct {
	Time           time.Time `json:"time"` // when the history got it
	Seq            uint64    `json:"seq"`  // place in the order of the bus
	Level          string    `json:"level"`
	Event          string    `json:"event"` // its name: "reconciliation.completed"
	Reconciliation uint64    `json:"reconciliation,omitempty"`
	Instance       string    `json:"instance,omitempty"`
	Text           string    `json:"text"`
}

// planEntry is the last deployment to one instance, done or failed.
type planEntry struct {
	Time           time.Time       `json:"time"` // when the history got it
	Reconciliation uint64          `json:"reconciliation"`
	Instance       string          `json:"instance"`
	Drift          bool            `json:"drift,omitempty"` // the deployment repaired a drift
	Plan           *dataplane.Plan `json:"plan"`
	Summary        string          `json:"summary"`
	Reloads        int             `json:"reloads"`
	Commands       int             `json:"commands"`
	Fallback       string          `json:"fallback,omitempty"`
	Took           time.Duration   `json:"took"` // in nanoseconds
	Error          string          `json:"error,omitempty"`
}

// history keeps the newest sentences for the debug page and the last plan of each instance. It
// keeps the newest failures apart, so that a storm of other events cannot displace them.
type history struct {
	ring, failures *eventbus.Ring[entry]

	mu       sync.Mutex
	reported repeats
	plans    map[string]planEntry // by instance
	leader   string
}

func newHistory(bus *eventbus.Bus) *history {
	h := &history{ring: eventbus.NewRing[entry](128), failures: eventbus.NewRing[entry](64), reported: repeats{}, plans: map[string]planEntry{}}
	eventbus.Subscribe(bus, func(_ context.Context, d eventbus.Delivery[any]) { h.observe(d, time.Now()) })
	return h
}

func (h *history) observe(d eventbus.Delivery[any], now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch e := d.Event.(type) {
	case reconcile.InstancesChanged:
		maps.DeleteFunc(h.plans, func(name string, _ planEntry) bool { return !slices.Contains(e.Instances, name) })
	case reconcile.LeaderObserved:
		h.leader = e.Identity
	case reconcile.LeaderBecame:
		h.leader = e.Identity
	}
	r := reportOf(d.Event)
	if r.Result != nil || r.Instance != "" && r.Err != nil {
		_, drift := d.Event.(reconcile.DriftRepaired)
		h.plan(r, drift, now)
	}
	if r.Sentence == "" || !h.reported.worth(r) {
		return
	}
	e := entry{now, d.Seq, r.Level.String(), r.Name, r.Reconciliation, r.Instance, r.Sentence}
	h.ring.Add(e)
	if r.Level >= slog.LevelError {
		h.failures.Add(e)
	}
}

// plan remembers a deployment. The caller holds h.mu.
func (h *history) plan(r event.Report, drift bool, now time.Time) {
	p := planEntry{Time: now, Reconciliation: r.Reconciliation, Instance: r.Instance, Drift: drift, Took: r.Took}
	if r.Err != nil {
		p.Error = r.Err.Error()
	}
	if r.Result != nil {
		p.Plan, p.Reloads, p.Commands, p.Fallback = r.Result.Plan, r.Result.Reloads, r.Result.Commands, r.Result.Fallback
	}
	if p.Plan.Empty() && p.Error == "" {
		return // the plan before says more
	}
	p.Summary = p.Plan.Summary()
	h.plans[p.Instance] = p
}

// lastPlans returns the last deployment of each instance that changed something or failed, the
// newest first.
func (h *history) lastPlans() []planEntry {
	h.mu.Lock()
	plans := slices.Collect(maps.Values(h.plans))
	h.mu.Unlock()
	slices.SortFunc(plans, func(a, b planEntry) int {
		return cmp.Or(b.Time.Compare(a.Time), strings.Compare(a.Instance, b.Instance))
	})
	return plans
}

// leads returns the identity of the last observed leader, or "" if unknown.
func (h *history) leads() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.leader
}
