package eventbus_test

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/eventbus"
)

// TestHangingSubscriber: a subscriber that hangs is closed and told once it has too many events
// before it. The others get all of theirs, and the bus keeps no more than it needs.
func TestHangingSubscriber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		b := eventbus.New(&eventbus.Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), MaxPending: 1000})
		goOn, handled := make(chan struct{}), 0
		hangs := eventbus.Subscribe(b, func(ctx context.Context, d eventbus.Delivery[int]) {
			if d.Event == 7 {
				<-ctx.Done() // closed: it learns so
				<-goOn
			}
		})
		eventbus.Subscribe(b, func(context.Context, eventbus.Delivery[int]) { handled++ })
		b.Start()
		const all = 20_000
		for i := range all {
			eventbus.Publish(b, i)
			synctest.Wait()
		}
		require.Equal(t, all, handled)
		require.Contains(t, log.String(), "subscriber hangs, and gets no more events")
		require.Equal(t, 1, bytes.Count(log.Bytes(), []byte("\n")))
		require.Less(t, b.Kept(), 4000)
		close(goOn)
		<-hangs.Done()
		require.NoError(t, b.Close(t.Context()))
	})
}
