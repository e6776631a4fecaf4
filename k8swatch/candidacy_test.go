package k8swatch_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"github.com/hapticsdk/haptic/k8swatch"
)

// stands runs a candidate until the end of the test.
func stands(t *testing.T, e *k8swatch.Election) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx, func(ctx context.Context) { <-ctx.Done() }) }()
	return func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// until is how long it takes until a candidate leads.
func until(t *testing.T, e *k8swatch.Election, limit time.Duration) time.Duration {
	t.Helper()
	start := time.Now()
	for synctest.Wait(); !e.Leading(); synctest.Wait() {
		if time.Since(start) > limit {
			t.Fatalf("not leading after %s", limit)
		}
		elapse(10 * time.Millisecond)
	}
	return time.Since(start)
}

// forbidWatch makes that candidates may only look.
func (l *leases) forbidWatch() {
	l.PrependWatchReactor("leases", func(clienttesting.Action) (bool, watch.Interface, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "leases"}, "haptic", errors.New("may not watch"))
	})
}

// TestCandidateTriesAtOnce: how a Lease comes to be free, and how long it stays
// so, beside a candidate that may watch it and one that may not.
func TestCandidateTriesAtOnce(t *testing.T) {
	const lease, poll = 15 * time.Second, 4400 * time.Millisecond
	for _, c := range []struct {
		name           string
		free           func(t *testing.T, l *leases)
		from           time.Duration // the Lease is free so long after that
		most, mostPoll time.Duration // until it has a new holder
	}{
		{"released", func(t *testing.T, l *leases) { l.take(t, "") }, 0, 0, poll},
		{"deleted", func(t *testing.T, l *leases) { l.remove(t) }, 0, 0, poll},
		{"no longer renewed", func(t *testing.T, l *leases) { l.take(t, "b") }, lease, 10 * time.Millisecond, 2 * poll},
	} {
		for _, forbidden := range []bool{false, true} {
			t.Run(c.name+map[bool]string{true: ", watch forbidden"}[forbidden], func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := newLeases()
					if forbidden {
						l.forbidWatch()
						c.most = c.mostPoll
					}
					l.give(t, "b")
					e := l.candidate(t, "a")
					stop := stands(t, e)
					defer stop()
					elapse(5 * time.Second)
					c.free(t, l)
					switch took := until(t, e, time.Minute); {
					case took < c.from:
						t.Errorf("took the Lease of another after %s", took)
					case took > c.from+c.most:
						t.Errorf("leads after %s, want %s to %s", took, c.from, c.from+c.most)
					}
				})
			})
		}
	}
}

// give makes the Lease.
func (l *leases) give(t *testing.T, holder string) {
	t.Helper()
	err := l.Tracker().Create(leaseKind, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "haptic"}}, "ns")
	if err != nil {
		t.Fatal(err)
	}
	l.take(t, holder)
}

func (l *leases) remove(t *testing.T) {
	t.Helper()
	if err := l.Tracker().Delete(leaseKind, "ns", "haptic"); err != nil {
		t.Fatal(err)
	}
}

var leaseKind = coordinationv1.SchemeGroupVersion.WithResource("leases")

// TestCandidateWaitsForRenewals: a holder that renews is never displaced, not
// even where the news of a renewal do not arrive by the watch.
func TestCandidateWaitsForRenewals(t *testing.T) {
	for name, deaf := range map[string]bool{"watch": false, "a watch that says nothing": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLeases()
				if deaf {
					l.PrependWatchReactor("leases", func(clienttesting.Action) (bool, watch.Interface, error) {
						return true, watch.NewFake(), nil
					})
				}
				l.give(t, "b")
				e := l.candidate(t, "a")
				stop := stands(t, e)
				defer stop()
				for range 60 {
					elapse(14900 * time.Millisecond)
					l.take(t, "b")
					synctest.Wait()
					if e.Leading() || l.holder(t) != "b" {
						t.Fatalf("leading %v, holder %q", e.Leading(), l.holder(t))
					}
				}
			})
		})
	}
}

// TestCandidatesDoNotHammer: while the API server is away, or another is faster
// each time, a candidate asks no more often than the retry period says.
func TestCandidatesDoNotHammer(t *testing.T) {
	for name, fails := range map[string]string{"away": "*", "lost each time": "update"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLeases()
				l.give(t, "b")
				var calls atomic.Int32
				l.PrependReactor(fails, "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
					calls.Add(1)
					return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, "haptic", errors.New("changed"))
				})
				e := l.candidate(t, "a")
				stop := stands(t, e)
				defer stop()
				elapse(10 * time.Minute) // the Lease ran out long ago
				if n := calls.Load(); n < 10*60/5 || n > 10*60/2+2 {
					t.Errorf("%d calls in 10 min", n)
				}
			})
		})
	}
}

// TestOneOfManyCandidatesLeads: all of them hear at the same time that the Lease
// is free.
func TestOneOfManyCandidatesLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeases()
		l.compareVersions()
		l.give(t, "gone")
		var all []*k8swatch.Election
		for i := range 10 {
			e := l.candidate(t, string(rune('a'+i)))
			stop := stands(t, e)
			defer stop()
			all = append(all, e)
		}
		elapse(time.Second)
		for range 5 {
			l.take(t, "")
			elapse(time.Second)
			leading := 0
			for _, e := range all {
				if e.Leading() && l.holder(t) == e.Identity() {
					leading++
				}
			}
			if leading != 1 {
				t.Fatalf("%d lead", leading)
			}
			l.take(t, "gone") // the leader finds out with its next renewal
			elapse(3 * time.Second)
		}
	})
}

// compareVersions refuses to write over a Lease that has changed, as an API
// server does.
func (l *leases) compareVersions() {
	var mu sync.Mutex
	version := 0
	l.PrependReactor("update", "leases", func(a clienttesting.Action) (bool, runtime.Object, error) {
		mu.Lock()
		defer mu.Unlock()
		update := a.(clienttesting.UpdateAction).GetObject().(*coordinationv1.Lease)
		now, err := l.Tracker().Get(leaseKind, "ns", "haptic")
		if err != nil {
			return true, nil, err
		}
		if now.(*coordinationv1.Lease).ResourceVersion != update.ResourceVersion {
			return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, "haptic", errors.New("changed"))
		}
		update = update.DeepCopy()
		version++
		update.ResourceVersion = strconv.Itoa(version)
		return true, update, l.Tracker().Update(leaseKind, update, "ns")
	})
}
