package observe

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/reconcile"
)

// tracerName is the instrumentation scope of all spans.
const tracerName = "github.com/hapticsdk/haptic/reconcile/observe"

const (
	tracesKept = 64   // reconciliations whose deployments are still put below them
	maxText    = 1024 // bytes of an attribute or an error in a span, at most
	maxReasons = 8    // in a span
)

// Trace makes, until the bus is closed, one OpenTelemetry trace of each
// reconciliation:
//
//	reconciliation      what asked for it, and the hash of the configuration
//	  render, validate  of the one attempt that most have, or
//	  attempt           of several, where something is at fault and is searched for
//	    render, validate
//	  deploy            for each instance, and again for each retry: plan, reloads
//
// Spans of deployments begin after that of the reconciliation has ended, and
// are its children all the same; those of a reconciliation that is far in the
// past begin a trace of their own. Repairs of drift are spans "repair drift".
//
// The spans are made from the events on the bus, with the times of then: the
// loop itself does not wait for any of it. With a nil provider nothing
// subscribes, costs nothing, and the subscription is nil. No secret goes into a
// span; texts in it are at most 1024 bytes long.
func Trace(bus *eventbus.Bus, provider trace.TracerProvider) *eventbus.Subscription {
	if provider == nil {
		return nil
	}
	t := &tracer{tracer: provider.Tracer(tracerName), roots: map[uint64]trace.SpanContext{}}
	return eventbus.Subscribe(bus, func(_ context.Context, d eventbus.Delivery[any]) {
		t.observe(d.Event, time.Now())
	})
}

// tracer gathers what it hears of a reconciliation until that ends. Only the
// goroutine of the subscription uses it.
type tracer struct {
	tracer   trace.Tracer
	started  reconcile.ReconciliationStarted
	attempts []reconcile.AttemptCompleted

	roots map[uint64]trace.SpanContext // by reconciliation
	order []uint64                     // of roots, the oldest first
}

func (t *tracer) observe(event any, now time.Time) {
	switch e := event.(type) {
	case reconcile.ReconciliationStarted:
		t.started, t.attempts = e, nil
	case reconcile.AttemptCompleted:
		if e.ID == t.started.ID {
			t.attempts = append(t.attempts, e)
		}
	case reconcile.ReconciliationCompleted:
		t.reconciled(e.ID, e.Took, now, nil, attribute.String("haptic.hash", e.Hash), attribute.Bool("haptic.unchanged", e.Unchanged))
	case reconcile.ReconciliationFailed:
		t.reconciled(e.ID, e.Took, now, orUnknown(e.Err))
	case reconcile.InstanceDeployed:
		t.deployed("deploy", e.ID, e.Instance, now.Add(-e.Took), now, e.Result, nil)
	case reconcile.InstanceDeploymentFailed:
		t.deployed("deploy", e.ID, e.Instance, now.Add(-e.Took), now, e.Result, orUnknown(e.Err))
	case reconcile.DriftRepaired:
		began := now
		if e.Result != nil {
			began = now.Add(-e.Result.Duration)
		}
		t.deployed("repair drift", e.ID, e.Instance, began, now, e.Result, nil)
	}
}

// reconciled makes the spans of a reconciliation that has ended.
func (t *tracer) reconciled(id uint64, took time.Duration, now time.Time, err error, attrs ...attribute.KeyValue) {
	began := now.Add(-took)
	if len(t.attempts) > 0 && t.attempts[0].At.Before(began) {
		began = t.attempts[0].At
	}
	attrs = append(attrs, attribute.Int64("haptic.reconciliation", int64(id)), attribute.Int("haptic.attempts", len(t.attempts)))
	if t.started.ID == id {
		attrs = append(attrs, attribute.StringSlice("haptic.reasons", few(t.started.Reasons)))
	}
	ctx, root := t.tracer.Start(context.Background(), "reconciliation", trace.WithNewRoot(),
		trace.WithTimestamp(began), trace.WithAttributes(attrs...))
	for _, a := range t.attempts {
		t.attempt(ctx, a, len(t.attempts) > 1)
	}
	end(root, began.Add(took), err)
	t.remember(id, root.SpanContext())
	t.attempts = nil
}

// attempt makes the spans of one render and its validation.
func (t *tracer) attempt(ctx context.Context, a reconcile.AttemptCompleted, several bool) {
	rendered := a.At.Add(a.RenderTook)
	validated := rendered.Add(a.ValidateTook)
	if several {
		var span trace.Span
		ctx, span = t.tracer.Start(ctx, "attempt", trace.WithTimestamp(a.At),
			trace.WithAttributes(attribute.Int("haptic.excluded", a.Excluded)))
		defer func() { end(span, validated, a.Err) }()
	}
	renderErr, validateErr := a.Err, error(nil)
	if a.ValidateTook > 0 {
		renderErr, validateErr = nil, a.Err
	}
	_, span := t.tracer.Start(ctx, "render", trace.WithTimestamp(a.At))
	end(span, rendered, renderErr)
	if a.ValidateTook > 0 {
		_, span = t.tracer.Start(ctx, "validate", trace.WithTimestamp(rendered))
		end(span, validated, validateErr)
	}
}

func (t *tracer) deployed(name string, id uint64, instance string, began, now time.Time, r *dataplane.Result, err error) {
	attrs := []attribute.KeyValue{
		attribute.Int64("haptic.reconciliation", int64(id)),
		attribute.String("haptic.instance", clip(instance)),
	}
	if r != nil {
		attrs = append(attrs, attribute.String("haptic.plan", clip(r.Plan.Summary())),
			attribute.Int("haptic.reloads", r.Reloads), attribute.Int("haptic.commands", r.Commands))
		if r.Fallback != "" {
			attrs = append(attrs, attribute.String("haptic.fallback", clip(r.Fallback)))
		}
	}
	ctx := trace.ContextWithSpanContext(context.Background(), t.roots[id]) // invalid, and so no parent, where it is forgotten
	_, span := t.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(began), trace.WithAttributes(attrs...))
	end(span, now, err)
}

// remember keeps the newest roots, so that an instance that is retried for days
// does not keep them all.
func (t *tracer) remember(id uint64, root trace.SpanContext) {
	if _, ok := t.roots[id]; !ok {
		t.order = append(t.order, id)
	}
	t.roots[id] = root
	if len(t.order) > tracesKept {
		delete(t.roots, t.order[0])
		t.order = slices.Delete(t.order, 0, 1)
	}
}

func end(span trace.Span, at time.Time, err error) {
	if err != nil {
		bounded := errors.New(clip(err.Error()))
		span.RecordError(bounded, trace.WithTimestamp(at))
		span.SetStatus(codes.Error, bounded.Error())
	}
	span.End(trace.WithTimestamp(at))
}

// orUnknown makes an error of none: what failed has failed.
func orUnknown(err error) error {
	if err == nil {
		return errors.New("no reason given")
	}
	return err
}

// clip bounds a text to maxText bytes of valid UTF-8.
func clip(s string) string {
	if len(s) <= maxText {
		return strings.ToValidUTF8(s, "?")
	}
	return strings.ToValidUTF8(s[:maxText-3], "") + "..."
}

// few is the first of texts, clipped.
func few(texts []string) []string {
	shown := make([]string, 0, min(len(texts), maxReasons))
	for _, s := range texts[:min(len(texts), maxReasons)] {
		shown = append(shown, clip(s))
	}
	return shown
}
