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

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/hapticsdk/haptic/k8swatch"
)

// leases is a fake API server whose Lease can become unreachable, or hang.
type leases struct {
	*fake.Clientset
	down atomic.Bool
}

func newLeases() *leases {
	l := &leases{Clientset: fake.NewClientset()}
	l.PrependReactor("*", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		if l.down.Load() {
			return true, nil, apierrors.NewInternalError(errors.New("away"))
		}
		return false, nil, nil
	})
	return l
}

func (l *leases) holder(t *testing.T) string {
	t.Helper()
	lease, err := l.CoordinationV1().Leases("ns").Get(t.Context(), "haptic", metav1.GetOptions{})
	require.NoError(t, err)
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// take gives the Lease to somebody else, as happens while a process is frozen.
func (l *leases) take(t *testing.T, holder string) {
	t.Helper()
	now, seconds := metav1.NewMicroTime(time.Now()), int32(15)
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "haptic"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, AcquireTime: &now, RenewTime: &now},
	}
	// Past the reactors, one of which hangs.
	require.NoError(t, l.Tracker().Update(leaseKind, lease, "ns"))
}

func (l *leases) candidate(t *testing.T, identity string) *k8swatch.Election {
	t.Helper()
	e, err := k8swatch.NewElection(&k8swatch.ElectionOptions{
		Client: l.CoordinationV1(), Namespace: "ns", Name: "haptic", Identity: identity, Logger: quiet,
	})
	require.NoError(t, err)
	return e
}

var leaseKind = coordinationv1.SchemeGroupVersion.WithResource("leases")

func TestElectionHandsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeases()
		a, b := l.candidate(t, "a"), l.candidate(t, "b")
		actx, stopA := context.WithCancel(t.Context())
		bctx, stopB := context.WithCancel(t.Context())
		var working, most atomic.Int32
		lead := func(ctx context.Context) {
			rise(&most, working.Add(1))
			<-ctx.Done()
			elapse(3 * time.Second) // winding up takes time
			working.Add(-1)
		}
		adone, bdone := make(chan error, 1), make(chan error, 1)
		go func() { adone <- a.Run(actx, lead) }()
		elapse(time.Second)
		go func() { bdone <- b.Run(bctx, lead) }()
		elapse(time.Minute)
		if !a.Leading() || b.Leading() || b.Leader() != "a" || l.holder(t) != "a" {
			t.Fatalf("a %v, b %v, holder %q", a.Leading(), b.Leading(), l.holder(t))
		}
		stopA()
		synctest.Wait()
		require.False(t, a.Leading(), "the Lease must stay held while the work winds up, without leading: %v, %q", a.Leading(), l.holder(t))
		require.Equal(t, "a", l.holder(t), "the Lease must stay held while the work winds up, without leading")
		require.NoError(t, <-adone)
		elapse(4400 * time.Millisecond)
		synctest.Wait()
		require.True(t, b.Leading(), "b leads: %v, holder %q", b.Leading(), l.holder(t))
		require.Equal(t, "b", l.holder(t), "b leads")
		stopB()
		<-bdone
		require.Equal(t, int32(1), most.Load())
	})
}

// TestElectionLoses: no renewal for 10 s ends the term; there is a next one.
func TestElectionLoses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeases()
		e := l.candidate(t, "a")
		ctx, stop := context.WithCancel(t.Context())
		terms, done := 0, make(chan error, 1)
		var ended time.Time
		go func() {
			done <- e.Run(ctx, func(ctx context.Context) {
				terms++
				if !e.Leading() {
					t.Error("the term begins without leading")
				}
				<-ctx.Done()
				ended = time.Now()
			})
		}()
		elapse(10 * time.Second)
		l.down.Store(true)
		down := time.Now()
		for e.Leading() {
			elapse(100 * time.Millisecond)
		}
		require.LessOrEqual(t, time.Since(down), 10*time.Second)
		elapse(10 * time.Second)
		synctest.Wait()
		require.LessOrEqual(t, ended.Sub(down), 12*time.Second)
		require.False(t, ended.IsZero(), "the term went on for %s", ended.Sub(down))
		l.down.Store(false)
		elapse(20 * time.Second)
		synctest.Wait()
		require.True(t, e.Leading(), "leading %v in term %d", e.Leading(), terms)
		require.Equal(t, 2, terms)
		stop()
		require.NoError(t, <-done)
	})
}

// TestElectionEarlyReturn: work that ends gives the Lease up and stands again.
func TestElectionEarlyReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeases()
		e := l.candidate(t, "a")
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		terms, done := 0, make(chan error, 1)
		go func() {
			done <- e.Run(ctx, func(ctx context.Context) {
				if terms++; terms > 1 {
					<-ctx.Done()
				}
			})
		}()
		elapse(500 * time.Millisecond)
		synctest.Wait()
		require.False(t, e.Leading(), "leading %v, holder %q", e.Leading(), l.holder(t))
		require.Empty(t, l.holder(t))
		require.ErrorIs(t, e.Run(ctx, nil), k8swatch.ErrStarted, "a second Run")
		elapse(10 * time.Second)
		synctest.Wait()
		require.True(t, e.Leading(), "leading %v in term %d", e.Leading(), terms)
		require.Equal(t, 2, terms)
		stop()
		<-done
	})
}

// TestElectionFrozen: the clock alone makes Leading false. Time passes at the
// very place where the leader is about to act, before anything else can run.
func TestElectionFrozen(t *testing.T) {
	l := newLeases()
	e := l.candidate(t, "a")
	synctest.Test(t, func(t *testing.T) {
		// A renewal that hangs until the process thaws.
		freeze := make(chan struct{})
		var frozen, taken atomic.Bool
		l.PrependReactor("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			if frozen.Load() {
				<-freeze
			}
			if taken.Load() { // the fake does not compare resource versions
				return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, "haptic", errors.New("changed"))
			}
			return false, nil, nil
		})
		stop := stands(t, e)
		elapse(3 * time.Second)
		require.True(t, e.Leading(), "not leading")
		frozen.Store(true)
		elapse(20 * time.Second)
		require.False(t, e.Leading(), "leading 20 s after the last renewal")
		l.take(t, "b")
		taken.Store(true)
		close(freeze)
		elapse(10 * time.Second)
		require.False(t, e.Leading(), "thawed: leading %v, leader %q", e.Leading(), e.Leader())
		require.Equal(t, "b", e.Leader(), "thawed: leading")
		stop()
	})
}

// TestElectionLeavesTheLeaseOfAnother: a leader that was cut off gives up only what
// it still has. The server answers again once another has taken the Lease.
func TestElectionLeavesTheLeaseOfAnother(t *testing.T) {
	l := newLeases()
	e := l.candidate(t, "a")
	synctest.Test(t, func(t *testing.T) {
		begun, healed := time.Now(), make(chan struct{})
		var away atomic.Bool
		l.PrependReactor("*", "leases", func(action clienttesting.Action) (bool, runtime.Object, error) {
			switch {
			case !away.Load():
			case action.GetVerb() == "get" && time.Since(begun) > 13*time.Second: // the renew deadline is over
				<-healed
			default:
				return true, nil, apierrors.NewInternalError(errors.New("away"))
			}
			return false, nil, nil
		})
		stop := stands(t, e)
		elapse(3 * time.Second)
		require.True(t, e.Leading(), "not leading")
		away.Store(true)
		elapse(15 * time.Second)
		l.take(t, "b")
		away.Store(false)
		close(healed)
		elapse(5 * time.Second)
		if holder := l.holder(t); holder != "b" || e.Leading() {
			t.Errorf("the Lease of b is held by %q; a leads: %v", holder, e.Leading())
		}
		stop()
	})
}

// TestOnLeaderHoldsUpNothing: the election goes on while OnLeader does not return. OnLeader is told
// of each leader afterwards, once, in order and one at a time, before Run returns.
func TestOnLeaderHoldsUpNothing(t *testing.T) {
	l := newLeases()
	synctest.Test(t, func(t *testing.T) {
		var told []string
		var calls, most atomic.Int32
		release := make(chan struct{})
		e, err := k8swatch.NewElection(&k8swatch.ElectionOptions{
			Client: l.CoordinationV1(), Namespace: "ns", Name: "haptic", Identity: "a", Logger: quiet,
			OnLeader: func(identity string) {
				rise(&most, calls.Add(1))
				<-release
				elapse(time.Second)
				told = append(told, identity)
				calls.Add(-1)
			},
		})
		require.NoError(t, err)
		l.give(t, "first")
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- e.Run(ctx, func(context.Context) { t.Error("a leads") }) }()
		const others = 50
		for n := range others {
			l.take(t, strconv.Itoa(n))
			elapse(5 * time.Second)
		}
		require.Equal(t, strconv.Itoa(others-1), e.Leader(), "the leader")
		close(release)
		stop()
		<-done
		require.Equal(t, int32(1), most.Load(), "calls at once")
		var want []string
		for n := range others {
			want = append(want, strconv.Itoa(n))
		}
		require.Equal(t, want, told[len(told)-others:])
		require.LessOrEqual(t, len(told), others+1)
	})
}

// stands runs a candidate until the end of the test.
func stands(t *testing.T, e *k8swatch.Election) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx, func(ctx context.Context) { <-ctx.Done() }) }()
	return func() {
		t.Helper()
		cancel()
		require.NoError(t, <-done)
	}
}

// give makes the Lease.
func (l *leases) give(t *testing.T, holder string) {
	t.Helper()
	err := l.Tracker().Create(leaseKind, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "haptic"}}, "ns")
	require.NoError(t, err)
	l.take(t, holder)
}

// TestCandidateWaitsForRenewals: a holder that renews is never displaced; one
// that does not is.
func TestCandidateWaitsForRenewals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeases()
		l.give(t, "b")
		e := l.candidate(t, "a")
		stop := stands(t, e)
		defer stop()
		for range 60 {
			elapse(10 * time.Second)
			l.take(t, "b")
			synctest.Wait()
			require.False(t, e.Leading(), "leading %v, holder %q", e.Leading(), l.holder(t))
			require.Equal(t, "b", l.holder(t))
		}
		elapse(24 * time.Second) // 15 s, and two tries
		synctest.Wait()
		require.True(t, e.Leading(), "the Lease ran out and was not taken")
	})
}

// TestCandidatesDoNotHammer: while the API server is away, or another is faster
// each time, a candidate asks no more often than the retry period says.
func TestCandidatesDoNotHammer(t *testing.T) {
	for name, fails := range map[string]string{"away": "*", "lost each time": "update"} {
		bubble(t, name, func(t *testing.T) {
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
	}
}

// TestOneOfManyCandidatesLeads: all of them want a Lease that is free.
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
			elapse(5 * time.Second)
			leading := 0
			for _, e := range all {
				if e.Leading() && l.holder(t) == e.Identity() {
					leading++
				}
			}
			require.Equal(t, 1, leading)
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
