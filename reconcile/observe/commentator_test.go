package observe_test

import (
	"bytes"
	"errors"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/fetch"
	"github.com/hapticsdk/haptic/reconcile/observe"
	"github.com/hapticsdk/haptic/reconcile/settings"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 250e6, time.UTC)

// logTo returns a logger of all levels that leaves the time out.
func logTo(buf *bytes.Buffer) *slog.Logger {
	return slog.New(slog.NewTextHandler(buf, &slog.HandlerOptions{Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
}

// eventAttr is the same for all lines of an event: [reconcile.Event] has a test
// of the names.
var eventAttr = regexp.MustCompile(` event=[a-z.]+`)

func TestComment(t *testing.T) {
	plan := &dataplane.Plan{Ops: []dataplane.Op{{Action: dataplane.Update, Kind: "server", Impact: dataplane.ImpactRuntime}}}
	web := reconcile.Resource{Kind: "Ingress", Namespace: "shop", Name: "web", Source: "web.yaml:12"}
	refusal := reconcile.Refusal{Resource: "Ingress shop/web", Source: "web.yaml:12", Field: "spec.rules[0].host", Reason: "has a quote"}
	for _, c := range []struct {
		name   string
		events []any
		want   string
	}{
		{"a change", []any{
			reconcile.ReconciliationTriggered{Reason: "Ingress changed"},
			reconcile.ReconciliationStarted{ID: 7, Reasons: []string{"Service changed", "Ingress changed", "Ingress changed"}},
			reconcile.TemplateRendered{ID: 7, Lines: 120, Sections: 1, Files: 2, Refused: 1, Resources: map[string]int{"Service": 3, "Ingress": 2}},
			reconcile.ValidationCompleted{ID: 7},
			reconcile.ReconciliationCompleted{ID: 7, Hash: "0123456789abcdef", Took: 12345678},
		}, `level=INFO msg="new valid configuration of 120 lines in 1 section and 2 files from 2 Ingress, 3 Service, 1 left out, after Ingress changed, Service changed" reconciliation=7 took=12.3ms hash=01234567`},
		{"many reasons", []any{
			reconcile.ReconciliationStarted{ID: 8, Reasons: []string{"a", "b", "c", "d", "e"}},
			reconcile.ReconciliationCompleted{ID: 8, Unchanged: true},
		}, `level=DEBUG msg="nothing to change, after a, b, c and 2 more" reconciliation=8 took=0s`},
		{"another one's reasons", []any{
			reconcile.ReconciliationStarted{ID: 8, Reasons: []string{"a"}},
			reconcile.ReconciliationCompleted{ID: 9, Hash: "short"},
		}, `level=INFO msg="new valid configuration" reconciliation=9 took=0s hash=short`},
		{"a failure", []any{
			reconcile.TemplateRenderFailed{ID: 9, Err: errors.New("boom")}, // the same, said once
			reconcile.ReconciliationFailed{ID: 9, Err: errors.New("render: boom"), Took: time.Second},
		}, `level=ERROR msg="the configuration stays as it is, as the new one failed: render: boom" reconciliation=9 took=1s`},
		{"without an error", []any{reconcile.ReconciliationFailed{ID: 9}},
			`level=ERROR msg="the configuration stays as it is, as the new one failed: no reason given" reconciliation=9 took=0s`},
		{"refused", []any{reconcile.ResourceRefused{ID: 1, Refusal: refusal}},
			`level=WARN msg="left out: Ingress shop/web (web.yaml:12): spec.rules[0].host: has a quote" reconciliation=1`},
		{"accepted", []any{reconcile.ResourceAccepted{ID: 2, Refusal: refusal}},
			`level=INFO msg="no longer left out: Ingress shop/web: spec.rules[0].host" reconciliation=2`},
		{"accepted as a whole", []any{reconcile.ResourceAccepted{ID: 2, Refusal: reconcile.Refusal{Resource: "Ingress shop/web"}}},
			`level=INFO msg="no longer left out: Ingress shop/web" reconciliation=2`},
		{"source", []any{reconcile.SourceFailed{Err: errors.New("web.yaml:3: not YAML")}},
			`level=ERROR msg="resources not read, those from before stay in use: web.yaml:3: not YAML"`},
		{"synchronized", []any{reconcile.IndexSynchronized{Resources: map[string]int{"Ingress": 2}, Took: time.Second}},
			`level=INFO msg="watching 2 Ingress" took=1s`},
		{"nothing to watch", []any{reconcile.IndexSynchronized{}}, `level=INFO msg="watching no resources" took=0s`},
		{"deployed", []any{
			reconcile.DeploymentStarted{ID: 7, Instance: "local"},
			reconcile.InstanceDeployed{ID: 7, Instance: "local", Result: &dataplane.Result{Plan: plan, Commands: 1}, Took: 1500 * time.Microsecond},
		}, `level=DEBUG msg=deploying reconciliation=7 instance=local
level=INFO msg="deployed: 0 to create, 1 to update, 0 to delete; runtime, no reload" reconciliation=7 instance=local took=1.5ms`},
		{"fallback", []any{reconcile.InstanceDeployed{ID: 7, Instance: "local", Result: &dataplane.Result{Fallback: "the server was unknown"}}},
			`level=INFO msg="deployed: no changes; reloaded because the server was unknown" reconciliation=7 instance=local took=0s`},
		{"deployed, no result", []any{reconcile.InstanceDeployed{ID: 7, Instance: "local"}},
			`level=INFO msg="deployed: nothing known about it" reconciliation=7 instance=local took=0s`},
		{"later", []any{reconcile.DeploymentScheduled{ID: 7, Instance: "local", At: noon}},
			`level=INFO msg="waits for the minimum interval between two reloads, until 12:00:00.250" reconciliation=7 instance=local`},
		{"deployment failed", []any{reconcile.InstanceDeploymentFailed{ID: 7, Instance: "local", Err: errors.New("no route"), Failures: 3, RetryAt: noon, Took: time.Second}},
			`level=ERROR msg="deployment failed 3 times in a row, next try at 12:00:00.250: no route" reconciliation=7 instance=local took=1s`},
		{"deployment failed for good", []any{reconcile.InstanceDeploymentFailed{ID: 7, Instance: "local", Err: errors.New("refused"), Failures: 1}},
			`level=ERROR msg="deployment failed: refused" reconciliation=7 instance=local took=0s`},
		{"drift", []any{reconcile.DriftRepaired{ID: 7, Instance: "local", Result: &dataplane.Result{Plan: plan}}},
			`level=WARN msg="was changed by somebody else and is repaired: 0 to create, 1 to update, 0 to delete; runtime, no reload" reconciliation=7 instance=local`},
		{"instances", []any{reconcile.InstancesChanged{Instances: []string{"b"}, Added: []string{"b"}, Removed: []string{"a", "c"}}},
			`level=INFO msg="deploying to 1 instance, new: b, gone: a c"`},
		{"leader", []any{
			reconcile.LeaderBecame{Identity: "one"}, reconcile.LeaderLost{Identity: "one"}, reconcile.LeaderObserved{Identity: "two"},
		}, `level=INFO msg="leads now and deploys, as one"
level=WARN msg="leads no longer and deploys nothing, as one"
level=INFO msg="the leader is two"`},
		{"a change that took several attempts", []any{
			reconcile.ReconciliationStarted{ID: 2},
			reconcile.AttemptCompleted{ID: 2, Err: errors.New("boom")},
			reconcile.AttemptCompleted{ID: 2},
			reconcile.ResourceQuarantined{ID: 2, Quarantined: reconcile.Quarantined{Resource: web, Fault: reconcile.Fault{Message: "bad"}}},
			reconcile.ReconciliationCompleted{ID: 2, Hash: "abc"},
			reconcile.ResourceReleased{ID: 3, Resource: web, Reason: "it changed"},
		}, `level=ERROR msg="in quarantine, all others are served" resource="Ingress shop/web" source=web.yaml:12 fault=bad reconciliation=2
level=INFO msg="new valid configuration, at attempt 2" reconciliation=2 took=0s hash=abc
level=INFO msg="released from quarantine" resource="Ingress shop/web" source=web.yaml:12 because="it changed" reconciliation=3`},
		{"failures, and their end", []any{
			reconcile.ReconciliationFailed{ID: 1, Err: errors.New("boom")},
			reconcile.ReconciliationFailed{ID: 2, Err: errors.New("boom")},
			reconcile.ReconciliationCompleted{ID: 3, Unchanged: true},
			reconcile.ReconciliationCompleted{ID: 4, Unchanged: true},
		}, `level=ERROR msg="the configuration stays as it is, as the new one failed: boom" reconciliation=1 took=0s
level=ERROR msg="the configuration stays as it is, as the new one failed 2 times in a row: boom" reconciliation=2 took=0s
level=INFO msg="nothing to change, after 2 failures" reconciliation=3 took=0s
level=DEBUG msg="nothing to change" reconciliation=4 took=0s`},
		{"deployed after failures of the same instance", []any{
			reconcile.InstanceDeploymentFailed{ID: 7, Instance: "a", Err: errors.New("x"), Failures: 1},
			reconcile.InstanceDeploymentFailed{ID: 7, Instance: "gone", Err: errors.New("x"), Failures: 1},
			reconcile.InstancesChanged{Instances: []string{"a", "b"}, Removed: []string{"gone"}},
			reconcile.InstanceDeployed{ID: 7, Instance: "b"},
			reconcile.InstanceDeployed{ID: 7, Instance: "a"},
			reconcile.InstanceDeployed{ID: 7, Instance: "gone"},
		}, `level=ERROR msg="deployment failed: x" reconciliation=7 instance=a took=0s
level=ERROR msg="deployment failed: x" reconciliation=7 instance=gone took=0s
level=INFO msg="deploying to 2 instances, gone: gone"
level=INFO msg="deployed: nothing known about it" reconciliation=7 instance=b took=0s
level=INFO msg="deployed, after 1 failure: nothing known about it" reconciliation=7 instance=a took=0s
level=INFO msg="deployed: nothing known about it" reconciliation=7 instance=gone took=0s`},
		{"settings", []any{
			settings.Parsed{Name: "s.yaml", Version: "v1"},
			settings.Validated{Name: "s.yaml", Version: "v1"},
			settings.Applied{Name: "s.yaml", Version: "v1", Started: []string{"ingresses", "services"}, Took: time.Second},
			settings.Invalid{Name: "s.yaml", Version: "v2", Err: errors.New("s.yaml:3:1: no"), Took: time.Second},
			settings.Applied{Name: "s.yaml", Version: "v3", Stopped: []string{"services"}},
			settings.Applied{Name: "s.yaml", Version: "v4"},
		}, `level=INFO msg="new settings are in use: version v1 of s.yaml, watching now: ingresses services" took=1s
level=ERROR msg="the settings stay as they are, as version v2 of s.yaml is wrong: s.yaml:3:1: no" took=1s
level=INFO msg="new settings are in use, after version v2 was refused: version v3 of s.yaml, no longer: services" took=0s
level=INFO msg="new settings are in use: version v4 of s.yaml" took=0s`},
		{"fetched", []any{
			fetch.Updated{URL: "http://h/", Bytes: 1},
			fetch.Accepted{URL: "http://h/"},
			fetch.Rejected{URL: "http://h/", Err: errors.New("no")},
		}, `level=INFO msg="fetched a new content of http://h/, 1 byte, which is used once it has been deployed"
level=INFO msg="the new content of http://h/ is deployed"
level=WARN msg="the new content of http://h/ is not used, the one from before stays: no"`},
		{"somebody else's event", []any{"text", struct{}{}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var log bytes.Buffer
			bus := eventbus.New(nil)
			observe.Comment(bus, logTo(&log))
			publish(bus, c.events...)
			deliver(t, bus)
			for line := range strings.Lines(log.String()) {
				require.Regexp(t, ` event=[a-z.]+\n$`, line)
			}
			require.Equal(t, c.want, strings.TrimSpace(eventAttr.ReplaceAllString(log.String(), "")))
		})
	}
}

func TestHistory(t *testing.T) {
	bus := eventbus.New(nil)
	h := observe.NewHistory(bus, 2)
	publish(bus,
		reconcile.LeaderBecame{Identity: "one"},
		reconcile.ReconciliationTriggered{}, // nothing to remark on
		reconcile.ReconciliationFailed{ID: 4, Err: errors.New("boom")},
		reconcile.InstanceDeployed{ID: 5, Instance: "local"},
	)
	deliver(t, bus)
	all := h.All()
	for i := range all {
		require.WithinDuration(t, time.Now(), all[i].Time, time.Minute)
		all[i].Time = time.Time{}
	}
	require.Equal(t, []observe.Entry{
		{Seq: 3, Level: "ERROR", Event: "reconciliation.failed", Reconciliation: 4, Text: "the configuration stays as it is, as the new one failed: boom"},
		{Seq: 4, Level: "INFO", Event: "instance.deployed", Reconciliation: 5, Instance: "local", Text: "deployed: nothing known about it"},
	}, all)
	require.Equal(t, uint64(4), h.Last(1)[0].Seq)
}
