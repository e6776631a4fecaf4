package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

// bombed is a target with as many old workers as it may have, for as long as spent.
type bombed struct {
	fakeTarget
	mu    sync.Mutex
	spent bool
	parts []string // texts of which it took what needs no reload
}

func (b *bombed) set(spent bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spent = spent
}

func (b *bombed) Sync(ctx context.Context, cfg *dataplane.Config, options ...dataplane.SyncOption) (*dataplane.Result, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.spent {
		return b.fakeTarget.Sync(ctx, cfg, options...)
	}
	result := &dataplane.Result{Plan: b.plan(), Left: b.plan()}
	if n := len(b.parts); n == 0 || b.parts[n-1] != cfg.Main() {
		b.parts, result.Commands = append(b.parts, cfg.Main()), 1
	}
	if dataplane.LimitsOf(options...).WithoutReload {
		return result, nil
	}
	return result, fmt.Errorf("%w: 8 have connections, and at most 8 may", dataplane.ErrOldWorkers)
}

// A reload that waits for old workers is no failure: nothing is quarantined, what takes
// no reload goes on, it is said once, and the reload follows a second after a worker ended.
func TestOldWorkersMakeReloadsWait(t *testing.T) {
	target := &bombed{fakeTarget: fakeTarget{name: "one", impact: dataplane.ImpactReload}}
	other := &fakeTarget{name: "two", impact: dataplane.ImpactReload}
	play(t, Options{Targets: []Target{target, other}, DriftInterval: time.Hour}, func(s *scene) {
		s.Trigger("test")
		synctest.Wait()
		target.set(true)
		time.Sleep(10 * time.Second)
		s.source.set("b", nil)
		s.Trigger("test")
		time.Sleep(30 * time.Minute)
		one := s.State().Instances[0]
		require.Contains(t, one.Waits, "8 have connections, and at most 8 may")
		require.Empty(t, one.Error)
		require.Zero(t, one.Failures)
		require.NotZero(t, one.StaleSince)
		require.Len(t, other.texts(), 2, "others do not wait")
		require.Empty(t, eventsOf[InstanceDeploymentFailed](s))
		require.Empty(t, s.State().Quarantined)
		said := func() (waits []DeploymentScheduled) {
			for _, e := range eventsOf[DeploymentScheduled](s) {
				if e.Waits != nil {
					require.ErrorIs(t, e.Waits, dataplane.ErrOldWorkers)
					require.Contains(t, e.Report().Sentence, "at most 8 may")
					waits = append(waits, e)
				}
			}
			return waits
		}
		require.Len(t, said(), 1)

		s.source.set("c", nil)
		s.Trigger("test")
		synctest.Wait()
		require.Equal(t, []string{text("b"), text("c")}, target.parts, "runtime changes do not wait")
		time.Sleep(30 * time.Minute)
		require.Len(t, said(), 2)

		target.set(false)
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, []string{text("a"), text("c")}, target.texts())
		one = s.State().Instances[0]
		require.Empty(t, one.Waits)
		require.Zero(t, one.StaleSince)
		inOrder(t, s)
	})
}

// Who no longer leads says nothing of deployments: neither what waits nor what failed.
func TestWhoLeadsNoLongerSaysNothing(t *testing.T) {
	target, leader := &bombed{fakeTarget: fakeTarget{name: "one", impact: dataplane.ImpactReload}}, &fakeLeader{}
	failing := &fakeTarget{name: "two"}
	leader.Store(true)
	play(t, Options{Targets: []Target{target, failing}, Leader: leader}, func(s *scene) {
		s.Trigger("test")
		synctest.Wait()
		target.set(true)
		failing.set(0, func(context.Context, *dataplane.Config) error { return errors.New("no") })
		s.source.set("b", nil)
		s.Trigger("test")
		time.Sleep(10 * time.Second)
		require.NotEmpty(t, s.State().Instances[0].Waits)
		require.NotZero(t, s.State().Instances[1].Failures)
		leader.Store(false)
		time.Sleep(time.Second)
		for _, is := range s.State().Instances {
			require.Equal(t, []any{"", "", 0, time.Time{}}, []any{is.Waits, is.Error, is.Failures, is.RetryAt}, is.Name)
		}
		leader.Store(true)
		time.Sleep(10 * time.Second)
		require.NotEmpty(t, s.State().Instances[0].Waits)
		require.Equal(t, 2, len(slices.DeleteFunc(eventsOf[DeploymentScheduled](s), func(e DeploymentScheduled) bool { return e.Waits == nil })), "once in each term")
		inOrder(t, s)
	})
}

// An instance that failed its probe says when it answers again, also to who does not lead.
func TestInstanceIsReachedAgain(t *testing.T) {
	target, leader := &probedTarget{fakeTarget: fakeTarget{name: "one"}, probed: errors.New("no route")}, &fakeLeader{}
	play(t, Options{Targets: []Target{target}, Leader: leader}, func(s *scene) {
		s.Trigger("test")
		time.Sleep(10 * time.Second)
		failures := len(eventsOf[InstanceDeploymentFailed](s))
		require.NotZero(t, failures)
		s.Loop.mu.Lock()
		target.probed = nil
		s.Loop.mu.Unlock()
		time.Sleep(time.Minute)
		require.Equal(t, []InstanceReached{{Instance: "one", Failures: failures}}, eventsOf[InstanceReached](s))
		require.Equal(t, "answers again, after 4 failures", InstanceReached{Failures: 4}.Report().Sentence)
		require.Empty(t, s.State().Instances[0].Error)
	})
}

// A check that finds something to reload waits, too, and mends it when it may.
func TestOldWorkersMakeChecksWait(t *testing.T) {
	target := &bombed{fakeTarget: fakeTarget{name: "one", impact: dataplane.ImpactReload}}
	play(t, Options{Targets: []Target{target}}, func(s *scene) {
		s.Trigger("test")
		synctest.Wait()
		target.set(true)
		time.Sleep(5 * time.Minute)
		require.NotEmpty(t, s.State().Instances[0].Waits)
		require.Len(t, target.texts(), 1)
		target.set(false)
		time.Sleep(time.Second)
		synctest.Wait()
		require.Len(t, target.texts(), 2)
		inOrder(t, s)
	})
}
