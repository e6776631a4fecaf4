package reconcile

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

// TestManyBad: however many are bad, and however they are, the rest is deployed
// after two renders, unless haproxy itself stops to count.
func TestManyBad(t *testing.T) {
	t.Parallel()
	inLoop := map[string]string{"haproxy.cfg": "global\n{% for ing in ingresses %}\n" + itemTemplate + "{% end %}\n"}
	each := map[string]string{"haproxy.cfg": "global\n", "haproxy.d/ingress.cfg": itemTemplate}
	nilPointer := strings.ReplaceAll(itemTemplate, `{{ fail("no " + ing.Name) }}`, "{{ *ing.Spec.IngressClassName }}")
	for name, c := range map[string]struct {
		files           map[string]string
		bad             string
		renders, checks int
		of, every       int // how many there are, and every which of them is bad
	}{
		"an invalid line":       {inLoop, "bad", 2, 2, 1000, 20},
		"an invalid line, each": {each, "bad", 2, 2, 1000, 20},
		"fail":                  {inLoop, "fail", 2, 1, 1000, 20},
		"fail, each":            {each, "fail", 2, 1, 1000, 20},
		"refused":               {inLoop, "x\nbackend evil", 2, 1, 1000, 20},
		"refused, each":         {each, "x\nbackend evil", 2, 1, 1000, 20},
		"a nil pointer":         {map[string]string{"haproxy.cfg": "global\n{% for ing in ingresses %}\n" + nilPointer + "{% end %}\n"}, "fail", 2, 1, 100, 20},
		"a nil pointer, each":   {map[string]string{"haproxy.cfg": "global\n", "haproxy.d/ingress.cfg": nilPointer}, "fail", 2, 1, 100, 20},
	} {
		// The time that is kept for what is wrong besides is virtual: none of it passes.
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { manyBad(t, c.files, c.bad, c.of, c.every, c.renders, c.checks) })
		})
	}
}

func manyBad(t *testing.T, files map[string]string, bad string, of, every, renders, checks int) {
	w := newWard(t, files)
	for i := range of {
		if i%every == 7 {
			w.put(fmt.Sprintf("web-%d=%s", i, bad))
		} else {
			w.put(fmt.Sprintf("web-%d", i))
		}
	}
	loop, err := New(w.options())
	require.NoError(t, err)
	_, err = loop.Once(t.Context())
	require.NoError(t, err)
	rendered, checked := w.counted()
	require.Equal(t, []int{renders, checks}, []int{rendered, checked})
	require.Len(t, loop.State().Quarantined, of/every)
	require.Equal(t, of-of/every, len(strings.Fields(w.deployed())))
}

// TestTemplatesThatHang fail as a whole, also for one resource, and say where.
func TestTemplatesThatHang(t *testing.T) {
	const hang = "{% for ing.Annotations[`text`] == `hang` %}{{ linger() }}{% end %}\n"
	for name, c := range map[string]struct {
		files map[string]string
		line  string
	}{
		"for all":     {map[string]string{"haproxy.cfg": "global\n{% for ing in ingresses %}{% for true %}{{ linger() }}{% end %}{% end %}\n"}, "haproxy.cfg:2:"},
		"for one":     {map[string]string{"haproxy.cfg": "global\n{% for ing in ingresses %}\nbackend {{ ing.Name }}\n" + hang + "{% end %}\n"}, "haproxy.cfg:4:"},
		"each of all": {map[string]string{"haproxy.cfg": "global\n", "haproxy.d/ingress.cfg": "backend {{ ing.Name }}\n" + hang}, "haproxy.d/ingress.cfg:2:"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWard(t, c.files)
				w.put("a", "b=hang", "c", "d", "e")
				loop, err := New(w.options())
				require.NoError(t, err)
				_, err = loop.Once(t.Context())
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorContains(t, err, c.line)
				require.Empty(t, held(loop))
				renders, _ := w.counted()
				require.Equal(t, 1, renders)
				w.put("b=mended")
				_, err = loop.Once(t.Context())
				if name != "for all" {
					require.NoError(t, err)
					require.Equal(t, "a b c d e", w.deployed())
				}
			})
		})
	}
}

// TestConflict: of two resources that are fine on their own, one is left out.
func TestConflict(t *testing.T) {
	for _, blind := range []bool{false, true} {
		w := newWard(t, map[string]string{"haproxy.cfg": loopTemplate})
		w.put("a=same", "b", "c=same", "d=same")
		opts := w.options()
		opts.Validator = ValidatorFunc(func(_ context.Context, cfg *dataplane.Config) error {
			v, seen, n := &verdict{blind: blind}, false, 0
			for line := range strings.Lines(cfg.Main()) {
				if n++; strings.Contains(line, "same") {
					if seen {
						v.lines = append(v.lines, n)
					}
					seen = true
				}
			}
			if len(v.lines) == 0 {
				return nil
			}
			return v
		})
		play(t, opts, func(s *scene) {
			s.Trigger("start")
			pass(time.Second)
			if blind {
				require.Len(t, strings.Fields(held(s.Loop)), 2)
				require.Len(t, strings.Fields(w.deployed()), 2)
				return
			}
			require.Equal(t, "c d", held(s.Loop))
			require.Equal(t, "a b", w.deployed())
			w.remove("a")
			s.Trigger("the first one goes")
			pass(2 * time.Minute)
			require.Equal(t, "d", held(s.Loop), "a trial finds that there is room for one")
			require.Equal(t, "b c", w.deployed())
		})
	}
}

// TestAResourceThatAlwaysChanges holds up nobody, however fast it does.
func TestAResourceThatAlwaysChanges(t *testing.T) {
	w := newWard(t, map[string]string{"haproxy.cfg": loopTemplate})
	w.put("a", "b=bad", "c")
	opts := w.options()
	opts.Renderer = RendererFunc(func(ctx context.Context) (*Rendered, error) {
		w.put("b=bad") // another version at each render
		return w.Render(ctx)
	})
	play(t, opts, func(s *scene) {
		s.Trigger("start")
		pass(300 * time.Millisecond)
		require.Equal(t, "a c", w.deployed())
		require.Equal(t, "b", held(s.Loop))
		renders, _ := w.counted()
		require.LessOrEqual(t, renders, 3)
		for i := range 5 {
			w.put(fmt.Sprint("new-", i))
			s.Trigger("another")
			pass(time.Second)
		}
		require.Equal(t, "a c new-0 new-1 new-2 new-3 new-4", w.deployed())
	})
}

// TestTrialsYield to changes of others: of many that changed and are still bad, one
// is found at a time, and no change waits for the last of them.
func TestTrialsYield(t *testing.T) {
	w := newWard(t, map[string]string{"haproxy.cfg": loopTemplate})
	opts := w.options()
	opts.Debounce = time.Millisecond
	slow := false
	opts.Validator = ValidatorFunc(func(ctx context.Context, cfg *dataplane.Config) error {
		if slow {
			time.Sleep(time.Second)
		}
		var v *verdict
		if err := w.Validate(ctx, cfg); !errors.As(err, &v) {
			return err
		}
		return &verdict{lines: v.lines[:1]}
	})
	w.put("a")
	for i := range 8 {
		w.put(fmt.Sprintf("web-%d=bad", i))
	}
	play(t, opts, func(s *scene) {
		s.Trigger("start")
		pass(time.Minute / 2)
		require.Len(t, strings.Fields(held(s.Loop)), 8)
		slow = true
		for i := range 8 {
			w.put(fmt.Sprintf("web-%d=bad still", i))
		}
		s.Trigger("all of them")
		pass(1500 * time.Millisecond) // the trial is under way
		w.put("good")
		s.Trigger("another")
		pass(2 * time.Second)
		require.Equal(t, "a good", w.deployed(), "one validation of the trial, and its own")
		pass(3 * time.Minute)
		require.Len(t, strings.Fields(held(s.Loop)), 8)
		require.Len(t, eventsOf[ResourceQuarantined](s), 16, "each of both versions")
	})
}

// TestDeletedAndCreatedAgain is the same object: it is tried at once, and stays left
// out meanwhile.
func TestDeletedAndCreatedAgain(t *testing.T) {
	w := newWard(t, map[string]string{"haproxy.cfg": loopTemplate})
	w.put("a", "b=bad")
	play(t, w.options(), func(s *scene) {
		s.Trigger("start")
		pass(time.Second)
		w.put("b=fine")
		w.ingresses[1].UID, w.ingresses[1].ResourceVersion = "another", "2" // the version that was bad
		s.Trigger("created again")
		pass(time.Second)
		require.Equal(t, "a b", w.deployed())
		require.Equal(t, []string{"a", "a b"}, history(w.target))
		require.Empty(t, held(s.Loop))
	})
}

// TestReleaseAndStateDuringASearch from other goroutines.
func TestReleaseAndStateDuringASearch(t *testing.T) {
	w := newWard(t, map[string]string{"haproxy.cfg": loopTemplate})
	w.blind = true
	for i := range 32 {
		w.put(fmt.Sprint("web-", i))
	}
	w.put("web-5=bad", "web-20=bad")
	opts := w.options()
	var loop *Loop
	var wg sync.WaitGroup
	opts.Validator = ValidatorFunc(func(ctx context.Context, cfg *dataplane.Config) error {
		wg.Go(func() { loop.Release(); _ = loop.State(); loop.LeadershipChanged() })
		return w.Validate(ctx, cfg)
	})
	loop, err := New(opts)
	require.NoError(t, err)
	for range 3 {
		_, err = loop.Once(t.Context())
		require.NoError(t, err)
		require.Len(t, loop.State().Quarantined, 2)
	}
	wg.Wait()
	require.Len(t, strings.Fields(w.deployed()), 30)
}

// TestAValidatorThatFlaps blames nobody for what it says of itself.
func TestAValidatorThatFlaps(t *testing.T) {
	w := newWard(t, map[string]string{"haproxy.cfg": loopTemplate})
	w.put("a", "b=bad", "c")
	opts, n := w.options(), 0
	opts.Validator = ValidatorFunc(func(ctx context.Context, cfg *dataplane.Config) error {
		if n++; n%2 == 0 {
			return errors.New("haproxy was killed")
		}
		return w.Validate(ctx, cfg)
	})
	play(t, opts, func(s *scene) {
		s.Trigger("start")
		pass(time.Minute)
		require.NotContains(t, held(s.Loop), "a")
		require.NotContains(t, held(s.Loop), "c")
	})
}

// TestNewTemplatesAndTheOnlyResource: what was valid in this version with the
// templates before is not at fault.
func TestNewTemplatesAndTheOnlyResource(t *testing.T) {
	w := newWard(t, map[string]string{"haproxy.cfg": loopTemplate})
	w.put("web")
	play(t, w.options(), func(s *scene) {
		s.Trigger("start")
		pass(time.Second)
		w.files["haproxy.cfg"].Data = []byte(strings.Replace(loopTemplate, "    #", "    bad {{ ing.Name }}\n    #", 1))
		w.compile()
		s.Release()
		pass(10 * time.Second)
		require.Empty(t, held(s.Loop))
		require.Equal(t, "web", w.deployed())
		require.Contains(t, s.State().LastError, "correct the template")
		w.put("web=other")
		s.Trigger("it changes")
		pass(10 * time.Second)
		require.Equal(t, "web", w.deployed(), "what is deployed stays")
	})
}

// TestATrialThatSaysNothing: a full disk in a trial is no object's fault.
func TestATrialThatSaysNothing(t *testing.T) {
	w := newWard(t, map[string]string{"haproxy.cfg": loopTemplate})
	w.blind = true
	w.put("a", "b", "c")
	opts := w.options()
	var full atomic.Bool
	opts.Validator = ValidatorFunc(func(ctx context.Context, cfg *dataplane.Config) error {
		if full.Load() && strings.Contains(cfg.Main(), "# two") && !strings.Contains(cfg.Main(), "bad") {
			return errors.New("no space left on device")
		}
		return w.Validate(ctx, cfg)
	})
	play(t, opts, func(s *scene) {
		start(s)
		w.put("a=bad", "b=two", "c=two")
		s.Trigger("an edit")
		full.Store(true)
		pass(30 * time.Second)
		for _, q := range s.State().Quarantined {
			require.NotContains(t, q.Fault.Message, "takes longer", "%s", q)
		}
		full.Store(false)
		pass(5 * time.Minute)
		require.Equal(t, "a", held(s.Loop))
	})
}
