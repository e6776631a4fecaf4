package observe_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace/noop"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/discover"
	"github.com/hapticsdk/haptic/reconcile/observe"
)

// TestNil: what is missing is named by New. The parts that stand alone do nothing on a
// nil bus, as all of eventbus.
func TestNil(t *testing.T) {
	var loop *reconcile.Loop
	var found *discover.Follower
	for want, c := range map[string]struct {
		bus *eventbus.Bus
		s   observe.Subject
	}{
		"observe: New needs the bus of the loop":                 {nil, observe.Subject{}},
		"observe: Subject.Loop is a nil *reconcile.Loop":         {eventbus.New(nil), observe.Subject{Loop: loop}},
		"observe: Subject.Discovery is a nil *discover.Follower": {eventbus.New(nil), observe.Subject{Discovery: found}},
		"observe: Subject.Watched[0] is nil": {eventbus.New(nil), observe.Subject{
			Watched: []func() map[schema.GroupVersionResource]k8swatch.State{nil}}},
	} {
		_, err := observe.New(c.bus, c.s, nil)
		require.ErrorContains(t, err, want)
	}
	metrics := observe.NewMetrics(nil, observe.Subject{Version: "v1"})
	require.Contains(t, exposed(t, metrics), "haptic_events_published_total 0")
	<-observe.Comment(nil, nil).Done()
	<-observe.Trace(nil, noop.NewTracerProvider()).Done()
	require.Nil(t, observe.Trace(nil, nil))
	var bus *eventbus.Bus
	bus.Start()
	eventbus.Publish(bus, reconcile.LeaderLost{})
	eventbus.Subscribe(bus, func(context.Context, eventbus.Delivery[any]) { t.Error("there is nothing to deliver") }).Close()
	require.Zero(t, bus.Stats())
	require.NoError(t, bus.Close(t.Context()))
}
