package k8swatch_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
)

func mustCached[T k8swatch.Object](t testing.TB, src k8swatch.MetadataSource, gvr schema.GroupVersionResource, opts *k8swatch.CachedOptions) *k8swatch.Cached[T] {
	t.Helper()
	c, err := k8swatch.NewCached[T](src, gvr, opts)
	require.NoError(t, err)
	return c
}

// passwords are what a look-up returns, in order.
func passwords(t *testing.T, c *k8swatch.Cached[*corev1.Secret], keys ...string) string {
	t.Helper()
	found, err := c.Get(t.Context(), keys...)
	require.NoError(t, err, "Get(%q)", keys)
	all := make([]string, len(found))
	for i, s := range found {
		all[i] = password(s)
	}
	return strings.Join(all, " ")
}

func TestCached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := k8swatchtest.NewSource(secret("shop", "b", "2"), secret("shop", "a", "1"), secret("blog", "z", "3"))
		var rec recorder
		c := mustCached[*corev1.Secret](t, src, secrets, &k8swatch.CachedOptions{OnChange: rec.onChange})
		start(t, c, 3)
		if s := c.Stats(); s.Fetches != 0 || s.Objects != 0 {
			t.Errorf("before it is asked: %+v", s)
		}
		for _, tt := range []struct {
			keys []string
			want string
		}{{[]string{"shop", "a"}, "1"}, {[]string{"shop"}, "1 2"}, {nil, "3 1 2"}, {[]string{"none"}, ""}} {
			require.Equal(t, tt.want, passwords(t, c, tt.keys...), "Get(%q)", tt.keys)
		}
		if s := c.Stats(); s.Fetches != 3 || s.Hits != 3 || s.Objects != 3 {
			t.Errorf("each fetched once: %+v", s)
		}
		// A new version makes what is kept invalid, at once.
		src.Apply(secret("shop", "a", "one"))
		synctest.Wait()
		require.Equal(t, "one 2", passwords(t, c, "shop"), "after the change")
		src.Delete(secret("shop", "b", ""))
		synctest.Wait()
		require.Equal(t, "one", passwords(t, c, "shop"), "after the deletion")
		require.Equal(t, int64(4), c.Stats().Fetches, "what changed is fetched again")
		elapse(3 * time.Minute) // nothing stays in memory for longer
		if s := c.Stats(); s.Objects != 0 || s.Bytes != 0 {
			t.Errorf("after the TTL: %+v", s)
		}
		require.Equal(t, "3 one", passwords(t, c), "after the TTL")
		total := 0
		for _, ch := range rec.all() {
			total += ch.Total()
		}
		if total != 2 || c.Metadata().Len() != 2 || c.State().Objects != 2 {
			t.Errorf("%d changes, %d objects", total, c.Metadata().Len())
		}
	})
}

// TestCachedTTL: an object is fetched again 2m10s after it was fetched.
func TestCachedTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mustCached[*corev1.Secret](t, k8swatchtest.NewSource(secret("shop", "a", "1")), secrets, nil)
		start(t, c)
		for _, step := range []struct {
			wait    time.Duration
			fetches int64
		}{{0, 1}, {2*time.Minute + 9*time.Second, 1}, {time.Second, 2}} {
			elapse(step.wait)
			synctest.Wait()
			if passwords(t, c, "shop", "a"); c.Stats().Fetches != step.fetches {
				t.Errorf("%s later: %+v", step.wait, c.Stats())
			}
		}
		none := mustCached[*corev1.Secret](t, k8swatchtest.NewSource(secret("shop", "a", "1")), secrets, &k8swatch.CachedOptions{TTL: -1})
		start(t, none)
		passwords(t, none)
		passwords(t, none)
		if s := none.Stats(); s.Fetches != 2 || s.Objects != 0 {
			t.Errorf("nothing is to be kept: %+v", s)
		}
	})
}

// TestCachedErrors: a fetch that fails is an error that names the object, never
// a shorter list; an object that is gone is none.
func TestCachedErrors(t *testing.T) {
	broken := errors.New("broken")
	status := apierrors.NewInternalError(broken)
	for _, tt := range []struct {
		name string
		err  error
		want error
	}{
		{"plain", broken, broken},
		{"status", status, status},
		{"no such resource", apierrors.NewGenericServerResponse(404, "get", secrets.GroupResource(), "b", "404 page not found", 0, true), nil},
		{"forbidden", apierrors.NewForbidden(secrets.GroupResource(), "b", broken), nil},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			src := k8swatchtest.NewSource(secret("shop", "a", "1"), secret("shop", "b", "2"))
			c := mustCached[*corev1.Secret](t, src, secrets, nil)
			start(t, c, 2)
			passwords(t, c, "shop", "a")
			src.OnRequest(func(_ context.Context, r k8swatchtest.Request) error { return tt.err })
			found, err := c.Get(t.Context(), "shop")
			var fetch *k8swatch.FetchError
			if found != nil || !errors.As(err, &fetch) || fetch.Name != "b" || fetch.Namespace != "shop" || fetch.Resource != secrets {
				t.Fatalf("got %v, %v", found, err)
			}
			require.False(t, tt.want != nil && !errors.Is(err, tt.want), "%v does not wrap %v", err, tt.want)
			if want := "cannot get secrets shop/b: "; !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%q does not begin with %q", err, want)
			}
			src.OnRequest(nil)
			require.Equal(t, "1 2", passwords(t, c, "shop"), "afterwards")
		})
	}
}

// TestCachedGone: deleted between the look at the metadata and the fetch.
func TestCachedGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := k8swatchtest.NewSource(secret("shop", "a", "1"), secret("shop", "b", "2"))
		c := mustCached[*corev1.Secret](t, src, secrets, &k8swatch.CachedOptions{Parallel: 1})
		start(t, c, 2)
		src.OnRequest(func(context.Context, k8swatchtest.Request) error {
			src.OnRequest(nil)
			src.Delete(secret("shop", "b", ""))
			return nil
		})
		require.Equal(t, "1", passwords(t, c, "shop"))
	})
}

// TestCachedFlights: one fetch for all who ask for an object; who leaves does not
// take it away from the others, nor from those who come later; one that is not
// answered ends some time.
func TestCachedFlights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := k8swatchtest.NewSource(secret("shop", "a", "1"))
		c := mustCached[*corev1.Secret](t, src, secrets, nil)
		start(t, c, 1)
		var begun, ended atomic.Int32
		release := make(chan struct{})
		src.OnRequest(func(ctx context.Context, r k8swatchtest.Request) error {
			begun.Add(1)
			defer ended.Add(1)
			select {
			case <-release:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		ask := func(ctx context.Context) chan error {
			result := make(chan error, 1)
			go func() {
				found, err := c.Get(ctx, "shop", "a")
				if err == nil && (len(found) != 1 || password(found[0]) != "1") {
					err = fmt.Errorf("found %v", found)
				}
				result <- err
			}()
			synctest.Wait()
			return result
		}
		first, cancel := context.WithCancel(t.Context())
		leaves, stays := ask(first), ask(t.Context())
		cancel()
		require.ErrorIs(t, <-leaves, context.Canceled)
		synctest.Wait()
		require.Equal(t, int32(1), begun.Load())
		require.Zero(t, ended.Load())
		close(release)
		require.NoError(t, <-stays)

		release = make(chan struct{})
		src.Apply(secret("shop", "a", "1"))
		synctest.Wait()
		only, cancel := context.WithCancel(t.Context())
		left := ask(only)
		cancel()
		require.ErrorIs(t, <-left, context.Canceled)
		later := ask(t.Context())
		require.Equal(t, int32(2), begun.Load())
		require.Equal(t, int32(1), ended.Load())
		elapse(time.Minute)
		var fetch *k8swatch.FetchError
		if err := <-later; !errors.As(err, &fetch) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it is not answered: %v", err)
		}
		close(release)
		require.NoError(t, <-ask(t.Context()), "after that")
	})
}

// TestCachedNewVersionInFlight: an answer to an older question is never given to
// a newer one.
func TestCachedNewVersionInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &lateSource{Source: k8swatchtest.NewSource(secret("shop", "a", "old")), release: make(chan struct{})}
		c := mustCached[*corev1.Secret](t, src, secrets, nil)
		start(t, c, 1)
		old := make(chan string, 1)
		go func() { old <- passwords(t, c) }()
		synctest.Wait() // the answer is on its way
		src.Apply(secret("shop", "a", "new"))
		synctest.Wait()
		require.Equal(t, "new", passwords(t, c))
		close(src.release)
		require.Equal(t, "old", <-old, "the older question")
		require.Equal(t, "new", passwords(t, c), "after the late answer")
		require.Equal(t, int64(2), c.Stats().Fetches)
	})
}

// lateSource keeps its first answer until it is released.
type lateSource struct {
	*k8swatchtest.Source
	release chan struct{}
	asked   atomic.Bool
}

func (s *lateSource) Fetch(ctx context.Context, gvr schema.GroupVersionResource, namespace, name string) (k8swatch.Object, error) {
	obj, err := s.Source.Fetch(ctx, gvr, namespace, name)
	if s.asked.CompareAndSwap(false, true) {
		<-s.release
	}
	return obj, err
}

// TestCachedBounds: the least used go first, what is too large is not kept, and
// no more than so many are fetched at a time.
func TestCachedBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := k8swatchtest.NewSource(secret("shop", "huge", strings.Repeat("x", 5000)))
		for i := range 20 {
			src.Apply(secret("shop", fmt.Sprintf("s%02d", i), strings.Repeat("x", 1000)))
		}
		var now, most atomic.Int32
		c := mustCached[*corev1.Secret](t, src, secrets, &k8swatch.CachedOptions{MaxBytes: 4800, Parallel: 3})
		start(t, c, 21)
		src.OnRequest(func(context.Context, k8swatchtest.Request) error {
			rise(&most, now.Add(1))
			elapse(time.Millisecond)
			now.Add(-1)
			return nil
		})
		var askers sync.WaitGroup
		for range 3 {
			askers.Go(func() { passwords(t, c) })
		}
		askers.Wait()
		if s := c.Stats(); most.Load() != 3 || s.Objects != 4 || s.Bytes > 4800 || s.Bytes < 4000 {
			t.Errorf("%d at a time, %+v", most.Load(), s)
		}
		for _, name := range []string{"s01", "s02", "s03", "s04", "s01", "s05", "s01"} {
			passwords(t, c, "shop", name)
		}
		before := c.Stats().Fetches
		passwords(t, c, "shop", "s01")
		require.Equal(t, before, c.Stats().Fetches, "what was used last was dropped")
		passwords(t, c, "shop", "s02")
		require.Equal(t, before+1, c.Stats().Fetches, "what was not used was kept")
	})
}

// TestCachedWaits: no list before the metadata is complete; an error that says
// why; none after the end.
func TestCachedWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := k8swatchtest.NewSource(secret("shop", "a", "1"))
		src.Partition()
		c := mustCached[*corev1.Secret](t, src, secrets, nil)
		stop := start(t, c)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if found, err := c.Get(ctx); found != nil || !errors.Is(err, k8swatch.ErrUnreachable) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("not synced: %v, %v", found, err)
		}
		src.Restore()
		require.Equal(t, "1", passwords(t, c))
		src.Forbid(secrets)
		elapse(5 * time.Second)
		require.Equal(t, "1", passwords(t, c), "what is kept")
		require.Equal(t, k8swatch.PhaseForbidden, c.State().Phase, "what is kept")
		elapse(3 * time.Minute)
		if _, err := c.Get(t.Context()); !apierrors.IsForbidden(err) {
			t.Errorf("forbidden: %v", err)
		}
		// A fetch that is under way ends with Run.
		src.Allow(secrets)
		src.OnRequest(func(ctx context.Context, r k8swatchtest.Request) error {
			if r.Verb != "get" {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		})
		result := make(chan error, 1)
		go func() { _, err := c.Get(t.Context()); result <- err }()
		synctest.Wait()
		stop()
		require.ErrorIs(t, <-result, k8swatch.ErrStopped, "under way")
		require.ErrorIs(t, errOf(c.Get(t.Context())), k8swatch.ErrStopped, "after the end")
		require.ErrorIs(t, c.Run(t.Context()), k8swatch.ErrStarted, "a second Run")
	})
}

func TestCachedIndex(t *testing.T) {
	a, b := secret("shop", "a", "1"), secret("shop", "b", "2")
	a.Labels = map[string]string{"haptic.dev/role": "tls"}
	b.Labels = map[string]string{"haptic.dev/role": "auth"}
	synctest.Test(t, func(t *testing.T) {
		src := k8swatchtest.NewSource(a, b)
		c := mustCached[*corev1.Secret](t, src, secrets, &k8swatch.CachedOptions{IndexBy: []string{"metadata.labels['haptic.dev/role']"}})
		start(t, c)
		require.Equal(t, "1", passwords(t, c, "tls"))
		src.Edit(secrets, "shop", "a", func(o k8swatch.Object) { o.SetLabels(map[string]string{"haptic.dev/role": "auth"}) })
		synctest.Wait()
		require.Empty(t, passwords(t, c, "tls"), "tls after it moved")
		require.Equal(t, "1 2", passwords(t, c, "auth"))
	})
	for _, gvr := range []schema.GroupVersionResource{secrets, routes} {
		_, err := k8swatch.NewCached[k8swatch.Object](k8swatchtest.NewSource(), gvr, &k8swatch.CachedOptions{IndexBy: []string{"type"}})
		var option *k8swatch.OptionError
		require.ErrorAs(t, err, &option, "%s: an index on more than metadata", gvr.Resource)
		require.ErrorContains(t, err, `no field "type"`, "%s: an index on more than metadata", gvr.Resource)
	}
	require.Error(t, errOf(k8swatch.NewCached[*corev1.Service](k8swatchtest.NewSource(), secrets, nil)), "a wrong type was taken")
}

func TestCachedUnstructured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := k8swatchtest.NewSource(k8swatchtest.Objects(`
apiVersion: example.com/v1
kind: Route
metadata: {namespace: shop, name: a, annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}"}}
spec: {hosts: [a.test, b.test], weight: 3}
`)...)
		c := mustCached[*unstructured.Unstructured](t, src, routes, &k8swatch.CachedOptions{MaxBytes: 10_000})
		start(t, c)
		found, err := c.List(t.Context())
		if err != nil || len(found) != 1 || len(found[0].GetAnnotations()) != 0 {
			t.Fatalf("%v, %v", found, err)
		}
		if s := c.Stats(); s.Bytes < 100 || s.Bytes > 1000 {
			t.Errorf("%+v", s)
		}
	})
}

// bigSource has Secrets of 1 MB that exist only while somebody holds them.
type bigSource struct{ *k8swatchtest.Source }

func (s bigSource) Fetch(ctx context.Context, gvr schema.GroupVersionResource, namespace, name string) (k8swatch.Object, error) {
	obj, err := s.Source.Fetch(ctx, gvr, namespace, name)
	if err != nil {
		return nil, err
	}
	obj.(*corev1.Secret).Data["big"] = make([]byte, 1<<20)
	return obj, nil
}

// TestCachedManyBigSecrets: 4,000 Secrets of 1 MB are read in bounded memory.
func TestCachedManyBigSecrets(t *testing.T) {
	const n, bound = 4000, 32 << 20
	src := bigSource{k8swatchtest.NewSource()}
	for i := range n {
		src.Apply(secret("shop", fmt.Sprintf("s%04d", i), "x"))
	}
	c := mustCached[*corev1.Secret](t, src, secrets, &k8swatch.CachedOptions{MaxBytes: bound})
	start(t, c, n)
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before, count, most := heap(), 0, int64(0)
	for i := range n {
		got, err := c.Get(t.Context(), "shop", fmt.Sprintf("s%04d", i))
		if err != nil || len(got) != 1 || len(got[0].Data["big"]) != 1<<20 {
			t.Fatalf("%d objects, %v", len(got), err)
		}
		if count++; count%500 == 0 {
			most = max(most, heap()-before)
		}
	}
	if s := c.Stats(); count != n || s.Bytes > bound || s.Objects < 30 {
		t.Errorf("%d objects, %+v", count, s)
	}
	require.LessOrEqual(t, most, int64(4*bound), "%d MiB of heap for a bound of %d MiB", most>>20, bound>>20)
}

// TestCachedFirstFailure: after it nothing more is fetched for the same list.
func TestCachedFirstFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := k8swatchtest.NewSource()
		for i := range 50 {
			src.Apply(secret("shop", fmt.Sprint(i), "x"))
		}
		c := mustCached[*corev1.Secret](t, src, secrets, &k8swatch.CachedOptions{Parallel: 1})
		start(t, c, 50)
		src.OnRequest(func(context.Context, k8swatchtest.Request) error { return errors.New("no") })
		if _, err := c.List(t.Context()); err == nil || !strings.HasSuffix(err.Error(), ": no") {
			t.Errorf("error %v", err)
		}
		synctest.Wait()
		require.Equal(t, int64(1), c.Stats().Fetches)
	})
}

// orderedSource has each fetch end when the test says so, and as it says.
type orderedSource struct {
	*k8swatchtest.Source
	ends map[string]chan error // by the name of the object
}

func (s orderedSource) Fetch(ctx context.Context, gvr schema.GroupVersionResource, namespace, name string) (k8swatch.Object, error) {
	select {
	case err := <-s.ends[name]:
		if err != nil {
			return nil, err
		}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return s.Source.Fetch(ctx, gvr, namespace, name)
}

// TestCachedNamesTheFirst: of several objects that cannot be fetched it is the
// first in order, whichever was first in time.
func TestCachedNamesTheFirst(t *testing.T) {
	failed := errors.New("failed")
	for _, tt := range []struct {
		name string
		ends string // in this order; "!" for a failure
		want string // what the error names
	}{
		{"the last fails first", "!d !b", "b"}, // a and c are asked for, too
		{"the first fails first", "!b", "b"},
		{"only the last", "!d c b", "d"},
		{"one after the other", "!d !c !b !a", "a"},
		{"the first of all", "!a", "a"},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			src := orderedSource{Source: k8swatchtest.NewSource(), ends: map[string]chan error{}}
			for _, name := range []string{"a", "b", "c", "d"} {
				src.Apply(secret("shop", name, "x"))
				src.ends[name] = make(chan error)
			}
			c := mustCached[*corev1.Secret](t, src, secrets, nil)
			start(t, c, 4)
			result := make(chan error, 1)
			go func() { _, err := c.List(t.Context()); result <- err }()
			end := func(name string, err error) {
				synctest.Wait() // it waits, or nobody wants it any more
				select {
				case src.ends[name] <- err:
				default:
					t.Errorf("%s is not being fetched", name)
				}
			}
			for _, name := range strings.Fields(tt.ends) {
				if name, fails := strings.CutPrefix(name, "!"); fails {
					end(name, failed)
				} else {
					end(name, nil)
				}
			}
			for name := "a"; name <= "d"; name = string(name[0] + 1) {
				if !strings.Contains(tt.ends, name) {
					end(name, nil)
				}
			}
			synctest.Wait()
			var fetch *k8swatch.FetchError
			select {
			case err := <-result:
				if !errors.As(err, &fetch) || fetch.Name != tt.want || !errors.Is(err, failed) {
					t.Errorf("got %v, want one about %s", err, tt.want)
				}
			default:
				t.Error("still waiting")
			}
		})
	}
}
