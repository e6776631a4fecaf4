package reconcile

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

// TestTwoThatRefuseTheSameAtDifferentTimes: the second is known to refuse it,
// though that was left out already when it said so.
func TestTwoThatRefuseTheSameAtDifferentTimes(t *testing.T) {
	fleet(t, nil, func(s *scene, _ *ward, olds []*fakeTarget, recent *fakeTarget) {
		refuse := olds[1].behave
		olds[1].set(0, func(ctx context.Context, cfg *dataplane.Config) error {
			time.Sleep(10 * time.Second)
			return refuse(ctx, cfg)
		})
		start(s)
		require.Equal(t, []string{"old-1"}, s.State().Quarantined[0].Instances)
		pass(30 * time.Second)
		require.Equal(t, []string{"old-1", "old-2"}, s.State().Quarantined[0].Instances)
		require.Equal(t, []string{"a b c", "a c"}, history(recent))
	})
}

// TestAQuestionThatNobodyHasAnyMore is not asked when its time comes.
func TestAQuestionThatNobodyHasAnyMore(t *testing.T) {
	fleet(t, func(o *Options) { o.Targets, o.MinInterval = o.Targets[1:], 20*time.Second }, func(s *scene, w *ward, olds []*fakeTarget, _ *fakeTarget) {
		olds[1].set(dataplane.ImpactReload, olds[1].behave)
		start(s) // without b, by a reload
		n := sends(olds[1], "edited")
		w.put("b=too-new, edited")
		s.Trigger("an edit that it can be asked about 20 s after that")
		pass(5 * time.Second)
		w.mu.Lock()
		w.broken = errors.New("haproxy is not there")
		w.mu.Unlock()
		s.Release()
		pass(10 * time.Minute)
		require.Zero(t, n.Load())
	})
}

// TestAnInquiryWhoseInstanceGoes makes room with the next reconciliation.
func TestAnInquiryWhoseInstanceGoes(t *testing.T) {
	w := newWard(t, map[string]string{"haproxy.cfg": loopTemplate})
	w.put("a", "b=x", "c=y")
	first, second, recent := old("e1", "x"), old("e2", "y"), &fakeTarget{name: "recent"}
	slowly(first, time.Hour, nil)
	opts := w.options()
	opts.Targets, opts.DriftInterval = []Target{first, recent}, 24*time.Hour
	play(t, opts, func(s *scene) {
		start(s) // e1 was asked, and takes its time
		require.NoError(t, s.SetTargets(first, second, recent))
		pass(5 * time.Second)
		require.Empty(t, held(s.Loop), "one inquiry at a time")
		require.NoError(t, s.SetTargets(second, recent))
		pass(time.Second)
		s.Trigger("it is gone")
		pass(5 * time.Second)
		require.Equal(t, "c", held(s.Loop))
	})
}

// TestAnInstanceThatWasGivenUp begins anew when it comes back.
func TestAnInstanceThatWasGivenUp(t *testing.T) {
	w := newWard(t, map[string]string{"haproxy.cfg": loopTemplate})
	w.put("a", "b=x")
	all, recent := old("one", "backend"), &fakeTarget{name: "recent"}
	opts := w.options()
	opts.Targets, opts.DriftInterval = []Target{all, recent}, 24*time.Hour
	play(t, opts, func(s *scene) {
		start(s)
		require.Contains(t, s.State().Instances[0].Error, "so the template is to blame")
		require.NoError(t, s.SetTargets(recent))
		s.Trigger("it is gone")
		pass(time.Second)
		require.NoError(t, s.SetTargets(old("one", "x"), recent))
		pass(5 * time.Second)
		require.Equal(t, "b", held(s.Loop))
	})
}

// TestWhatIsRefusedForNobody after a resource was left out: it is nobody's fault,
// and the error stays what it was.
func TestWhatIsRefusedForNobody(t *testing.T) {
	w := newWard(t, map[string]string{"haproxy.cfg": loopTemplate})
	w.put("a", "b=x")
	both, recent := old("one", "x"), &fakeTarget{name: "recent"}
	forB, forAll := both.behave, old("one", "global").behave
	both.behave = func(ctx context.Context, cfg *dataplane.Config) error {
		return errors.Join(forB(ctx, cfg), map[bool]error{true: forAll(ctx, cfg)}[forB(ctx, cfg) == nil])
	}
	opts := w.options()
	opts.Targets = []Target{both, recent}
	play(t, opts, func(s *scene) {
		start(s)
		require.Empty(t, held(s.Loop))
		e := s.State().Instances[0]
		require.Contains(t, e.Error, "unknown keyword 'x'")
		require.NotContains(t, e.Error, "it is refused without", "nothing of that was found out")
		require.Equal(t, []string{"a b"}, history(recent))
	})
}

// TestAnswersDoNotAddUp: of an instance there is the newest of each kind.
func TestAnswersDoNotAddUp(t *testing.T) {
	l, err := New(Options{Renderer: &source{t: t}})
	require.NoError(t, err)
	for range 100 {
		for _, a := range []answer{{instance: "one"}, {instance: "one", asked: true}, {instance: "two"}} {
			l.note(a)
		}
	}
	require.Len(t, l.answers, 3)
}

// TestAChangeThatOneTakes is free: nobody waits for the others that refused what
// it was.
func TestAChangeThatOneTakes(t *testing.T) {
	fleet(t, nil, func(s *scene, w *ward, olds []*fakeTarget, recent *fakeTarget) {
		start(s)
		olds[1].set(0, func(ctx context.Context, _ *dataplane.Config) error { <-ctx.Done(); return ctx.Err() })
		w.put("b=fine")
		s.Trigger("it is mended")
		pass(5 * time.Second)
		require.Empty(t, held(s.Loop))
		require.Equal(t, "a b c", has(recent))
	})
}

// TestATrialThatOneTakes: the next is asked at once, not at the next trial.
func TestATrialThatOneTakes(t *testing.T) {
	fleet(t, nil, func(s *scene, _ *ward, olds []*fakeTarget, recent *fakeTarget) {
		start(s)
		for _, f := range olds {
			f.set(0, nil) // another version
		}
		pass(70 * time.Second)
		require.Empty(t, held(s.Loop))
		require.Equal(t, []string{"a b c", "a c", "a b c"}, history(recent))
	})
}

// TestAnInquiryThatEndsWell forgets those that came to nothing.
func TestAnInquiryThatEndsWell(t *testing.T) {
	fleet(t, func(o *Options) { o.Targets, o.DriftInterval = o.Targets[1:], 2*time.Minute }, func(s *scene, _ *ward, olds []*fakeTarget, _ *fakeTarget) {
		refuse := olds[1].behave
		olds[1].set(0, func(ctx context.Context, cfg *dataplane.Config) error {
			if err := refuse(ctx, cfg); err != nil {
				return err
			}
			<-ctx.Done()
			return ctx.Err()
		})
		weary := func() int {
			s.Loop.rendering.Lock()
			defer s.Loop.rendering.Unlock()
			return len(s.Loop.quarantine.weary)
		}
		start(s)
		pass(40 * time.Second)
		require.Equal(t, 1, weary())
		olds[1].set(0, refuse)
		pass(10 * time.Minute)
		require.Equal(t, "b", held(s.Loop))
		require.Zero(t, weary())
	})
}

// TestATrialThatFailsForAnotherReason proves nothing: what was refused stays left
// out, and is tried again no sooner for that.
func TestATrialThatFailsForAnotherReason(t *testing.T) {
	fleet(t, func(o *Options) { o.Targets = o.Targets[1:] }, func(s *scene, _ *ward, olds []*fakeTarget, recent *fakeTarget) {
		start(s)
		calls := 0
		olds[1].set(0, func(context.Context, *dataplane.Config) error {
			calls++
			return errors.New("no space left on device")
		})
		pass(10 * time.Minute)
		require.Equal(t, "b", held(s.Loop))
		require.Equal(t, []string{"a b c", "a c"}, history(recent))
		require.Positive(t, calls)
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
