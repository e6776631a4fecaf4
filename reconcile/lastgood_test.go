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

// needing is the validator of a town in which some lines need others: "needs key" is
// wrong where no line says "has key", and so is "bad".
func (w *town) needing(ctx context.Context, cfg *dataplane.Config) error {
	lines := strings.Split(cfg.Main(), "\n")
	for n, line := range lines {
		_, key, needs := strings.Cut(line, "needs ")
		has := func(line string) bool { return strings.HasSuffix(line, "has "+key) }
		switch {
		case !strings.Contains(line, "bad") && (!needs || slices.ContainsFunc(lines, has)):
		case w.blind:
			return fmt.Errorf("%w: %w", dataplane.ErrInvalid, errors.New("no line"))
		default:
			return &verdict{lines: []int{n + 1}}
		}
	}
	return nil
}

// has reports whether the target has an object, in whatever version.
func (w *town) has(name string) bool {
	texts := w.target.texts()
	return len(texts) > 0 && strings.Contains(texts[len(texts)-1], " "+name+" ")
}

func lastGood(t *testing.T, blind bool, f func(s *scene, w *town)) {
	w := &town{target: &fakeTarget{name: "one"}, blind: blind}
	play(t, Options{Renderer: w, View: w.view(), Validator: ValidatorFunc(w.needing), Targets: []Target{w.target}}, func(s *scene) { f(s, w) })
}

// TestLastGood: what is quarantined is served as it was, until it is mended or deleted.
func TestLastGood(t *testing.T) {
	for _, blind := range []bool{false, true} {
		lastGood(t, blind, func(s *scene, w *town) {
			act := func(what string) { s.Trigger(what); pass(3 * time.Second) }
			w.put("ns", "a", "one")
			w.put("ns", "b", "one")
			w.put("other", "new", "bad")
			act("start")
			require.Equal(t, "new", held(s.Loop))
			require.Zero(t, s.State().Quarantined[0].Before)
			require.Contains(t, s.State().Quarantined[0].String(), "; left out")

			w.put("ns", "a", "bad")
			w.put("ns", "b", "two")
			act("a turns bad")
			require.True(t, w.served("a one"))
			require.True(t, w.served("b two"), "others change")
			a := s.State().Quarantined[0]
			require.Equal(t, []string{"1", "4"}, []string{a.Before.Version, a.Resource.Version})
			require.Contains(t, a.String(), "; the earlier version is served")
			require.Contains(t, eventsOf[ResourceQuarantined](s)[1].Report().Sentence, "the earlier version is served")

			w.put("ns", "a", "still bad")
			act("and another version of it is bad")
			require.True(t, w.served("a one"))
			w.put("ns", "a", "three")
			act("mended")
			require.True(t, w.served("a three"))
			require.Equal(t, "new", held(s.Loop))

			w.put("ns", "a", "bad")
			act("bad again")
			require.True(t, w.served("a three"))
			w.remove("a")
			act("deleted")
			require.False(t, w.has("a"))
			w.put("ns", "a", "bad")
			act("another object of the name")
			require.False(t, w.has("a"))

			w.put("ns", "b", "bad")
			w.remove("b")
			w.put("ns", "b", "bad")
			act("deleted and created again at once")
			require.False(t, w.has("b"))
		})
	}
}

// TestLastGoodAtFault: where the earlier version is wrong now, it alone is left out.
func TestLastGoodAtFault(t *testing.T) {
	for _, blind := range []bool{false} {
		lastGood(t, blind, func(s *scene, w *town) {
			act := func(what string) { s.Trigger(what); pass(5 * time.Second) }
			w.put("ns", "key", "has k")
			w.put("ns", "a", "needs k")
			w.put("ns", "b", "fine")
			w.put("other", "c", "fine")
			act("start")
			w.put("ns", "a", "bad")
			w.put("ns", "b", "bad")
			w.put("other", "c", "bad")
			act("three turn bad")
			require.True(t, w.served("a needs k") && w.served("b fine") && w.served("c fine"))

			w.remove("key")
			w.put("other", "d", "new")
			act("what the one needs goes")
			require.False(t, w.has("a"), "blind: %v", blind)
			require.True(t, w.served("b fine") && w.served("c fine") && w.served("d new"))
			require.Zero(t, s.State().Quarantined[0].Before)
			last := eventsOf[ResourceQuarantined](s)
			require.Contains(t, last[len(last)-1].String(), "; left out")
			require.Equal(t, "a b c", held(s.Loop))

			w.put("ns", "key2", "has k2")
			w.put("ns", "e", "needs k2")
			act("at once:")
			w.remove("key2")
			w.put("ns", "e", "bad")
			w.put("other", "d", "newer")
			act("both are wrong")
			require.False(t, w.has("e"))
			require.True(t, w.served("b fine") && w.served("c fine") && w.served("d newer"))
		})
	}
}

// TestLastGoodOfAnInstance: what an instance refuses it has as it was.
func TestLastGoodOfAnInstance(t *testing.T) {
	w := &town{target: &fakeTarget{name: "one"}}
	w.target.set(dataplane.ImpactReload, func(_ context.Context, cfg *dataplane.Config) error {
		n := 0
		for line := range strings.Lines(cfg.Main()) {
			if n++; strings.Contains(line, "too-new") {
				return &dataplane.Error{Err: dataplane.ErrInvalid, File: "haproxy.cfg", Line: n}
			}
		}
		return nil
	})
	play(t, Options{Renderer: w, View: w.view(), Validator: w, Targets: []Target{w.target}}, func(s *scene) {
		w.put("ns", "a", "one")
		w.put("ns", "b", "one")
		start(s)
		w.put("ns", "a", "too-new")
		w.put("ns", "b", "two")
		s.Trigger("an edit")
		pass(20 * time.Second)
		require.Equal(t, "a", held(s.Loop))
		require.True(t, w.served("a one") && w.served("b two"))
		require.Equal(t, "1", s.State().Quarantined[0].Before.Version)
		require.Empty(t, s.State().Instances[0].Error)
	})
}

// TestLastGoodBesideMany: objects that are left out with others of their namespace are
// served as they were, too.
func TestLastGoodBesideMany(t *testing.T) {
	w := &town{target: &fakeTarget{name: "one"}}
	for i := range 20 {
		w.put("evil", fmt.Sprintf("s%d", i), "fine")
	}
	play(t, Options{Renderer: w, View: w.view(), Validator: w, Targets: []Target{w.target}}, func(s *scene) {
		start(s)
		for i := range 20 {
			w.put("evil", fmt.Sprintf("s%d", i), []string{"bad", "better"}[i/10])
		}
		s.Trigger("evil")
		pass(20 * time.Second)
		require.Len(t, strings.Fields(held(s.Loop)), 10)
		for i := range 20 {
			require.True(t, w.served(fmt.Sprintf("s%d %s", i, []string{"fine", "better"}[i/10])))
		}
		for _, text := range w.target.texts() {
			require.Equal(t, 21, strings.Count(text, "\n"), "all are served all along")
		}
	})
}

// TestWhatWorkedStays: objects of three tenants flip between good and bad, one of them
// fast, and come and go. Each configuration that is deployed is valid, and has all objects
// that were served and not deleted since, but for those whose earlier version is wrong
// now.
func TestWhatWorkedStays(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			whatWorkedStays(t, seed)
		})
	}
}

func whatWorkedStays(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 14))
	lastGood(t, seed%2 == 0, func(s *scene, w *town) {
		served, seen := map[string]bool{}, 0
		look := func() {
			for _, text := range w.target.texts()[seen:] {
				seen++
				cfg, err := dataplane.NewConfig(text)
				require.NoError(t, err)
				require.NoError(t, w.needing(t.Context(), cfg))
				for name, stays := range served {
					require.True(t, !stays || strings.Contains(text, " "+name+" "), "%s worked before", name)
				}
				for line := range strings.Lines(text) {
					if words := strings.Fields(line); len(words) > 3 {
						served[words[2]] = words[3] != "needs"
					}
				}
			}
		}
		defer inOrder(t, s)
		w.put("calm", "key", "has key")
		for round := range 120 {
			namespace := []string{"calm", "busy", "evil"}[r.IntN(3)]
			for range 1 + r.IntN(4) {
				name := fmt.Sprintf("%s%d", namespace, r.IntN(5))
				switch text := []string{"fine", "fine", "bad", "needs key", "needs " + namespace}[r.IntN(5)]; {
				case r.IntN(12) == 0:
					look()
					w.remove(name)
					delete(served, name)
					s.Trigger("gone")
					pass(time.Second)
				case strings.HasPrefix(text, "needs"):
					w.put(namespace, name, text)
				default:
					w.put(namespace, name, fmt.Sprint(text, " ", round))
				}
			}
			s.Trigger("change")
			pass([]time.Duration{time.Second, 10 * time.Second, 100 * time.Millisecond}[slices.Index([]string{"calm", "busy", "evil"}, namespace)])
			look()
		}
	})
}
