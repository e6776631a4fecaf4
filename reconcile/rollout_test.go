package reconcile

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

// TestDeploymentCompleted: once for each revision, when every instance has it or failed
// on it; a reload that waits holds it back, and a newer revision ends it.
func TestDeploymentCompleted(t *testing.T) {
	one, two := &fakeTarget{name: "one"}, &fakeTarget{name: "two"}
	play(t, Options{Targets: []Target{one, two}, Debounce: time.Millisecond}, func(s *scene) {
		known := 0
		told := func() (fresh []DeploymentCompleted) {
			all := eventsOf[DeploymentCompleted](s)
			fresh, known = all[known:], len(all)
			return fresh
		}
		change := func(name string, after time.Duration) []DeploymentCompleted {
			s.source.set(name, nil)
			s.Trigger(name)
			pass(after)
			return told()
		}
		slow := func(context.Context, *dataplane.Config) error { time.Sleep(300 * time.Millisecond); return nil }
		two.set(0, slow)
		require.Empty(t, change("a", 200*time.Millisecond), "one of them is not there yet")
		require.Equal(t, []DeploymentCompleted{{ID: 1, Hash: s.State().Validated, Instances: []string{"one", "two"}, Took: 300 * time.Millisecond}}, change("a", time.Second))
		require.Empty(t, change("a", time.Minute), "nothing differs, and drift is no new revision")

		two.set(0, func(ctx context.Context, _ *dataplane.Config) error { <-ctx.Done(); return ctx.Err() })
		require.Empty(t, change("b", 29*time.Second))
		pass(2 * time.Second)
		failed := told()
		require.Len(t, failed, 1, "an instance that never answers is among the failures")
		require.Equal(t, []string{"one"}, failed[0].Instances)
		require.Equal(t, []string{"two"}, failed[0].Failed)
		require.Equal(t, 30*time.Second, failed[0].Took)
		require.Equal(t, "1 of 2 instances have revision "+s.State().Validated[:8]+"; it failed on two", failed[0].Report().Sentence)
		two.set(0, nil)
		pass(time.Minute)
		require.Empty(t, told(), "once for each revision")

		two.set(dataplane.ImpactReload, nil)
		require.Len(t, change("c", 10*time.Millisecond), 1)
		require.Empty(t, change("d", 10*time.Millisecond), "a reload waits")
		both := change("e", 10*time.Second)
		require.Len(t, both, 2)
		require.Equal(t, []string{"two"}, both[0].Superseded)
		require.Equal(t, []string{"one"}, both[0].Instances)
		require.Equal(t, both[0].ID+1, both[1].ID)
		require.Equal(t, []string{"one", "two"}, both[1].Instances)
		require.Equal(t, "all 2 instances have revision "+s.State().Validated[:8], both[1].Report().Sentence)

		change("f", 10*time.Millisecond)
		require.Empty(t, change("g", 10*time.Millisecond))
		require.NoError(t, s.SetTargets(one)) // the one that it waits for
		gone := told()
		require.Len(t, gone, 1)
		require.Equal(t, []string{"one"}, gone[0].Instances)
		require.Empty(t, gone[0].Report().Sentence, "the line of its deployment says it")
	})
}

// A process that does not lead deploys nothing, and tells nothing of it; the time of the
// one that comes to lead begins then.
func TestDeploymentCompletedByTheLeader(t *testing.T) {
	one, leads := &fakeTarget{name: "one"}, &atomic.Bool{}
	play(t, Options{Targets: []Target{one}, Leader: leaderFunc(leads.Load)}, func(s *scene) {
		s.Trigger("start")
		pass(time.Hour)
		require.Empty(t, eventsOf[DeploymentCompleted](s))
		leads.Store(true)
		s.LeadershipChanged()
		pass(time.Minute)
		require.Len(t, eventsOf[DeploymentCompleted](s), 1)
		require.Less(t, eventsOf[DeploymentCompleted](s)[0].Took, time.Second)
	})
}

func TestDriftPreventionTriggered(t *testing.T) {
	one := &fakeTarget{name: "one", same: true}
	play(t, Options{Targets: []Target{one}}, func(s *scene) {
		s.Trigger("start")
		pass(3*time.Minute + time.Second)
		checks := eventsOf[DriftPreventionTriggered](s)
		require.Equal(t, []DriftPreventionTriggered{{1, "one", time.Minute}, {1, "one", time.Minute}, {1, "one", time.Minute}}, checks)
		require.Empty(t, eventsOf[DriftRepaired](s))
		require.Equal(t, slog.LevelDebug, checks[0].Report().Level)
	})
}

// TestTheEndSaysWhatIsUnfinished for whatever reason an instance waits.
func TestTheEndSaysWhatIsUnfinished(t *testing.T) {
	change := func(s *scene, name string) {
		s.source.set(name, nil)
		s.Trigger(name)
		pass(600 * time.Millisecond)
	}
	boom := func(context.Context, *dataplane.Config) error { return errors.New("no route") }
	var probed atomic.Bool
	for name, c := range map[string]struct {
		opts Options
		then func(s *scene, one *fakeTarget)
		want string // "": nothing is unfinished
	}{
		"nothing waits": {Options{}, func(*scene, *fakeTarget) {}, ""},
		"the interval": {Options{MinInterval: time.Hour}, func(s *scene, one *fakeTarget) {
			one.set(dataplane.ImpactReload, nil)
			change(s, "b")
			change(s, "c")
		}, "waits for the interval of 1h0m0s between two reloads"},
		"back-off": {Options{}, func(s *scene, one *fakeTarget) {
			one.set(0, boom)
			change(s, "b")
			pass(3 * time.Second)
		}, "failed, and waits for the next try: no route"},
		"a call under way": {Options{}, func(s *scene, one *fakeTarget) {
			one.set(0, func(ctx context.Context, _ *dataplane.Config) error { <-ctx.Done(); return ctx.Err() })
			change(s, "b")
		}, "a deployment was under way, and the controller does not know its outcome"},
		"a check under way": {Options{}, func(s *scene, one *fakeTarget) {
			one.set(0, func(ctx context.Context, _ *dataplane.Config) error { <-ctx.Done(); return ctx.Err() })
			pass(61 * time.Second)
		}, ""},
		"a call that ends well": {Options{}, func(s *scene, one *fakeTarget) {
			one.set(0, func(ctx context.Context, _ *dataplane.Config) error { <-ctx.Done(); return nil })
			change(s, "b")
		}, ""},
		"it does not lead": {Options{Leader: leaderFunc(probed.Load)}, func(s *scene, _ *fakeTarget) { change(s, "b") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			one := &fakeTarget{name: "one"}
			c.opts.Targets = []Target{one}
			play(t, c.opts, func(s *scene) {
				s.Trigger("start")
				pass(time.Second)
				c.then(s, one)
				hash := s.State().Validated
				s.end()
				found := eventsOf[DeploymentUnfinished](s)
				if c.want == "" {
					require.Empty(t, found)
					return
				}
				require.Len(t, found, 1)
				require.Contains(t, found[0].Report().Sentence, "ended before revision "+hash[:8]+" was deployed to one: "+c.want)
				require.Equal(t, slog.LevelWarn, found[0].Report().Level)
			})
		})
	}
}

// An election that ends with the process takes nothing back: the loop led until then.
func TestTheEndOfATermAndOfTheLoop(t *testing.T) {
	one, leads := &fakeTarget{name: "one"}, &atomic.Bool{}
	leads.Store(true)
	play(t, Options{Targets: []Target{one}, Leader: leaderFunc(leads.Load), MinInterval: time.Hour}, func(s *scene) {
		one.set(dataplane.ImpactReload, nil)
		for _, name := range []string{"a", "b"} {
			s.source.set(name, nil)
			s.Trigger(name)
			pass(time.Second)
		}
		leads.Store(false)
		s.end()
		require.Len(t, eventsOf[DeploymentUnfinished](s), 1)
	})
}

func TestTheEndWhileOldWorkersStay(t *testing.T) {
	one := &bombed{fakeTarget: fakeTarget{name: "one", impact: dataplane.ImpactReload}}
	play(t, Options{Targets: []Target{one}}, func(s *scene) {
		s.Trigger("start")
		pass(3 * time.Second)
		one.set(true)
		s.source.set("b", nil)
		s.Trigger("b")
		pass(time.Minute)
		s.end()
		found := eventsOf[DeploymentUnfinished](s)
		require.Len(t, found, 1)
		require.Contains(t, found[0].Waits, "waits for old workers to end: ")
		require.Contains(t, found[0].Waits, "8 have connections")
	})
}

// TestOnceSaysWhatIsUnfinished: Once tells of its end as Run does.
func TestOnceSaysWhatIsUnfinished(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	one := &fakeTarget{name: "one"}
	one.set(0, func(ctx context.Context, _ *dataplane.Config) error { cancel(); <-ctx.Done(); return ctx.Err() })
	s := newOnce(t, Options{Renderer: &source{t: t, text: "a"}, Targets: []Target{one}})
	_, err := s.Once(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.EqualError(t, err, "one: ended before revision "+s.State().Validated[:8]+" was deployed: context canceled")
}
