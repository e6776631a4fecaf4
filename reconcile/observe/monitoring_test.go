package observe_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/discover"
	"github.com/hapticsdk/haptic/reconcile/event"
	"github.com/hapticsdk/haptic/reconcile/fetch"
	"github.com/hapticsdk/haptic/reconcile/observe"
	"github.com/hapticsdk/haptic/reconcile/settings"
)

var update = flag.Bool("update", false, "write docs/metrics.md")

const (
	metricsFile   = "../../docs/metrics.md"
	troubleFile   = "../../docs/troubleshooting.md"
	rulesFile     = "../../examples/controller/deploy/monitoring/prometheusrule.yaml"
	dashboardFile = "../../examples/controller/deploy/monitoring/dashboard.json"
)

// metricsHead is what stands above the table.
const metricsHead = `# Metrics

A controller with ` + "`reconcile/observe`" + ` has these metrics at ` + "`/metrics`" + ` of ` + "`-metrics-addr`" + ` (` + "`:9090`" + `). This page is made of the code: ` + "`go test ./reconcile/observe -run TestMetricsPage -update`" + ` writes it.

| File | For |
|---|---|
| [prometheusrule.yaml](../examples/controller/deploy/monitoring/prometheusrule.yaml) | alert rules, for the Prometheus operator |
| [servicemonitor.yaml](../examples/controller/deploy/monitoring/servicemonitor.yaml) | the scrape, for the Prometheus operator |
| [dashboard.json](../examples/controller/deploy/monitoring/dashboard.json) | a Grafana dashboard: import the file, and choose the data source |

A Prometheus without the operator takes the rules as a file:

    sed '1,/^spec:/d; s/^  //' examples/controller/deploy/monitoring/prometheusrule.yaml > rules.yaml

[troubleshooting.md](troubleshooting.md#alerts) says what to do for each alert.

- An instance is one HAProxy. A deployment to ten instances counts ten times. A retry counts once more.
- ` + "`haptic_events_total{event=\"deployment.completed\"}`" + ` counts deployments to all instances together.
- The instance is the label ` + "`haproxy_instance`" + `, since Prometheus uses ` + "`instance`" + ` itself. Its series go with it. Names of resources are no labels.
- The buckets of histograms are .01 .05 .1 .25 .5 1 2.5 5 10 seconds.

| Metric | Type | Read from | Meaning |
|---|---|---|---|
`

// family is a metric that a scrape can get.
type family struct {
	name, typ, help string
	labels          []string
}

func families(t *testing.T) (all []family) {
	bus := eventbus.New(nil)
	m := observe.NewMetrics(bus, fullSubject())
	publish(bus, reconcile.TemplateRendered{Resources: map[string]int{"Ingress": 1}})
	deliver(t, bus)
	gathered, err := m.Gather()
	require.NoError(t, err)
	for _, f := range gathered {
		one := family{name: f.GetName(), typ: strings.ToLower(f.GetType().String()), help: f.GetHelp()}
		for _, l := range f.GetMetric()[0].GetLabel() {
			one.labels = append(one.labels, l.GetName())
		}
		all = append(all, one)
	}
	return all
}

// countedBy says which events count a metric, by its name.
func countedBy() map[string][]string {
	by := map[string][]string{"haptic_events_total": {"every event"}}
	for _, e := range slices.Concat(reconcile.Events(), settings.Events(), discover.Events(), fetch.Events(), observe.Events()) {
		if _, several := e.(reconcile.HAProxyChanged); several {
			continue
		}
		r := e.Report()
		for _, m := range r.Metrics {
			by["haptic_"+m.Name] = append(by["haptic_"+m.Name], "`"+r.Name+"`")
		}
	}
	for _, kind := range []dataplane.ProcessKind{dataplane.ProcessStarted, dataplane.ProcessEnded, dataplane.ProcessStartFailed} {
		r := reconcile.HAProxyChanged{ProcessEvent: dataplane.ProcessEvent{Kind: kind}}.Report()
		for _, m := range r.Metrics {
			if m.Value > 0 {
				by["haptic_"+m.Name] = append(by["haptic_"+m.Name], "`"+r.Name+"`")
			}
		}
	}
	return by
}

// metricsPage is docs/metrics.md.
func metricsPage(t *testing.T) string {
	var b strings.Builder
	b.WriteString(metricsHead)
	by := countedBy()
	for _, f := range families(t) {
		name, from := f.name, "state"
		if len(f.labels) > 0 {
			name += "{" + strings.Join(f.labels, ",") + "}"
		}
		if events := by[f.name]; events != nil {
			slices.Sort(events)
			from = strings.Join(slices.Compact(events), ", ")
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", name, f.typ, from, f.help)
	}
	b.WriteString("\n`state` is read at each scrape. The others are events, by the names that the field `event` of the log has. A program adds a metric of its own with `Observer.Metrics.MustRegister`.\n")
	b.WriteString("\n## Of the reference controller alone\n\n| Metric | Type | Meaning |\n|---|---|---|\n")
	for _, m := range ofController(t) {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", m.name, m.typ, m.help)
	}
	return b.String()
}

// ofController are the metrics that examples/controller adds, by its source.
func ofController(t *testing.T) (all []family) {
	text, err := os.ReadFile("../../examples/controller/expiry.go")
	require.NoError(t, err)
	for _, m := range regexp.MustCompile(`prometheus\.(\w+)Opts\{Name: "(haptic_\w+)",\s+Help: "([^"]+)"`).FindAllStringSubmatch(string(text), -1) {
		all = append(all, family{name: m[2], typ: strings.ToLower(m[1]), help: m[3]})
	}
	require.NotEmpty(t, all)
	return all
}

// TestMetricsPage: docs/metrics.md has what a scrape gets.
func TestMetricsPage(t *testing.T) {
	if *update {
		require.NoError(t, os.WriteFile(metricsFile, []byte(metricsPage(t)), 0o644))
	}
	text, err := os.ReadFile(metricsFile)
	require.NoError(t, err)
	require.Equal(t, metricsPage(t), string(text), "run go test -run TestMetricsPage -update in this folder")
}

// known are the names of all series.
func known(t *testing.T) map[string]bool {
	names := map[string]bool{}
	for _, f := range append(families(t), ofController(t)...) {
		names[f.name] = true
		if f.typ == "histogram" {
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				names[f.name+suffix] = true
			}
		}
	}
	return names
}

// checkExpr finds names of metrics, labels that an expression sums by, and events in it
// that no scrape has.
func checkExpr(t *testing.T, where, expr string, names map[string]bool) {
	t.Helper()
	require.NotEmpty(t, expr, where)
	found := 0
	for _, name := range regexp.MustCompile(`haptic_[a-z_]*[a-z]`).FindAllString(expr, -1) {
		require.True(t, names[name], "%s: there is no metric %s", where, name)
		found++
	}
	require.Positive(t, found, "%s: no metric of ours", where)
	labels := map[string]bool{"instance": true, "namespace": true, "pod": true, "le": true, "job": true}
	for _, f := range families(t) {
		for _, l := range f.labels {
			labels[l] = true
		}
	}
	for _, m := range regexp.MustCompile(`(?:by|on|without) ?\(([a-z_, ]+)\)`).FindAllStringSubmatch(expr, -1) {
		for _, label := range strings.Split(m[1], ",") {
			require.True(t, labels[strings.TrimSpace(label)], "%s: no series has the label %s", where, label)
		}
	}
	for _, m := range regexp.MustCompile(`event="([a-z.]+)"`).FindAllStringSubmatch(expr, -1) {
		require.True(t, slices.ContainsFunc(slices.Concat(reconcile.Events(), settings.Events(), discover.Events(), fetch.Events(), observe.Events()),
			func(e event.Event) bool { return e.Report().Name == m[1] }), "%s: no event has the name %s", where, m[1])
	}
}

// TestAlertRules: the rules parse, ask for series that exist, and lead to a section of
// docs/troubleshooting.md.
func TestAlertRules(t *testing.T) {
	text, err := os.ReadFile(rulesFile)
	require.NoError(t, err)
	var doc struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Metadata   map[string]any
		Spec       struct {
			Groups []struct {
				Name  string
				Rules []struct {
					Alert, Expr, For    string
					Labels, Annotations map[string]string
				}
			}
		}
	}
	decoder := yaml.NewDecoder(strings.NewReader(string(text)))
	decoder.KnownFields(true)
	require.NoError(t, decoder.Decode(&doc))
	require.Equal(t, "PrometheusRule", doc.Kind)
	trouble, err := os.ReadFile(troubleFile)
	require.NoError(t, err)
	names, seen := known(t), map[string]bool{}
	for _, g := range doc.Spec.Groups {
		require.NotEmpty(t, g.Name)
		for _, r := range g.Rules {
			require.Regexp(t, `^Haptic[A-Z][A-Za-z]+$`, r.Alert)
			require.False(t, seen[r.Alert], r.Alert)
			seen[r.Alert] = true
			checkExpr(t, r.Alert, r.Expr, names)
			require.Contains(t, []string{"critical", "warning"}, r.Labels["severity"], r.Alert)
			require.NotEmpty(t, r.Annotations["summary"], r.Alert)
			require.NotEmpty(t, r.Annotations["description"], r.Alert)
			require.Contains(t, string(trouble), "| `"+r.Alert+"` |", "docs/troubleshooting.md says what to do for it")
		}
	}
	for _, m := range regexp.MustCompile("\\| `(Haptic[A-Za-z]+)` \\|").FindAllStringSubmatch(string(trouble), -1) {
		require.True(t, seen[m[1]], "no rule has the alert %s", m[1])
	}
	require.Greater(t, len(seen), 8)
}

// TestDashboard: the dashboard is JSON, and its panels ask for series that exist and
// do not lie upon each other.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile(dashboardFile)
	require.NoError(t, err)
	var doc struct {
		Title, UID string
		Panels     []struct {
			ID      int
			Type    string
			Title   string
			GridPos struct{ H, W, X, Y int }
			Targets []struct{ Expr, RefID string }
		}
		Templating struct {
			List []struct{ Name, Type, Query string }
		}
	}
	require.NoError(t, json.Unmarshal(text, &doc))
	require.NotEmpty(t, doc.UID)
	names, ids, taken := known(t), map[int]bool{}, map[[2]int]string{}
	for _, p := range doc.Panels {
		require.False(t, ids[p.ID], p.Title)
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				require.Empty(t, taken[[2]int{x, y}], "%s lies upon it", p.Title)
				taken[[2]int{x, y}] = p.Title
			}
		}
		require.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, p.Title)
		if p.Type == "row" {
			continue
		}
		require.NotEmpty(t, p.Targets, p.Title)
		for _, target := range p.Targets {
			checkExpr(t, p.Title, target.Expr, names)
		}
	}
	require.Greater(t, len(doc.Panels), 12)
}
