package reconcile

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

func TestAFailedReconciliationIsTriedAgain(t *testing.T) {
	target := &fakeTarget{name: "one"}
	var full atomic.Bool
	full.Store(true)
	validator := ValidatorFunc(func(context.Context, *dataplane.Config) error {
		if full.Load() {
			return errors.New("no space left on device")
		}
		return nil
	})
	play(t, Options{Targets: []Target{target}, Validator: validator}, func(s *scene) {
		s.Trigger("start")
		pass(20 * time.Second)
		require.Empty(t, target.texts())
		require.Len(t, eventsOf[ReconciliationFailed](s), 5, "at 0, 1, 3, 7 and 15 s")
		require.NotEmpty(t, eventsOf[ReconciliationStarted](s)[1].Reasons)

		full.Store(false)
		pass(15 * time.Second)
		require.Equal(t, []string{text("a")}, target.texts(), "nobody had to trigger again")
		pass(3 * time.Minute)
		require.Equal(t, 6, s.source.renders, "what went well is not done again")
	})
}

func TestATargetThatComesBackIsNotCalledTwiceAtOnce(t *testing.T) {
	var calls, most atomic.Int32
	target := &fakeTarget{name: "one"}
	target.behave = func(context.Context, *dataplane.Config) error {
		rise(&most, calls.Add(1))
		<-time.After(10 * time.Second) // whatever the context says
		calls.Add(-1)
		return nil
	}
	play(t, Options{Targets: []Target{target}}, func(s *scene) {
		s.Trigger("start")
		pass(time.Second)
		for range 2 { // as a pod that is ready, not ready, and ready again
			require.NoError(t, s.SetTargets())
			pass(time.Second)
			require.NoError(t, s.SetTargets(target))
			pass(time.Second)
		}
		pass(time.Minute)
		require.EqualValues(t, 1, most.Load())
		require.NotEmpty(t, s.State().Instances[0].Hash)
	})
}

func TestANewTermTrustsNoBaseline(t *testing.T) {
	target, leader := &fakeTarget{name: "one"}, &fakeLeader{}
	leader.Store(true)
	play(t, Options{Targets: []Target{target}, Leader: leader}, func(s *scene) {
		s.Trigger("start")
		pass(5 * time.Second)
		require.Len(t, target.texts(), 1)
		leader.Store(false) // another process deploys something else meanwhile
		s.LeadershipChanged()
		pass(5 * time.Second)
		leader.Store(true)
		s.LeadershipChanged()
		pass(time.Second)
		require.Len(t, target.texts(), 2, "what the instance has is not known any more")
	})
}

func TestAShortLossOfLeadershipIsEnough(t *testing.T) {
	target, leader := &fakeTarget{name: "one"}, &fakeLeader{}
	leader.Store(true)
	play(t, Options{Targets: []Target{target}, Leader: leader}, func(s *scene) {
		s.Trigger("start")
		pass(5 * time.Second)
		s.LeadershipChanged() // lost and won again before anybody looked
		pass(time.Second)
		require.Len(t, target.texts(), 2)
	})
}
