package observe_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/observe"
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

func TestComment(t *testing.T) {
	plan := &dataplane.Plan{Ops: []dataplane.Op{{Action: dataplane.Update, Kind: "server", Impact: dataplane.ImpactRuntime}}}
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
			`level=INFO msg="no longer left out: Ingress shop/web" reconciliation=2`},
		{"source", []any{reconcile.SourceFailed{Err: errors.New("web.yaml:3: not YAML")}},
			`level=ERROR msg="resources not read, those from before stay in use: web.yaml:3: not YAML"`},
		{"synchronized", []any{reconcile.IndexSynchronized{Resources: map[string]int{"Ingress": 2}, Took: time.Second}},
			`level=INFO msg="watching 2 Ingress" took=1s`},
		{"nothing to watch", []any{reconcile.IndexSynchronized{}}, `level=INFO msg="watching no resources" took=0s`},
		{"deployed", []any{
			reconcile.DeploymentStarted{ID: 7, Endpoint: "local"},
			reconcile.InstanceDeployed{ID: 7, Endpoint: "local", Result: &dataplane.Result{Plan: plan, Commands: 1}, Took: 1500 * time.Microsecond},
		}, `level=DEBUG msg=deploying reconciliation=7 endpoint=local
level=INFO msg="deployed: 0 to create, 1 to update, 0 to delete; runtime, no reload" reconciliation=7 endpoint=local took=1.5ms`},
		{"fallback", []any{reconcile.InstanceDeployed{ID: 7, Endpoint: "local", Result: &dataplane.Result{Fallback: "the server was unknown"}}},
			`level=INFO msg="deployed: no changes; reloaded because the server was unknown" reconciliation=7 endpoint=local took=0s`},
		{"deployed, no result", []any{reconcile.InstanceDeployed{ID: 7, Endpoint: "local"}},
			`level=INFO msg="deployed: nothing known about it" reconciliation=7 endpoint=local took=0s`},
		{"later", []any{reconcile.DeploymentScheduled{ID: 7, Endpoint: "local", At: noon}},
			`level=INFO msg="waits for the minimum interval between two reloads, until 12:00:00.250" reconciliation=7 endpoint=local`},
		{"deployment failed", []any{reconcile.InstanceDeploymentFailed{ID: 7, Endpoint: "local", Err: errors.New("no route"), Failures: 3, RetryAt: noon, Took: time.Second}},
			`level=ERROR msg="deployment failed 3 times in a row, next try at 12:00:00.250: no route" reconciliation=7 endpoint=local took=1s`},
		{"deployment failed for good", []any{reconcile.InstanceDeploymentFailed{ID: 7, Endpoint: "local", Err: errors.New("refused"), Failures: 1}},
			`level=ERROR msg="deployment failed: refused" reconciliation=7 endpoint=local took=0s`},
		{"drift", []any{reconcile.DriftRepaired{ID: 7, Endpoint: "local", Result: &dataplane.Result{Plan: plan}}},
			`level=WARN msg="was changed by somebody else and is repaired: 0 to create, 1 to update, 0 to delete; runtime, no reload" reconciliation=7 endpoint=local`},
		{"endpoints", []any{reconcile.EndpointsChanged{Endpoints: []string{"b"}, Added: []string{"b"}, Removed: []string{"a", "c"}}},
			`level=INFO msg="deploying to 1 endpoint, new: b, gone: a c"`},
		{"leader", []any{
			reconcile.LeaderBecame{Identity: "one"}, reconcile.LeaderLost{Identity: "one"}, reconcile.LeaderObserved{Identity: "two"},
		}, `level=INFO msg="leads now and deploys, as one"
level=WARN msg="leads no longer and deploys nothing, as one"
level=INFO msg="the leader is two"`},
		{"somebody else's event", []any{"text", struct{}{}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var log bytes.Buffer
			bus := eventbus.New(nil)
			observe.Comment(bus, logTo(&log))
			publish(bus, c.events...)
			deliver(t, bus)
			require.Equal(t, c.want, strings.TrimSpace(log.String()))
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
		reconcile.InstanceDeployed{ID: 5, Endpoint: "local"},
	)
	deliver(t, bus)
	all := h.All()
	for i := range all {
		require.WithinDuration(t, time.Now(), all[i].Time, time.Minute)
		all[i].Time = time.Time{}
	}
	require.Equal(t, []observe.Entry{
		{Seq: 3, Level: "ERROR", Reconciliation: 4, Text: "the configuration stays as it is, as the new one failed: boom"},
		{Seq: 4, Level: "INFO", Reconciliation: 5, Endpoint: "local", Text: "deployed: nothing known about it"},
	}, all)
	require.Equal(t, uint64(4), h.Last(1)[0].Seq)
}

func TestHistoryTellsWhatItMissed(t *testing.T) {
	bus := eventbus.New(nil)
	h := observe.NewHistory(bus, 0)
	for range 1024 + 10 {
		eventbus.Publish(bus, reconcile.ReconciliationTriggered{})
	}
	eventbus.Publish(bus, reconcile.LeaderBecame{Identity: "one"})
	deliver(t, bus)
	require.Len(t, h.All(), 1)
	require.Equal(t, uint64(11), h.All()[0].Missed)
}
