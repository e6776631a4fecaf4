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

// TestAWorkerThatSeesTheNewTermFirst wakes the others: the poll that follows finds
// nothing new any more.
func TestAWorkerThatSeesTheNewTermFirst(t *testing.T) {
	one, two, leader := &fakeTarget{name: "one"}, &fakeTarget{name: "two"}, &fakeLeader{}
	play(t, Options{Targets: []Target{one, two}, Leader: leader}, func(s *scene) {
		s.Trigger("start")
		pass(leadershipPoll + time.Millisecond)
		leader.Store(true) // and nobody calls LeadershipChanged
		s.Loop.mu.Lock()
		s.workers["one"].poke()
		s.Loop.mu.Unlock()
		pass(leadershipPoll)
		require.Len(t, one.texts(), 1)
		require.Len(t, two.texts(), 1)
	})
}

// TestALossThatOnlyADeploymentSees begins a new term all the same: what all targets
// remember is not trusted any more.
func TestALossThatOnlyADeploymentSees(t *testing.T) {
	one, two, leader := &forgetful{fakeTarget: fakeTarget{name: "one"}}, &forgetful{fakeTarget: fakeTarget{name: "two"}}, &fakeLeader{}
	leader.Store(true)
	play(t, Options{Targets: []Target{one, two}, Leader: leader}, func(s *scene) {
		s.Trigger("start")
		pass(time.Second)
		require.Equal(t, []int32{1, 1}, []int32{one.forgot.Load(), two.forgot.Load()}, "the first term")
		one.behave = func(context.Context, *dataplane.Config) error {
			leader.Store(false)
			err := one.fence()
			leader.Store(true) // before anything else asks
			one.behave = nil
			return err
		}
		s.source.set("b", nil)
		s.Trigger("change")
		pass(leadershipPoll)
		require.Equal(t, []int32{2, 2}, []int32{one.forgot.Load(), two.forgot.Load()})
		require.Equal(t, text("b"), one.texts()[len(one.texts())-1])
	})
}

// TestAFailureThatOutlivesItsTerm is for the next leader to say: this process is ready
// to lead again.
func TestAFailureThatOutlivesItsTerm(t *testing.T) {
	leader := &fakeLeader{}
	leader.Store(true)
	one := &fakeTarget{name: "one", behave: func(context.Context, *dataplane.Config) error {
		leader.Store(false)
		pass(2 * leadershipPoll) // as a process that is frozen until its lease is over
		return errors.New("it took too long")
	}}
	play(t, Options{Targets: []Target{one}, Leader: leader}, func(s *scene) {
		s.Trigger("start")
		pass(4 * leadershipPoll)
		state := s.State()
		require.Len(t, state.Instances, 1)
		require.Empty(t, state.Instances[0].Error)
		require.True(t, state.Ready())
	})
}

// forgetful counts how often it was told to forget.
type forgetful struct {
	fakeTarget
	forgot atomic.Int32
}

func (f *forgetful) Forget() { f.forgot.Add(1) }
