package k8swatch_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
)

// deaf is a source whose open watches say nothing more, as over a connection that fell
// silent. Those that are opened afterwards do.
type deaf struct {
	*k8swatchtest.Source
	silenced atomic.Int64 // how many times
}

func (d *deaf) ListWatch(gvr schema.GroupVersionResource, namespace string, tweak func(*metav1.ListOptions)) (cache.ListerWatcherWithContext, error) {
	lw, err := d.Source.ListWatch(gvr, namespace, tweak)
	return deafListWatch{lw, d}, err
}

type deafListWatch struct {
	cache.ListerWatcherWithContext
	*deaf
}

func (d deafListWatch) WatchWithContext(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	w, err := d.ListerWatcherWithContext.WatchWithContext(ctx, opts)
	if err != nil {
		return nil, err
	}
	since := d.silenced.Load()
	return watch.Filter(w, func(in watch.Event) (watch.Event, bool) { return in, d.silenced.Load() == since }), nil
}

// running is a group of watchers of Services and Secrets that are synced.
func running(t *testing.T, src k8swatch.Source, opts *k8swatch.Options) (g *k8swatch.Group, services *k8swatch.Watcher) {
	g = k8swatch.NewGroup(nil)
	for _, resource := range []string{"services", "secrets"} {
		w := mustNew(t, src, corev1.SchemeGroupVersion.WithResource(resource), opts)
		require.NoError(t, g.Add(w))
		if resource == "services" {
			services = w
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { _ = g.Run(ctx) })
	t.Cleanup(func() { cancel(); all.Wait() })
	_, err := g.WaitForSync(ctx)
	require.NoError(t, err)
	synctest.Wait() // after plain lists, the watches are still to be opened
	return g, services
}

// TestRefresh: whatever a watch has missed is in the store when Refresh returns.
func TestRefresh(t *testing.T) {
	for name, opts := range map[string]*k8swatch.Options{"streaming lists": nil, "plain lists": {NoWatchList: true}} {
		bubble(t, name, func(t *testing.T) {
			src := &deaf{Source: k8swatchtest.NewSource()}
			g, services := running(t, src, opts)
			src.silenced.Add(1)
			src.Apply(service("shop", "missed"))
			time.Sleep(time.Minute)
			require.Nil(t, services.Snapshot().ByName("shop", "missed"), "the watch is silent")
			require.Equal(t, k8swatch.PhaseSynced, services.State().Phase, "and nothing shows that")
			require.NoError(t, g.Refresh(t.Context()))
			require.NotNil(t, services.Snapshot().ByName("shop", "missed"))
		})
	}
}

// TestRefreshWaits: a list that begins later counts, not one that was under way, and not
// the watch that comes back first.
func TestRefreshWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := k8swatchtest.NewSource()
		g, services := running(t, src, nil)
		away := errors.New("away")
		src.OnRequest(func(_ context.Context, r k8swatchtest.Request) error {
			if r.Resource.Resource == "services" {
				return away
			}
			return nil
		})
		src.Drop()
		src.Apply(service("shop", "missed"))
		bounded, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		begun := time.Now()
		err := g.Refresh(bounded)
		require.Equal(t, 10*time.Second, time.Since(begun))
		require.ErrorIs(t, err, k8swatch.ErrUnreachable)
		require.ErrorIs(t, err, away)
		require.NotContains(t, err.Error(), "secrets", "which were listed")

		done := make(chan error, 1)
		go func() { done <- g.Refresh(t.Context()) }()
		time.Sleep(time.Minute)
		require.Empty(t, done)
		src.OnRequest(nil)
		require.NoError(t, <-done)
		require.NotNil(t, services.Snapshot().ByName("shop", "missed"))
	})
}

// TestRefreshGivesUp at once where waiting has no foreseeable end.
func TestRefreshGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := k8swatchtest.NewSource()
		g, services := running(t, src, nil)
		src.Forbid(services.Resource())
		time.Sleep(time.Minute)
		err := g.Refresh(t.Context())
		require.ErrorIs(t, err, k8swatch.ErrForbidden)
	})
}

// TestRefreshOfAStart: before the first list is complete Refresh waits for one, and so it
// does before Run.
func TestRefreshOfAStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := k8swatchtest.NewSource(service("shop", "one"))
		w := mustNew(t, src, corev1.SchemeGroupVersion.WithResource("services"), nil)
		done := make(chan error, 1)
		go func() { done <- w.Refresh(t.Context()) }()
		time.Sleep(time.Minute)
		require.Empty(t, done, "it does not run")
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		require.NoError(t, <-done)
		require.Equal(t, 1, w.Snapshot().Len())
		cancel()
		require.NoError(t, <-ended)
		require.ErrorIs(t, w.Refresh(t.Context()), k8swatch.ErrStopped)
	})
}
