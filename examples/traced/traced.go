// Package traced exports the traces of a controller to an OpenTelemetry collector. To
// use it, copy this file into the folder of your controller, run
//
//	go get go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp@v1.38.0
//
// and call Export before the bus starts; in examples/controller that is in newObserver.
// It is no part of the SDK's module, because the exporter brings eight more modules,
// gRPC among them.
package traced

import (
	"context"
	"os"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/reconcile/observe"
)

// Export sends the traces of [observe.Trace] over HTTP to the collector at
// OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, such as
// http://localhost:4318. If neither is set, Export does nothing. The other variables of
// OpenTelemetry apply as well; OTEL_SERVICE_NAME is haptic unless it is set.
//
// stop sends the remaining traces. Call it after the bus was closed, with a context of
// a few seconds. An unreachable collector delays nothing.
func Export(ctx context.Context, bus *eventbus.Bus) (stop func(context.Context) error, err error) {
	if os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == "" {
		return func(context.Context) error { return nil }, nil
	}
	of, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "haptic")), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, err
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, err
	}
	provider := trace.NewTracerProvider(trace.WithBatcher(exporter), trace.WithResource(of))
	observe.Trace(bus, provider)
	return provider.Shutdown, nil
}
