package observe_test

import (
	"bytes"
	"encoding/json"
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
	"github.com/hapticsdk/haptic/reconcile/discover"
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

// eventAttr is the same for all lines of an event: [event.Event] has a test
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
			reconcile.ReconciliationStarted{ID: 7},
			reconcile.TemplateRendered{ID: 7}, // all that went before is said at the end
			reconcile.ValidationCompleted{ID: 7},
			reconcile.ReconciliationCompleted{ID: 7, Hash: "0123456789abcdef", Took: 12345678, Attempts: 1,
				Reasons:  []string{"Service changed", "Ingress changed", "Ingress changed"},
				Rendered: reconcile.TemplateRendered{Lines: 120, Sections: 1, Files: 2, Refused: 1, Resources: map[string]int{"Service": 3, "Ingress": 2}}},
		}, `level=INFO msg="new valid configuration of 120 lines in 1 section and 2 files from 2 Ingress, 3 Service, 1 refused, after Ingress changed, Service changed" reconciliation=7 took=12.3ms hash=01234567`},
		{"a panic of a callback", []any{
			reconcile.CallbackFailed{Callback: "Rendered.Accepted", Err: &reconcile.PanicError{Value: "no map"}, Failures: 1},
			reconcile.CallbackFailed{Callback: "Rendered.Accepted", Err: &reconcile.PanicError{Value: "no map"}, Failures: 2},
			reconcile.CallbackFailed{Callback: "Rendered.Accepted", Err: &reconcile.PanicError{Value: "no map"}, Failures: 3},
		}, `level=ERROR msg="Rendered.Accepted of this program failed, and the loop goes on without it: panic: no map" callback=Rendered.Accepted
level=ERROR msg="Rendered.Accepted of this program failed 2 times in a row, and the loop goes on without it: panic: no map" callback=Rendered.Accepted`},
		{"many reasons", []any{
			reconcile.ReconciliationCompleted{ID: 8, Unchanged: true, Reasons: []string{"a", "b", "c", "d", "e"}},
		}, `level=DEBUG msg="nothing to change, after a, b, c and 2 more" reconciliation=8`},
		{"a failure", []any{
			reconcile.TemplateRenderFailed{ID: 9, Err: errors.New("boom")}, // the same, said once
			reconcile.ReconciliationFailed{ID: 9, Err: errors.New("render: boom"), Took: time.Second},
		}, `level=ERROR msg="the new configuration is not deployed, as it failed: render: boom" reconciliation=9 took=1s`},
		{"refused", []any{reconcile.ResourceRefused{ID: 1, Refusal: refusal}},
			`level=WARN msg="refused: Ingress shop/web (web.yaml:12): spec.rules[0].host: has a quote" reconciliation=1 resource="Ingress shop/web"`},
		{"accepted", []any{reconcile.ResourceAccepted{ID: 2, Refusal: refusal}},
			`level=INFO msg="no longer refused: Ingress shop/web: spec.rules[0].host" reconciliation=2 resource="Ingress shop/web"`},
		{"accepted as a whole", []any{reconcile.ResourceAccepted{ID: 2, Refusal: reconcile.Refusal{Resource: "Ingress shop/web"}}},
			`level=INFO msg="no longer refused: Ingress shop/web" reconciliation=2 resource="Ingress shop/web"`},
		{"synchronized", []any{reconcile.IndexSynchronized{Resources: map[string]int{"Ingress": 2}, Took: time.Second}},
			`level=INFO msg="watching 2 Ingress" took=1s`},
		{"nothing to watch", []any{reconcile.IndexSynchronized{}}, `level=INFO msg="watching no resources"`},
		{"deployed", []any{
			reconcile.DeploymentStarted{ID: 7, Instance: "local"},
			reconcile.InstanceDeployed{ID: 7, Instance: "local", Result: &dataplane.Result{Plan: plan, Commands: 1}, Took: 1500 * time.Microsecond},
		}, `level=DEBUG msg=deploying reconciliation=7 instance=local
level=INFO msg="deployed: 0 to create, 1 to update, 0 to delete; runtime, no reload" reconciliation=7 instance=local took=1.5ms`},
		{"fallback", []any{reconcile.InstanceDeployed{ID: 7, Instance: "local", Result: &dataplane.Result{Fallback: "the server was unknown"}}},
			`level=INFO msg="deployed: no changes; reloaded because the server was unknown" reconciliation=7 instance=local`},
		{"deployed, no result", []any{reconcile.InstanceDeployed{ID: 7, Instance: "local"}},
			`level=INFO msg="deployed: nothing known about it" reconciliation=7 instance=local`},
		{"later", []any{reconcile.DeploymentScheduled{ID: 7, Instance: "local", At: noon}},
			`level=INFO msg="waits for the minimum interval between two reloads, until 12:00:00.250" reconciliation=7 instance=local`},
		{"deployment failed", []any{reconcile.InstanceDeploymentFailed{ID: 7, Instance: "local", Err: errors.New("no route"), Failures: 3, RetryAt: noon, Took: time.Second}},
			`level=ERROR msg="deployment failed 3 times in a row, next try at 12:00:00.250: no route" reconciliation=7 instance=local took=1s`},
		{"deployment failed for good", []any{reconcile.InstanceDeploymentFailed{ID: 7, Instance: "local", Err: errors.New("refused"), Failures: 1}},
			`level=ERROR msg="deployment failed: refused" reconciliation=7 instance=local`},
		{"drift", []any{reconcile.DriftRepaired{ID: 7, Instance: "local", Result: &dataplane.Result{Plan: plan}}},
			`level=WARN msg="another writer changed this instance, and the controller repaired it: 0 to create, 1 to update, 0 to delete; runtime, no reload" reconciliation=7 instance=local`},
		{"instances", []any{reconcile.InstancesChanged{Instances: []string{"b"}, Added: []string{"b"}, Removed: []string{"a", "c"}}},
			`level=INFO msg="deploying to 1 instance, new: b, gone: a c"`},
		{"the process of HAProxy", []any{
			reconcile.HAProxyChanged{Instance: "local", ProcessEvent: dataplane.ProcessEvent{Kind: dataplane.ProcessStarted, PID: 12}},
			reconcile.HAProxyChanged{Instance: "local", ProcessEvent: dataplane.ProcessEvent{Kind: dataplane.ProcessEnded, PID: 12, Err: errors.New("HAProxy (process 12) ended: signal: killed")}},
			reconcile.HAProxyChanged{Instance: "local", ProcessEvent: dataplane.ProcessEvent{Kind: dataplane.ProcessStartFailed, Tries: 1, Err: errors.New("in use")}},
			reconcile.HAProxyChanged{Instance: "local", ProcessEvent: dataplane.ProcessEvent{Kind: dataplane.ProcessStartFailed, Tries: 2, Err: errors.New("in use")}},
			reconcile.HAProxyChanged{Instance: "local", ProcessEvent: dataplane.ProcessEvent{Kind: dataplane.ProcessStartFailed, Tries: 3, Err: errors.New("in use")}},
			reconcile.HAProxyChanged{Instance: "local", ProcessEvent: dataplane.ProcessEvent{Kind: dataplane.ProcessStarted, PID: 13, Tries: 3}},
			reconcile.HAProxyChanged{Instance: "local", ProcessEvent: dataplane.ProcessEvent{Kind: dataplane.ProcessSilent, PID: 13, Err: errors.New("HAProxy does not answer")}},
			reconcile.HAProxyChanged{Instance: "local", ProcessEvent: dataplane.ProcessEvent{Kind: dataplane.ProcessAnswers, PID: 13}},
			reconcile.HAProxyChanged{Instance: "local", ProcessEvent: dataplane.ProcessEvent{Kind: dataplane.ProcessAdopted, PID: 14}},
		}, `level=INFO msg="HAProxy started, as process 12" instance=local
level=ERROR msg="HAProxy (process 12) ended: signal: killed" instance=local
level=ERROR msg="HAProxy does not start: in use" instance=local
level=ERROR msg="HAProxy does not start 2 times in a row: in use" instance=local
level=INFO msg="HAProxy started, as process 13, after 3 failures" instance=local
level=ERROR msg="HAProxy does not answer" instance=local
level=INFO msg="HAProxy answers again" instance=local
level=INFO msg="HAProxy was adopted, as process 14" instance=local`},
		{"leader", []any{
			reconcile.LeaderBecame{Identity: "one"}, reconcile.LeaderLost{Identity: "one"}, reconcile.LeaderObserved{Identity: "two"},
		}, `level=INFO msg="leads now and deploys, as one"
level=WARN msg="leads no longer and begins no deployment, as one"
level=INFO msg="the leader is two"`},
		{"a change that took several attempts", []any{
			reconcile.AttemptCompleted{ID: 2, Err: errors.New("boom")},
			reconcile.AttemptCompleted{ID: 2},
			reconcile.ResourceQuarantined{ID: 2, Quarantined: reconcile.Quarantined{Resource: web, Fault: reconcile.Fault{Message: "bad"}}},
			reconcile.ReconciliationCompleted{ID: 2, Hash: "abc", Attempts: 2},
			reconcile.ResourceReleased{ID: 3, Resource: web, Reason: "it changed"},
		}, `level=ERROR msg="in quarantine, all others are served: Ingress shop/web (web.yaml:12): bad; left out" reconciliation=2 resource="Ingress shop/web" source=web.yaml:12
level=INFO msg="new valid configuration of 0 lines in 0 sections and 0 files, at attempt 2" reconciliation=2 hash=abc
level=INFO msg="released from quarantine: Ingress shop/web: it changed" reconciliation=3 resource="Ingress shop/web" source=web.yaml:12`},
		{"failures, and their end", []any{
			reconcile.ReconciliationFailed{ID: 1, Err: errors.New("boom"), Failures: 1},
			reconcile.ReconciliationFailed{ID: 2, Err: errors.New("boom"), Failures: 2, Reasons: []string{"a"}},
			reconcile.ReconciliationCompleted{ID: 3, Unchanged: true, Failures: 2},
			reconcile.ReconciliationCompleted{ID: 4, Unchanged: true},
		}, `level=ERROR msg="the new configuration is not deployed, as it failed: boom" reconciliation=1
level=ERROR msg="the new configuration is not deployed, as it failed 2 times in a row, after a: boom" reconciliation=2
level=INFO msg="nothing to change, after 2 failures" reconciliation=3
level=DEBUG msg="nothing to change" reconciliation=4`},
		{"deployed after a failure", []any{reconcile.InstanceDeployed{ID: 7, Instance: "a", Failures: 1}},
			`level=INFO msg="deployed, after 1 failure: nothing known about it" reconciliation=7 instance=a`},
		{"settings", []any{
			settings.Invalid{Name: "s.yaml", Version: "v0", Err: errors.New("s.yaml:1:1: no")},
			settings.Parsed{Name: "s.yaml", Version: "v1"},
			settings.Validated{Name: "s.yaml", Version: "v1"},
			settings.Applied{Name: "s.yaml", Version: "v1", Started: []string{"ingresses", "services"}, Took: time.Second},
			settings.Invalid{Name: "s.yaml", Version: "v2", Before: "v1", Err: errors.New("s.yaml:3:1: no"), Took: time.Second},
			settings.Applied{Name: "s.yaml", Version: "v3", Stopped: []string{"services"}},
		}, `level=ERROR msg="there are no settings yet, so nothing new is deployed, as version v0 of s.yaml is wrong: s.yaml:1:1: no"
level=INFO msg="new settings are in use: version v1 of s.yaml, watching now: ingresses services" took=1s
level=ERROR msg="the settings stay as they are, as version v2 of s.yaml is wrong: s.yaml:3:1: no" took=1s
level=INFO msg="new settings are in use: version v3 of s.yaml, no longer: services"`},
		{"credentials", []any{
			discover.CredentialsUpdated{Secret: "edge/haproxy", Version: "7"},
			discover.CredentialsInvalid{Secret: "edge/haproxy", Err: errors.New("it has no key password")},
		}, `level=INFO msg="credentials are in use" secret=edge/haproxy version=7
level=ERROR msg="no HAProxy can be reached: it has no key password" secret=edge/haproxy`},
		{"fetched", []any{
			fetch.Updated{URL: "http://h/", Bytes: 2, Hash: "abc"},
			fetch.Accepted{URL: "http://h/", Hash: "abc"},
			fetch.Rejected{URL: "http://h/", Hash: "abc", Err: errors.New("no")},
		}, `level=INFO msg="fetched a new content of http://h/, 2 bytes, which is used once it has been deployed" hash=abc
level=INFO msg="the new content of http://h/ is deployed" hash=abc
level=WARN msg="the new content of http://h/ is not used, the one from before stays: no" hash=abc`},
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

// history is what the variable events shows.
func history(t *testing.T, bus *eventbus.Bus, events ...any) (entries []map[string]any) {
	t.Helper()
	o := newObserver(t, bus, observe.Subject{}, slog.New(slog.DiscardHandler))
	publish(bus, events...)
	deliver(t, bus)
	require.NoError(t, json.Unmarshal([]byte(pageOf(t, o.Server(), "/debug/vars/events")), &entries))
	for _, e := range entries {
		at, err := time.Parse(time.RFC3339, e["time"].(string))
		require.NoError(t, err)
		require.WithinDuration(t, time.Now(), at, time.Minute)
		delete(e, "time")
	}
	return entries
}

func TestHistory(t *testing.T) {
	require.Equal(t, []map[string]any{
		{"seq": 1., "level": "INFO", "event": "leader.became", "text": "leads now and deploys, as one"},
		{"seq": 3., "level": "ERROR", "event": "reconciliation.failed", "reconciliation": 4., "text": "the new configuration is not deployed, as it failed: boom"},
		{"seq": 4., "level": "INFO", "event": "instance.deployed", "reconciliation": 5., "instance": "local", "text": "deployed: nothing known about it"},
	}, history(t, eventbus.New(nil),
		reconcile.LeaderBecame{Identity: "one"},
		reconcile.ReconciliationTriggered{}, // without a sentence
		reconcile.ReconciliationFailed{ID: 4, Err: errors.New("boom")},
		reconcile.InstanceDeployed{ID: 5, Instance: "local"},
	))
}
