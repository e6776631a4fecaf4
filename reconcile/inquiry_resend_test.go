package reconcile

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

// What an instance refused it is not sent again soon, whatever else it is asked
// meanwhile: that costs it a check of the whole configuration each time, and the
// log an error that is no news.

// oneOld is an old instance in a schedule, which refused v.
func oneOld(t *testing.T) (s *schedule, born uint64, v *validated) {
	s = &schedule{instances: map[string]*instanceState{}}
	v = &validated{id: 1, config: configOf(t, "refused")}
	s.leads(true)
	s.accepted(v)
	born = s.arrived("one", false)
	deploys(t, s, 0, stepDeploy, v, outcome{failed: true, hopeless: true, invalid: true})
	return s, born, v
}

// deploys makes the call that the schedule asks for at that second.
func deploys(t *testing.T, s *schedule, at float64, want step, what *validated, o outcome) {
	t.Helper()
	c, until := s.next("one", testTiming(), seconds(at))
	require.Equal(t, want, c.what, "until %s", until)
	require.Same(t, what, c.want)
	s.began(c)
	s.ended(c, o, seconds(at))
}

// waits says until when the instance does nothing.
func waits(t *testing.T, s *schedule, at float64) time.Time {
	t.Helper()
	c, until := s.next("one", testTiming(), seconds(at))
	require.Equal(t, stepWait, c.what)
	return until
}

// TestTheConclusionsOfOneAnswerSayNothingOfTheNext: the next question may be
// answered before the conclusions from the one before have ended.
func TestTheConclusionsOfOneAnswerSayNothingOfTheNext(t *testing.T) {
	s, born, _ := oneOld(t)
	one, two := &validated{id: 2, config: configOf(t, "question 1")}, &validated{id: 3, config: configOf(t, "question 2")}
	require.True(t, s.asks("one", born, one))
	deploys(t, s, 1, stepAsk, one, outcome{failed: true})
	require.True(t, s.asks("one", born, two))
	deploys(t, s, 1, stepAsk, two, outcome{changed: true})
	s.concluded("one", born, one)
	s.accepted(&validated{id: 4, config: configOf(t, "newer, with what is wrong")})
	require.Zero(t, waits(t, s, 2), "until conclusions have been drawn from what it answered last")
	s.concluded("one", born+1, two)
	require.Zero(t, waits(t, s, 2), "those are of another instance")
	s.concluded("one", born, two)
	deploys(t, s, 2, stepDeploy, s.newest, outcome{})
}

// TestWhatAnInstanceTakesSaysNothingOfWhatItRefuses: it waits for the drift
// interval, whatever it took meanwhile, unless something speaks for another try.
func TestWhatAnInstanceTakesSaysNothingOfWhatItRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(s *schedule, born uint64, v *validated)
		at      float64
		want    step
	}{
		"nothing":                 {func(*schedule, uint64, *validated) {}, 59, stepWait},
		"the drift interval":      {func(*schedule, uint64, *validated) {}, 60, stepDeploy},
		"the same text again":     {func(s *schedule, _ uint64, v *validated) { s.accepted(&validated{id: 9, config: v.config}) }, 59, stepWait},
		"forgiveness":             {func(s *schedule, _ uint64, _ *validated) { s.forgive("one"); s.forgive("nobody") }, 2, stepDeploy},
		"a new term":              {func(s *schedule, _ uint64, _ *validated) { s.newTerm() }, 2, stepDeploy},
		"another process leads":   {func(s *schedule, _ uint64, _ *validated) { s.leads(false) }, 61, stepWait},
		"another one of its name": {func(s *schedule, _ uint64, _ *validated) { s.left("one"); s.arrived("one", false) }, 2, stepDeploy},
		"another configuration": {func(s *schedule, _ uint64, _ *validated) {
			s.accepted(&validated{id: 9, config: configOf(t, "other")})
		}, 2, stepDeploy},
		"it takes it, asked again": {func(s *schedule, born uint64, v *validated) {
			require.True(t, s.asks("one", born, v))
			deploys(t, s, 2, stepAsk, v, outcome{changed: true})
			s.concluded("one", born, v)
			s.instances["one"].have = nil // nobody knows any more
		}, 2, stepDeploy},
		"and an answer that failed": {func(s *schedule, born uint64, _ *validated) {
			other := &validated{id: 9, config: configOf(t, "another question")}
			require.True(t, s.asks("one", born, other))
			deploys(t, s, 2, stepAsk, other, outcome{failed: true})
			s.concluded("one", born, other)
		}, 59, stepWait},
	} {
		t.Run(name, func(t *testing.T) {
			s, born, v := oneOld(t)
			rest := &validated{id: 2, config: configOf(t, "the rest")}
			require.True(t, s.asks("one", born, rest))
			deploys(t, s, 1, stepAsk, rest, outcome{changed: true})
			require.True(t, s.refuses("one", born, v))
			require.False(t, s.refuses("one", born, rest))
			require.False(t, s.refuses("one", born+1, v))
			s.concluded("one", born, rest)
			require.Equal(t, seconds(60), waits(t, s, 1))
			c.happens(s, born, v)
			got, _ := s.next("one", testTiming(), seconds(c.at))
			require.Equal(t, c.want, got.what)
		})
	}
	t.Run("what it takes in the end is not refused", func(t *testing.T) {
		s, born, v := oneOld(t)
		deploys(t, s, 60, stepDeploy, v, outcome{changed: true})
		require.False(t, s.refuses("one", born, v))
		deploys(t, s, 120, stepCheck, v, outcome{failed: true})
		deploys(t, s, 121, stepDeploy, v, outcome{})
	})
	t.Run("nor does it wait for ever where the clock is set back", func(t *testing.T) {
		s, born, _ := oneOld(t)
		rest := &validated{id: 2, config: configOf(t, "the rest")}
		require.True(t, s.asks("one", born, rest))
		deploys(t, s, 1, stepAsk, rest, outcome{changed: true})
		s.concluded("one", born, rest)
		require.Equal(t, seconds(-1000+60), waits(t, s, -1000))
	})
}

// sends counts how often an instance is sent something that has a word.
func sends(f *fakeTarget, word string) *atomic.Int32 {
	n, behave := &atomic.Int32{}, f.behave
	f.behave = func(ctx context.Context, cfg *dataplane.Config) error {
		if strings.Contains(cfg.Main(), word) {
			n.Add(1)
		}
		return behave(ctx, cfg)
	}
	return n
}

// slowly has an instance take its time for what it takes, whatever becomes of the
// call, and says when it begins.
func slowly(f *fakeTarget, d time.Duration, begins func()) {
	behave := f.behave
	f.behave = func(ctx context.Context, cfg *dataplane.Config) error {
		if err := behave(ctx, cfg); err != nil {
			return err
		}
		if begins != nil {
			begins()
		}
		time.Sleep(d)
		return nil
	}
}

// TestARefusedConfigurationIsSentOnce: what happens between the question that the
// instance took and its conclusions does not have it sent again.
func TestARefusedConfigurationIsSentOnce(t *testing.T) {
	t.Run("the conclusions cannot be drawn yet", func(t *testing.T) {
		fleet(t, func(o *Options) { o.Targets = o.Targets[1:] }, func(s *scene, w *ward, olds []*fakeTarget, recent *fakeTarget) {
			n := sends(olds[1], "too-new")
			breaks := func(err error) {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.broken = err
			}
			slowly(olds[1], time.Second, func() { breaks(errors.New("haproxy is not there")) })
			s.Trigger("start")
			pass(30 * time.Second)
			require.NotEmpty(t, eventsOf[ReconciliationFailed](s))
			require.Equal(t, "a c", has(olds[1]))
			require.EqualValues(t, 1, n.Load())
			e := s.State().Instances[0]
			require.Contains(t, e.Error, "unknown keyword 'too-new'", "it has not what it shall have, and why")
			require.Equal(t, 1, e.Failures)
			require.NotZero(t, e.StaleSince)
			require.Equal(t, 24*time.Hour, e.RetryAt.Sub(e.StaleSince))
			breaks(nil)
			slowly(olds[1], 0, nil)
			pass(time.Minute)
			require.Equal(t, "b", held(s.Loop))
			require.Equal(t, "a c", has(recent))
			require.EqualValues(t, 1, n.Load())
			e = s.State().Instances[0]
			require.Empty(t, e.Error)
			require.Zero(t, e.Failures)
			require.Zero(t, e.RetryAt)
			require.Zero(t, e.StaleSince)
		})
	})
	t.Run("the answer comes too late", func(t *testing.T) {
		fleet(t, func(o *Options) { o.Targets = o.Targets[1:] }, func(s *scene, w *ward, olds []*fakeTarget, _ *fakeTarget) {
			n := sends(olds[1], "too-new")
			slowly(olds[1], 100*time.Second, nil)
			s.Trigger("start")
			pass(3 * time.Hour)
			require.Equal(t, "a c", has(olds[1]))
			require.EqualValues(t, 1, n.Load())
		})
	})
}

// TestARefusedConfigurationIsSentAgain where something speaks for that.
func TestARefusedConfigurationIsSentAgain(t *testing.T) {
	// Only its version changes while the instance is asked about the rest: what it
	// refused is the same text, and nobody has accused what it is made of now.
	t.Run("what was blamed changed", func(t *testing.T) {
		fleet(t, func(o *Options) { o.Targets = o.Targets[1:] }, func(s *scene, w *ward, olds []*fakeTarget, recent *fakeTarget) {
			n, once := sends(olds[1], "too-new"), false
			slowly(olds[1], time.Second, func() {
				if !once {
					w.put("b=too-new")
				}
				once = true
			})
			s.Trigger("start")
			pass(30 * time.Second)
			require.EqualValues(t, 2, n.Load())
			require.Equal(t, "b", held(s.Loop))
			require.Equal(t, "4", s.State().Quarantined[0].Resource.Version)
			require.Equal(t, []string{"a b c", "a c"}, history(recent))
		})
	})
	t.Run("after a release", func(t *testing.T) {
		fleet(t, func(o *Options) { o.Targets = o.Targets[1:] }, func(s *scene, w *ward, olds []*fakeTarget, recent *fakeTarget) {
			n, once := sends(olds[1], "too-new"), false
			slowly(olds[1], 3*time.Second, func() {
				if !once {
					s.Release()
				}
				once = true
			})
			s.Trigger("start")
			pass(30 * time.Second)
			require.EqualValues(t, 2, n.Load())
			require.Equal(t, "b", held(s.Loop))
			require.Equal(t, []string{"a b c", "a c"}, history(recent))
		})
	})
}
