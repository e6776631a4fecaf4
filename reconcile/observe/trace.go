package observe

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/utils/lru"

	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/event"
)

const (
	// tracerName is the instrumentation scope of all spans.
	tracerName = "github.com/hapticsdk/haptic/reconcile/observe"
	tracesKept = 64   // reconciliations that deployments can still be children of
	maxText    = 1024 // bytes of an attribute or an error in a span, at most
	maxReasons = 8    // in a span
)

// Trace makes one OpenTelemetry trace of each reconciliation, until the bus is closed:
//
//	reconciliation      its reasons, and the hash of the configuration
//	  render, validate  if there is one attempt, as in most cases, or
//	  attempt           for each of several, in a search for the fault
//	    render, validate
//	  deploy            for each instance, and again for each retry: plan, reloads
//
// Deployments begin after the span of the reconciliation has ended, but their spans are its
// children. If the reconciliation is far in the past, they begin their own trace. Repairs of
// drift are spans "repair drift".
//
// Trace makes the spans from the events on the bus, with the original times; the loop never
// waits for them. If the provider is nil, Trace returns nil and costs nothing. On a nil bus
// there are no spans. No secret goes into a span. Texts have at most 1024 bytes.
func Trace(bus *eventbus.Bus, provider trace.TracerProvider) *eventbus.Subscription {
	if provider == nil {
		return nil
	}
	t := &tracer{tracer: provider.Tracer(tracerName), roots: lru.New(tracesKept)}
	return eventbus.Subscribe(bus, func(_ context.Context, d eventbus.Delivery[any]) { t.observe(d.Event, time.Now()) })
}

// tracer collects the attempts of a reconciliation until it ends. Only the goroutine of the
// subscription uses it.
type tracer struct {
	tracer   trace.Tracer
	attempts []reconcile.AttemptCompleted // of the newest reconciliation
	roots    *lru.Cache                   // of trace.SpanContext, by reconciliation
}

func (t *tracer) observe(v any, now time.Time) {
	switch e := v.(type) {
	case reconcile.AttemptCompleted:
		if len(t.attempts) > 0 && t.attempts[0].ID != e.ID {
			t.attempts = nil
		}
		t.attempts = append(t.attempts, e)
	case reconcile.ReconciliationCompleted:
		t.reconciled(e.Report(), now, e.Reasons, attribute.String("haptic.hash", e.Hash), attribute.Bool("haptic.unchanged", e.Unchanged))
	case reconcile.ReconciliationFailed:
		t.reconciled(e.Report(), now, e.Reasons)
	case reconcile.InstanceDeployed, reconcile.InstanceDeploymentFailed:
		t.deployed("deploy", reportOf(v), now)
	case reconcile.DriftRepaired:
		t.deployed("repair drift", e.Report(), now)
	}
}

// reconciled makes the spans of an ended reconciliation.
func (t *tracer) reconciled(r event.Report, now time.Time, reasons []string, attrs ...attribute.KeyValue) {
	attempts, began := t.attempts, now.Add(-r.Took)
	t.attempts = nil
	if len(attempts) > 0 && attempts[0].ID != r.Reconciliation {
		attempts = nil
	}
	if len(attempts) > 0 && attempts[0].At.Before(began) {
		began = attempts[0].At
	}
	shown := make([]string, min(len(reasons), maxReasons))
	for i := range shown {
		shown[i] = clip(reasons[i])
	}
	attrs = append(attrs, attribute.Int64("haptic.reconciliation", int64(r.Reconciliation)),
		attribute.Int("haptic.attempts", len(attempts)), attribute.StringSlice("haptic.reasons", shown))
	ctx, root := t.tracer.Start(context.Background(), "reconciliation", trace.WithNewRoot(),
		trace.WithTimestamp(began), trace.WithAttributes(attrs...))
	for _, a := range attempts {
		t.attempt(ctx, a, len(attempts) > 1)
	}
	end(root, began.Add(r.Took), r.Err)
	t.roots.Add(r.Reconciliation, root.SpanContext())
}

// attempt makes the spans of one render and its validation.
func (t *tracer) attempt(ctx context.Context, a reconcile.AttemptCompleted, several bool) {
	rendered := a.At.Add(a.RenderTook)
	validated := rendered.Add(a.ValidateTook)
	if several {
		var span trace.Span
		ctx, span = t.tracer.Start(ctx, "attempt", trace.WithTimestamp(a.At),
			trace.WithAttributes(attribute.Int("haptic.held_back", a.HeldBack)))
		defer func() { end(span, validated, a.Err) }()
	}
	_, span := t.tracer.Start(ctx, "render", trace.WithTimestamp(a.At))
	if a.ValidateTook == 0 {
		end(span, rendered, a.Err)
		return
	}
	end(span, rendered, nil)
	_, span = t.tracer.Start(ctx, "validate", trace.WithTimestamp(rendered))
	end(span, validated, a.Err)
}

func (t *tracer) deployed(name string, r event.Report, now time.Time) {
	attrs := []attribute.KeyValue{
		attribute.Int64("haptic.reconciliation", int64(r.Reconciliation)),
		attribute.String("haptic.instance", clip(r.Instance)),
	}
	if r := r.Result; r != nil {
		attrs = append(attrs, attribute.String("haptic.plan", clip(r.Plan.Summary())),
			attribute.Int("haptic.reloads", r.Reloads), attribute.Int("haptic.commands", r.Commands))
		if r.Fallback != "" {
			attrs = append(attrs, attribute.String("haptic.fallback", clip(r.Fallback)))
		}
	}
	ctx := context.Background()
	if root, ok := t.roots.Get(r.Reconciliation); ok {
		ctx = trace.ContextWithSpanContext(ctx, root.(trace.SpanContext))
	}
	_, span := t.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(now.Add(-r.Took)), trace.WithAttributes(attrs...))
	end(span, now, r.Err)
}

func end(span trace.Span, at time.Time, err error) {
	if err != nil {
		bounded := errors.New(clip(err.Error()))
		span.RecordError(bounded, trace.WithTimestamp(at))
		span.SetStatus(codes.Error, bounded.Error())
	}
	span.End(trace.WithTimestamp(at))
}

// clip bounds a text to maxText bytes of valid UTF-8.
func clip(s string) string {
	if len(s) > maxText {
		s = s[:maxText-3] + "..."
	}
	return strings.ToValidUTF8(s, "")
}
