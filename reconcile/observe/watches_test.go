package observe_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
	"github.com/hapticsdk/haptic/reconcile/observe"
)

// syncBuffer is a log that is read while it is written.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// A resource that the API server does not have, or does not show, is a line when it
// begins, a line when it ends, and a row of the page meanwhile; however often it is
// tried.
func TestWatchesAreTold(t *testing.T) {
	services, routes := corev1.SchemeGroupVersion.WithResource("services"), schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "routes"}
	source := k8swatchtest.NewSource(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "b"}})
	source.Uninstall(routes)
	group := k8swatch.NewGroup(nil)
	for _, gvr := range []schema.GroupVersionResource{services, routes} {
		w, err := k8swatch.New(source, gvr, nil)
		require.NoError(t, err)
		require.NoError(t, group.Add(w))
	}
	var log syncBuffer
	bus := eventbus.New(nil)
	o := newObserver(t, bus, observe.Subject{Watched: []func() map[schema.GroupVersionResource]k8swatch.State{group.States}}, slog.New(slog.NewTextHandler(&log, nil)))
	bus.Start()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { ended <- group.Run(ctx) }()
	go func() { ended <- o.Run(ctx) }()
	until := func(text string) {
		t.Helper()
		require.Eventually(t, func() bool { return strings.Contains(log.String(), text) }, time.Minute, time.Millisecond, text)
	}
	until(`watches: routes.example.com: NotInstalled: cannot watch routes.example.com in all namespaces: the server does not have the resource: `)
	require.ErrorContains(t, o.Health.Ready(), "routes.example.com: NotInstalled: ")
	source.Forbid(services)
	until(`watches: services: Forbidden: `)
	require.Contains(t, log.String(), "; the objects read before stay in use; the watcher tries again")
	source.Allow(services)
	until("in order again after")
	source.Install(routes)
	require.Eventually(t, func() bool { return o.Health.Ready() == nil }, time.Minute, time.Millisecond)
	require.Eventually(t, func() bool { return strings.Count(log.String(), "in order again after") == 2 }, time.Minute, time.Millisecond)
	cancel()
	require.NoError(t, <-ended)
	require.NoError(t, <-ended)
	require.NoError(t, bus.Close(context.Background()))
	require.Equal(t, 4, strings.Count(log.String(), "\n"), log.String())
}
