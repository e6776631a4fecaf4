package k8swatch_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
)

// TestForbiddenStays: while one of the verbs is forbidden the state says so all
// the time, and which, although the other works and they take turns.
func TestForbiddenStays(t *testing.T) {
	for _, verb := range []string{"watch", "list"} {
		for _, noStream := range []bool{false, true} {
			if verb == "list" && !noStream {
				continue // a streaming list is a watch and needs no other permission
			}
			bubble(t, fmt.Sprintf("%s, NoWatchList=%v", verb, noStream), func(t *testing.T) {
				src := k8swatchtest.NewSource(ingress("a", "1"))
				w := watching(t, src, ingresses, &k8swatch.Options{NoWatchList: noStream}, 1)
				src.Forbid(ingresses, verb)
				if verb == "list" {
					w.ForceSync()
				}
				elapse(time.Second)
				stale := w.State().StaleSince
				for range 1000 {
					elapse(10 * time.Millisecond)
					synctest.Wait()
					s := w.State()
					var why *k8swatch.SyncError
					if s.Phase != k8swatch.PhaseForbidden || !errors.As(s.Err, &why) || why.Verb != verb || !errors.Is(s.Err, k8swatch.ErrForbidden) || s.StaleSince != stale || stale.IsZero() {
						t.Fatalf("state %+v", s)
					}
				}
				src.Allow(ingresses)
				src.Apply(ingress("a", "2"))
				elapse(3 * time.Second)
				if s := w.State(); s.Phase != k8swatch.PhaseSynced || s.Err != nil || !s.StaleSince.IsZero() || s.Objects != 2 {
					t.Errorf("allowed again: %+v", s)
				}
			})
		}
	}
}

// TestSlowPages: a list that takes its time shows in the state and arrives.
func TestSlowPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := k8swatchtest.NewSource(ingress("a", "1"))
		src.OnRequest(func(context.Context, k8swatchtest.Request) error { <-time.After(5 * time.Second); return nil })
		w := mustNew(t, src, ingresses, &k8swatch.Options{NoWatchList: true})
		start(t, w)
		elapse(2 * time.Second)
		if s := w.State(); s.Synced || s.Err == nil || !strings.Contains(s.Err.Error(), "no answer yet") {
			t.Errorf("state %+v", s)
		}
		synced(t, w, 1)
		elapse(time.Millisecond)
		if s := w.State(); s.Phase != k8swatch.PhaseSynced || s.Err != nil {
			t.Errorf("state %+v", s)
		}
	})
}

// TestBookmarkMovesOn: after a bookmark the watch goes on from there, so that a
// compaction of what came before costs no list.
func TestBookmarkMovesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := k8swatchtest.NewSource(ingress("a", "1"))
		var lists atomic.Int32
		src.OnRequest(func(_ context.Context, r k8swatchtest.Request) error {
			if r.Verb == "list" {
				lists.Add(1)
			}
			return nil
		})
		w := watching(t, src, ingresses, &k8swatch.Options{NoWatchList: true}, 1)
		for range 3 {
			src.Apply(service("a", "noise")) // moves the resource version, unseen
			synctest.Wait()
			src.Compact()
			src.Bookmark()
			synctest.Wait()
			src.Drop()
			elapse(3 * time.Second)
		}
		require.Equal(t, k8swatch.PhaseSynced, w.State().Phase)
		require.Equal(t, int32(1), lists.Load())
	})
}

// TestRetryPauses: 0.2 to 2 s between tries, with jitter, however long it takes.
func TestRetryPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := k8swatchtest.NewSource()
		var tries []time.Time
		src.OnRequest(func(context.Context, k8swatchtest.Request) error {
			tries = append(tries, time.Now())
			return errors.New("connection refused")
		})
		w := mustNew(t, src, ingresses, nil)
		stop := start(t, w)
		elapse(10 * time.Minute)
		stop()
		different := map[time.Duration]bool{}
		for i := 1; i < len(tries); i++ {
			d := tries[i].Sub(tries[i-1])
			different[d] = true
			require.GreaterOrEqual(t, d, 100*time.Millisecond)
			require.LessOrEqual(t, d, 2*time.Second)
		}
		require.GreaterOrEqual(t, len(tries), 300)
		require.GreaterOrEqual(t, len(different), len(tries)/2)
	})
}

// TestWatchForbidden: what may be listed and not watched is listed now and then,
// not all the time, and permission is noticed at once when it is given.
func TestWatchForbidden(t *testing.T) {
	for _, noStream := range []bool{false, true} {
		bubble(t, fmt.Sprintf("NoWatchList=%v", noStream), func(t *testing.T) {
			src := k8swatchtest.NewSource(ingress("a", "1"))
			var lists, watches atomic.Int32
			src.OnRequest(func(_ context.Context, r k8swatchtest.Request) error {
				if r.Verb == "list" {
					lists.Add(1)
				} else {
					watches.Add(1)
				}
				return nil
			})
			src.Forbid(ingresses, "watch")
			w := mustNew(t, src, ingresses, &k8swatch.Options{NoWatchList: noStream})
			start(t, w)
			elapse(2 * time.Second)
			src.Apply(ingress("a", "2"))
			elapse(58 * time.Second)
			if n := lists.Load(); n < 5 || n > 8 {
				t.Errorf("%d lists in a minute", n)
			}
			require.LessOrEqual(t, watches.Load(), int32(80))
			if s := w.State(); s.Phase != k8swatch.PhaseForbidden || s.Objects != 2 {
				t.Errorf("state %+v", s)
			}
			for range 10 { // at any moment
				src.Compact()
				src.Allow(ingresses)
				elapse(4 * time.Second)
				if s := w.State(); s.Phase != k8swatch.PhaseSynced || s.Err != nil {
					t.Fatalf("4 s after it is allowed: %+v", s)
				}
				src.Forbid(ingresses, "watch")
				elapse(17 * time.Second)
				require.Equal(t, k8swatch.PhaseForbidden, w.State().Phase)
			}
		})
	}
}

// breaking is a source whose watches break with an error while broken says so,
// as client-go tells of a connection that is lost.
type breaking struct {
	k8swatch.Source
	broken         func(watches int32) bool
	lists, watches atomic.Int32
}

func (b *breaking) ListWatch(gvr schema.GroupVersionResource, namespace string, tweak func(*metav1.ListOptions)) (cache.ListerWatcherWithContext, error) {
	inner, err := b.Source.ListWatch(gvr, namespace, tweak)
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			b.lists.Add(1)
			return inner.ListWithContext(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			if !b.broken(b.watches.Add(1)) {
				return inner.WatchWithContext(ctx, o)
			}
			w := watch.NewFakeWithChanSize(1, false)
			status := apierrors.NewInternalError(errors.New("http2: client connection lost")).Status()
			w.Error(&status)
			return w, nil
		},
	}, err
}

// TestLostConnection: a watch whose connection is lost goes on from where it was;
// only when it breaks again and again is everything listed anew.
func TestLostConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // how long it takes decides: a busy machine must not
		src := k8swatchtest.NewSource(ingress("a", "1"))
		b := &breaking{Source: src, broken: func(n int32) bool { return n == 1 }}
		w := watching(t, b, ingresses, &k8swatch.Options{NoWatchList: true}, 1)
		src.Apply(ingress("a", "2"))
		synctest.Wait()
		if w.Snapshot().Len() != 2 || b.lists.Load() != 1 || b.watches.Load() != 2 {
			t.Errorf("%d objects, %d lists, %d watches", w.Snapshot().Len(), b.lists.Load(), b.watches.Load())
		}
	})

	b := &breaking{Source: k8swatchtest.NewSource(ingress("a", "1"))}
	b.broken = func(int32) bool { return b.lists.Load() < 3 }
	w := mustNew(t, b, ingresses, &k8swatch.Options{NoWatchList: true})
	start(t, w)
	eventually(t, "the third list is followed by a watch that works", func() bool {
		return b.lists.Load() == 3 && w.State().Phase == k8swatch.PhaseSynced
	})
}

// TestTornBody: the connection ends in the middle of a list and of an event.
func TestTornBody(t *testing.T) {
	inner := newAPIServer(t)
	var torn atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if torn.Add(1) > 4 || strings.Contains(r.URL.RawQuery, "sendInitialEvents") {
			inner.serve(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") != "" {
			fmt.Fprint(w, `{"type":"ADDED","object":{"apiVersion":"example.com/v1","kind":"Route","meta`)
		} else {
			fmt.Fprint(w, `{"apiVersion":"example.com/v1","kind":"RouteList","metadata":{"resourceVersion":"7"},"items":[{"apiVersion":"exa`)
		}
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	c, err := k8swatch.NewCluster(&k8swatch.ClusterOptions{Kubeconfig: inner.kubeconfig(t, server.URL)})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	w := watching(t, c, routes, &k8swatch.Options{NoWatchList: true}, 1)
	require.GreaterOrEqual(t, torn.Load(), int32(5))
	eventually(t, "the watch is open", func() bool { return w.State().Phase == k8swatch.PhaseSynced })
}
