package reconcile

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

// TestHalvesBlameNobodyElse: no line says what is wrong, and an object turns bad while a
// search leaves out halves. Whichever check that is, the changes of others are served and
// never quarantined; the bad ones are.
func TestHalvesBlameNobodyElse(t *testing.T) {
	for _, took := range []time.Duration{time.Millisecond, 100 * time.Millisecond} { // with and without the patience of a search
		for _, starter := range []string{"evil", "careless"} {
			for at, more := 1, true; more; at++ {
				t.Run(fmt.Sprintf("%s/%s/%d", took, starter, at), func(t *testing.T) { more = turnsBadAt(t, took, starter, at) })
			}
		}
	}
}

// TestHalvesBlameNoOneBesideFlips: an object that flips at each check of a search, from
// the n-th one on, has no object of another blamed either.
func TestHalvesBlameNoOneBesideFlips(t *testing.T) {
	for _, took := range []time.Duration{time.Millisecond, 100 * time.Millisecond} {
		for at := range 12 {
			for every := 1; every <= 3; every++ {
				t.Run(fmt.Sprintf("%s/%d/%d", took, at, every), func(t *testing.T) { flipsFrom(t, took, at, every) })
			}
		}
	}
}

func flipsFrom(t *testing.T, took time.Duration, at, every int) {
	w := &town{target: &fakeTarget{name: "one"}, blind: true}
	w.target.set(dataplane.ImpactRuntime, nil)
	put := func(text string) {
		for i := range 7 {
			w.put("good", fmt.Sprintf("good%d", i), text)
			w.put("tidy", fmt.Sprintf("tidy%d", i), text)
			w.put("lazy", fmt.Sprintf("lazy%d", i), text)
		}
	}
	put("old")
	for i := range 7 {
		w.put("nasty", fmt.Sprintf("nasty%d", i), "fine")
	}
	w.put("evil", "starter", "fine")
	var checks atomic.Int64
	checks.Store(-1000)
	opts := Options{Renderer: w, View: w.view(), Targets: []Target{w.target}, Validator: ValidatorFunc(func(_ context.Context, cfg *dataplane.Config) error {
		time.Sleep(took)
		if count := int(checks.Add(1)); count >= at && count < 100 && (count-at)%every == 0 {
			for i := range 7 {
				w.put("nasty", fmt.Sprintf("nasty%d", i), []string{"bad", "fine"}[(count-at)/every%2])
			}
		}
		if strings.Contains(cfg.Main(), "bad") {
			return fmt.Errorf("%w: %w", dataplane.ErrInvalid, errors.New("no line"))
		}
		return nil
	})}
	play(t, opts, func(s *scene) {
		start(s)
		checks.Store(0)
		w.put("evil", "starter", "bad")
		for i := range 7 {
			w.put("nasty", fmt.Sprintf("nasty%d", i), "fine again")
		}
		put("new")
		s.Trigger("all at once")
		pass(10 * time.Second)
		for i := range 7 {
			require.True(t, w.served(fmt.Sprintf("good%d new", i)))
			require.True(t, w.served(fmt.Sprintf("tidy%d new", i)))
			require.True(t, w.served(fmt.Sprintf("lazy%d new", i)))
		}
		for _, e := range eventsOf[ResourceQuarantined](s) {
			require.Contains(t, []string{"evil", "nasty"}, e.Resource.Namespace, "%s", e.Resource)
		}
	})
}

// turnsBadAt has an object turn bad at the n-th check of a search that an object of
// starter began. It reports whether the search was that long.
func turnsBadAt(t *testing.T, took time.Duration, starter string, n int) (reached bool) {
	w := &town{target: &fakeTarget{name: "one"}, blind: true}
	w.target.set(dataplane.ImpactRuntime, nil)
	names := []string{"a", "b", "c", "d", "e", "f", "g"}
	good := func(text string) {
		for _, name := range names {
			w.put("good", name, text)
			w.put("tidy", name+"2", text)
		}
	}
	good("old")
	w.put("evil", "x", "fine")
	w.put(starter, "starter", "fine")
	var count atomic.Int64
	count.Store(-1000) // no search has begun, or it is over
	var hit atomic.Bool
	opts := Options{Renderer: w, View: w.view(), Targets: []Target{w.target}, Validator: ValidatorFunc(func(_ context.Context, cfg *dataplane.Config) error {
		time.Sleep(took)
		if count.Add(1) == int64(n) {
			w.put("evil", "x", "bad")
			hit.Store(true)
		}
		if strings.Contains(cfg.Main(), "bad") {
			return fmt.Errorf("%w: %w", dataplane.ErrInvalid, errors.New("no line"))
		}
		return nil
	})}
	play(t, opts, func(s *scene) {
		start(s)
		count.Store(0)
		w.put(starter, "starter", "bad")
		good("new")
		s.Trigger("all at once")
		for len(eventsOf[ReconciliationCompleted](s)) < 2 {
			pass(10 * time.Millisecond)
		}
		count.Store(-1000)
		reached = hit.Load()
		s.Trigger("what turned bad")
		pass(30 * time.Second)
		want := "starter"
		if reached {
			want = "starter x"
		}
		require.Equal(t, want, held(s.Loop))
		for _, name := range names {
			require.True(t, w.served(name+" new"), name)
			require.True(t, w.served(name+"2 new"), name)
		}
		for _, e := range eventsOf[ResourceQuarantined](s) {
			require.Contains(t, []string{"x", "starter"}, e.Resource.Name)
		}
	})
	return reached
}
