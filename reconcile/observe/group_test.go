package observe_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/observe"
)

// A group says once that all is known, and then, for each resource, what changed: each
// change once, though it is delivered until somebody takes it.
func TestGroupTellsOfItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		object := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "shop", Name: name} }
		source := k8swatchtest.NewSource(&corev1.Service{ObjectMeta: object("a")}, &corev1.Service{ObjectMeta: object("b")})
		bus := eventbus.New(nil)
		var mu sync.Mutex
		var events []string
		note := func(text string) {
			mu.Lock()
			defer mu.Unlock()
			events = append(events, text)
		}
		eventbus.Subscribe(bus, func(_ context.Context, d eventbus.Delivery[any]) {
			if e, ok := d.Event.(reconcile.IndexSynchronized); ok {
				e.Took = 0
				note(fmt.Sprintf("%T %+v", e, e.Resources))
				return
			}
			note(fmt.Sprintf("%T %+v", d.Event, d.Event))
		})
		failures := 2
		group := observe.NewGroup(bus, &k8swatch.GroupOptions{Logger: slog.New(slog.DiscardHandler),
			OnSyncComplete: func(count int) {
				time.Sleep(time.Millisecond)
				note(fmt.Sprint("synced ", count))
			},
			OnChange: func(_ context.Context, c k8swatch.Changes) error {
				time.Sleep(time.Millisecond) // the events are told
				note(c.String())
				if failures--; failures >= 0 {
					return errors.New("not now")
				}
				return nil
			}})
		for _, gvr := range []string{"services", "ingresses"} {
			of := corev1.SchemeGroupVersion
			if gvr == "ingresses" {
				of = networkingv1.SchemeGroupVersion
			}
			w, err := k8swatch.New(source, of.WithResource(gvr), nil)
			require.NoError(t, err)
			require.NoError(t, group.Add(w))
		}
		bus.Start()
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- group.Run(ctx) }()
		time.Sleep(time.Second)
		source.Apply(&networkingv1.Ingress{ObjectMeta: object("a")}) // a call fails
		time.Sleep(100 * time.Millisecond)
		source.Delete(&corev1.Service{ObjectMeta: object("a")}) // and another
		time.Sleep(time.Second)
		source.Apply(&corev1.Service{ObjectMeta: object("c")})
		time.Sleep(time.Second)
		stop()
		require.NoError(t, <-ended)
		require.NoError(t, bus.Close(context.Background()))
		require.Equal(t, []string{
			"reconcile.IndexSynchronized map[ingresses:0 services:2]", "synced 2",
			"reconcile.ResourceIndexUpdated {Resource:ingresses Created:1 Modified:0 Deleted:0 Objects:1}", "1 created",
			"reconcile.ResourceIndexUpdated {Resource:services Created:0 Modified:0 Deleted:1 Objects:1}", "1 created, 1 deleted",
			"1 created, 1 deleted",
			"reconcile.ResourceIndexUpdated {Resource:services Created:1 Modified:0 Deleted:0 Objects:2}", "1 created",
		}, events)
	})
}
