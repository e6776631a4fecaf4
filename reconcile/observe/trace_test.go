package observe_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/observe"
)

// traced returns the spans that events make.
func traced(t *testing.T, events ...any) []sdktrace.ReadOnlySpan {
	t.Helper()
	spans := tracetest.NewSpanRecorder()
	bus := eventbus.New(nil)
	observe.Trace(bus, sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)))
	publish(bus, events...)
	deliver(t, bus)
	return spans.Ended()
}

// tree writes spans as an outline: name, length, error.
func tree(spans []sdktrace.ReadOnlySpan) string {
	var b strings.Builder
	var below func(parent string, indent string)
	below = func(parent, indent string) {
		for _, s := range spans {
			of := ""
			if s.Parent().IsValid() {
				of = s.Parent().SpanID().String()
			}
			if of != parent {
				continue
			}
			fmt.Fprintf(&b, "%s%s %s", indent, s.Name(), s.EndTime().Sub(s.StartTime()))
			if s.Status().Code == codes.Error {
				fmt.Fprintf(&b, ": %s", s.Status().Description)
			}
			b.WriteString("\n")
			below(s.SpanContext().SpanID().String(), indent+"  ")
		}
	}
	below("", "")
	return b.String()
}

func TestTrace(t *testing.T) {
	began, boom := time.Now().Add(-time.Minute), errors.New("boom")
	for _, c := range []struct {
		name   string
		events []any
		want   string
	}{
		{"a change for two instances", []any{
			reconcile.ReconciliationStarted{ID: 1, Reasons: []string{"start"}},
			reconcile.AttemptCompleted{ID: 1, At: began, RenderTook: time.Second, ValidateTook: 2 * time.Second},
			reconcile.ReconciliationCompleted{ID: 1, Hash: "abc", Took: 4 * time.Second},
			reconcile.InstanceDeployed{ID: 1, Instance: "a", Took: time.Second, Result: &dataplane.Result{Reloads: 1}},
			reconcile.InstanceDeploymentFailed{ID: 1, Instance: "b", Took: time.Second, Err: boom},
			reconcile.InstanceDeployed{ID: 1, Instance: "b", Took: 2 * time.Second},
		}, `reconciliation 4s
  render 1s
  validate 2s
  deploy 1s
  deploy 1s: boom
  deploy 2s
`},
		{"a search for what is at fault", []any{
			reconcile.ReconciliationStarted{ID: 1},
			reconcile.AttemptCompleted{ID: 1, At: began, RenderTook: time.Second, ValidateTook: time.Second, Err: boom},
			reconcile.AttemptCompleted{ID: 1, At: began.Add(2 * time.Second), RenderTook: time.Second, Err: boom, HeldBack: 1},
			reconcile.AttemptCompleted{ID: 1, At: began.Add(3 * time.Second), RenderTook: time.Second, ValidateTook: time.Second, HeldBack: 2},
			reconcile.ReconciliationCompleted{ID: 1, Took: 5 * time.Second},
		}, `reconciliation 5s
  attempt 2s: boom
    render 1s
    validate 1s: boom
  attempt 1s: boom
    render 1s: boom
  attempt 2s
    render 1s
    validate 1s
`},
		{"a failure", []any{
			reconcile.ReconciliationStarted{ID: 1},
			reconcile.AttemptCompleted{ID: 1, At: began, RenderTook: time.Second, Err: boom},
			reconcile.ReconciliationFailed{ID: 1, Took: time.Second, Err: boom},
		}, `reconciliation 1s: boom
  render 1s: boom
`},
		{"an end without a beginning, as of a bus that was joined late", []any{
			reconcile.AttemptCompleted{ID: 8, At: began, RenderTook: time.Second},
			reconcile.ReconciliationFailed{ID: 9, Took: time.Second, Err: boom},
			reconcile.InstanceDeployed{ID: 3, Instance: "a", Took: time.Second},
		}, `reconciliation 1s: boom
deploy 1s
`},
		{"one that was given up at the end of the process", []any{
			reconcile.ReconciliationStarted{ID: 1},
			reconcile.AttemptCompleted{ID: 1, At: began, RenderTook: time.Second},
			reconcile.ReconciliationStarted{ID: 2},
			reconcile.ReconciliationCompleted{ID: 2, Took: time.Second},
		}, "reconciliation 1s\n"},
		{"drift", []any{
			reconcile.ReconciliationCompleted{ID: 1, Took: time.Second},
			reconcile.DriftRepaired{ID: 1, Instance: "a", Result: &dataplane.Result{Duration: 3 * time.Second}},
			reconcile.DriftRepaired{ID: 1, Instance: "b"},
		}, `reconciliation 1s
  repair drift 3s
  repair drift 0s
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, tree(traced(t, c.events...)))
		})
	}
}

func TestTraceAttributes(t *testing.T) {
	spans := traced(t,
		reconcile.ReconciliationCompleted{ID: 1, Hash: "abc", Took: 4 * time.Second, Reasons: []string{"start"}},
		reconcile.InstanceDeployed{ID: 1, Instance: "a", Result: &dataplane.Result{Reloads: 1, Commands: 2, Fallback: "no socket"}})
	require.ElementsMatch(t, []attribute.KeyValue{
		attribute.Int64("haptic.reconciliation", 1), attribute.Int("haptic.attempts", 0),
		attribute.String("haptic.hash", "abc"), attribute.Bool("haptic.unchanged", false),
		attribute.StringSlice("haptic.reasons", []string{"start"}),
	}, spans[0].Attributes())
	require.ElementsMatch(t, []attribute.KeyValue{
		attribute.Int64("haptic.reconciliation", 1), attribute.String("haptic.instance", "a"), attribute.String("haptic.plan", "no changes"),
		attribute.Int("haptic.reloads", 1), attribute.Int("haptic.commands", 2), attribute.String("haptic.fallback", "no socket"),
	}, spans[1].Attributes())
}

// Whatever comes, a span stays small, and what is remembered too.
func TestTraceIsBounded(t *testing.T) {
	huge := strings.Repeat("é", 1<<20)
	reasons := make([]string, 1000)
	for i := range reasons {
		reasons[i] = huge
	}
	events := []any{
		reconcile.ReconciliationFailed{ID: 1, Reasons: reasons, Err: errors.New("\xff" + huge)},
		reconcile.InstanceDeploymentFailed{ID: 1, Instance: huge, Err: errors.New(huge), Result: &dataplane.Result{Fallback: huge}},
	}
	for id := range uint64(1000) {
		events = append(events, reconcile.ReconciliationCompleted{ID: id + 2})
	}
	events = append(events,
		reconcile.InstanceDeployed{ID: 2, Instance: "forgotten"},
		reconcile.InstanceDeployed{ID: 1001, Instance: "remembered"})
	spans := traced(t, events...)
	last := len(spans) - 1
	require.False(t, spans[last-1].Parent().IsValid())
	require.True(t, spans[last].Parent().IsValid())
	text := func(s string) {
		require.LessOrEqual(t, len(s), 1024)
		require.True(t, utf8.ValidString(s))
	}
	for _, s := range spans {
		text(s.Status().Description)
		attrs := s.Attributes()
		for _, e := range s.Events() {
			attrs = append(attrs, e.Attributes...)
		}
		for _, a := range attrs {
			text(a.Value.AsString())
			require.LessOrEqual(t, len(a.Value.AsStringSlice()), 8)
			for _, v := range a.Value.AsStringSlice() {
				text(v)
			}
		}
	}
}

func TestNoTraceWithoutProvider(t *testing.T) {
	bus := eventbus.New(nil)
	require.Nil(t, observe.Trace(bus, nil))
	require.Empty(t, bus.Stats().Subscribers)
}
