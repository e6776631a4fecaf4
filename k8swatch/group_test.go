package k8swatch_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
)

var services = corev1.SchemeGroupVersion.WithResource("services")

func service(namespace, name string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func TestGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := k8swatchtest.NewSource(ingress("a", "1"), service("a", "1"), service("a", "2"))
		src.Forbid(services)
		in, svc := mustNew(t, src, ingresses, nil), mustNew(t, src, services, nil)
		var rec recorder
		count := -1
		g := k8swatch.NewGroup(&k8swatch.GroupOptions{
			OnChange:       rec.onChange,
			OnSyncComplete: func(n int) { count = n },
		})
		require.NoError(t, g.Add(in, svc))
		require.ErrorIs(t, k8swatch.NewGroup(nil).Add(in), k8swatch.ErrInGroup, "added twice")
		start(t, g)
		synctest.Wait()
		require.ErrorIs(t, g.Add(mustNew(t, src, ingresses, nil)), k8swatch.ErrGroupRunning, "added while running")
		require.ErrorIs(t, errOf(g.WaitForSync(t.Context())), k8swatch.ErrForbidden, "WaitForSync")
		// A change before the last watcher is synced belongs to the initial sync.
		src.Apply(ingress("a", "2"))
		elapse(time.Second)
		synctest.Wait()
		if count != -1 || len(rec.all()) != 0 || g.Synced() {
			t.Errorf("before the sync: count %d, calls %v", count, rec.all())
		}
		src.Allow(services)
		elapse(3 * time.Second)
		synced(t, g, 3)
		synctest.Wait()
		require.Equal(t, 3, count)
		require.Empty(t, rec.all())
		src.Apply(ingress("a", "3"))
		synctest.Wait()
		src.Apply(service("a", "3"))
		src.Delete(ingress("a", "1"))
		elapse(time.Second)
		synctest.Wait()
		want := []k8swatch.Changes{{Created: 1, From: 3, To: 4}, {Created: 1, Deleted: 1, From: 4, To: 6}}
		if len(rec.all()) != 2 || numbers(rec.all()[0]) != numbers(want[0]) || numbers(rec.all()[1]) != numbers(want[1]) {
			t.Errorf("calls %+v, want %+v", rec.all(), want)
		}
		snap := g.Snapshot()
		if snap.Of(in).Len() != 2 || snap.Resource(services).Len() != 3 || snap.Revision() != 6 || snap.Resource(routes) != nil {
			t.Errorf("snapshot %d, %d at %d", snap.Of(in).Len(), snap.Of(svc).Len(), snap.Revision())
		}
		require.Equal(t, k8swatch.PhaseSynced, g.States()[services].Phase)
	})
}

// TestGroupStatesOfOneResource: two watchers of a resource do not hide each other.
func TestGroupStatesOfOneResource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good, bad := k8swatchtest.NewSource(ingress("a", "1")), k8swatchtest.NewSource(ingress("b", "1"))
		bad.Forbid(ingresses)
		for _, order := range [][2]*k8swatchtest.Source{{good, bad}, {bad, good}} {
			g := k8swatch.NewGroup(nil)
			for i, src := range order {
				require.NoError(t, g.Add(mustNew(t, src, ingresses, &k8swatch.Options{Namespace: string(rune('a' + i))})))
			}
			stop := start(t, g)
			synctest.Wait()
			if s := g.States(); len(s) != 1 || s[ingresses].Phase != k8swatch.PhaseForbidden {
				t.Errorf("states %+v", s)
			}
			all := g.Watchers()
			if len(all) != 2 || all[0].Namespace() != "a" || all[1].Namespace() != "b" {
				t.Fatalf("watchers %v", all)
			}
			for i, w := range all {
				want := k8swatch.PhaseSynced
				if order[i] == bad {
					want = k8swatch.PhaseForbidden
				}
				require.Equal(t, want, w.State().Phase, "watcher %d", i)
			}
			stop()
		}
	})
}

// TestGroupErrorIsOfTheFirst: of several in trouble, whoever was scheduled first.
func TestGroupErrorIsOfTheFirst(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			src := k8swatchtest.NewSource()
			src.Partition()
			g := k8swatch.NewGroup(nil)
			require.NoError(t, g.Add(mustNew(t, src, services, nil), mustNew(t, src, ingresses, nil), mustNew(t, src, secrets, nil)))
			start(t, g)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var sync *k8swatch.SyncError
			if _, err := g.WaitForSync(ctx); !errors.As(err, &sync) || sync.Resource != services || !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("time-out: %v", err)
			}
			src.Forbid(ingresses)
			src.Forbid(secrets)
			src.Restore()
			elapse(5 * time.Second)
			if _, err := g.WaitForSync(t.Context()); !errors.As(err, &sync) || sync.Resource != ingresses || !errors.Is(err, k8swatch.ErrForbidden) {
				t.Fatalf("forbidden: %v", err)
			}
		})
	}
}

// TestSnapshotOfAtOnce: watchers that are read together in any order, while they
// change, never wait for each other for ever.
func TestSnapshotOfAtOnce(t *testing.T) {
	source := k8swatchtest.NewSource()
	ctx, stop := context.WithCancel(t.Context())
	var running, reading sync.WaitGroup
	var watchers []*k8swatch.Watcher
	for _, resource := range []string{"configmaps", "secrets", "services"} {
		w := mustNew(t, source, corev1.SchemeGroupVersion.WithResource(resource), nil)
		running.Go(func() { _ = w.Run(ctx) })
		watchers = append(watchers, w)
	}
	for i := range 4 {
		reading.Go(func() {
			for j := range 100 {
				a, b, c := watchers[(i+j)%3], watchers[(i+j+1)%3], watchers[(i+j+2)%3]
				all := k8swatch.SnapshotOf(a, b, c, a)
				sum := all.Of(a).Revision() + all.Of(b).Revision() + all.Of(c).Revision()
				if all.Revision() != sum {
					t.Errorf("revision %d, and %d of the parts", all.Revision(), sum)
				}
				source.Apply(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: fmt.Sprint(i, j)}})
			}
		})
	}
	reading.Wait()
	stop()
	running.Wait()
}

// ExampleSnapshotOf reads two watchers at one instant, one of which came later.
func ExampleSnapshotOf() {
	source := k8swatchtest.NewSource(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings"}})
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	var watchers []*k8swatch.Watcher
	for _, resource := range []string{"configmaps", "secrets"} {
		w, err := k8swatch.New(source, corev1.SchemeGroupVersion.WithResource(resource), nil)
		if err != nil {
			panic(err)
		}
		wg.Go(func() { _ = w.Run(ctx) })
		if _, err := w.WaitForSync(ctx); err != nil {
			panic(err)
		}
		watchers = append(watchers, w)
	}
	all := k8swatch.SnapshotOf(watchers...)
	fmt.Println(all.Of(watchers[0]).Len(), all.Of(watchers[1]).Len())
	fmt.Println(k8swatch.SnapshotOf(watchers[1]).Of(watchers[0]) == nil)
	stop()
	wg.Wait()
	// Output:
	// 1 0
	// true
}

// TestAddRefuses: what Add refuses, it does not add.
func TestAddRefuses(t *testing.T) {
	src, ingresses := k8swatchtest.NewSource(), networkingv1.SchemeGroupVersion.WithResource("ingresses")
	group := k8swatch.NewGroup(nil)
	refused := func(err error, text string) {
		t.Helper()
		var option *k8swatch.OptionError
		require.True(t, errors.As(err, &option), "%v", err)
		require.ErrorContains(t, err, text)
		require.Empty(t, group.Watchers())
	}
	_, err := k8swatch.Add[*corev1.Service](group, src, ingresses, nil)
	refused(err, "its objects are *v1.Ingress, not *v1.Service")
	_, err = k8swatch.Add[*networkingv1.Ingress](group, nil, ingresses, nil)
	refused(err, "the source is missing")
	_, err = k8swatch.Add[*networkingv1.Ingress](nil, src, ingresses, nil)
	refused(err, "the group is nil")
	_, err = k8swatch.Add[*networkingv1.Ingress](group, src, ingresses, &k8swatch.Options{IndexBy: []string{"spec.hosts"}})
	refused(err, `no field "hosts"`)

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- group.Run(ctx) }()
	_, err = group.WaitForSync(ctx)
	require.NoError(t, err)
	stop()
	require.NoError(t, <-ended)
	_, err = k8swatch.Add[*networkingv1.Ingress](group, src, ingresses, nil)
	require.ErrorIs(t, err, k8swatch.ErrGroupRunning)
}

// Two resources in one group, read with their types at one instant.
func ExampleAdd() {
	src := k8swatchtest.NewSource(ingress("shop", "web", "shop.test"))
	group := k8swatch.NewGroup(nil)
	ingresses, err1 := k8swatch.Add[*networkingv1.Ingress](group, src, networkingv1.SchemeGroupVersion.WithResource("ingresses"), nil)
	services, err2 := k8swatch.Add[*corev1.Service](group, src, corev1.SchemeGroupVersion.WithResource("services"), nil)
	if err := errors.Join(err1, err2); err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- group.Run(ctx) }()
	if _, err := group.WaitForSync(ctx); err != nil {
		panic(err)
	}
	all := group.Snapshot()
	for _, i := range ingresses.Read(all).List() {
		fmt.Println(i.Name, i.Spec.Rules[0].Host)
	}
	fmt.Println(services.Read(all).Len(), services.Watcher().State().Phase)
	stop()
	<-ended
	// Output:
	// web shop.test
	// 0 Synced
}
