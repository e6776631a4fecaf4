package reconcile

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

// TestEditsOfWhatAnInstanceRefuses reach that instance alone, until it takes one.
func TestEditsOfWhatAnInstanceRefuses(t *testing.T) {
	fleet(t, nil, func(s *scene, w *ward, olds []*fakeTarget, recent *fakeTarget) {
		start(s)
		for i := range 5 {
			w.put(fmt.Sprintf("b=too-new %d", i))
			s.Trigger("an edit")
			pass(5 * time.Second)
			require.Equal(t, "b", held(s.Loop))
			require.Equal(t, []string{"a b c", "a c"}, history(recent))
			q := s.State().Quarantined[0]
			require.Equal(t, []string{"old-1", "old-2"}, q.Instances)
			require.Equal(t, fmt.Sprint(4+i), q.Resource.Version, "the version that was refused last")
			require.Len(t, eventsOf[ResourceQuarantined](s), 2+i, "once for each version")
			require.Len(t, w.told, 2+i)
		}
		require.Len(t, failures(s), 2)
		w.put("b=fine")
		s.Trigger("it is mended")
		pass(2500 * time.Millisecond)
		require.Empty(t, held(s.Loop))
		for _, f := range append(olds, recent) {
			require.Equal(t, "a b c", has(f), f.name)
		}
		require.Equal(t, "it changed or was deleted", eventsOf[ResourceReleased](s)[0].Reason)
		require.Equal(t, "Normal Released networking.k8s.io/v1 Ingress/b b", heads(w.told)[6])

		w.put("b=too-new")
		s.Trigger("again")
		pass(5 * time.Second)
		w.remove("b")
		s.Trigger("deleted")
		pass(5 * time.Second)
		require.Empty(t, held(s.Loop))
		require.Equal(t, "a c", has(recent))
		require.Equal(t, "it changed or was deleted", eventsOf[ResourceReleased](s)[1].Reason)
	})
}

// TestAnEditThatTheValidatorRefuses is left out because of that from then on.
func TestAnEditThatTheValidatorRefuses(t *testing.T) {
	fleet(t, nil, func(s *scene, w *ward, olds []*fakeTarget, recent *fakeTarget) {
		start(s)
		w.put("b=bad")
		s.Trigger("an edit")
		pass(5 * time.Second)
		require.Equal(t, "b", held(s.Loop))
		require.Empty(t, s.State().Quarantined[0].Instances)
		require.Contains(t, s.State().Quarantined[0].String(), `unknown keyword "bad"`)
		require.Equal(t, []string{"a b c", "a c"}, history(recent))
		w.put("b=fine")
		s.Trigger("it is mended")
		pass(5 * time.Second)
		require.Empty(t, held(s.Loop))
		require.Equal(t, "a b c", has(recent))
		require.Equal(t, "a b c", has(olds[0]))
	})
}

// TestManyEditsAtOnce are one question, and one more for what of them is still
// wrong.
func TestManyEditsAtOnce(t *testing.T) {
	w := newWard(t, map[string]string{"haproxy.cfg": loopTemplate})
	w.put("a")
	for i := range 8 {
		w.put(fmt.Sprintf("b%d=too-new", i))
	}
	one, recent := old("one", "too-new"), &fakeTarget{name: "recent"}
	opts := w.options()
	opts.Targets, opts.DriftInterval = []Target{one, recent}, 24*time.Hour
	play(t, opts, func(s *scene) {
		s.Trigger("start")
		pass(20 * time.Second)
		require.Equal(t, "a", has(recent))
		for i := range 8 {
			w.put(fmt.Sprintf("b%d=fine", i))
		}
		w.put("b3=too-new still")
		s.Trigger("all of them")
		pass(5 * time.Second)
		require.Equal(t, "b3", held(s.Loop))
		require.Equal(t, "a b0 b1 b2 b4 b5 b6 b7", has(one))
		require.Equal(t, has(one), has(recent))
		require.Len(t, history(recent), 3, "one change for all of it")
	})
}

// TestAnInstanceThatDoesNotAnswer about an edit holds it back for a time, not
// longer; nor does one whose version no longer fits.
func TestAnInstanceThatDoesNotAnswer(t *testing.T) {
	hangs := func(ctx context.Context, _ *dataplane.Config) error { <-ctx.Done(); return ctx.Err() }
	t.Run("it hangs", func(t *testing.T) {
		fleet(t, func(o *Options) { o.Targets = o.Targets[1:] }, func(s *scene, w *ward, olds []*fakeTarget, recent *fakeTarget) {
			start(s)
			olds[1].set(0, hangs)
			w.put("b=fine")
			s.Trigger("an edit")
			pass(29 * time.Second)
			require.Equal(t, "a c", has(recent))
			w.put("d")
			s.Trigger("others do not wait")
			pass(time.Millisecond)
			require.Equal(t, "a c d", has(recent))
			pass(2 * time.Second)
			require.Equal(t, "a b c d", has(recent))
			require.Empty(t, held(s.Loop))
		})
	})
	t.Run("another process leads", func(t *testing.T) {
		var lead atomic.Bool
		lead.Store(true)
		fleet(t, func(o *Options) { o.Leader = leaderFunc(lead.Load) }, func(s *scene, w *ward, olds []*fakeTarget, recent *fakeTarget) {
			start(s)
			synctest.Wait()
			lead.Store(false)
			pass(time.Second)
			w.put("b=fine")
			s.Trigger("an edit")
			pass(5 * time.Second)
			require.Empty(t, held(s.Loop))
			require.Equal(t, "a b c", names(s.Validated().Main()))
			require.Equal(t, "a c", has(recent))
		})
	})
	t.Run("it is never probed", func(t *testing.T) {
		fleet(t, nil, func(s *scene, w *ward, olds []*fakeTarget, recent *fakeTarget) {
			start(s)
			back := &hungTarget{fakeTarget: fakeTarget{name: "old-1"}, in: "probe"}
			require.NoError(t, s.SetTargets(back, olds[1], recent))
			pass(time.Second)
			w.put("b=fine")
			s.Trigger("an edit")
			pass(3 * time.Minute)
			require.Empty(t, held(s.Loop))
			require.Equal(t, "a b c", has(recent))
			require.Equal(t, "a b c", has(olds[1]))
		})
	})
}

// TestAnInstanceThatRefusesAtRandom harms others no more than one that is old: it
// takes no more away from them than QuarantineTries resources.
func TestAnInstanceThatRefusesAtRandom(t *testing.T) {
	w := newWard(t, map[string]string{"haproxy.cfg": loopTemplate})
	for i := range 30 {
		w.put(fmt.Sprintf("web-%02d", i))
	}
	rng := rand.New(rand.NewPCG(1, 2))
	mad, recent := &fakeTarget{name: "mad"}, &fakeTarget{name: "recent"}
	mad.behave = func(_ context.Context, cfg *dataplane.Config) error {
		n := strings.Count(cfg.Main(), "\n")
		if line := 3 + rng.IntN(n); rng.IntN(3) > 0 {
			return &dataplane.Error{Endpoint: "mad", File: "haproxy.cfg", Line: line, Err: dataplane.ErrInvalid}
		}
		return nil
	}
	opts := w.options()
	opts.Targets = []Target{mad, recent}
	play(t, opts, func(s *scene) {
		s.Trigger("start")
		most := 0
		for range 500 {
			pass(10 * time.Second)
			n := len(s.State().Quarantined)
			require.LessOrEqual(t, n, 10)
			most = max(most, n)
		}
		require.Positive(t, most, "otherwise nothing is shown here")
		for _, text := range recent.texts() {
			require.GreaterOrEqual(t, len(strings.Fields(names(text))), 20)
		}
	})
}

// TestTwoInstancesRefuseDifferentThings: the second is not forgotten because of
// the first, also where that one refuses whatever it gets.
func TestTwoInstancesRefuseDifferentThings(t *testing.T) {
	for name, c := range map[string]struct {
		first *fakeTarget
		held  string
	}{
		"a resource each":       {old("e1", "x"), "b c"},
		"one refuses all":       {old("e1", "backend"), "c"},
		"one what is nobody's":  {old("e1", "global"), "c"},
		"one two, one of these": {old("e1", "x", "y"), "b c"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWard(t, map[string]string{"haproxy.cfg": loopTemplate})
			w.put("a", "b=x", "c=y", "d")
			recent, second := &fakeTarget{name: "recent"}, old("e2", "y")
			opts := w.options()
			opts.Targets, opts.DriftInterval = []Target{c.first, second, recent}, 24*time.Hour
			play(t, opts, func(s *scene) {
				s.Trigger("start")
				pass(20 * time.Second)
				require.Equal(t, c.held, held(s.Loop))
				require.Equal(t, has(second), has(recent))
				require.NotEqual(t, "nothing", has(second))
			})
		})
	}
}

// TestEditsDuringAnInquiry are one resource: that both of its versions are
// refused does not mean that all are.
func TestEditsDuringAnInquiry(t *testing.T) {
	w := newWard(t, map[string]string{"haproxy.cfg": loopTemplate})
	w.put("a", "b=too-new")
	one, recent := old("one", "too-new"), &fakeTarget{name: "recent"}
	opts := w.options()
	opts.Targets, opts.DriftInterval = []Target{one, recent}, 24*time.Hour
	refuse, asked := one.behave, 0
	one.behave = func(ctx context.Context, cfg *dataplane.Config) error {
		if asked++; asked == 1 {
			w.put("b=too-new, edited")
		}
		return refuse(ctx, cfg)
	}
	play(t, opts, func(s *scene) {
		start(s)
		pass(10 * time.Second)
		require.Equal(t, "b", held(s.Loop), "%+v", s.State().Instances)
		require.Equal(t, "a", has(one))
	})
}

// TestWhereAnInstanceRefusesSomething else than a line of haproxy.cfg.
func TestWhereAnInstanceRefusesSomething(t *testing.T) {
	for entry, kind := range map[string]dataplane.FileKind{
		"maps/hosts.map": dataplane.Map, "crt-lists/hosts.txt": dataplane.CRTList, "general/hosts.txt": dataplane.General,
	} {
		t.Run(entry, func(t *testing.T) {
			_, file, _ := strings.Cut(entry, "/")
			w := newWard(t, map[string]string{"haproxy.cfg": loopTemplate,
				entry: "{% for ing in ingresses %}{{ ing.Name }} {{ ing.Annotations[\"text\"] }}\n{% end %}"})
			w.put("a=1", "b=too-new", "c=3")
			one, recent := &fakeTarget{name: "one"}, &fakeTarget{name: "recent"}
			one.behave = func(_ context.Context, cfg *dataplane.Config) error {
				f, ok := cfg.File(kind, file)
				require.True(t, ok)
				before, _, wrong := strings.Cut(string(f.Content), "too-new")
				if !wrong {
					return nil
				}
				return &dataplane.Error{Endpoint: "one", Stage: "files", File: string(kind) + " " + file, Line: 1 + strings.Count(before, "\n"), Err: dataplane.ErrInvalid}
			}
			opts := w.options()
			opts.Targets = []Target{one, recent}
			play(t, opts, func(s *scene) {
				start(s)
				require.Equal(t, "b", held(s.Loop), "%+v", s.State().Instances)
				require.Equal(t, "a c", has(one))
				require.Equal(t, []string{"a b c", "a c"}, history(recent))
				require.Contains(t, s.State().Quarantined[0].String(), "written by "+entry+":1 for Ingress ns/b")
			})
		})
	}
}

// TestLinesThatMove: what is left out changes what the others are given.
func TestLinesThatMove(t *testing.T) {
	const moving = "global\n{% for i, ing := range ingresses %}\nbackend {{ ing.Name }}\n{% if i == 0 %}    # the first\n    # of {{ len(ingresses) }}\n{% end %}    # {{ ing.Annotations[\"text\"] }}\n{% end %}\n"
	w := newWard(t, map[string]string{"haproxy.cfg": moving})
	w.put("a=x", "b", "c=x", "d", "e=y")
	one, recent := old("one", "x", "y"), &fakeTarget{name: "recent"}
	opts := w.options()
	opts.Targets, opts.DriftInterval = []Target{one, recent}, 24*time.Hour
	play(t, opts, func(s *scene) {
		start(s)
		pass(10 * time.Second)
		require.Equal(t, "a c e", held(s.Loop))
		require.Equal(t, "b d", has(one))
		require.Equal(t, []string{"a b c d e", "b d"}, history(recent))
	})
}

// TestAQuestionThatWaits for the interval between two reloads is taken back when
// the templates change.
func TestAQuestionThatWaits(t *testing.T) {
	fleet(t, func(o *Options) { o.Targets, o.MinInterval = o.Targets[1:], 20*time.Second }, func(s *scene, w *ward, olds []*fakeTarget, recent *fakeTarget) {
		olds[1].set(dataplane.ImpactReload, olds[1].behave)
		start(s) // without b, by a reload
		require.Equal(t, "a c", has(olds[1]))
		w.put("b=too-new, edited")
		s.Trigger("an edit that it can be asked about 20 s after that")
		pass(5 * time.Second)
		w.files["haproxy.cfg"].Data = []byte(strings.ReplaceAll(loopTemplate, "global", "global # of now"))
		w.compile()
		s.Release()
		refuse := olds[1].behave
		olds[1].set(dataplane.ImpactReload, func(ctx context.Context, cfg *dataplane.Config) error {
			if !strings.Contains(cfg.Main(), "of now") {
				return errors.New("this is of the templates before")
			}
			return refuse(ctx, cfg)
		})
		pass(10 * time.Minute)
		require.Equal(t, "b", held(s.Loop))
		require.Equal(t, "a c", has(olds[1]))
		require.Equal(t, "a c", has(recent))
		for _, e := range eventsOf[InstanceDeploymentFailed](s) {
			require.ErrorContains(t, e.Err, "too-new")
		}
	})
}

// TestWhatIsFreedWhileAllFails does not make the loop spin.
func TestWhatIsFreedWhileAllFails(t *testing.T) {
	fleet(t, func(o *Options) { o.Targets = o.Targets[1:] }, func(s *scene, w *ward, olds []*fakeTarget, recent *fakeTarget) {
		start(s)
		w.mu.Lock()
		w.broken = errors.New("haproxy is not there")
		w.mu.Unlock()
		require.NoError(t, s.SetTargets(recent))
		w.counted()
		pass(10 * time.Minute)
		renders, _ := w.counted()
		require.Less(t, renders, 60)
		w.mu.Lock()
		w.broken = nil
		w.mu.Unlock()
		pass(2 * time.Minute)
		require.Empty(t, held(s.Loop))
		require.Equal(t, "a b c", has(recent))
	})
}
