package k8swatch

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/hapticsdk/haptic/k8swatch/internal/memapi"
)

type memory struct{ *memapi.Server }

func (m memory) ListWatch(gvr schema.GroupVersionResource, namespace string, tweak func(*metav1.ListOptions)) (cache.ListerWatcherWithContext, error) {
	return m.Server.ListWatch(gvr, namespace, tweak), nil
}

// TestGroupLosesNoChangeAtSync: a watcher is synced a moment before its group
// knows. What others store in that moment counts as part of the initial sync
// and is not told, so who waits for the group must not have read before.
func TestGroupLosesNoChangeAtSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, err := New(memory{memapi.New()}, corev1.SchemeGroupVersion.WithResource("services"), nil)
		require.NoError(t, err)
		g := NewGroup(nil)
		require.NoError(t, g.Add(w))
		g.unsynced = 1
		synced := make(chan error, 1)
		go func() { _, err := g.WaitForSync(context.Background()); synced <- err }()
		w.health.syncedNow(0)
		synctest.Wait()
		select {
		case err := <-synced:
			t.Fatalf("synced before the group is: %v", err)
		default:
		}
		g.initially()
		require.NoError(t, <-synced)
	})
}
