package observe

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/fetch"
	"github.com/hapticsdk/haptic/reconcile/settings"
)

// buckets of the histograms, in seconds.
var buckets = [...]float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10}

// Metrics turns the events of a loop, and what a [Subject] tells at each scrape,
// into Prometheus metrics. What every controller counts:
//
//	haptic_reconciliation_total                    reconciliations that ended, well or not
//	haptic_reconciliation_errors_total             those that failed
//	haptic_reconciliation_duration_seconds         render and validation, with all attempts
//	haptic_validation_total                        validations of a configuration
//	haptic_validation_errors_total                 those that refused it
//	haptic_deployment_total                        deployments to an instance, repairs of drift included
//	haptic_deployment_errors_total                 those that failed
//	haptic_deployment_duration_seconds             of one deployment to one instance
//	haptic_resource_count{type}                    resources that the newest render read
//	haptic_events_published_total                  events on the bus
//	haptic_event_subscribers                       subscriptions on the bus
//
// What happens beyond that:
//
//	haptic_reloads_total{haproxy_instance}  reloads that deployments took
//	haptic_runtime_changes_total{haproxy_instance}  commands that changed HAProxy without a reload
//	haptic_drift_repaired_total                    instances that somebody else had changed
//	haptic_render_duration_seconds                 of one attempt
//	haptic_validation_duration_seconds             of one attempt
//	haptic_settings_applied_total                  settings that took effect
//	haptic_settings_invalid_total                  settings that were refused
//	haptic_http_resources_accepted_total           fetched contents that were deployed
//	haptic_http_resources_rejected_total           fetched contents that nothing valid could be made of
//	haptic_events_total{event}                     events by name, such as leader.became
//	haptic_event_queue_pending{subscriber}         events that wait for a subscriber
//	haptic_event_queue_watermark{subscriber}       the most that ever waited
//
// And with [Metrics.Collect], read at each scrape:
//
//	haptic_leading                                 1 where this process deploys
//	haptic_instances                               HAProxys that are deployed to
//	haptic_instance_staleness_seconds{haproxy_instance}  for how long it lacks the newest valid configuration; 0: it has it
//	haptic_instance_failures{haproxy_instance}  failed deployments in a row
//	haptic_quarantined_resources{kind}             resources that are left out as a whole
//	haptic_refused_resources{kind}                 resources that are left out in part
//	haptic_validated_timestamp_seconds             when the newest valid configuration was made
//	haptic_watch_state{resource,state}             1 for the state that a watch is in, 0 for all others
//	haptic_watch_objects{resource}                 objects in the store
//	haptic_settings_info{version}                  1 for the settings in use
//	haptic_settings_valid                          0 where the newest settings were refused
//	haptic_component_healthy{component}            1 where a check of [Health] has nothing to say
//	haptic_build_info{version,goversion}           1
//
// The number of series is bounded, whatever comes: names of resources are no
// labels, a label has at most 100 values besides "other" (instances 1000), each
// at most 128 bytes long, and the series of an instance go away with it. There
// are no exemplars: traces are found by their attributes.
type Metrics struct {
	registry *prometheus.Registry

	reconciliations, reconciliationErrors prometheus.Counter
	validations, validationErrors         prometheus.Counter
	deployments, deploymentErrors, drifts prometheus.Counter
	settingsApplied, settingsInvalid      prometheus.Counter
	httpAccepted, httpRejected            prometheus.Counter
	reconciliationTime, deploymentTime    prometheus.Histogram
	renderTime, validationTime            prometheus.Histogram
	resources                             *prometheus.GaugeVec
	reloads, commands, events             *prometheus.CounterVec

	// Only the one goroutine of the subscription uses these.
	types     labels          // of resources that were counted once
	names     labels          // of events
	instances map[string]bool // that have series, by label
	known     bool            // the loop has said which there are
}

// NewMetrics subscribes to bus and returns the metrics, on a registry of their
// own. They count until the bus is closed.
func NewMetrics(bus *eventbus.Bus) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), types: labels{}, names: labels{}, instances: map[string]bool{}}
	m.reconciliations = m.counter("reconciliation_total", "Reconciliations that ended, well or not.")
	m.reconciliationErrors = m.counter("reconciliation_errors_total", "Reconciliations that failed to render or to validate.")
	m.validations = m.counter("validation_total", "Validations of a rendered configuration.")
	m.validationErrors = m.counter("validation_errors_total", "Validations that refused the configuration.")
	m.deployments = m.counter("deployment_total", "Deployments to one instance, well or not, repairs of drift included.")
	m.deploymentErrors = m.counter("deployment_errors_total", "Deployments to one instance that failed.")
	m.drifts = m.counter("drift_repaired_total", "Idle instances that no longer had what was deployed to them, and have it again.")
	m.settingsApplied = m.counter("settings_applied_total", "Settings that took effect.")
	m.settingsInvalid = m.counter("settings_invalid_total", "Settings that were refused; those before stayed in use.")
	m.httpAccepted = m.counter("http_resources_accepted_total", "Fetched contents that were deployed.")
	m.httpRejected = m.counter("http_resources_rejected_total", "Fetched contents that no valid configuration could be made with.")
	m.reconciliationTime = m.histogram("reconciliation_duration_seconds", "Time to render and validate, in seconds.")
	m.renderTime = m.histogram("render_duration_seconds", "Time to render once, in seconds.")
	m.validationTime = m.histogram("validation_duration_seconds", "Time to validate once, in seconds.")
	m.deploymentTime = m.histogram("deployment_duration_seconds", "Time of a deployment to one instance, in seconds.")
	m.reloads = m.counters("reloads_total", "Reloads of HAProxy that deployments took.", "haproxy_instance")
	m.commands = m.counters("runtime_changes_total", "Commands that changed the running HAProxy without a reload.", "haproxy_instance")
	m.events = m.counters("events_total", "Events by name.", "event")
	m.resources = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: "haptic", Name: "resource_count", Help: "Resources that the newest render read, by type.",
	}, []string{"type"})
	m.registry.MustRegister(m.resources, &busCollector{bus})
	// One subscription, not one for each type: an instance's last deployment
	// must be seen before its end.
	eventbus.Subscribe(bus, func(_ context.Context, d eventbus.Delivery[any]) { m.observe(d.Event) })
	return m
}

// Registry returns the registry that the metrics are on. Collectors of the
// program, such as those of the Go runtime, can be added to it.
func (m *Metrics) Registry() *prometheus.Registry { return m.registry }

// Collect adds what the subject tells. Call it once.
func (m *Metrics) Collect(s *Subject) { m.registry.MustRegister(&subjectCollector{subject: s}) }

func (m *Metrics) counter(name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Namespace: "haptic", Name: name, Help: help})
	m.registry.MustRegister(c)
	return c
}

func (m *Metrics) histogram(name, help string) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "haptic", Name: name, Help: help, Buckets: buckets[:]})
	m.registry.MustRegister(h)
	return h
}

func (m *Metrics) counters(name, help, by string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "haptic", Name: name, Help: help}, []string{by})
	m.registry.MustRegister(c)
	return c
}

func (m *Metrics) observe(event any) {
	if e, ok := event.(reconcile.Event); ok {
		m.events.WithLabelValues(m.names.of(e.EventName())).Inc()
	}
	switch e := event.(type) {
	case reconcile.AttemptCompleted:
		m.renderTime.Observe(e.RenderTook.Seconds())
		if e.ValidateTook > 0 {
			m.validationTime.Observe(e.ValidateTook.Seconds())
		}
	case settings.Applied:
		m.settingsApplied.Inc()
	case settings.Invalid:
		m.settingsInvalid.Inc()
	case fetch.Accepted:
		m.httpAccepted.Inc()
	case fetch.Rejected:
		m.httpRejected.Inc()
	case reconcile.ReconciliationCompleted:
		m.reconciled(e.Took)
	case reconcile.ReconciliationFailed:
		m.reconciled(e.Took)
		m.reconciliationErrors.Inc()
	case reconcile.ValidationCompleted:
		m.validations.Inc()
	case reconcile.ValidationFailed:
		m.validations.Inc()
		m.validationErrors.Inc()
	case reconcile.IndexSynchronized:
		m.count(e.Resources)
	case reconcile.TemplateRendered:
		m.count(e.Resources)
	case reconcile.InstanceDeployed:
		m.deployed(e.Instance, e.Result, e.Took)
	case reconcile.DriftRepaired:
		m.drifts.Inc()
		var took time.Duration
		if e.Result != nil {
			took = e.Result.Duration
		}
		m.deployed(e.Instance, e.Result, took)
	case reconcile.InstanceDeploymentFailed:
		m.deployed(e.Instance, e.Result, e.Took)
		if !e.Asked { // then nothing is wrong but what is in quarantine
			m.deploymentErrors.Inc()
		}
	case reconcile.InstancesChanged:
		m.known = true
		m.setInstances(e.Instances)
	}
}

func (m *Metrics) reconciled(took time.Duration) {
	m.reconciliations.Inc()
	m.reconciliationTime.Observe(took.Seconds())
}

func (m *Metrics) deployed(instance string, r *dataplane.Result, took time.Duration) {
	m.deployments.Inc()
	m.deploymentTime.Observe(took.Seconds())
	name := label(instance)
	if !m.instances[name] {
		if m.known || len(m.instances) == maxInstances {
			return // it has gone, or is one too many: its series must not come back
		}
		m.instances[name] = true
	}
	if r == nil {
		r = &dataplane.Result{}
	}
	m.reloads.WithLabelValues(name).Add(float64(r.Reloads))
	m.commands.WithLabelValues(name).Add(float64(r.Commands))
}

// count sets the gauges by type. A type that is no longer there stays, as 0: it
// has not vanished, all of its resources have.
func (m *Metrics) count(resources map[string]int) {
	now := make(map[string]int, len(resources))
	for _, name := range slices.Sorted(maps.Keys(resources)) {
		now[m.types.of(name)] += resources[name]
	}
	for t := range m.types {
		m.resources.WithLabelValues(t).Set(float64(now[t]))
	}
}

// setInstances keeps the series of these instances, and drops all others.
func (m *Metrics) setInstances(names []string) {
	now := make(map[string]bool, len(names))
	for _, name := range names {
		if len(now) == maxInstances {
			break
		}
		name = label(name)
		now[name] = true
		m.reloads.WithLabelValues(name) // shows as 0 from the beginning
		m.commands.WithLabelValues(name)
	}
	for name := range m.instances {
		if !now[name] {
			m.reloads.DeleteLabelValues(name)
			m.commands.DeleteLabelValues(name)
		}
	}
	m.instances = now
}
