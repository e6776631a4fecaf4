package k8swatch_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

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
	if err != nil {
		t.Fatal(err)
	}
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
	if err := l.Tracker().Update(coordinationv1.SchemeGroupVersion.WithResource("leases"), lease, "ns"); err != nil {
		t.Fatal(err)
	}
}

func (l *leases) candidate(t *testing.T, identity string) *k8swatch.Election {
	t.Helper()
	e, err := k8swatch.NewElection(&k8swatch.ElectionOptions{
		Client: l.CoordinationV1(), Namespace: "ns", Name: "haptic", Identity: identity, Logger: quiet,
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

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
		if a.Leading() || l.holder(t) != "a" {
			t.Errorf("the Lease must stay held while the work winds up, without leading: %v, %q", a.Leading(), l.holder(t))
		}
		if err := <-adone; err != nil {
			t.Error(err)
		}
		synctest.Wait() // no time passes: b watches the Lease
		if !b.Leading() || l.holder(t) != "b" {
			t.Errorf("b leads: %v, holder %q", b.Leading(), l.holder(t))
		}
		stopB()
		<-bdone
		if most.Load() != 1 {
			t.Errorf("%d worked at once", most.Load())
		}
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
		if lost := time.Since(down); lost > 10*time.Second {
			t.Errorf("led for %s without a renewal", lost)
		}
		elapse(10 * time.Second)
		synctest.Wait()
		if ended.Sub(down) > 12*time.Second || ended.IsZero() {
			t.Errorf("the term went on for %s", ended.Sub(down))
		}
		l.down.Store(false)
		elapse(20 * time.Second)
		synctest.Wait()
		if !e.Leading() || terms != 2 {
			t.Errorf("leading %v in term %d", e.Leading(), terms)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
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
		if e.Leading() || l.holder(t) != "" {
			t.Errorf("leading %v, holder %q", e.Leading(), l.holder(t))
		}
		if err := e.Run(ctx, nil); !errors.Is(err, k8swatch.ErrStarted) {
			t.Errorf("a second Run: %v", err)
		}
		elapse(10 * time.Second)
		synctest.Wait()
		if !e.Leading() || terms != 2 {
			t.Errorf("leading %v in term %d", e.Leading(), terms)
		}
		stop()
		<-done
	})
}

// TestElectionFrozen: the clock alone makes Leading false. Time passes at the
// very place where the leader is about to act, before anything else can run.
func TestElectionFrozen(t *testing.T) {
	l := newLeases()
	e, err := k8swatch.NewElection(&k8swatch.ElectionOptions{
		Client: l.CoordinationV1(), Namespace: "ns", Name: "haptic", Identity: "a", Logger: quiet,
	})
	if err != nil {
		t.Fatal(err)
	}
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
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- e.Run(ctx, func(ctx context.Context) { <-ctx.Done() }) }()
		elapse(3 * time.Second)
		if !e.Leading() {
			t.Fatal("not leading")
		}
		frozen.Store(true)
		elapse(20 * time.Second)
		if e.Leading() {
			t.Error("leading 20 s after the last renewal")
		}
		l.take(t, "b")
		taken.Store(true)
		close(freeze)
		elapse(10 * time.Second)
		if e.Leading() || e.Leader() != "b" {
			t.Errorf("thawed: leading %v, leader %q", e.Leading(), e.Leader())
		}
		stop()
		<-done
	})
}

func TestNewElectionRefuses(t *testing.T) {
	for name, opts := range map[string]*k8swatch.ElectionOptions{
		"nothing":    nil,
		"no name":    {Client: newLeases().CoordinationV1(), Namespace: "ns"},
		"bad timing": {Client: newLeases().CoordinationV1(), Namespace: "ns", Name: "n", LeaseDuration: time.Second},
	} {
		if _, err := k8swatch.NewElection(opts); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
