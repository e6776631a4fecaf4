package observe

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/reconcile"
)

// buckets of the histograms, in seconds.
var buckets = [...]float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10}

// Metrics turns the events of a loop into Prometheus metrics:
//
//	haptic_reconciliation_total                     reconciliations that ended, well or not
//	haptic_reconciliation_errors_total              those that failed
//	haptic_reconciliation_duration_seconds          render and validation
//	haptic_validation_total, _errors_total          validations of a configuration
//	haptic_deployment_total, _errors_total          deployments to an endpoint, repairs of drift included
//	haptic_deployment_duration_seconds
//	haptic_reloads_total{endpoint}                  reloads that deployments took
//	haptic_runtime_changes_total{endpoint}          commands that changed HAProxy without a reload
//	haptic_resource_count{type}                     resources that the newest render read
//	haptic_events_published_total, haptic_event_subscribers
//
// The series of an endpoint go away with the endpoint.
type Metrics struct {
	registry *prometheus.Registry

	reconciliations, reconciliationErrors prometheus.Counter
	validations, validationErrors         prometheus.Counter
	deployments, deploymentErrors         prometheus.Counter
	reconciliationTime, deploymentTime    prometheus.Histogram
	resources                             *prometheus.GaugeVec
	reloads, commands                     *prometheus.CounterVec

	// Only the one goroutine of the subscription uses these.
	types     map[string]bool // of resources that were counted once
	endpoints map[string]bool // nil until the loop has said which there are
}

// NewMetrics subscribes to bus and returns the metrics, on a registry of their
// own. They count until the bus is closed.
func NewMetrics(bus *eventbus.Bus) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), types: map[string]bool{}}
	m.reconciliations = m.counter("reconciliation_total", "Reconciliations that ended, well or not.")
	m.reconciliationErrors = m.counter("reconciliation_errors_total", "Reconciliations that failed to render or to validate.")
	m.validations = m.counter("validation_total", "Validations of a rendered configuration.")
	m.validationErrors = m.counter("validation_errors_total", "Validations that refused the configuration.")
	m.deployments = m.counter("deployment_total", "Deployments to one endpoint, well or not, repairs of drift included.")
	m.deploymentErrors = m.counter("deployment_errors_total", "Deployments to one endpoint that failed.")
	m.reconciliationTime = m.histogram("reconciliation_duration_seconds", "Time to render and validate, in seconds.")
	m.deploymentTime = m.histogram("deployment_duration_seconds", "Time of a deployment to one endpoint, in seconds.")
	m.reloads = m.perEndpoint("reloads_total", "Reloads of HAProxy that deployments took.")
	m.commands = m.perEndpoint("runtime_changes_total", "Commands that changed the running HAProxy without a reload.")
	m.resources = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: "haptic", Name: "resource_count", Help: "Resources that the newest render read, by type.",
	}, []string{"type"})
	m.registry.MustRegister(m.resources,
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Namespace: "haptic", Name: "events_published_total", Help: "Events published on the bus.",
		}, func() float64 { return float64(bus.Stats().Published) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: "haptic", Name: "event_subscribers", Help: "Subscriptions on the bus.",
		}, func() float64 { return float64(len(bus.Stats().Subscribers)) }))
	// One subscription, not one for each type: an endpoint's last deployment
	// must be seen before its end.
	eventbus.Subscribe(bus, eventbus.Lossless, func(_ context.Context, d eventbus.Delivery[any]) { m.observe(d.Event) })
	return m
}

// Registry returns the registry that the metrics are on. Collectors of the
// program, such as those of the Go runtime, can be added to it.
func (m *Metrics) Registry() *prometheus.Registry { return m.registry }

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

func (m *Metrics) perEndpoint(name, help string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "haptic", Name: name, Help: help}, []string{"endpoint"})
	m.registry.MustRegister(c)
	return c
}

func (m *Metrics) observe(event any) {
	switch e := event.(type) {
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
		m.deployed(e.Endpoint, e.Result, e.Took)
	case reconcile.DriftRepaired:
		var took time.Duration
		if e.Result != nil {
			took = e.Result.Duration
		}
		m.deployed(e.Endpoint, e.Result, took)
	case reconcile.InstanceDeploymentFailed:
		m.deployed(e.Endpoint, e.Result, e.Took)
		m.deploymentErrors.Inc()
	case reconcile.EndpointsChanged:
		m.setEndpoints(e)
	}
}

func (m *Metrics) reconciled(took time.Duration) {
	m.reconciliations.Inc()
	m.reconciliationTime.Observe(took.Seconds())
}

func (m *Metrics) deployed(endpoint string, r *dataplane.Result, took time.Duration) {
	m.deployments.Inc()
	m.deploymentTime.Observe(took.Seconds())
	if m.endpoints != nil && !m.endpoints[endpoint] {
		return // it has gone: its series must not come back
	}
	if r == nil {
		r = &dataplane.Result{}
	}
	m.reloads.WithLabelValues(endpoint).Add(float64(r.Reloads))
	m.commands.WithLabelValues(endpoint).Add(float64(r.Commands))
}

// count sets the gauges by type. A type that is no longer there stays, as 0: it
// has not vanished, all of its resources have.
func (m *Metrics) count(resources map[string]int) {
	for t := range m.types {
		if _, ok := resources[t]; !ok {
			m.resources.WithLabelValues(t).Set(0)
		}
	}
	for t, n := range resources {
		m.types[t] = true
		m.resources.WithLabelValues(t).Set(float64(n))
	}
}

func (m *Metrics) setEndpoints(e reconcile.EndpointsChanged) {
	m.endpoints = make(map[string]bool, len(e.Endpoints))
	for _, name := range e.Endpoints {
		m.endpoints[name] = true
		m.reloads.WithLabelValues(name) // shows as 0 from the beginning
		m.commands.WithLabelValues(name)
	}
	for _, name := range e.Removed {
		m.reloads.DeleteLabelValues(name)
		m.commands.DeleteLabelValues(name)
	}
}
