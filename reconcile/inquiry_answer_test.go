package reconcile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// served is an instance in a schedule that has what it shall have.
func served(t *testing.T) (s *schedule, born uint64, v *validated) {
	s = &schedule{instances: map[string]*instanceState{}}
	v = &validated{id: 1, config: configOf(t, "what all have")}
	s.leads(true)
	s.accepted(v)
	born = s.arrived("one", false)
	deploys(t, s, 0, stepDeploy, v, outcome{changed: true})
	return s, born, v
}

// TestWhatFollowsAnAnswer is a table of answers, and of what an instance that had
// everything does next.
func TestWhatFollowsAnAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		o     outcome
		want  step // when the conclusions have been drawn
		until time.Time
	}{
		"it takes it, and has it no longer when others do not get it": {outcome{changed: true}, stepDeploy, time.Time{}},
		"it does not, and what it has is looked at, at once":          {outcome{failed: true}, stepCheck, time.Time{}},
		"nobody knows, and nothing is trusted":                        {outcome{failed: true, unknown: true}, stepDeploy, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			s, born, v := served(t)
			q := &validated{id: 2, config: configOf(t, "a question")}
			require.True(t, s.asks("one", born, q))
			deploys(t, s, 3, stepAsk, q, c.o)
			require.False(t, s.asking("one", born, q))
			if !c.o.unknown {
				require.Zero(t, waits(t, s, 4), "it waits for the conclusions")
			}
			s.concluded("one", born, q)
			deploys(t, s, 5, c.want, v, outcome{})
		})
	}
	t.Run("it takes it, and so do all", func(t *testing.T) {
		s, born, _ := served(t)
		q := &validated{id: 2, config: configOf(t, "a question")}
		require.True(t, s.asks("one", born, q))
		deploys(t, s, 3, stepAsk, q, outcome{changed: true})
		s.accepted(&validated{id: 3, config: q.config})
		s.concluded("one", born, q)
		require.Equal(t, seconds(63), waits(t, s, 4), "it has it")
	})
	t.Run("it takes it after failures", func(t *testing.T) {
		s, born, v := served(t)
		next := &validated{id: 2, config: configOf(t, "newer")}
		s.accepted(next)
		deploys(t, s, 1, stepDeploy, next, outcome{failed: true})
		q := &validated{id: 3, config: configOf(t, "a question")}
		require.True(t, s.asks("one", born, q))
		deploys(t, s, 1, stepAsk, q, outcome{changed: true})
		s.concluded("one", born, q)
		deploys(t, s, 1, stepDeploy, next, outcome{}) // it is there again: no back-off
		require.NotSame(t, v, next)
	})
}

// TestQuestionsThatAreTakenBack leave those alone that came after them.
func TestQuestionsThatAreTakenBack(t *testing.T) {
	one, two := &validated{id: 2, config: configOf(t, "question 1")}, &validated{id: 3, config: configOf(t, "question 2")}
	t.Run("unask", func(t *testing.T) {
		s, born, _ := served(t)
		require.True(t, s.asks("one", born, two))
		s.unask("one", born, one)
		s.unask("one", born+1, two)
		require.True(t, s.asking("one", born, two))
		s.unask("one", born, two)
		require.False(t, s.asking("one", born, two))
		require.Equal(t, seconds(60), waits(t, s, 4))
	})
	t.Run("an answer to one that was taken back", func(t *testing.T) {
		s, born, _ := served(t)
		require.True(t, s.asks("one", born, one))
		c, _ := s.next("one", testTiming(), seconds(3))
		require.Equal(t, stepAsk, c.what)
		s.began(c)
		s.unask("one", born, one)
		require.True(t, s.asks("one", born, two))
		s.ended(c, outcome{changed: true}, seconds(4))
		require.True(t, s.asking("one", born, two), "that is no answer to the next one")
		deploys(t, s, 4, stepAsk, two, outcome{failed: true})
	})
	t.Run("another process leads", func(t *testing.T) {
		s, born, _ := served(t)
		require.True(t, s.asks("one", born, one))
		s.leads(false)
		require.False(t, s.asking("one", born, one), "whoever waits for the answer waits in vain")
	})
	t.Run("in a new term", func(t *testing.T) {
		s, born, v := served(t)
		require.True(t, s.asks("one", born, one))
		c, _ := s.next("one", testTiming(), seconds(3))
		s.began(c)
		s.newTerm()
		require.False(t, s.asking("one", born, one))
		require.True(t, s.asks("one", born, two))
		s.ended(c, outcome{changed: true}, seconds(4))
		require.False(t, s.asking("one", born, two), "what was asked while a call of the term before was under way")
		deploys(t, s, 4, stepDeploy, v, outcome{})
	})
}
