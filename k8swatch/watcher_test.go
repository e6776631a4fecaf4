package k8swatch_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

func TestWatchTyped(t *testing.T) {
	src := k8swatchtest.NewSource(ingress("shop", "b", "b.test"), ingress("shop", "a", "a.test", "b.test"), ingress("blog", "z"))
	w := watching(t, src, ingresses, &k8swatch.Options{IndexBy: []string{"spec.rules[*].host"}}, 3)

	before := w.Snapshot()
	r := k8swatch.Read[*networkingv1.Ingress](before)
	for _, tt := range []struct {
		keys []string
		want string
	}{
		{nil, "blog/z shop/a shop/b "},
		{[]string{"b.test"}, "shop/a shop/b "},
		{[]string{"a.test"}, "shop/a "},
		{[]string{""}, "blog/z "},
		{[]string{"c.test"}, ""},
		{[]string{"a.test", "too", "many"}, ""},
	} {
		require.Equal(t, tt.want, names(r.Get(tt.keys...)), "Get(%q)", tt.keys)
	}
	require.Nil(t, r.GetSingle("c.test"), "GetSingle of nothing")
	require.Equal(t, "Ingress", r.GetSingle("a.test").Kind)

	// The object moves from one key to another, alone.
	src.Apply(ingress("shop", "a", "c.test"))
	eventually(t, "the move is stored", func() bool { return w.Snapshot().GetSingle("c.test") != nil })
	after := k8swatch.Read[*networkingv1.Ingress](w.Snapshot())
	require.Equal(t, "shop/b ", names(after.Get("b.test")), "b.test after the move")
	require.Equal(t, "shop/a shop/b ", names(r.Get("b.test")), "the snapshot from before changed")
	src.Delete(ingress("shop", "a"))
	eventually(t, "the deletion is stored", func() bool { return w.Snapshot().Len() == 2 })
	require.Nil(t, w.Snapshot().ByName("shop", "a"), "after the deletion: %v at", names(w.Snapshot().List()))
	require.Equal(t, before.Revision()+2, w.Snapshot().Revision(), "after the deletion: %v at", names(w.Snapshot().List()))
}

func TestSelectors(t *testing.T) {
	labelled := ingress("shop", "a")
	labelled.Labels = map[string]string{"app": "x"}
	src := k8swatchtest.NewSource(labelled, ingress("shop", "b"), ingress("blog", "a"))
	for _, tt := range []struct {
		opts k8swatch.Options
		want string
	}{
		{k8swatch.Options{Namespace: "blog"}, "blog/a "},
		{k8swatch.Options{LabelSelector: "app=x"}, "shop/a "},
		{k8swatch.Options{LabelSelector: "!app"}, "blog/a shop/b "},
		{k8swatch.Options{FieldSelector: "metadata.name!=a"}, "shop/b "},
		{k8swatch.Options{Namespace: "shop", FieldSelector: "metadata.name=a"}, "shop/a "},
	} {
		w := mustNew(t, src, ingresses, &tt.opts)
		stop := start(t, w, strings.Count(tt.want, " "))
		require.Equal(t, tt.want, names(w.Snapshot().List()), "%+v", tt.opts)
		stop()
	}
}

// TestDebounce: OnSyncComplete after the last object; the first change at once;
// then one call per 500 ms with everything that came.
func TestDebounce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := k8swatchtest.NewSource(ingress("a", "1"), ingress("a", "2"))
		type call struct {
			at time.Duration
			c  k8swatch.Changes
		}
		var calls []call
		var w *k8swatch.Watcher
		begun := time.Now()
		count, stored := -1, -1
		w = mustNew(t, src, ingresses, &k8swatch.Options{
			OnChange: func(_ context.Context, c k8swatch.Changes) error {
				calls = append(calls, call{time.Since(begun), c})
				return nil
			},
			OnSyncComplete: func(n int) { count, stored = n, w.Snapshot().Len() },
		})
		start(t, w)
		synctest.Wait()
		if count != 2 || stored != 2 || len(calls) != 0 {
			t.Fatalf("OnSyncComplete(%d) with %d stored, %d calls of OnChange", count, stored, len(calls))
		}
		begun = time.Now()
		src.Apply(ingress("a", "3"))
		synctest.Wait()
		src.Apply(ingress("a", "1", "x.test"))
		src.Delete(ingress("a", "2"))
		synctest.Wait()
		elapse(400 * time.Millisecond) // of the bubble's clock
		src.Apply(ingress("a", "4"))
		elapse(2 * time.Second)
		synctest.Wait()
		want := []call{
			{0, k8swatch.Changes{Created: 1, From: 1, To: 2}},
			{500 * time.Millisecond, k8swatch.Changes{Created: 1, Modified: 1, Deleted: 1, From: 2, To: 5}},
		}
		if len(calls) != 2 || calls[0].at != want[0].at || calls[1].at != want[1].at || numbers(calls[0].c) != numbers(want[0].c) || numbers(calls[1].c) != numbers(want[1].c) {
			t.Fatalf("got %+v, want %+v", calls, want)
		}
	})
}

func TestOnChangeDuringSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string
		var got k8swatch.Changes
		w := mustNew(t, k8swatchtest.NewSource(ingress("a", "1"), ingress("a", "2")), ingresses, &k8swatch.Options{
			CallOnChangeDuringSync: true,
			OnChange: func(_ context.Context, c k8swatch.Changes) error {
				got = c
				order = append(order, "change")
				return nil
			},
			OnSyncComplete: func(int) { order = append(order, "sync") },
		})
		start(t, w)
		elapse(time.Second)
		synctest.Wait()
		require.Equal(t, numbers((k8swatch.Changes{Created: 2, InitialSync: true, To: 1})), numbers(got))
		require.Equal(t, "change sync", strings.Join(order, " "))
	})
}

// TestAnHourOfRedelivery: a callback that fails for an hour has a line at each doubling
// and for each cause, and one when it works again.
func TestAnHourOfRedelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := k8swatchtest.NewSource()
		var log strings.Builder
		var fails atomic.Pointer[string]
		w := mustNew(t, src, ingresses, &k8swatch.Options{
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
			OnChange: func(context.Context, k8swatch.Changes) error {
				if why := fails.Load(); why != nil {
					return errors.New(*why)
				}
				return nil
			},
		})
		stop := start(t, w)
		synctest.Wait()
		for _, why := range []string{"no Secret", "no key"} {
			fails.Store(&why)
			src.Apply(ingress("a", why))
			elapse(30 * time.Minute)
		}
		fails.Store(nil)
		elapse(time.Minute)
		stop()
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(lines) < 8 || len(lines) > 12 || !strings.Contains(lines[len(lines)-1], "OnChange is in order again") || strings.Count(log.String(), "no key") == 0 {
			t.Errorf("%d lines:\n%s", len(lines), &log)
		}
	})
}

// TestRedelivery: an error and a panic keep the changes for the next call.
func TestRedelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := k8swatchtest.NewSource()
		var log strings.Builder
		var calls []k8swatch.Changes
		w := mustNew(t, src, ingresses, &k8swatch.Options{
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
			OnChange: func(_ context.Context, c k8swatch.Changes) error {
				switch calls = append(calls, c); len(calls) {
				case 1:
					src.Apply(ingress("a", "2"))
					return errors.New("not now")
				case 2:
					panic("neither now")
				}
				return nil
			},
		})
		stop := start(t, w)
		synctest.Wait()
		src.Apply(ingress("a", "1"))
		elapse(5 * time.Second)
		stop()
		if len(calls) != 3 || calls[0].Created != 1 || calls[1].Created != 2 || calls[2].Created != 2 || calls[2].From != 0 || calls[2].To != 2 {
			t.Errorf("calls %+v", calls)
		}
		for _, want := range []string{"not now", "neither now", "in=200ms", "in=400ms"} {
			require.Contains(t, log.String(), want)
		}
	})
}

// TestRecreatedWhileAway: what a relist finds is counted exactly.
func TestRecreatedWhileAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := k8swatchtest.NewSource(ingress("a", "same"), ingress("a", "gone"), ingress("a", "changed"), ingress("a", "again"))
		var rec recorder
		w := mustNew(t, src, ingresses, &k8swatch.Options{OnChange: rec.onChange})
		start(t, w)
		synctest.Wait()
		src.Partition()
		elapse(40 * time.Second)
		if s := w.State(); s.Phase != k8swatch.PhaseStale || time.Since(s.StaleSince) < 39*time.Second || s.Objects != 4 || !errors.Is(s.Err, k8swatch.ErrUnreachable) {
			t.Errorf("while away: %+v", s)
		}
		src.Delete(ingress("a", "gone"))
		src.Delete(ingress("a", "again"))
		again := ingress("a", "again")
		again.UID = types.UID("another")
		src.Apply(again, ingress("a", "changed", "x.test"), ingress("a", "new"))
		src.Compact()
		src.Restore()
		restored := time.Now()
		for len(rec.all()) == 0 && time.Since(restored) < time.Minute {
			elapse(10 * time.Millisecond)
			synctest.Wait()
		}
		require.LessOrEqual(t, time.Since(restored), 3*time.Second, "noticed")
		require.Len(t, rec.all(), 1)
		require.Equal(t, numbers((k8swatch.Changes{Created: 2, Modified: 1, Deleted: 2, From: 1, To: 2})), numbers(rec.all()[0]))
		if s := w.State(); s.Phase != k8swatch.PhaseSynced || !s.StaleSince.IsZero() || s.Err != nil {
			t.Errorf("after the return: %+v", s)
		}
	})
}

func TestForbiddenAndNotInstalled(t *testing.T) {
	for _, tt := range []struct {
		name       string
		begin, end func(*k8swatchtest.Source)
		want       error
		phase      k8swatch.Phase
	}{
		{"forbidden", func(s *k8swatchtest.Source) { s.Forbid(routes) }, func(s *k8swatchtest.Source) { s.Allow(routes) }, k8swatch.ErrForbidden, k8swatch.PhaseForbidden},
		{"not installed", func(s *k8swatchtest.Source) { s.Uninstall(routes) }, func(s *k8swatchtest.Source) { s.Install(routes) }, k8swatch.ErrNotInstalled, k8swatch.PhaseNotInstalled},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			src := k8swatchtest.NewSource()
			tt.begin(src)
			w := mustNew(t, src, routes, nil)
			start(t, w)
			_, err := w.WaitForSync(t.Context())
			var sync *k8swatch.SyncError
			if !errors.As(err, &sync) || !errors.Is(err, tt.want) || sync.Resource != routes || (sync.Verb != "list" && sync.Verb != "watch") {
				t.Fatalf("WaitForSync: %v", err)
			}
			require.ErrorContains(t, err, "routes.example.com")
			if s := w.State(); s.Phase != tt.phase || s.Synced {
				t.Errorf("state %+v", s)
			}
			tt.end(src)
			elapse(2 * time.Second)
			synctest.Wait()
			require.NoError(t, errOf(w.WaitForSync(t.Context())), "it did not go on behind the")
			// Taken away while it runs: the snapshot stays, the state tells.
			tt.begin(src)
			elapse(5 * time.Second)
			if s := w.State(); s.Phase != tt.phase || s.StaleSince.IsZero() {
				t.Errorf("taken away: %+v", s)
			}
			// The server once said why, but now it says nothing.
			src.Partition()
			elapse(5 * time.Second)
			require.Equal(t, k8swatch.PhaseStale, w.State().Phase)
			require.ErrorIs(t, w.State().Err, k8swatch.ErrUnreachable)
		})
	}
}

func TestWaitForSyncEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := k8swatchtest.NewSource()
		src.Partition()
		w := mustNew(t, src, ingresses, nil)
		stop := start(t, w)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := w.WaitForSync(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, k8swatch.ErrUnreachable) || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("got %v", err)
		}
		stop()
		require.ErrorIs(t, errOf(w.WaitForSync(t.Context())), k8swatch.ErrStopped, "after Run")
		require.ErrorIs(t, w.Run(t.Context()), k8swatch.ErrStarted, "a second Run")
	})
}

// TestBookmarkEaten: a streaming list without end is given up for plain lists.
func TestBookmarkEaten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := k8swatchtest.NewSource(ingress("a", "1"))
		src.EatBookmarks(true)
		w := mustNew(t, src, ingresses, nil)
		start(t, w)
		begun := time.Now()
		synced(t, w, 1)
		if took := time.Since(begun); took < 10*time.Second || took > 12*time.Second {
			t.Errorf("synced after %s", took)
		}
		src.Apply(ingress("a", "2"))
		synctest.Wait()
		require.Equal(t, 2, w.Snapshot().Len(), "the watch does not go on")
	})
}

// TestForceSync: OnChange is called at once, in the middle of a hold and where nothing
// changed, and the list that follows makes nothing new of what is known.
func TestForceSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := k8swatchtest.NewSource(ingress("a", "1"))
		var rec recorder
		var count atomic.Int32
		w := mustNew(t, src, ingresses, &k8swatch.Options{OnChange: rec.onChange, Debounce: time.Hour, OnSyncComplete: func(int) { count.Store(int32(len(rec.all()))) }})
		w.ForceSync() // nothing runs: nothing happens
		elapse(time.Second)
		start(t, w)
		w.ForceSync() // nothing is known yet
		elapse(time.Second)
		require.Zero(t, len(rec.all()))
		require.Zero(t, count.Load())
		before := w.Snapshot()
		w.ForceSync()
		synctest.Wait()
		if calls := rec.all(); len(calls) != 1 || numbers(calls[0]) != [6]int{4: 1, 5: 1} || calls[0].Snapshot.Of(w).Len() != 1 || calls[0].Snapshot.Revision() != 1 || len(calls[0].Objects)+calls[0].More != 0 {
			t.Errorf("nothing changed: %+v", calls)
		}
		require.Equal(t, before.Revision(), w.Snapshot().Revision(), "a list without news made a revision")
		src.Apply(ingress("a", "2"))
		elapse(time.Second)
		require.Equal(t, 1, len(rec.all()))
		src.Partition() // it waits for no answer
		w.ForceSync()
		synctest.Wait()
		if calls := rec.all(); len(calls) != 2 || numbers(calls[1]) != [6]int{1, 4: 1, 5: 2} {
			t.Errorf("while changes are held: %+v", calls)
		}
		src.Restore()
		src.Apply(ingress("a", "3"))
		elapse(5 * time.Second)
		require.Equal(t, 3, w.Snapshot().Len(), "the watch does not go on after ForceSync")
	})
}

// TestForceSyncOfOthers: a group and a watcher of one object tell at once as well, once.
func TestForceSyncOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := k8swatchtest.NewSource(ingress("a", "1"), service("a", "1"))
		var rec recorder
		g := k8swatch.NewGroup(&k8swatch.GroupOptions{OnChange: rec.onChange})
		require.NoError(t, g.Add(mustNew(t, src, ingresses, nil), mustNew(t, src, services, nil)))
		var told []k8swatch.SingleChange[*networkingv1.Ingress]
		one, err := k8swatch.NewSingle(src, ingresses, "a", "1", &k8swatch.SingleOptions[*networkingv1.Ingress]{
			OnChange: func(_ context.Context, c k8swatch.SingleChange[*networkingv1.Ingress]) error {
				told = append(told, c)
				return nil
			}})
		require.NoError(t, err)
		start(t, g)
		stop := start(t, one)
		synctest.Wait()
		g.ForceSync()
		one.ForceSync()
		elapse(5 * time.Second)
		if calls := rec.all(); len(calls) != 1 || numbers(calls[0]) != [6]int{4: 2, 5: 2} || calls[0].Snapshot.Resource(services).Len() != 1 {
			t.Errorf("group: %+v", calls)
		}
		stop()
		if len(told) != 2 || !told[0].Initial || told[1].Initial || told[1].Created || told[1].Object != told[0].Object {
			t.Errorf("single: %+v", told)
		}
	})
}
