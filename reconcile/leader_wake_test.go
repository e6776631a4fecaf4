package reconcile

import (
	"context"
	"errors"
	"slices"
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

// TestATermBeginsWithWhatIsKnown: nothing is deployed in a term but what was rendered after
// BeginTerm returned, whether this process saw that it had lost the lead or not.
func TestATermBeginsWithWhatIsKnown(t *testing.T) {
	leader, target := &fakeLeader{}, &forgetful{fakeTarget: fakeTarget{name: "one"}}
	var begins, begin chan struct{} // of the bubble
	opts := Options{Targets: []Target{target}, Leader: leader, BeginTerm: func(ctx context.Context) {
		begins <- struct{}{}
		select {
		case <-begin:
		case <-ctx.Done():
		}
	}}
	play(t, opts, func(s *scene) {
		begins, begin = make(chan struct{}, 10), make(chan struct{})
		deployed := func() []string {
			pass(time.Minute)
			target.mu.Lock()
			defer target.mu.Unlock()
			texts := make([]string, len(target.synced))
			for i, cfg := range target.synced {
				texts[i] = cfg.Main()
			}
			target.synced = nil
			return slices.Compact(texts)
		}
		// catchesUp: meanwhile the watches are behind, and then they are not.
		catchesUp := func(name string) {
			t.Helper()
			require.Empty(t, deployed(), "the term has not begun")
			require.False(t, s.State().Leading)
			require.Zero(t, s.Term())
			s.Trigger("a change")
			require.Empty(t, deployed(), "that was rendered before")
			require.Len(t, begins, 1)
			<-begins
			s.source.set(name, nil)
			begin <- struct{}{}
			require.Equal(t, []string{text(name)}, deployed())
			require.True(t, s.State().Leading)
			require.NotZero(t, s.Term())
		}
		s.source.set("old", nil)
		s.Trigger("start")
		require.Empty(t, deployed(), "it follows")
		require.Empty(t, begins)
		leader.Store(true) // and nobody calls LeadershipChanged
		catchesUp("a")

		term := s.Term()
		leader.Store(false)
		s.LeadershipChanged()
		s.source.set("old", nil)
		s.Trigger("it follows")
		require.Empty(t, deployed())
		leader.Store(true)
		s.LeadershipChanged()
		catchesUp("b")
		require.Greater(t, s.Term(), term)

		leader.Store(false)
		s.LeadershipChanged() // lost and won again before anybody looked
		leader.Store(true)
		catchesUp("b") // nothing changed: it is deployed all the same

		target.behave = func(context.Context, *dataplane.Config) error {
			leader.Store(false)
			err := target.fence()
			leader.Store(true) // before anything else asks
			target.behave = nil
			return err
		}
		s.source.set("c", nil)
		s.Trigger("change")
		catchesUp("d")
	})
}

// TestALossDuringBeginTerm has it called again: who led in between may have deployed since.
func TestALossDuringBeginTerm(t *testing.T) {
	leader, one := &fakeLeader{}, &fakeTarget{name: "one"}
	var calls atomic.Int32
	lost := func() {}
	opts := Options{Targets: []Target{one}, Leader: leader, BeginTerm: func(context.Context) {
		if calls.Add(1) == 1 {
			lost()
			<-time.After(time.Second)
		}
	}}
	for name, how := range map[string]func(s *scene){
		"seen":     func(s *scene) { leader.Store(false); _ = s.State(); leader.Store(true) },
		"reported": func(s *scene) { s.LeadershipChanged() },
	} {
		t.Run(name, func(t *testing.T) {
			calls.Store(0)
			leader.Store(false)
			play(t, opts, func(s *scene) {
				lost = func() { how(s) }
				s.Trigger("start")
				leader.Store(true)
				pass(leadershipPoll + 500*time.Millisecond)
				require.Empty(t, one.texts())
				pass(time.Minute)
				require.EqualValues(t, 2, calls.Load())
				require.NotEmpty(t, one.texts())
				one.mu.Lock()
				one.synced = nil
				one.mu.Unlock()
			})
		})
	}
}

// TestOnceBeginsATerm: Once deploys what it knows after BeginTerm, too.
func TestOnceBeginsATerm(t *testing.T) {
	leader, one, src := &fakeLeader{}, &fakeTarget{name: "one"}, &source{t: t, text: "old"}
	loop, err := New(Options{Renderer: src, Targets: []Target{one}, Leader: leader,
		BeginTerm: func(context.Context) { src.set("new", nil) }})
	require.NoError(t, err)
	_, err = loop.Once(t.Context())
	require.ErrorIs(t, err, errNotLeading)
	leader.Store(true)
	_, err = loop.Once(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{text("new")}, one.texts())
}

// forgetful counts how often it was told to forget.
type forgetful struct {
	fakeTarget
	forgot atomic.Int32
}

func (f *forgetful) Forget() { f.forgot.Add(1) }
