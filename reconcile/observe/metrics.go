package observe

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/discover"
	"github.com/hapticsdk/haptic/reconcile/event"
	"github.com/hapticsdk/haptic/reconcile/fetch"
	"github.com/hapticsdk/haptic/reconcile/settings"
)

// NewMetrics subscribes to bus and returns a registry with the metrics of docs/metrics.md.
// Events count some of them, until the bus is closed; on a nil bus they count nothing. Each
// scrape reads the others from the bus and the subject. The program can add its own
// collectors, such as those of the Go runtime.
//
// No label has the name of a resource. The series of an instance go away with it.
func NewMetrics(bus *eventbus.Bus, s Subject) *prometheus.Registry {
	c := &counted{registry: prometheus.NewRegistry(), families: map[string]*family{}}
	for _, e := range slices.Concat(reconcile.Events(), settings.Events(), discover.Events(), fetch.Events(), Events()) {
		for _, m := range e.Report().Metrics {
			c.family(m)
		}
	}
	c.family(eventsTotal("", 0))
	c.registry.MustRegister(&scraped{bus: bus, subject: &s})
	eventbus.Subscribe(bus, func(_ context.Context, d eventbus.Delivery[any]) { c.count(reportOf(d.Event)) })
	return c.registry
}

func eventsTotal(name string, n float64) event.Metric {
	return event.Metric{Name: "events_total", Help: "Events by name.", Label: "event", By: map[string]float64{name: n}}
}

// counted holds the metrics that events count. Only the goroutine of the subscription uses it.
type counted struct {
	registry *prometheus.Registry
	families map[string]*family // by name
}

// family is a metric with all of its series.
type family struct {
	add  func(v float64, by ...string)
	used map[string]bool // values of the label
}

// family returns the family of a metric. The first call registers it; a metric without a label
// then shows as 0.
func (c *counted) family(m event.Metric) *family {
	if f := c.families[m.Name]; f != nil {
		return f
	}
	f, labels := &family{used: map[string]bool{}}, []string{m.Label}
	if m.Label == "" {
		labels = nil
	}
	c.families[m.Name] = f
	opts := prometheus.Opts{Namespace: "haptic", Name: m.Name, Help: m.Help}
	switch m.Kind {
	case event.Counter:
		vec := prometheus.NewCounterVec(prometheus.CounterOpts(opts), labels)
		f.add = func(v float64, by ...string) { vec.WithLabelValues(by...).Add(v) }
		c.registry.MustRegister(vec)
	case event.Gauge:
		vec := prometheus.NewGaugeVec(prometheus.GaugeOpts(opts), labels)
		f.add = func(v float64, by ...string) { vec.WithLabelValues(by...).Set(v) }
		c.registry.MustRegister(vec)
	case event.Seconds:
		histogram := prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "haptic", Name: m.Name, Help: m.Help,
			Buckets: []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10}})
		f.add = func(v float64, _ ...string) { histogram.Observe(v) }
		c.registry.MustRegister(histogram)
		return f
	}
	if m.Label == "" {
		f.add(0)
	}
	return f
}

// count counts what an event reports.
func (c *counted) count(r event.Report) {
	if r.Name == "" {
		return
	}
	for _, m := range append(r.Metrics, eventsTotal(r.Name, 1)) {
		f := c.family(m)
		if m.Label == "" {
			f.add(m.Value)
			continue
		}
		for name := range m.By {
			f.used[name] = true
		}
		for name := range f.used {
			f.add(m.By[name], text(name))
		}
	}
}

// text returns a valid value of a label: Prometheus takes only UTF-8.
func text(s string) string { return strings.ToValidUTF8(s, "?") }

// scraped collects the metrics that each scrape reads.
type scraped struct {
	bus     *eventbus.Bus
	subject *Subject
}

// Describe implements prometheus.Collector. It describes nothing, so that Prometheus does not
// compare the collected metrics with it.
func (*scraped) Describe(chan<- *prometheus.Desc) {}

func (s *scraped) Collect(to chan<- prometheus.Metric) {
	all := busMetrics(s.bus.Stats())
	if s.subject.Loop != nil {
		all = append(all, stateMetrics(s.subject.state(), time.Now())...)
	}
	all = append(all, s.subject.metrics()...)
	for _, m := range all {
		send(to, m)
	}
	for name, w := range s.subject.watches() {
		for _, phase := range phases() {
			state := prometheus.NewDesc("haptic_watch_state", "1 for the state that a watch is in, 0 for all others.", []string{"resource", "state"}, nil)
			to <- prometheus.MustNewConstMetric(state, prometheus.GaugeValue, truth(w.Phase == phase), text(name), string(phase))
		}
	}
	build := prometheus.NewDesc("haptic_build_info", "What runs.", []string{"version", "goversion"}, nil)
	to <- prometheus.MustNewConstMetric(build, prometheus.GaugeValue, 1, text(s.subject.version()), runtime.Version())
}

// send sends the values of a metric.
func send(to chan<- prometheus.Metric, m event.Metric) {
	kind := prometheus.GaugeValue
	if m.Kind == event.Counter {
		kind = prometheus.CounterValue
	}
	if m.Label == "" {
		to <- prometheus.MustNewConstMetric(prometheus.NewDesc("haptic_"+m.Name, m.Help, nil, nil), kind, m.Value)
		return
	}
	desc := prometheus.NewDesc("haptic_"+m.Name, m.Help, []string{m.Label}, nil)
	for name, v := range m.By {
		to <- prometheus.MustNewConstMetric(desc, kind, v, text(name))
	}
}

// series are values by label.
type series = map[string]float64

// busMetrics returns the figures of a bus, a row each.
func busMetrics(s eventbus.Stats) []event.Metric {
	pending, watermark := series{}, series{}
	for _, sub := range s.Subscribers { // two subscribers made in one line have one name
		pending[sub.Name] += float64(sub.Pending)
		watermark[sub.Name] = max(watermark[sub.Name], float64(sub.Watermark))
	}
	return []event.Metric{
		{Name: "events_published_total", Help: "Events published on the bus.", Value: float64(s.Published)},
		{Kind: event.Gauge, Name: "event_subscribers", Help: "Subscriptions on the bus.", Value: float64(len(s.Subscribers))},
		{
			Kind:  event.Gauge,
			Name:  "event_queue_pending",
			Help:  "Events that wait for a subscriber, with the one that it is at.",
			Label: "subscriber",
			By:    pending,
		},
		{Kind: event.Gauge, Name: "event_queue_watermark", Help: "The most events that ever waited for a subscriber.", Label: "subscriber", By: watermark},
	}
}

// stateMetrics returns the figures of a loop, a row each.
func stateMetrics(s reconcile.State, now time.Time) []event.Metric {
	staleness, failures, reloads, commands := series{}, series{}, series{}, series{}
	for _, e := range s.Instances {
		staleness[e.Name], failures[e.Name] = stale(e, now).Seconds(), float64(e.Failures)
		reloads[e.Name], commands[e.Name] = float64(e.Reloads), float64(e.Commands)
	}
	quarantined, refused, warned := series{}, series{}, series{}
	for _, q := range s.Quarantined {
		quarantined[q.Resource.Kind]++
	}
	seen := map[reconcile.Refusal]bool{}
	for _, r := range s.Refused {
		if is := (reconcile.Refusal{Resource: r.Resource, Warning: r.Warning}); !seen[is] {
			seen[is] = true
			kind, _, _ := strings.Cut(r.Resource, " ") // of "Ingress shop/web"
			map[bool]series{false: refused, true: warned}[r.Warning][kind]++
		}
	}
	all := []event.Metric{
		{Kind: event.Gauge, Name: "leading", Help: "1 if this process deploys.", Value: truth(s.Leading)},
		{Kind: event.Gauge, Name: "instances", Help: "Instances that are deployed to.", Value: float64(len(s.Instances))},
		{
			Kind:  event.Gauge,
			Name:  "instance_staleness_seconds",
			Help:  "For how long an instance lacks the newest valid configuration; 0: it has it.",
			Label: "haproxy_instance",
			By:    staleness,
		},
		{Kind: event.Gauge, Name: "instance_failures", Help: "Failed deployments to an instance, in a row.", Label: "haproxy_instance", By: failures},
		{Name: "reloads_total", Help: "Reloads of HAProxy that deployments took.", Label: "haproxy_instance", By: reloads},
		{Name: "runtime_changes_total", Help: "Commands that changed the running HAProxy without a reload.", Label: "haproxy_instance", By: commands},
		{
			Kind:  event.Gauge,
			Name:  "quarantined_resources",
			Help:  "Resources that are quarantined, or held back until they are tried: HAProxy serves their last valid version, or none.",
			Label: "kind",
			By:    quarantined,
		},
		{Kind: event.Gauge, Name: "refused_resources", Help: "Resources that are refused, as a whole or in part.", Label: "kind", By: refused},
		{Kind: event.Gauge, Name: "warned_resources", Help: "Resources that HAProxy serves, with a warning to their owner.", Label: "kind", By: warned},
	}
	if !s.ValidatedAt.IsZero() {
		all = append(all, event.Metric{Kind: event.Gauge, Name: "validated_timestamp_seconds",
			Help: "When the newest valid configuration was made, in seconds since 1970.", Value: float64(s.ValidatedAt.UnixMilli()) / 1000})
	}
	return all
}

// metrics returns the other figures of a subject, a row each.
func (s *Subject) metrics() (all []event.Metric) {
	objects, healthy := series{}, series{}
	for name, w := range s.watches() {
		objects[name] = float64(w.Objects)
	}
	all = append(all, event.Metric{Kind: event.Gauge, Name: "watch_objects", Help: "Objects in the store of a watch.", Label: "resource", By: objects})
	if s.Settings != nil {
		state := s.Settings()
		all = append(all, event.Metric{Kind: event.Gauge, Name: "settings_valid",
			Help: "0 where the newest settings were refused, and those before are in use.", Value: truth(state.Error == "")})
		if state.Version != "" {
			all = append(all, event.Metric{Kind: event.Gauge, Name: "settings_info", Help: "The settings in use.",
				Label: "version", By: series{state.Version: 1}})
		}
	}
	if s.Health != nil {
		for _, f := range s.Health.findings() {
			healthy[f.Component] = truth(f.Error == "")
		}
		all = append(all, event.Metric{Kind: event.Gauge, Name: "component_healthy", Help: "1 while the check passes.", Label: "component", By: healthy})
	}
	return all
}

// stale returns how long an instance has lacked the newest valid configuration.
func stale(e reconcile.InstanceState, now time.Time) time.Duration {
	if e.StaleSince.IsZero() {
		return 0
	}
	return max(0, now.Sub(e.StaleSince))
}

// phases returns all states of a watch.
func phases() []k8swatch.Phase {
	return []k8swatch.Phase{k8swatch.PhaseStarting, k8swatch.PhaseSynced, k8swatch.PhaseStale,
		k8swatch.PhaseForbidden, k8swatch.PhaseNotInstalled, k8swatch.PhaseStopped}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
