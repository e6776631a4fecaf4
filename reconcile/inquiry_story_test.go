package reconcile

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

// fleet plays a story with two old instances and a new one, in which Ingress b is
// too new for the old ones.
func fleet(t *testing.T, change func(*Options), story func(s *scene, w *ward, olds []*fakeTarget, recent *fakeTarget)) {
	w := newWard(t, map[string]string{"haproxy.cfg": loopTemplate})
	w.put("a", "b=too-new", "c")
	olds, recent := []*fakeTarget{old("old-1", "too-new"), old("old-2", "too-new")}, &fakeTarget{name: "recent"}
	opts := w.options()
	opts.Targets, opts.DriftInterval = []Target{olds[0], olds[1], recent}, 24*time.Hour
	if change != nil {
		change(&opts)
	}
	play(t, opts, func(s *scene) { story(s, w, olds, recent) })
}

func start(s *scene) {
	s.Trigger("start")
	pass(5 * time.Second)
}

// TestSeveralOldInstances all refuse the same: one inquiry is enough, and it is
// over when none of them is left.
func TestSeveralOldInstances(t *testing.T) {
	fleet(t, nil, func(s *scene, _ *ward, olds []*fakeTarget, recent *fakeTarget) {
		start(s)
		require.Equal(t, "b", held(s.Loop))
		require.Equal(t, []string{"old-1", "old-2"}, s.State().Quarantined[0].Instances)
		require.Equal(t, []string{"a b c", "a c"}, history(recent))
		require.Equal(t, "a c", has(olds[1]))
		require.Len(t, failures(s), 2)

		require.NoError(t, s.SetTargets(olds[1], recent))
		pass(5 * time.Second)
		require.Equal(t, "b", held(s.Loop), "the other one still refuses it")
		require.Equal(t, []string{"old-2"}, s.State().Quarantined[0].Instances)
		require.Equal(t, []string{"a b c", "a c"}, history(recent))

		require.NoError(t, s.SetTargets(recent))
		pass(5 * time.Second)
		require.Empty(t, held(s.Loop), "nobody refuses it any more")
		require.Equal(t, []string{"a b c", "a c", "a b c"}, history(recent))
	})
}

// TestAnInstanceOfAnotherVersionNow is asked at once when it comes back, and not
// before the others that refused the same.
func TestAnInstanceOfAnotherVersionNow(t *testing.T) {
	fleet(t, nil, func(s *scene, _ *ward, olds []*fakeTarget, recent *fakeTarget) {
		start(s)
		upgraded := []*fakeTarget{{name: "old-1"}, {name: "old-2"}}
		require.NoError(t, s.SetTargets(upgraded[0], olds[1], recent))
		pass(5 * time.Second)
		require.Equal(t, "b", held(s.Loop))
		require.Equal(t, []string{"old-2"}, s.State().Quarantined[0].Instances)
		require.NoError(t, s.SetTargets(upgraded[0], upgraded[1], recent))
		pass(10 * time.Second)
		require.Empty(t, held(s.Loop))
		for _, f := range append(upgraded, recent) {
			require.Equal(t, "a b c", has(f), f.name)
		}
	})
}

// TestInquiriesThatAreCutShort leave everybody as they were, and the next one
// finds what is at fault.
func TestInquiriesThatAreCutShort(t *testing.T) {
	for name, cut := range map[string]func(s *scene, lead *atomic.Bool, one, recent *fakeTarget) (restore func()){
		"the instance goes": func(s *scene, _ *atomic.Bool, one, recent *fakeTarget) func() {
			_ = s.SetTargets(recent)
			return func() { _ = s.SetTargets(one, recent) }
		},
		"another process leads": func(s *scene, lead *atomic.Bool, _, _ *fakeTarget) func() {
			lead.Store(false)
			return func() { lead.Store(true) }
		},
		"for a moment": func(s *scene, _ *atomic.Bool, _, _ *fakeTarget) func() {
			s.LeadershipChanged()
			return func() {}
		},
		"by new templates": func(s *scene, _ *atomic.Bool, _, _ *fakeTarget) func() {
			s.Release()
			return func() {}
		},
		"its time is over": func(*scene, *atomic.Bool, *fakeTarget, *fakeTarget) func() {
			pass(40 * time.Second)
			return func() {}
		},
	} {
		t.Run(name, func(t *testing.T) {
			var hang atomic.Bool
			lead := &atomic.Bool{}
			lead.Store(true)
			w := newWard(t, map[string]string{"haproxy.cfg": loopTemplate})
			w.put("a", "b=too-new", "c")
			one, recent := old("one", "too-new"), &fakeTarget{name: "recent"}
			refuse := one.behave
			one.behave = func(ctx context.Context, cfg *dataplane.Config) error {
				err := refuse(ctx, cfg)
				if err == nil && hang.Load() {
					<-ctx.Done()
					return ctx.Err()
				}
				return err
			}
			hang.Store(true)
			opts := w.options()
			opts.Targets, opts.Leader, opts.DriftInterval = []Target{one, recent}, leaderFunc(lead.Load), 2*time.Minute
			play(t, opts, func(s *scene) {
				start(s)
				require.Empty(t, held(s.Loop), "it was asked, and hangs")
				require.Equal(t, "a b c", has(recent))
				restore := cut(s, lead, one, recent)
				pass(5 * time.Second)
				require.Empty(t, held(s.Loop))
				require.Equal(t, []string{"a b c"}, history(recent))
				hang.Store(false)
				restore()
				pass(10 * time.Minute)
				require.Equal(t, "b", held(s.Loop))
				require.Equal(t, "a c", has(one))
				require.Equal(t, []string{"a b c", "a c"}, history(recent))
			})
		})
	}
}

type leaderFunc func() bool

func (f leaderFunc) Leading() bool { return f() }

// TestOthersDoNotWaitForAnInquiry: what changes meanwhile reaches them at once.
func TestOthersDoNotWaitForAnInquiry(t *testing.T) {
	fleet(t, func(o *Options) { o.Targets = o.Targets[1:] }, func(s *scene, w *ward, olds []*fakeTarget, recent *fakeTarget) {
		refuse := olds[1].behave
		olds[1].set(0, func(ctx context.Context, cfg *dataplane.Config) error {
			time.Sleep(20 * time.Second)
			return refuse(ctx, cfg)
		})
		s.Trigger("start")
		pass(21 * time.Second)
		for i := range 10 {
			w.put(fmt.Sprintf("new-%d", i))
			s.Trigger("change")
			pass(time.Second)
			require.Contains(t, has(recent), fmt.Sprintf("new-%d", i))
		}
		pass(time.Minute)
		require.Equal(t, "b", held(s.Loop))
		require.Equal(t, has(recent), has(olds[1]))
	})
}

// TestWhatChangesDuringAnInquiry is not left out.
func TestWhatChangesDuringAnInquiry(t *testing.T) {
	fleet(t, func(o *Options) { o.Targets = o.Targets[1:] }, func(s *scene, w *ward, olds []*fakeTarget, recent *fakeTarget) {
		refuse := olds[1].behave
		olds[1].set(0, func(ctx context.Context, cfg *dataplane.Config) error {
			err := refuse(ctx, cfg)
			if err == nil {
				time.Sleep(10 * time.Second)
			}
			return err
		})
		start(s)
		w.put("b=mended")
		s.Trigger("b")
		pass(time.Minute)
		require.Empty(t, held(s.Loop))
		require.Empty(t, eventsOf[ResourceQuarantined](s))
		require.Equal(t, "a b c", has(recent))
		require.Equal(t, "a b c", has(olds[1]))
	})
}
