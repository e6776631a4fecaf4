package observe_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/observe"
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

func TestMetricNames(t *testing.T) {
	bus := eventbus.New(nil)
	m := observe.NewMetrics(bus)
	publish(bus,
		reconcile.EndpointsChanged{Endpoints: []string{"local"}},
		reconcile.TemplateRendered{Resources: map[string]int{"Ingress": 1}},
	)
	deliver(t, bus)
	families, err := m.Registry().Gather()
	require.NoError(t, err)
	var names []string
	for _, f := range families {
		names = append(names, f.GetName())
	}
	want := []string{
		"haptic_deployment_duration_seconds", "haptic_deployment_errors_total", "haptic_deployment_total",
		"haptic_event_subscribers", "haptic_events_published_total",
		"haptic_reconciliation_duration_seconds", "haptic_reconciliation_errors_total", "haptic_reconciliation_total",
		"haptic_reloads_total", "haptic_resource_count", "haptic_runtime_changes_total",
		"haptic_validation_errors_total", "haptic_validation_total",
	}
	require.Equal(t, want, names)

	problems, err := testutil.GatherAndLint(m.Registry())
	require.NoError(t, err)
	require.Len(t, problems, 1) // a name that users know, kept for their dashboards
	require.Equal(t, "haptic_resource_count", problems[0].Metric)

	for _, f := range families {
		if !strings.HasSuffix(f.GetName(), "_seconds") {
			continue
		}
		var bounds []float64
		for _, b := range f.GetMetric()[0].GetHistogram().GetBucket() {
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
				reconcile.InstanceDeployed{Endpoint: "a", Result: &dataplane.Result{Reloads: 1}, Took: time.Second},
				reconcile.InstanceDeployed{Endpoint: "a", Result: &dataplane.Result{Commands: 4}, Took: time.Second},
				reconcile.InstanceDeployed{Endpoint: "b", Result: nil, Took: time.Second},
				reconcile.InstanceDeploymentFailed{Endpoint: "b", Err: broken, Took: time.Second},
				reconcile.DriftRepaired{Endpoint: "b", Result: &dataplane.Result{Reloads: 1, Duration: time.Second}},
			},
			want: `
haptic_deployment_total 5
haptic_deployment_errors_total 1
haptic_deployment_duration_seconds_sum 5
haptic_deployment_duration_seconds_count 5
haptic_reloads_total{endpoint="a"} 1
haptic_reloads_total{endpoint="b"} 1
haptic_runtime_changes_total{endpoint="a"} 4
haptic_runtime_changes_total{endpoint="b"} 0
`,
		},
		{
			name: "endpoints that go take their series with them",
			events: []any{
				reconcile.EndpointsChanged{Endpoints: []string{"a", "b"}, Added: []string{"a", "b"}},
				reconcile.InstanceDeployed{Endpoint: "a", Result: &dataplane.Result{Reloads: 1}},
				reconcile.EndpointsChanged{Endpoints: []string{"b"}, Removed: []string{"a"}},
				reconcile.InstanceDeployed{Endpoint: "a", Result: &dataplane.Result{Reloads: 1}}, // was under way
			},
			want: `
haptic_deployment_total 2
haptic_reloads_total{endpoint="b"} 0
haptic_runtime_changes_total{endpoint="b"} 0
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
			m := observe.NewMetrics(bus)
			publish(bus, c.events...)
			deliver(t, bus)
			got := exposed(t, m)
			for _, line := range strings.Split(strings.TrimSpace(c.want), "\n") {
				require.Contains(t, got, line)
			}
			if strings.Contains(c.name, "go take") {
				require.NotContains(t, strings.Join(got, "\n"), `"a"`)
			}
		})
	}
}

// exposed returns the lines that a scrape gets.
func exposed(t *testing.T, m *observe.Metrics) []string {
	t.Helper()
	s := &observe.Server{Metrics: m.Registry()}
	lines := strings.Split(get(t, s.Handler(), "http://127.0.0.1/metrics", "").Body.String(), "\n")
	return slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, "#") })
}
