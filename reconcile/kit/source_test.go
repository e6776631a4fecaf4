package kit

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
)

// TestAwaitSync: a single run gives up on a source that does not answer, and a controller
// waits for it.
func TestAwaitSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		watchers, began := unsynced(t), time.Now()
		require.Error(t, AwaitSync(t.Context(), watchers, true))
		require.Equal(t, SyncTimeout, time.Since(began))

		ctx, stop := context.WithCancel(t.Context())
		synced, ended := make(chan error, 1), make(chan error, 1)
		go func() { synced <- AwaitSync(ctx, watchers, false) }()
		select {
		case err := <-synced:
			t.Error("it gave up", err)
		case <-time.After(time.Hour):
		}
		go func() { ended <- watchers.Run(ctx) }()
		require.NoError(t, <-synced)
		stop()
		require.NoError(t, <-ended)
		require.ErrorIs(t, AwaitSync(ctx, unsynced(t), false), context.Canceled)
	})
}

// unsynced is a group that nothing runs.
func unsynced(t *testing.T) *k8swatch.Group {
	watchers := k8swatch.NewGroup(nil)
	_, err := k8swatch.Add[*corev1.Service](watchers, k8swatchtest.NewSource(), corev1.SchemeGroupVersion.WithResource("services"), nil)
	require.NoError(t, err)
	return watchers
}
