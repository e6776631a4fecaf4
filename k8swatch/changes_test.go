package k8swatch_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
)

// lines are the objects of changes.
func lines(c k8swatch.Changes) string {
	var all []string
	for _, o := range c.Objects {
		all = append(all, o.String())
	}
	return strings.Join(all, ", ")
}

// TestChangesNameObjects: what happened while a call was held is one line for each
// object, and the snapshot is the state that they lead to.
func TestChangesNameObjects(t *testing.T) {
	again := ingress("a", "1")
	again.UID = types.UID("another")
	for _, tt := range []struct {
		name  string
		steps func(*k8swatchtest.Source)
		want  string
		total int
	}{
		{"created", func(s *k8swatchtest.Source) { s.Apply(ingress("a", "3")) }, "ingresses a/3 created", 1},
		{"created and modified", func(s *k8swatchtest.Source) { s.Apply(ingress("a", "3")); s.Apply(ingress("a", "3", "x")) }, "ingresses a/3 created", 2},
		{"modified twice", func(s *k8swatchtest.Source) { s.Apply(ingress("a", "1", "x")); s.Apply(ingress("a", "1", "y")) }, "ingresses a/1 modified", 2},
		{"came and went", func(s *k8swatchtest.Source) { s.Apply(ingress("a", "3")); s.Delete(ingress("a", "3")) }, "ingresses a/3 deleted", 2},
		{"modified and deleted", func(s *k8swatchtest.Source) { s.Apply(ingress("a", "1", "x")); s.Delete(ingress("a", "1")) }, "ingresses a/1 deleted", 2},
		{"went and came", func(s *k8swatchtest.Source) { s.Delete(ingress("a", "1")); s.Apply(ingress("a", "1")) }, "ingresses a/1 modified", 2},
		{"replaced", func(s *k8swatchtest.Source) { s.Apply(again) }, "ingresses a/1 modified", 2},
		{"several", func(s *k8swatchtest.Source) {
			s.Apply(service("b", "1"), ingress("b", "1"), ingress("a", "9"))
			s.Delete(ingress("a", "2"))
		}, "ingresses a/2 deleted, ingresses a/9 created, ingresses b/1 created, services b/1 created", 4},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			src := k8swatchtest.NewSource(ingress("a", "1"), ingress("a", "2"))
			var rec recorder
			in, svc := mustNew(t, src, ingresses, nil), mustNew(t, src, services, nil)
			g := k8swatch.NewGroup(&k8swatch.GroupOptions{OnChange: rec.onChange})
			require.NoError(t, g.Add(in, svc))
			start(t, g)
			synctest.Wait()
			src.Apply(ingress("z", "first")) // which begins a hold
			synctest.Wait()
			tt.steps(src)
			elapse(time.Second)
			src.Apply(ingress("z", "later"))
			synctest.Wait()
			calls := rec.all()
			require.Len(t, calls, 3)
			c := calls[1]
			if got := lines(c); got != tt.want || c.More != 0 || c.Total() != tt.total {
				t.Errorf("%d changes, and %d more: %s", c.Total(), c.More, got)
			}
			counts := c.ByResource[ingresses]
			of := c.ByResource[services]
			if counts.Created+of.Created != c.Created || counts.Modified+of.Modified != c.Modified || counts.Deleted+of.Deleted != c.Deleted {
				t.Errorf("by resource: %+v of %+v", c.ByResource, c)
			}
			require.Equal(t, c.To, c.Snapshot.Revision())
			require.Nil(t, c.Snapshot.Of(in).ByName("z", "later"))
		})
	}
}

// TestChangesAreBounded: beyond the bound there are numbers alone, and the list says so.
func TestChangesAreBounded(t *testing.T) {
	for _, tt := range []struct{ max, listed int }{{0, 1000}, {7, 7}, {-1, 0}} {
		synctest.Test(t, func(t *testing.T) {
			src := k8swatchtest.NewSource()
			var rec recorder
			w := mustNew(t, src, ingresses, &k8swatch.Options{OnChange: rec.onChange, MaxChanges: tt.max})
			start(t, w)
			synctest.Wait()
			src.Apply(ingress("z", "first"))
			synctest.Wait()
			for i := range 1200 {
				src.Apply(ingress("a", fmt.Sprint(i)))
			}
			elapse(time.Second)
			c := rec.all()[1]
			if len(c.Objects) != tt.listed || c.More != 1200-tt.listed || c.Created != 1200 {
				t.Errorf("MaxChanges %d: %d objects and %d more of %d", tt.max, len(c.Objects), c.More, c.Created)
			}
		})
	}
}

// follower keeps something for each object, and makes it anew only where that is
// needed, as an incremental renderer does.
type follower struct {
	t        *testing.T
	rand     *rand.Rand
	made     map[string]types.UID // and what it is of
	revision atomic.Uint64
	full     int // reads of everything
	held     k8swatch.Changes
}

func (f *follower) onChange(_ context.Context, c k8swatch.Changes) error {
	if c.Snapshot.Revision() != c.To {
		f.t.Errorf("a snapshot at %d of changes up to %d", c.Snapshot.Revision(), c.To)
	}
	if f.rand.IntN(3) == 0 { // in the middle of its work
		f.make(c, len(c.Objects)/2)
		return errors.New("not now")
	}
	if f.held = f.held.And(c); f.rand.IntN(3) == 0 {
		return nil // with the next one
	}
	c, f.held = f.held, k8swatch.Changes{}
	if c.More > 0 || uint64(c.From) > f.revision.Load() {
		f.full++
		clear(f.made)
		for _, gvr := range both {
			for o := range c.Snapshot.Resource(gvr).All() {
				f.made[gvr.Resource+o.GetNamespace()+o.GetName()] = types.UID(o.GetResourceVersion()) + o.GetUID()
			}
		}
	} else {
		f.make(c, len(c.Objects))
	}
	f.revision.Store(uint64(c.To))
	want := map[string]types.UID{}
	for _, gvr := range both {
		for o := range c.Snapshot.Resource(gvr).All() {
			want[gvr.Resource+o.GetNamespace()+o.GetName()] = types.UID(o.GetResourceVersion()) + o.GetUID()
		}
	}
	if fmt.Sprint(want) != fmt.Sprint(f.made) {
		f.t.Errorf("at %d: made\n%v of\n%v", c.To, f.made, want)
	}
	return nil
}

func (f *follower) make(c k8swatch.Changes, n int) {
	for _, o := range c.Objects[:n] {
		key := o.Resource().Resource + o.Namespace + o.Name
		if delete(f.made, key); o.Kind != k8swatch.Deleted {
			now := c.Snapshot.Of(o.Watcher).ByName(o.Namespace, o.Name)
			f.made[key] = types.UID(now.GetResourceVersion()) + now.GetUID()
		}
	}
}

var both = []schema.GroupVersionResource{ingresses, services}

// TestIncremental: who follows the lists has at each call exactly what the snapshot
// has: while two resources change at once, calls fail, and connections drop.
func TestIncremental(t *testing.T) {
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 1))
		src := k8swatchtest.NewSource(ingress("a", "0"), service("a", "0"))
		f := &follower{t: t, rand: rand.New(rand.NewPCG(seed, 2)), made: map[string]types.UID{}}
		max := []int{0, 3}[seed%2]
		g := k8swatch.NewGroup(&k8swatch.GroupOptions{OnChange: f.onChange, MaxChanges: max, Debounce: time.Duration(seed) * time.Millisecond, CallOnChangeDuringSync: true, Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, g.Add(mustNew(t, src, ingresses, nil), mustNew(t, src, services, nil)))
		stop := start(t, g, 2)
		var writing sync.WaitGroup
		for n := range 2 {
			r := rand.New(rand.NewPCG(r.Uint64(), 3))
			writing.Go(func() {
				for i := range 400 {
					o := k8swatch.Object(ingress("a", fmt.Sprint(r.IntN(20)), fmt.Sprint(i)))
					if n == 1 {
						s := service("a", fmt.Sprint(r.IntN(20)))
						s.Spec.ExternalName = fmt.Sprint(i)
						o = s
					}
					switch r.IntN(5) {
					case 0:
						src.Delete(o)
					case 1:
						o.SetUID(types.UID(fmt.Sprint("u", i)))
						src.Apply(o)
					default:
						src.Apply(o)
					}
					gvr := both[n]
					if i%8 == 0 {
						eventually(t, "a change is known", func() bool {
							return len(src.List(gvr)) == g.Snapshot().Resource(gvr).Len()
						})
					}
					if n == 0 && i == 200 {
						src.Drop()
						src.Compact()
					}
				}
			})
		}
		writing.Wait()
		eventually(t, "all is told", func() bool {
			g.ForceSync() // for those that it waits to be told with
			now := g.Snapshot()
			for _, gvr := range both {
				if names(src.List(gvr)) != names(now.Resource(gvr).List()) {
					return false
				}
			}
			return uint64(now.Revision()) == f.revision.Load()
		})
		stop()
		if f.revision.Load() < 100 || max == 0 && f.full > 1 || max > 0 && f.full == 0 {
			t.Errorf("seed %d: revision %d, everything was read %d times", seed, f.revision.Load(), f.full)
		}
	}
}

// TestChangeOfOneKeepsNothing: an object that changes on and on takes one line.
func TestChangeOfOneKeepsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := k8swatchtest.NewSource(ingress("a", "1"))
		var rec recorder
		w := mustNew(t, src, ingresses, &k8swatch.Options{OnChange: rec.onChange, MaxChanges: 1, Debounce: time.Minute})
		start(t, w)
		synctest.Wait()
		for i := range 50 {
			src.Apply(ingress("a", "1", fmt.Sprint(i)))
			synctest.Wait()
		}
		elapse(2 * time.Minute)
		c := rec.all()[1]
		now, _ := c.Snapshot.Of(w).ByName("a", "1").(*networkingv1.Ingress)
		if lines(c) != "ingresses a/1 modified" || c.More != 0 || c.Modified != 49 || now.Spec.Rules[0].Host != "49" {
			t.Errorf("%s: %s and %d more", c, lines(c), c.More)
		}
	})
}

// TestChangesSayNoZeros: what a line of the log says of changes is short.
func TestChangesSayNoZeros(t *testing.T) {
	require.Equal(t, "2 modified", k8swatch.Changes{Modified: 2}.String())
	require.Equal(t, "1 created, 3 deleted", k8swatch.Changes{Created: 1, Deleted: 3, InitialSync: true}.String())
	require.Equal(t, "no changes", k8swatch.Changes{}.String())
}

// TestHeldChanges: a Change that somebody keeps costs what differs, not its snapshot:
// 1,000 of 5,000 objects take less than 64 MB.
func TestHeldChanges(t *testing.T) {
	src := k8swatchtest.NewSource()
	for i := range 5000 {
		src.Apply(ingress("a", fmt.Sprint(i), "host"))
	}
	var rec recorder
	watching(t, src, ingresses, &k8swatch.Options{OnChange: rec.onChange, Debounce: -1, IndexBy: []string{"metadata.name"}}, 5000)
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for i := range 1000 {
		src.Apply(ingress("a", fmt.Sprint(i*7%5000), fmt.Sprint(i)))
		eventually(t, "it is told", func() bool { return len(rec.all()) > i })
	}
	used := int64(heap() - before)
	t.Logf("%d calls hold %d KB", len(rec.all()), used>>10)
	require.LessOrEqual(t, used, int64(64<<20), "%d calls hold %d MB", len(rec.all()), used>>20)
	runtime.KeepAlive(&rec)
}
