package reconcile

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

// old is an instance of another version: it refuses the first line that has one
// of the words, as its Dataplane API would say it.
func old(name string, words ...string) *fakeTarget {
	f := &fakeTarget{name: name}
	f.behave = func(_ context.Context, cfg *dataplane.Config) error {
		n := 0
		for line := range strings.Lines(cfg.Main()) {
			n++
			for _, word := range words {
				if strings.Contains(line, word) {
					return &dataplane.Error{Endpoint: name, Stage: "configuration", File: "haproxy.cfg", Line: n, Status: 400,
						Err: dataplane.ErrInvalid, Output: "unknown keyword '" + word + "'"}
				}
			}
		}
		return nil
	}
	return f
}

func names(text string) string {
	var found []string
	for line := range strings.Lines(text) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "backend "); ok {
			found = append(found, name)
		}
	}
	return strings.Join(found, " ")
}

// has says which Ingresses a target has.
func has(f *fakeTarget) string {
	texts := f.texts()
	if len(texts) == 0 {
		return "nothing"
	}
	return names(texts[len(texts)-1])
}

// history says which Ingresses a target had, one after the other.
func history(f *fakeTarget) (all []string) {
	for _, text := range f.texts() {
		all = append(all, names(text))
	}
	return slices.Compact(all)
}

func start(s *scene) {
	s.Trigger("start")
	pass(5 * time.Second)
}

type leaderFunc func() bool

func (f leaderFunc) Leading() bool { return f() }

// fleet plays a story with two old instances and a recent one, in which Ingress b is
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

// TestAnInstanceThatRefusesALine: the resource alone is left out, of all, and
// further changes reach everybody.
func TestAnInstanceThatRefusesALine(t *testing.T) {
	w := newWard(t, map[string]string{"haproxy.cfg": loopTemplate})
	w.put("a", "b=too-new", "c")
	one, two := old("one", "too-new"), &fakeTarget{name: "two"}
	opts := w.options()
	opts.Targets = []Target{one, two}
	play(t, opts, func(s *scene) {
		s.Trigger("start")
		pass(5 * time.Second)
		failed := eventsOf[InstanceDeploymentFailed](s)
		require.Len(t, failed, 1)
		require.ErrorIs(t, failed[0].Err, dataplane.ErrInvalid)
		require.Regexp(t, `deploy: haproxy.cfg:4: .*; rendered as line \d+ of haproxy.cfg for Ingress ns/b \(b.yaml:1\)`, failed[0].Err.Error())

		require.Equal(t, "b", held(s.Loop))
		q := s.State().Quarantined[0]
		require.Equal(t, []string{"one"}, q.Instances)
		require.Contains(t, q.String(), "haproxy.cfg:4: one: configuration: configuration refused (status 400): unknown keyword 'too-new'; rendered as line 5 of haproxy.cfg")
		require.Contains(t, q.String(), "for Ingress ns/b (b.yaml:1)")
		require.Equal(t, []string{"a c"}, history(one))
		require.Equal(t, []string{"a b c", "a c"}, history(two))
		require.Len(t, eventsOf[ResourceQuarantined](s), 1)
		require.Equal(t, []string{"Warning Quarantined networking.k8s.io/v1 Ingress/b b"}, heads(w.told))
		for _, e := range s.State().Instances {
			require.Zero(t, e.StaleSince, e.Name)
			require.Empty(t, e.Error, e.Name)
			require.Zero(t, e.Failures, e.Name)
			require.Equal(t, s.State().Validated, e.Hash)
		}
		require.Empty(t, eventsOf[ReconciliationFailed](s))

		w.put("d")
		s.Trigger("another")
		pass(5 * time.Second)
		require.Equal(t, "a c d", has(one))
		require.Equal(t, "a c d", has(two))

		w.put("b=fine")
		s.Trigger("b is mended")
		pass(5 * time.Second)
		require.Empty(t, held(s.Loop))
		require.Equal(t, "a b c d", has(one))
		require.Equal(t, "it changed or was deleted", eventsOf[ResourceReleased](s)[0].Reason)
		require.Len(t, eventsOf[InstanceDeploymentFailed](s), 1)
	})
}

// TestWhatInstancesRefuse is a table of what instances refuse, and of what comes
// of it.
func TestWhatInstancesRefuse(t *testing.T) {
	many := func(n int, text string) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprintf("web-%02d=%s", i, text))
		}
		return all
	}
	fail := func(err error) *fakeTarget {
		return &fakeTarget{name: "one", behave: func(context.Context, *dataplane.Config) error { return err }}
	}
	at := func(stage string, status int, err error) error {
		return &dataplane.Error{Endpoint: "one", Stage: stage, File: "haproxy.cfg", Line: 5, Status: status, Err: err}
	}
	for name, c := range map[string]struct {
		put   []string
		one   *fakeTarget
		opts  func(*Options)
		held  string // in the end
		has   string // the instance
		error string // of the instance
	}{
		"one of two":      {put: []string{"a", "b=x"}, one: old("one", "x"), held: "b", has: "a"},
		"two of three":    {put: []string{"a=x", "b", "c=x"}, one: old("one", "x"), held: "a c", has: "b"},
		"for two reasons": {put: []string{"a=x", "b", "c=y"}, one: old("one", "x", "y"), held: "a c", has: "b"},
		"every one of a kind is the template's": {put: []string{"a=x", "b=x"}, one: old("one", "x"), has: "nothing",
			error: "haproxy.cfg:4 is refused for every Ingress: correct the template"},
		"the only one":     {put: []string{"a=x"}, one: old("one", "x"), has: "nothing", error: "correct the template"},
		"outside of all":   {put: []string{"a", "b"}, one: old("one", "global"), has: "nothing", error: "unknown keyword 'global'"},
		"most that may be": {put: append(many(10, "x"), "z"), one: old("one", "x"), held: "web-00 web-01 web-02 web-03 web-04 web-05 web-06 web-07 web-08 web-09", has: "z"},
		"too many": {put: append(many(11, "x"), "z"), one: old("one", "x"), has: "nothing",
			error: "the instance refuses more resources than the controller may quarantine at once"},
		"whatever it gets": {put: []string{"a", "b", "c"}, one: fail(at("configuration", 400, dataplane.ErrInvalid)), has: "nothing",
			error: "configuration refused"},
		"turned off": {put: []string{"a", "b=x"}, one: old("one", "x"), opts: func(o *Options) { o.NoQuarantine = true },
			has: "nothing", error: "for Ingress ns/b"},
		"what it does not support": {put: []string{"a", "b"}, one: &fakeTarget{name: "one", behave: func(_ context.Context, cfg *dataplane.Config) error {
			if !strings.Contains(cfg.Main(), "backend b") {
				return nil
			}
			return &dataplane.Error{Endpoint: "one", Stage: "check", File: "haproxy.cfg", Line: 4, Err: dataplane.ErrUnsupported}
		}}, held: "b", has: "a"},
		"a full disk":      {put: []string{"a", "b"}, one: fail(at("files", 507, errors.New("no space left on device"))), has: "nothing", error: "no space"},
		"a failed reload":  {put: []string{"a", "b"}, one: fail(at("reload", 400, dataplane.ErrReload)), has: "nothing", error: "for Ingress ns/b"},
		"a time-out":       {put: []string{"a", "b"}, one: fail(at("reload", 0, context.DeadlineExceeded)), has: "nothing", error: "deadline"},
		"credentials":      {put: []string{"a", "b"}, one: fail(at("probe", 401, dataplane.ErrUnauthorized)), has: "nothing", error: "401"},
		"its version":      {put: []string{"a", "b"}, one: fail(&dataplane.Error{Stage: "probe", Err: dataplane.ErrUnsupported}), has: "nothing", error: "not supported"},
		"without a line":   {put: []string{"a", "b"}, one: fail(&dataplane.Error{Stage: "configuration", File: "haproxy.cfg", Err: dataplane.ErrInvalid}), has: "nothing", error: "refused"},
		"no such line":     {put: []string{"a", "b"}, one: fail(&dataplane.Error{File: "haproxy.cfg", Line: 999, Err: dataplane.ErrInvalid}), has: "nothing", error: "refused"},
		"nobody's renders": {put: []string{"a", "b=x"}, one: old("one", "x"), opts: func(o *Options) { o.View = nil }, has: "nothing", error: "for Ingress ns/b"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWard(t, map[string]string{"haproxy.cfg": loopTemplate})
			w.put(c.put...)
			two := &fakeTarget{name: "two"}
			opts := w.options()
			opts.Targets = []Target{c.one, two}
			if c.opts != nil {
				c.opts(&opts)
			}
			play(t, opts, func(s *scene) {
				s.Trigger("start")
				pass(59 * time.Second)
				require.Equal(t, c.held, held(s.Loop))
				require.Equal(t, c.has, has(c.one))
				if c.error == "" {
					require.Empty(t, s.State().Instances[0].Error)
					require.Equal(t, has(c.one), has(two))
					require.Len(t, history(two), 1+len(strings.Fields(c.held)), "one change for each verdict")
					return
				}
				require.Contains(t, s.State().Instances[0].Error, c.error)
				require.Len(t, strings.Fields(has(two)), len(c.put), "what did not help is withdrawn")
				before := len(history(two))
				w.counted()
				pass(10 * time.Minute)
				renders, _ := w.counted()
				require.LessOrEqual(t, renders, 80, "it does not search all the time")
				require.Len(t, history(two), before, "others are not disturbed again")
			})
		})
	}
}

// TestSeveralOldInstances refuse the same: the verdict ends when none of them is
// left.
func TestSeveralOldInstances(t *testing.T) {
	fleet(t, nil, func(s *scene, _ *ward, olds []*fakeTarget, recent *fakeTarget) {
		start(s)
		require.Equal(t, "b", held(s.Loop))
		require.Equal(t, []string{"old-1", "old-2"}, s.State().Quarantined[0].Instances)
		require.Equal(t, []string{"a b c", "a c"}, history(recent))
		require.Equal(t, "a c", has(olds[1]))
		require.Len(t, eventsOf[InstanceDeploymentFailed](s), 2)

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

// TestAnInstanceOfAnotherVersionNow refuses nothing any more, but the others that
// refused the same still do.
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

// TestOthersAreNotDelayed while an old instance takes its time: what changes
// meanwhile reaches them at once.
func TestOthersAreNotDelayed(t *testing.T) {
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
		pass(30 * time.Second)
		require.Equal(t, "b", held(s.Loop))
		require.Equal(t, has(recent), has(olds[1]))
	})
}

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

// TestAnInstanceThatWasGivenUp begins anew when it comes back.
func TestAnInstanceThatWasGivenUp(t *testing.T) {
	w := newWard(t, map[string]string{"haproxy.cfg": loopTemplate})
	w.put("a", "b=x")
	all, recent := old("one", "backend"), &fakeTarget{name: "recent"}
	opts := w.options()
	opts.Targets, opts.DriftInterval = []Target{all, recent}, 24*time.Hour
	play(t, opts, func(s *scene) {
		start(s)
		require.Contains(t, s.State().Instances[0].Error, "correct the template")
		require.NoError(t, s.SetTargets(recent))
		s.Trigger("it is gone")
		pass(time.Second)
		require.NoError(t, s.SetTargets(old("one", "x"), recent))
		pass(5 * time.Second)
		require.Equal(t, "b", held(s.Loop))
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
		require.Equal(t, []string{"a b c", "a c"}, history(recent), "its trial has not been deployed")
		w.put("b=fine")
		s.Trigger("it is mended")
		pass(5 * time.Second)
		require.Empty(t, held(s.Loop))
		require.Equal(t, "a b c", has(recent))
		require.Equal(t, "a b c", has(olds[0]))
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
				require.Regexp(t, entry+`:1: .*; rendered as line \d+ of .* for Ingress ns/b`, s.State().Quarantined[0].String())
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
		require.Equal(t, []string{"a b c d e", "b c d e", "b d e", "b d"}, history(recent))
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

// TestWhatIsRefusedForNobody after a resource was left out: that did not help, so
// it comes back.
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
		require.Contains(t, e.Error, "without all resources of that line")
		require.Equal(t, []string{"a b", "a", "a b"}, history(recent))
	})
}

// TestEditsOfWhatAnInstanceRefuses disturb the others less and less.
func TestEditsOfWhatAnInstanceRefuses(t *testing.T) {
	fleet(t, nil, func(s *scene, w *ward, olds []*fakeTarget, recent *fakeTarget) {
		start(s)
		for i := range 300 {
			w.put(fmt.Sprintf("b=too-new %d", i), fmt.Sprintf("c=%d", i))
			s.Trigger("an edit")
			pass(time.Second)
			require.Contains(t, recent.texts()[len(recent.texts())-1], fmt.Sprintf("# %d\n", i), "others go on")
		}
		require.Equal(t, "b", held(s.Loop))
		trials := 0
		for _, names := range history(recent)[1:] {
			trials += strings.Count(names, "b")
		}
		require.Positive(t, trials)
		require.LessOrEqual(t, trials, 9, "at 0, 1, 3, 7 ... s")
		pass(10 * time.Minute)
		w.put("b=fine")
		s.Trigger("it is mended")
		pass(10 * time.Minute)
		require.Empty(t, held(s.Loop))
		for _, f := range append(olds, recent) {
			require.Equal(t, "a b c", has(f), f.name)
		}
		released := eventsOf[ResourceReleased](s)
		require.Equal(t, "it changed or was deleted", released[len(released)-1].Reason)
	})
}

// TestAnInstanceThatLeavesAsItRefuses gives no verdict that would outlive it.
func TestAnInstanceThatLeavesAsItRefuses(t *testing.T) {
	for range 20 {
		fleet(t, func(o *Options) { o.Targets = o.Targets[1:] }, func(s *scene, _ *ward, olds []*fakeTarget, recent *fakeTarget) {
			refuse := olds[1].behave
			olds[1].set(0, func(ctx context.Context, cfg *dataplane.Config) error {
				_ = s.SetTargets(recent)
				return refuse(ctx, cfg)
			})
			start(s)
			require.Empty(t, held(s.Loop))
			require.Equal(t, []string{"a b c"}, history(recent))
		})
	}
}

// TestWhatChangedMeanwhile is not blamed for what it was: the instance gets the
// change as all others do.
func TestWhatChangedMeanwhile(t *testing.T) {
	fleet(t, func(o *Options) { o.Targets = o.Targets[1:] }, func(s *scene, w *ward, olds []*fakeTarget, recent *fakeTarget) {
		refuse := olds[1].behave
		olds[1].set(0, func(ctx context.Context, cfg *dataplane.Config) error {
			time.Sleep(10 * time.Second)
			return refuse(ctx, cfg)
		})
		start(s)
		w.put("b=mended")
		s.Trigger("b")
		pass(time.Minute)
		require.Empty(t, eventsOf[ResourceQuarantined](s))
		require.Equal(t, []string{"a b c"}, history(recent))
		require.Equal(t, "a b c", has(olds[1]))
	})
}

// TestChurn: an old instance gets its verdict also where the configuration changes
// faster than it refuses it.
func TestChurn(t *testing.T) {
	fleet(t, func(o *Options) { o.Targets = o.Targets[1:] }, func(s *scene, w *ward, olds []*fakeTarget, recent *fakeTarget) {
		refuse := olds[1].behave
		olds[1].set(0, func(ctx context.Context, cfg *dataplane.Config) error {
			time.Sleep(3 * time.Second)
			return refuse(ctx, cfg)
		})
		for i := range 20 {
			w.put(fmt.Sprintf("c=%d", i))
			s.Trigger("churn")
			pass(time.Second)
		}
		require.Equal(t, "b", held(s.Loop))
		require.Equal(t, "a c", has(olds[1]))
	})
}

// TestTrialsAtInstances are rare: each is a change for all of them.
func TestTrialsAtInstances(t *testing.T) {
	fleet(t, nil, func(s *scene, _ *ward, olds []*fakeTarget, recent *fakeTarget) {
		start(s)
		pass(24 * time.Hour)
		require.Equal(t, "b", held(s.Loop))
		require.Equal(t, "a c", has(recent))
		require.LessOrEqual(t, len(eventsOf[ResourceReleased](s)), 10, "at 1, 3, 7 ... min")
		for _, f := range olds {
			f.set(0, nil) // upgraded in place
		}
		pass(48 * time.Hour)
		require.Empty(t, held(s.Loop))
		require.Equal(t, "a b c", has(olds[0]))
		require.Equal(t, "the controller tries it again at the instances that refused it", eventsOf[ResourceReleased](s)[0].Reason)
	})
}

// TestAnInstanceThatIsGone tells nothing any more: what it refused comes back, also
// where its refusal came last.
func TestAnInstanceThatIsGone(t *testing.T) {
	fleet(t, func(o *Options) { o.Targets = o.Targets[1:] }, func(s *scene, _ *ward, olds []*fakeTarget, recent *fakeTarget) {
		refuse := olds[1].behave
		olds[1].set(0, func(ctx context.Context, cfg *dataplane.Config) error {
			time.Sleep(10 * time.Second)
			return refuse(ctx, cfg)
		})
		start(s)
		require.NoError(t, s.SetTargets(recent))
		pass(time.Minute)
		require.Empty(t, held(s.Loop))
		require.Equal(t, []string{"a b c"}, history(recent))
	})
}
