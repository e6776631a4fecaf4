package observe

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
)

const (
	// stallTime is after how long something that has not ended counts as
	// stalled: far above all time-outs, which end it long before.
	stallTime = 5 * time.Minute
	// stuckTime is the same for a subscriber of the bus, none of which waits for
	// anything.
	stuckTime = time.Minute
)

// watchdog knows what has begun and has not ended.
type watchdog struct {
	mu             sync.Mutex
	reconciliation uint64 // under way
	since          time.Time
	deploying      map[string]time.Time // since when, by instance

	queues map[string]queueSeen // by subscriber
}

// queueSeen is what a subscriber was seen with, since when nothing has moved.
type queueSeen struct {
	delivered, pending uint64
	since              time.Time
}

// newWatchdog subscribes to the bus and adds its checks.
func newWatchdog(bus *eventbus.Bus, s *Subject) {
	w := &watchdog{deploying: map[string]time.Time{}, queues: map[string]queueSeen{}}
	eventbus.Subscribe(bus, func(_ context.Context, d eventbus.Delivery[any]) { w.observe(d.Event) })
	h := s.Health
	h.Check("reconciliation", Live, w.loop)
	h.Check("deployment", Live, func() error {
		return w.deployments(s.Loop == nil || s.Loop.State().Leading)
	})
	h.Check("bus", Live, func() error { return w.bus(bus.Stats().Subscribers) })
	if s.Loop != nil {
		h.Check("configuration", ReadyToServe, func() error { return Ready(s.Loop.State()) })
		h.Check("instances", Reported, func() error { return instancesFailing(s.Loop.State()) })
		h.Check("quarantine", Reported, func() error { return quarantineFilled(s.Loop.State()) })
	}
	if len(s.Watched) > 0 || s.Settings != nil {
		h.Check("sync", ReadyToServe, func() error { return unsynced(s.watches()) })
		h.Check("watches", Reported, func() error { return unwell(s.watches()) })
	}
	if s.Settings != nil {
		h.Check("settings", Reported, func() error {
			if state := s.Settings(); state.Error != "" {
				return errors.New(state.Error)
			}
			return nil
		})
	}
}

func (w *watchdog) observe(event any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e := event.(type) {
	case reconcile.ReconciliationStarted:
		w.reconciliation, w.since = e.ID, time.Now()
	case reconcile.AttemptCompleted: // a search for what is at fault may be long, but it moves
		w.since = time.Now()
	case reconcile.ReconciliationCompleted, reconcile.ReconciliationFailed:
		w.reconciliation = 0
	case reconcile.DeploymentStarted:
		w.deploying[e.Instance] = time.Now()
	case reconcile.InstanceDeployed:
		delete(w.deploying, e.Instance)
	case reconcile.InstanceDeploymentFailed:
		delete(w.deploying, e.Instance)
	case reconcile.LeaderLost: // what was under way was given up
		clear(w.deploying)
	case reconcile.InstancesChanged:
		for _, name := range e.Removed {
			delete(w.deploying, name)
		}
	}
}

func (w *watchdog) loop() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if took := time.Since(w.since); w.reconciliation != 0 && took > stallTime {
		return fmt.Errorf("reconciliation %d makes no progress for %s", w.reconciliation, brief(took))
	}
	return nil
}

// deployments finds those that do not end. One that leadership was lost in ends
// without an event.
func (w *watchdog) deployments(leading bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !leading {
		clear(w.deploying)
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(w.deploying)) {
		if took := time.Since(w.deploying[name]); took > stallTime {
			errs = append(errs, fmt.Errorf("instance %s is being deployed to for %s", name, brief(took)))
		}
	}
	return joined(errs)
}

// bus finds subscribers whose handler does not return. It compares with what it
// saw when it was asked before: between two probes every handler ends some call.
func (w *watchdog) bus(subscribers []eventbus.SubscriberStats) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := map[string]queueSeen{}
	var errs []error
	for i, s := range subscribers {
		if s.Pending == 0 {
			continue
		}
		key := fmt.Sprint(i, s.Name)
		seen, ok := w.queues[key]
		if !ok || seen.delivered != s.Delivered || s.Pending < seen.pending {
			seen.since = time.Now()
		}
		seen.delivered, seen.pending = s.Delivered, s.Pending
		now[key] = seen
		if took := time.Since(seen.since); took > stuckTime {
			errs = append(errs, fmt.Errorf("subscriber %s has not moved for %s, %d events wait", s.Name, brief(took), s.Pending))
		}
	}
	w.queues = now
	return joined(errs)
}

func instancesFailing(s reconcile.State) error {
	var errs []error
	for _, e := range s.Instances {
		if e.Error != "" {
			errs = append(errs, fmt.Errorf("instance %s failed %s: %s", e.Name, times(e.Failures), e.Error))
		}
	}
	return joined(errs)
}

func quarantineFilled(s reconcile.State) error {
	var errs []error
	for _, q := range s.Quarantined {
		errs = append(errs, errors.New(q.String()))
	}
	return joined(errs)
}

func unsynced(watches map[string]k8swatch.State) error {
	return watchesThat(watches, func(s k8swatch.State) bool { return !s.Synced })
}

func unwell(watches map[string]k8swatch.State) error {
	return watchesThat(watches, func(s k8swatch.State) bool { return s.Phase != k8swatch.PhaseSynced })
}

func watchesThat(watches map[string]k8swatch.State, are func(k8swatch.State) bool) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(watches)) {
		if w := watches[name]; are(w) {
			says := string(w.Phase)
			if w.Err != nil {
				says += ": " + w.Err.Error()
			}
			errs = append(errs, fmt.Errorf("%s is %s", name, says))
		}
	}
	return joined(errs)
}

// joined joins errors, but not thousands.
func joined(errs []error) error {
	const most = 10
	if more := len(errs) - most; more > 0 {
		errs = append(errs[:most:most], fmt.Errorf("and %d more", more))
	}
	return errors.Join(errs...)
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times in a row", n)
}
