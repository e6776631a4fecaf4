package observe_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/event"
	"github.com/hapticsdk/haptic/reconcile/fetch"
	"github.com/hapticsdk/haptic/reconcile/observe"
	"github.com/hapticsdk/haptic/reconcile/settings"
)

// deliver closes the bus, which delivers everything.
func deliver(t *testing.T, bus *eventbus.Bus) {
	t.Helper()
	bus.Start()
	require.NoError(t, bus.Close(t.Context()))
}

func publish(bus *eventbus.Bus, events ...any) {
	for _, e := range events {
		eventbus.Publish(bus, e)
	}
}

// TestMetricsAreConventional: names and buckets are as Prometheus wants them, but for one.
func TestMetricsAreConventional(t *testing.T) {
	m := observe.NewMetrics(eventbus.New(nil), fullSubject())
	problems, err := testutil.GatherAndLint(m)
	require.NoError(t, err)
	for _, p := range problems {
		require.Equal(t, "haptic_resource_count", p.Metric, "a name that users know, kept for their dashboards")
	}
	families, err := m.Gather()
	require.NoError(t, err)
	for _, f := range families {
		histogram := f.GetMetric()[0].GetHistogram()
		if histogram == nil {
			continue
		}
		var bounds []float64
		for _, b := range histogram.GetBucket() {
			bounds = append(bounds, b.GetUpperBound())
		}
		require.Equal(t, []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10}, bounds, f.GetName())
	}
}

func TestMetricValues(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		name   string
		events []any
		want   string // metrics, as exposed; others are not compared
	}{
		{
			name: "reconciliations",
			events: []any{
				reconcile.ReconciliationCompleted{ID: 1, Took: 30 * time.Millisecond},
				reconcile.ReconciliationCompleted{ID: 2, Unchanged: true, Took: 20 * time.Millisecond},
				reconcile.ReconciliationFailed{ID: 3, Err: broken, Took: 2 * time.Second},
			},
			want: `
haptic_reconciliation_total 3
haptic_reconciliation_errors_total 1
haptic_reconciliation_duration_seconds_bucket{le="0.01"} 0
haptic_reconciliation_duration_seconds_bucket{le="0.05"} 2
haptic_reconciliation_duration_seconds_bucket{le="1"} 2
haptic_reconciliation_duration_seconds_bucket{le="2.5"} 3
haptic_reconciliation_duration_seconds_sum 2.05
haptic_reconciliation_duration_seconds_count 3
haptic_events_published_total 3
haptic_event_subscribers 1
`,
		},
		{
			name: "validations",
			events: []any{
				reconcile.ValidationCompleted{ID: 1},
				reconcile.ValidationFailed{ID: 2, Err: broken},
				reconcile.ValidationFailed{ID: 3, Err: broken},
			},
			want: `
haptic_validation_total 3
haptic_validation_errors_total 2
`,
		},
		{
			name: "deployments",
			events: []any{
				reconcile.InstanceDeployed{Instance: "a", Result: &dataplane.Result{Reloads: 1}, Took: time.Second},
				reconcile.InstanceDeployed{Instance: "a", Result: &dataplane.Result{Commands: 4}, Took: time.Second},
				reconcile.InstanceDeployed{Instance: "b", Result: nil, Took: time.Second},
				reconcile.InstanceDeploymentFailed{Instance: "b", Err: broken, Took: time.Second},
				reconcile.DriftRepaired{Instance: "b", Result: &dataplane.Result{Reloads: 1, Duration: time.Second}},
			},
			want: `
haptic_deployment_total 5
haptic_deployment_errors_total 1
haptic_deployment_duration_seconds_sum 5
haptic_deployment_duration_seconds_count 5
haptic_drift_repaired_total 1
`,
		},
		{
			name: "resources",
			events: []any{
				reconcile.IndexSynchronized{Resources: map[string]int{"Ingress": 2, "Secret": 1}},
				reconcile.TemplateRendered{Resources: map[string]int{"Ingress": 3}},
			},
			want: `
haptic_resource_count{type="Ingress"} 3
haptic_resource_count{type="Secret"} 0
`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			bus := eventbus.New(nil)
			m := observe.NewMetrics(bus, observe.Subject{})
			publish(bus, c.events...)
			deliver(t, bus)
			got := exposed(t, m)
			for _, line := range strings.Split(strings.TrimSpace(c.want), "\n") {
				require.Contains(t, got, line)
			}
		})
	}
}

// exposed returns the lines that a scrape gets.
func exposed(t *testing.T, m prometheus.Gatherer) []string {
	t.Helper()
	s := &observe.Server{Metrics: m}
	lines := strings.Split(get(t, s.Handler(), "http://127.0.0.1/metrics", "").Body.String(), "\n")
	return slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, "#") })
}

// fixedLoop is a loop that is always in one state.
type fixedLoop struct {
	state  reconcile.State
	config *dataplane.Config
}

func (l *fixedLoop) State() reconcile.State       { return l.state }
func (l *fixedLoop) Validated() *dataplane.Config { return l.config }

// fullSubject tells something of everything.
func fullSubject() observe.Subject {
	health := &observe.Health{}
	health.Check("discovery", observe.Live, func() error { return nil })
	return observe.Subject{
		Health:  health,
		Version: "v1",
		Loop: &fixedLoop{state: reconcile.State{
			Leading: true, Validated: "abc", ValidatedAt: noon,
			Quarantined: []reconcile.Quarantined{{Resource: reconcile.Resource{Kind: "Ingress", Namespace: "shop", Name: "web"}}},
			Refused:     []reconcile.Refusal{{Resource: "Ingress shop/web"}, {Resource: "Secret shop/tls"}, {Resource: "Secret shop/more"}, {Resource: "Secret shop/more", Field: "b"}, {Resource: "Secret shop/old", Warning: true}},
			Instances:   []reconcile.InstanceState{{Name: "local", Hash: "abc", Reloads: 2, Commands: 7}, {Name: "far", StaleSince: time.Now().Add(-time.Hour), Failures: 3, Error: "no route"}},
		}},
		Watched: []func() map[schema.GroupVersionResource]k8swatch.State{func() map[schema.GroupVersionResource]k8swatch.State {
			return map[schema.GroupVersionResource]k8swatch.State{
				{Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"}: {Phase: k8swatch.PhaseSynced, Synced: true, Objects: 3},
				{Version: "v1", Resource: "secrets"}:                               {Phase: k8swatch.PhaseForbidden, Err: errors.New("not allowed")},
			}
		}},
		Settings: func() settings.State {
			return settings.State{Name: "s.yaml", Version: "0a1b", Error: "s.yaml:3: no",
				Watched: map[string]k8swatch.State{"routes": {Phase: k8swatch.PhaseNotInstalled}}}
		},
	}
}

func TestCollect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // which knows how many seconds an instance is behind
		m := observe.NewMetrics(eventbus.New(nil), fullSubject())
		got := exposed(t, m)
		for _, line := range []string{
			`haptic_leading 1`,
			`haptic_instances 2`,
			`haptic_instance_staleness_seconds{haproxy_instance="local"} 0`,
			`haptic_instance_failures{haproxy_instance="far"} 3`,
			`haptic_reloads_total{haproxy_instance="local"} 2`,
			`haptic_reloads_total{haproxy_instance="far"} 0`,
			`haptic_runtime_changes_total{haproxy_instance="local"} 7`,
			`haptic_quarantined_resources{kind="Ingress"} 1`,
			`haptic_refused_resources{kind="Secret"} 2`, `haptic_warned_resources{kind="Secret"} 1`,
			`haptic_watch_state{resource="ingresses.networking.k8s.io",state="Synced"} 1`,
			`haptic_watch_state{resource="ingresses.networking.k8s.io",state="Stale"} 0`,
			`haptic_watch_state{resource="secrets",state="Forbidden"} 1`,
			`haptic_watch_state{resource="routes",state="NotInstalled"} 1`,
			`haptic_watch_objects{resource="ingresses.networking.k8s.io"} 3`,
			`haptic_settings_info{version="0a1b"} 1`,
			`haptic_settings_valid 0`,
			`haptic_component_healthy{component="discovery"} 1`,
		} {
			require.Contains(t, got, line)
		}
		require.Contains(t, strings.Join(got, "\n"), `haptic_instance_staleness_seconds{haproxy_instance="far"} 3600`)
	})
}

// Before the first event all counters are there, as 0, so that a rate knows the
// first one that is counted.
func TestCountersBeginAtZero(t *testing.T) {
	got := exposed(t, observe.NewMetrics(eventbus.New(nil), observe.Subject{}))
	for _, e := range slices.Concat(reconcile.Events(), settings.Events(), fetch.Events()) {
		for _, m := range e.Report().Metrics {
			switch {
			case m.Label != "":
			case m.Kind == event.Seconds:
				require.Contains(t, got, "haptic_"+m.Name+"_count 0")
			default:
				require.Contains(t, got, "haptic_"+m.Name+" 0")
			}
		}
	}
}

// stranger is an event of the program's own.
type stranger struct{ shard string }

func (s stranger) Report() event.Report {
	return event.Report{Name: "shard.moved", Sentence: "a shard moved", Metrics: []event.Metric{
		{Name: "shards_moved_total", Help: "Shards that moved.", Label: "shard", By: map[string]float64{s.shard: 1}}}}
}

// An event of the program's own counts too, and a name that is no text keeps
// nothing from being scraped.
func TestEventsOfTheProgram(t *testing.T) {
	bus := eventbus.New(nil)
	m := observe.NewMetrics(bus, observe.Subject{})
	publish(bus, stranger{"a"}, stranger{"a"}, stranger{"\xff\"\n"}, "no event")
	deliver(t, bus)
	got := exposed(t, m)
	for _, line := range []string{`haptic_shards_moved_total{shard="a"} 2`, `haptic_shards_moved_total{shard="?\"\n"} 1`,
		`haptic_events_total{event="shard.moved"} 3`, `haptic_events_published_total 4`} {
		require.Contains(t, got, line)
	}
}

// The series of an instance go away with it.
func TestInstancesTakeTheirSeriesWithThem(t *testing.T) {
	loop := &fixedLoop{state: reconcile.State{Instances: []reconcile.InstanceState{{Name: "a", Reloads: 1}, {Name: "b"}}}}
	m := observe.NewMetrics(eventbus.New(nil), observe.Subject{Loop: loop})
	require.Contains(t, exposed(t, m), `haptic_reloads_total{haproxy_instance="a"} 1`)
	loop.state.Instances = loop.state.Instances[1:]
	got := strings.Join(exposed(t, m), "\n")
	require.Contains(t, got, `haptic_reloads_total{haproxy_instance="b"} 0`)
	require.NotContains(t, got, `"a"`)
}
