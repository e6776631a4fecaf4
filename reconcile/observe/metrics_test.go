package observe_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
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

// documented are the metrics in the doc comment, with the names of their labels.
func documented(t *testing.T) []string {
	text, err := os.ReadFile("metrics.go")
	require.NoError(t, err)
	var all []string
	for _, m := range regexp.MustCompile(`(?m)^//\t(haptic_[a-z_]+(?:\{[a-z_,]+\})?)  +\S`).FindAllStringSubmatch(string(text), -1) {
		all = append(all, m[1])
	}
	slices.Sort(all)
	return all
}

// The table in the documentation is what a scrape gets.
func TestMetricNames(t *testing.T) {
	bus := eventbus.New(nil)
	m := observe.NewMetrics(bus)
	m.Collect(fullSubject())
	publish(bus,
		reconcile.InstancesChanged{Instances: []string{"local"}},
		reconcile.TemplateRendered{Resources: map[string]int{"Ingress": 1}},
	)
	deliver(t, bus)
	families, err := m.Registry().Gather()
	require.NoError(t, err)
	var names []string
	for _, f := range families {
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		name := f.GetName()
		if len(labels) > 0 {
			slices.SortFunc(labels, func(a, b string) int { return strings.Compare(b, a) }) // (version, goversion), (state, resource)
			name += "{" + strings.Join(labels, ",") + "}"
		}
		names = append(names, name)
	}
	want := documented(t)
	for i, name := range want { // the same order of labels
		base, labels, ok := strings.Cut(strings.TrimSuffix(name, "}"), "{")
		if ok {
			parts := strings.Split(labels, ",")
			slices.SortFunc(parts, func(a, b string) int { return strings.Compare(b, a) })
			want[i] = base + "{" + strings.Join(parts, ",") + "}"
		}
	}
	slices.Sort(want)
	slices.Sort(names)
	require.Equal(t, want, names)
	require.Greater(t, len(want), 30)

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
		if f.GetMetric()[0].GetHistogram() == nil {
			continue
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
haptic_reloads_total{haproxy_instance="a"} 1
haptic_reloads_total{haproxy_instance="b"} 1
haptic_runtime_changes_total{haproxy_instance="a"} 4
haptic_runtime_changes_total{haproxy_instance="b"} 0
`,
		},
		{
			name: "instances that go take their series with them",
			events: []any{
				reconcile.InstancesChanged{Instances: []string{"a", "b"}, Added: []string{"a", "b"}},
				reconcile.InstanceDeployed{Instance: "a", Result: &dataplane.Result{Reloads: 1}},
				reconcile.InstancesChanged{Instances: []string{"b"}, Removed: []string{"a"}},
				reconcile.InstanceDeployed{Instance: "a", Result: &dataplane.Result{Reloads: 1}}, // was under way
			},
			want: `
haptic_deployment_total 2
haptic_reloads_total{haproxy_instance="b"} 0
haptic_runtime_changes_total{haproxy_instance="b"} 0
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

// fixedLoop is a loop that is always in one state.
type fixedLoop struct {
	state  reconcile.State
	config *dataplane.Config
}

func (l *fixedLoop) State() reconcile.State       { return l.state }
func (l *fixedLoop) Validated() *dataplane.Config { return l.config }

// fullSubject tells something of everything.
func fullSubject() *observe.Subject {
	health := &observe.Health{}
	health.Check("discovery", observe.Live, func() error { return nil })
	return &observe.Subject{
		Health:  health,
		Version: "v1",
		Loop: &fixedLoop{state: reconcile.State{
			Leading: true, Validated: "abc", ValidatedAt: noon,
			Quarantined: []reconcile.Quarantined{{Resource: reconcile.Resource{Kind: "Ingress", Namespace: "shop", Name: "web"}}},
			Refused:     []reconcile.Refusal{{Resource: "Ingress shop/web"}, {Resource: "Secret shop/tls"}, {Resource: "Secret shop/more"}},
			Instances:   []reconcile.InstanceState{{Name: "local", Hash: "abc"}, {Name: "far", StaleSince: time.Now().Add(-time.Hour), Failures: 3, Error: "no route"}},
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
		m := observe.NewMetrics(eventbus.New(nil))
		m.Collect(fullSubject())
		got := exposed(t, m)
		for _, line := range []string{
			`haptic_leading 1`,
			`haptic_instances 2`,
			`haptic_instance_staleness_seconds{haproxy_instance="local"} 0`,
			`haptic_instance_failures{haproxy_instance="far"} 3`,
			`haptic_quarantined_resources{kind="Ingress"} 1`,
			`haptic_refused_resources{kind="Secret"} 2`,
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

// Thousands of names, instances that come and go, and names that nobody should
// have: the number of series stays what it is, and every scrape works.
func TestSeriesDoNotExplode(t *testing.T) {
	bus := eventbus.New(nil)
	m := observe.NewMetrics(bus)
	subject := fullSubject()
	loop := &fixedLoop{}
	subject.Loop = loop
	m.Collect(subject)
	hostile := []string{"", "\xff\xfe", "a\nb\"}", strings.Repeat("é", 1000), strings.Repeat("é", 1000) + "2", "{}", "\x00"}
	name := func(i int) string { return hostile[i%len(hostile)] + fmt.Sprint(i/len(hostile)*(i%2)) }
	for i := range 10_000 {
		n := name(i)
		resource := reconcile.Resource{Kind: n, Namespace: n, Name: n}
		publish(bus,
			reconcile.TemplateRendered{Resources: map[string]int{n: 1, fmt.Sprint("kind", i): 1}},
			reconcile.ResourceRefused{Refusal: reconcile.Refusal{Resource: n}},
			reconcile.ResourceQuarantined{Quarantined: reconcile.Quarantined{Resource: resource}},
			reconcile.InstancesChanged{Instances: []string{n, fmt.Sprint("pod", i)}, Removed: []string{fmt.Sprint("pod", i-1)}},
			reconcile.InstanceDeployed{Instance: n}, reconcile.InstanceDeployed{Instance: fmt.Sprint("pod", i)},
			reconcile.InstanceDeployed{Instance: fmt.Sprint("gone", i)},
			fetch.Rejected{URL: n}, settings.Applied{Name: n, Version: n}, stranger(n))
		loop.state.Instances = append(loop.state.Instances, reconcile.InstanceState{Name: n}, reconcile.InstanceState{Name: fmt.Sprint("pod", i)})
		loop.state.Quarantined = append(loop.state.Quarantined, reconcile.Quarantined{Resource: resource})
		loop.state.Refused = append(loop.state.Refused, reconcile.Refusal{Resource: fmt.Sprint("kind", i, " a/b")})
		if i < 1000 {
			subject.Health.Check(fmt.Sprint(n, i), observe.Reported, func() error { return nil })
		}
	}
	many := map[string]k8swatch.State{}
	for i := range 10_000 {
		many[name(i)+fmt.Sprint(i)] = k8swatch.State{Phase: k8swatch.PhaseSynced}
	}
	subject.Settings = func() settings.State { return settings.State{Version: hostile[3], Watched: many} }
	for range 300 {
		eventbus.Subscribe(bus, func(context.Context, eventbus.Delivery[int]) {})
	}
	deliver(t, bus)
	families, err := m.Registry().Gather()
	require.NoError(t, err)
	series := 0
	for _, f := range families {
		series += len(f.GetMetric())
		limit := 101
		switch f.GetName() {
		case "haptic_instance_staleness_seconds", "haptic_instance_failures":
			limit = 1000
		case "haptic_reloads_total", "haptic_runtime_changes_total":
			limit = 2 // of the two that there are now
		case "haptic_watch_state":
			limit = 600
		}
		require.LessOrEqual(t, len(f.GetMetric()), limit, f.GetName())
		for _, one := range f.GetMetric() {
			for _, l := range one.GetLabel() {
				require.LessOrEqual(t, len(l.GetValue()), 128)
			}
		}
	}
	require.Less(t, series, 4000)
	require.Regexp(t, `haptic_resource_count\{type="other"\} [12]\n`, strings.Join(exposed(t, m), "\n"))
}

// stranger is an event of the program's own, with a name that is never the same.
type stranger string

func (s stranger) EventName() string  { return string(s) }
func (stranger) Level() slog.Level    { return slog.LevelInfo }
func (stranger) LogValue() slog.Value { return slog.Value{} }
