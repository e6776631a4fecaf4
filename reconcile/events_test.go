package reconcile

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile/event"
)

// declared is what an event counts, without values.
func declared(e event.Event) []event.Metric {
	metrics := e.Report().Metrics
	for i := range metrics {
		metrics[i].Value, metrics[i].By = 0, nil
	}
	return metrics
}

// Whatever the fields of an event are, it counts the same metrics.
func TestEventsDeclareTheirMetrics(t *testing.T) {
	result := &dataplane.Result{Reloads: 1, Commands: 2, Fallback: "no socket", Duration: time.Second}
	boom := errors.New("boom")
	for _, e := range []event.Event{
		ReconciliationCompleted{ID: 7, Unchanged: true, Attempts: 3, Failures: 2, Took: time.Second},
		ReconciliationFailed{ID: 7, Err: boom},
		TemplateRendered{ID: 7, Resources: map[string]int{"Ingress": 5}, Took: time.Second},
		IndexSynchronized{Resources: map[string]int{"Ingress": 5}},
		ValidationCompleted{Took: time.Second}, ValidationFailed{Err: boom, Took: time.Second},
		InstanceDeployed{Result: result, Took: time.Second, Failures: 1}, InstanceDeploymentFailed{Result: result, Err: boom, RetryAt: time.Now()},
		DriftRepaired{Result: result},
	} {
		zero := reflect.Zero(reflect.TypeOf(e)).Interface().(event.Event)
		require.Equal(t, declared(zero), declared(e), e.Report().Name)
		require.NotEmpty(t, declared(e))
	}
}
