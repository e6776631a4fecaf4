package memapi_test

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/hapticsdk/haptic/k8swatch/internal/memapi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestKindFor(t *testing.T) {
	for _, tt := range []struct {
		group, version, resource string
		want                     string
	}{
		{"", "v1", "services", "*v1.Service"},
		{"", "v1", "endpoints", "*v1.Endpoints"},
		{"networking.k8s.io", "v1", "ingresses", "*v1.Ingress"},
		{"networking.k8s.io", "v1", "ingressclasses", "*v1.IngressClass"},
		{"networking.k8s.io", "v1", "networkpolicies", "*v1.NetworkPolicy"},
		{"discovery.k8s.io", "v1", "endpointslices", "*v1.EndpointSlice"},
		{"coordination.k8s.io", "v1", "leases", "*v1.Lease"},
		{"example.com", "v1", "routes", "<nil>"},
		{"", "v1", "lists", "<nil>"},
		{"", "v9", "services", "<nil>"},
	} {
		got := memapi.KindFor(schema.GroupVersionResource{Group: tt.group, Version: tt.version, Resource: tt.resource}).Type
		require.Equal(t, tt.want, fmt.Sprint(got), "%s/%s", tt.version, tt.resource)
	}
}

func TestNamespaced(t *testing.T) {
	for kind, want := range map[string]bool{"Service": true, "Route": true, "Role": true, "IngressClass": false, "Namespace": false, "ClusterRole": false, "Class": true} {
		require.Equal(t, want, memapi.Namespaced(kind))
	}
}

// TestLogIsBounded: a watch that falls behind the log gets 410, as from etcd.
func TestLogIsBounded(t *testing.T) {
	services := corev1.SchemeGroupVersion.WithResource("services")
	s := memapi.New()
	apply := func(n int) {
		for range n {
			s.Apply(services, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b"}})
		}
	}
	apply(1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w, err := s.ListWatch(services, "", nil).WatchWithContext(ctx, metav1.ListOptions{ResourceVersion: "1"})
	require.NoError(t, err)
	first := <-w.ResultChan()
	if first.Type != watch.Added || reflect.TypeOf(first.Object) != reflect.TypeFor[*corev1.Service]() {
		t.Fatalf("first %+v", first)
	}
	apply(200_001)
	if _, err := s.ListWatch(services, "", nil).WatchWithContext(ctx, metav1.ListOptions{ResourceVersion: "2"}); !apierrors.IsResourceExpired(err) {
		t.Errorf("an old revision: %v", err)
	}
	for e := range w.ResultChan() {
		if e.Type == watch.Error {
			if err := apierrors.FromObject(e.Object); !apierrors.IsResourceExpired(err) {
				t.Errorf("fell behind: %v", err)
			}
			return
		}
	}
	t.Error("the watch ended without saying why")
}

// TestWaitForWatches: a watch that has read everything when the wait begins is not
// waited for.
func TestWaitForWatches(t *testing.T) {
	s := memapi.New()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	w, err := s.ListWatch(corev1.SchemeGroupVersion.WithResource("services"), "", nil).WatchWithContext(ctx, metav1.ListOptions{ResourceVersion: "1", AllowWatchBookmarks: true})
	require.NoError(t, err)
	var read sync.WaitGroup
	read.Go(func() {
		for range w.ResultChan() {
		}
	})
	defer read.Wait()
	defer w.Stop()
	for range 20_000 {
		var wait sync.WaitGroup
		for range 4 { // in each other's way
			wait.Go(func() {
				if err := s.WaitForWatches(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		if wait.Wait(); t.Failed() {
			return
		}
	}
}
