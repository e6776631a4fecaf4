package observe

import (
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
)

// metric describes one that is read at each scrape.
func metric(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("haptic_"+name, help, labels, nil)
}

// sample sends one value of it.
func sample(to chan<- prometheus.Metric, d *prometheus.Desc, typ prometheus.ValueType, v float64, labels ...string) {
	to <- prometheus.MustNewConstMetric(d, typ, v, labels...)
}

func gauge(to chan<- prometheus.Metric, d *prometheus.Desc, v float64, labels ...string) {
	sample(to, d, prometheus.GaugeValue, v, labels...)
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// busCollector reads the figures of a bus.
type busCollector struct{ bus *eventbus.Bus }

// Describe implements prometheus.Collector: it says nothing, so that what is
// collected is not compared with it.
func (*busCollector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c *busCollector) Collect(to chan<- prometheus.Metric) {
	stats := c.bus.Stats()
	sample(to, metric("events_published_total", "Events published on the bus."), prometheus.CounterValue, float64(stats.Published))
	gauge(to, metric("event_subscribers", "Subscriptions on the bus."), float64(len(stats.Subscribers)))
	type queue struct{ pending, watermark uint64 }
	queues, seen := map[string]queue{}, labels{}
	for _, s := range stats.Subscribers { // in their order: the oldest keep their names
		name := seen.of(s.Name)
		q := queues[name] // two may have been made in one line
		queues[name] = queue{q.pending + s.Pending, max(q.watermark, s.Watermark)}
	}
	pending := metric("event_queue_pending", "Events that wait for a subscriber, with the one that it is at.", "subscriber")
	watermark := metric("event_queue_watermark", "The most events that ever waited for a subscriber.", "subscriber")
	for name, q := range queues {
		gauge(to, pending, float64(q.pending), name)
		gauge(to, watermark, float64(q.watermark), name)
	}
}

// subjectCollector reads a subject.
type subjectCollector struct{ subject *Subject }

// Describe implements prometheus.Collector as busCollector does.
func (*subjectCollector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c *subjectCollector) Collect(to chan<- prometheus.Metric) {
	s := c.subject
	if s.Loop != nil {
		collectState(to, s.Loop.State(), time.Now())
	}
	if len(s.Watched) > 0 || s.Settings != nil {
		collectWatches(to, s.watches())
	}
	if s.Settings != nil {
		state := s.Settings()
		if state.Version != "" {
			gauge(to, metric("settings_info", "The settings in use.", "version"), 1, label(state.Version))
		}
		gauge(to, metric("settings_valid", "0 where the newest settings were refused, and those before are in use."), truth(state.Error == ""))
	}
	if s.Health != nil {
		component := metric("component_healthy", "1 where a check has nothing to say.", "component")
		seen := map[string]bool{}
		for _, finding := range s.Health.All() {
			if name := label(finding.Component); !seen[name] && len(seen) < maxValues {
				seen[name] = true
				gauge(to, component, truth(finding.Err == nil), name)
			}
		}
	}
	gauge(to, metric("build_info", "What runs.", "version", "goversion"), 1, label(s.version()), runtime.Version())
}

func collectState(to chan<- prometheus.Metric, s reconcile.State, now time.Time) {
	gauge(to, metric("leading", "1 where this process deploys."), truth(s.Leading))
	gauge(to, metric("instances", "HAProxys that are deployed to."), float64(len(s.Instances)))
	if !s.ValidatedAt.IsZero() {
		gauge(to, metric("validated_timestamp_seconds", "When the newest valid configuration was made, in seconds since 1970."), float64(s.ValidatedAt.UnixMilli())/1000)
	}
	staleness := metric("instance_staleness_seconds", "For how long an instance lacks the newest valid configuration; 0: it has it.", "haproxy_instance")
	failures := metric("instance_failures", "Failed deployments to an instance, in a row.", "haproxy_instance")
	seen := map[string]bool{}
	for _, e := range s.Instances {
		name := label(e.Name)
		if seen[name] || len(seen) == maxInstances {
			continue
		}
		seen[name] = true
		gauge(to, staleness, stale(e, now).Seconds(), name)
		gauge(to, failures, float64(e.Failures), name)
	}
	quarantined, refused := map[string]int{}, map[string]int{}
	for _, q := range s.Quarantined {
		quarantined[q.Resource.Kind]++
	}
	for _, r := range s.Refused {
		refused[kindOf(r)]++
	}
	collectKinds(to, metric("quarantined_resources", "Resources that are left out as a whole, since no configuration is valid with them.", "kind"), quarantined)
	collectKinds(to, metric("refused_resources", "Resources that are left out in part.", "kind"), refused)
}

// kindOf is the first word of "Ingress shop/web".
func kindOf(r reconcile.Refusal) string {
	kind, _, _ := strings.Cut(r.Resource, " ")
	return kind
}

// collectKinds sends what there is by kind, so that a sum over no kinds is
// nothing; alerts use "> 0".
func collectKinds(to chan<- prometheus.Metric, d *prometheus.Desc, counts map[string]int) {
	for kind, n := range bounded(counts) {
		gauge(to, d, float64(n), kind)
	}
}

// stale says for how long an instance lacks the newest valid configuration.
func stale(e reconcile.InstanceState, now time.Time) time.Duration {
	if e.StaleSince.IsZero() {
		return 0
	}
	return max(0, now.Sub(e.StaleSince))
}

// phases are all states of a watch.
func phases() []k8swatch.Phase {
	return []k8swatch.Phase{k8swatch.PhaseStarting, k8swatch.PhaseSynced, k8swatch.PhaseStale,
		k8swatch.PhaseForbidden, k8swatch.PhaseNotInstalled, k8swatch.PhaseStopped}
}

func collectWatches(to chan<- prometheus.Metric, watches map[string]k8swatch.State) {
	state := metric("watch_state", "1 for the state that a watch is in, 0 for all others.", "resource", "state")
	objects := metric("watch_objects", "Objects in the store of a watch.", "resource")
	seen := map[string]bool{}
	for _, resource := range slices.Sorted(maps.Keys(watches)) {
		name, w := label(resource), watches[resource]
		if seen[name] || len(seen) == maxValues {
			continue
		}
		seen[name] = true
		for _, phase := range phases() {
			gauge(to, state, truth(w.Phase == phase), name, string(phase))
		}
		gauge(to, objects, float64(w.Objects), name)
	}
}
