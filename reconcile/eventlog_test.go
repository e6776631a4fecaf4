package reconcile

import (
	"bytes"
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile/fetch"
)

// eventLines has a line for each event: its level, its name and its attributes.
func eventLines() []struct {
	event Event
	want  string
} {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	boom := errors.New("boom")
	refusal := Refusal{Resource: "Ingress shop/web", Source: "web.yaml:12", Field: "spec.rules[0].host", Reason: "has a quote"}
	web := Resource{Kind: "Ingress", Namespace: "shop", Name: "web", Source: "web.yaml:12"}
	result := &dataplane.Result{Reloads: 1, Commands: 2, Fallback: "no socket"}
	return []struct {
		event Event
		want  string
	}{
		{ReconciliationTriggered{Reason: "start"}, `DEBUG reconciliation.triggered event.reason=start`},
		{ReconciliationStarted{ID: 7, Reasons: []string{"a", "b"}}, `DEBUG reconciliation.started event.reconciliation=7 event.reasons="[a b]"`},
		{AttemptCompleted{ID: 7, Excluded: 1, At: noon, RenderTook: 1e6, ValidateTook: 2e6, Err: boom},
			`DEBUG reconciliation.attempted event.reconciliation=7 event.excluded=1 event.at=2026-03-01T12:00:00.000Z event.render=1ms event.validate=2ms event.error=boom`},
		{ReconciliationCompleted{ID: 7, Hash: "abc", Took: 1e6}, `INFO reconciliation.completed event.reconciliation=7 event.hash=abc event.unchanged=false event.took=1ms`},
		{ReconciliationCompleted{ID: 7, Hash: "abc", Unchanged: true}, `DEBUG reconciliation.completed event.reconciliation=7 event.hash=abc event.unchanged=true event.took=0s`},
		{ReconciliationFailed{ID: 7, Err: boom}, `ERROR reconciliation.failed event.reconciliation=7 event.error=boom event.took=0s`},
		{ReconciliationFailed{ID: 7}, `ERROR reconciliation.failed event.reconciliation=7 event.took=0s`},
		{TemplateRendered{ID: 7, Hash: "abc", Sections: 1, Lines: 2, Files: 3, Refused: 4, Resources: map[string]int{"Ingress": 5}},
			`DEBUG template.rendered event.reconciliation=7 event.hash=abc event.sections=1 event.lines=2 event.files=3 event.refused=4 event.resources=map[Ingress:5] event.took=0s`},
		{TemplateRenderFailed{ID: 7, Err: boom}, `DEBUG template.render.failed event.reconciliation=7 event.error=boom event.took=0s`},
		{ValidationCompleted{ID: 7, Hash: "abc"}, `DEBUG validation.completed event.reconciliation=7 event.hash=abc event.took=0s`},
		{ValidationFailed{ID: 7, Hash: "abc", Err: boom}, `DEBUG validation.failed event.reconciliation=7 event.hash=abc event.error=boom event.took=0s`},
		{ResourceRefused{ID: 7, Refusal: refusal}, `WARN resource.refused event.reconciliation=7 event.resource="Ingress shop/web" event.source=web.yaml:12 event.field=spec.rules[0].host event.reason="has a quote"`},
		{ResourceAccepted{ID: 7, Refusal: refusal}, `INFO resource.accepted event.reconciliation=7 event.resource="Ingress shop/web" event.source=web.yaml:12 event.field=spec.rules[0].host event.reason="has a quote"`},
		{ResourceQuarantined{ID: 7, Quarantined: Quarantined{Resource: web, Fault: Fault{Message: "bad"}, RetryAt: noon}},
			`ERROR resource.quarantined event.reconciliation=7 event.resource="Ingress shop/web (web.yaml:12)" event.fault=bad event.retryAt=2026-03-01T12:00:00.000Z event.trials=0`},
		{ResourceReleased{ID: 7, Resource: web, Reason: "it changed"}, `INFO resource.released event.reconciliation=7 event.resource="Ingress shop/web (web.yaml:12)" event.reason="it changed"`},
		{DeploymentScheduled{ID: 7, Instance: "a", At: noon}, `INFO deployment.scheduled event.reconciliation=7 event.instance=a event.at=2026-03-01T12:00:00.000Z`},
		{DeploymentStarted{ID: 7, Instance: "a"}, `DEBUG deployment.started event.reconciliation=7 event.instance=a`},
		{InstanceDeployed{ID: 7, Instance: "a", Result: result, Took: 1e6},
			`INFO instance.deployed event.reconciliation=7 event.instance=a event.result.plan="no changes" event.result.reloads=1 event.result.commands=2 event.result.fallback="no socket" event.took=1ms`},
		{InstanceDeploymentFailed{ID: 7, Instance: "a", Err: boom, Failures: 2, RetryAt: noon},
			`ERROR instance.deployment.failed event.reconciliation=7 event.instance=a event.error=boom event.failures=2 event.retryAt=2026-03-01T12:00:00.000Z event.took=0s`},
		{InstanceDeploymentFailed{ID: 7, Instance: "a", Err: boom, Failures: 1}, `ERROR instance.deployment.failed event.reconciliation=7 event.instance=a event.error=boom event.failures=1 event.took=0s`},
		{DriftRepaired{ID: 7, Instance: "a"}, `WARN drift.repaired event.reconciliation=7 event.instance=a`},
		{InstancesChanged{Instances: []string{"a", "b"}, Added: []string{"b"}}, `INFO haproxy.pods.discovered event.instances=2 event.added=[b] event.removed=[]`},
		{IndexSynchronized{Resources: map[string]int{"Ingress": 5}, Took: 1e6}, `INFO index.synchronized event.resources=map[Ingress:5] event.took=1ms`},
		{LeaderBecame{Identity: "one"}, `INFO leader.became event.identity=one`},
		{LeaderLost{Identity: "one"}, `WARN leader.lost event.identity=one`},
		{LeaderObserved{Identity: "two"}, `INFO leader.observed event.identity=two`},
		{SourceFailed{Err: boom}, `ERROR source.failed event.error=boom`},
		{fetch.Updated{URL: "http://h/", Bytes: 3, Hash: "abc"}, `INFO http.resource.updated event.url=http://h/ event.bytes=3 event.hash=abc`},
		{fetch.Accepted{URL: "http://h/", Hash: "abc"}, `INFO http.resource.accepted event.url=http://h/ event.hash=abc`},
		{fetch.Rejected{URL: "http://h/", Hash: "abc", Err: boom}, `WARN http.resource.rejected event.url=http://h/ event.hash=abc event.error=boom`},
	}
}

func TestEventsInLog(t *testing.T) {
	name := regexp.MustCompile(`^[a-z]+(\.[a-z]+)+$`)
	for _, c := range eventLines() {
		var out bytes.Buffer
		log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
		log.Log(context.Background(), c.event.Level(), c.event.EventName(), "event", c.event)
		_, line, _ := strings.Cut(strings.TrimSpace(out.String()), " level=")
		require.Equal(t, c.want, strings.Replace(line, "msg=", "", 1))
		require.Regexp(t, name, c.event.EventName())
	}
}

// All that is published is an Event and stands in the table above, with a name
// of its own.
func TestAllEventsKnowTheirLogLine(t *testing.T) {
	shown, names := map[string]bool{}, map[string]string{}
	for _, c := range eventLines() {
		typ := reflect.TypeOf(c.event).Name()
		shown[typ] = true
		if other, ok := names[c.event.EventName()]; ok {
			require.Equal(t, typ, other, "two events have the name %s", c.event.EventName())
		}
		names[c.event.EventName()] = typ
	}
	published := publishedEvents(t)
	require.Greater(t, len(published), 20)
	for typ, at := range published {
		require.True(t, shown[typ], "%s: no line for %s", at, typ)
	}
}

// publishedEvents finds the types that events.go declares, and those of
// this package that are published anywhere in it.
func publishedEvents(t *testing.T) map[string]token.Position {
	fset := token.NewFileSet()
	names, err := filepath.Glob("*.go")
	require.NoError(t, err)
	found := map[string]token.Position{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, name, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				if name == "events.go" {
					found[n.Name.Name] = fset.Position(n.Pos())
				}
			case *ast.CallExpr:
				fun, ok := n.Fun.(*ast.SelectorExpr)
				if !ok || fun.Sel.Name != "Publish" || len(n.Args) != 2 {
					return true
				}
				if lit, ok := n.Args[1].(*ast.CompositeLit); ok {
					found[lit.Type.(*ast.Ident).Name] = fset.Position(n.Pos())
				}
			}
			return true
		})
	}
	return found
}
