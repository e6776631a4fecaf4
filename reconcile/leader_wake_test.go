package reconcile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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

// TestATermBeginsOnce, however often it is asked who leads.
func TestATermBeginsOnce(t *testing.T) {
	leader, began := &fakeLeader{}, 0
	terms := &terms{Leader: leader, began: func() { began++ }}
	for term := range 3 {
		leader.Store(true)
		for range 5 {
			require.True(t, terms.Leading())
		}
		require.Equal(t, term+1, began)
		leader.Store(false)
		require.False(t, terms.Leading())
	}
}
