package reconcile

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// mendedBeside plays a scene in which a good tenant has broken two objects, and a hostile
// one acts all along. It returns how long they wait once they are mended.
func mendedBeside(t *testing.T, blind bool, every time.Duration, act func(w *town, n int)) (took time.Duration) {
	w := &town{target: &fakeTarget{name: "one"}, blind: blind}
	w.put("good", "change", "0")
	play(t, Options{Renderer: w, View: w.view(), Validator: w, Targets: []Target{w.target}}, func(s *scene) {
		s.Trigger("start")
		pass(time.Second)
		w.put("good", "own", "bad")
		w.put("good", "own2", "bad")
		s.Trigger("good")
		pass(2 * time.Second)
		require.Equal(t, "own own2", held(s.Loop))
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			for n := 0; ; n++ {
				act(w, n)
				s.Trigger("evil")
				select {
				case <-stop:
					return
				case <-time.After(every):
				}
			}
		}()
		pass(20 * time.Second)
		w.put("good", "own2", "mended")
		took = w.waits(s, "own", "mended")
		close(stop)
		<-stopped
	})
	t.Logf("it waited %s", took)
	return took
}

// TestTrialsTakeTurns: one who always has the fewest objects that are due for a trial
// does not keep those of another from it.
func TestTrialsTakeTurns(t *testing.T) {
	took := mendedBeside(t, false, 20*time.Millisecond, func(w *town, n int) {
		if n%5 == 0 {
			w.clear("evil")
			w.put("evil", fmt.Sprintf("s%d", n), "bad")
		}
		w.put("evil", "other", fmt.Sprint("fine", n))
	})
	require.Less(t, took, 3*time.Second)
}

// TestTrialsAreNotSpoilt: what is bad and new in each trial of another does not keep
// that one's mended objects out.
func TestTrialsAreNotSpoilt(t *testing.T) {
	for _, blind := range []bool{false, true} {
		took := mendedBeside(t, blind, 20*time.Millisecond, func(w *town, n int) {
			w.clear("evil")
			for i := range 20 {
				w.put("evil", fmt.Sprintf("s%d-%d", n, i), "bad")
			}
		})
		require.Less(t, took, 3*time.Second, "blind: %v", blind)
	}
}

// TestWhatIsGoneIsForgotten: names that were left out with others, and never at fault,
// are not kept.
func TestWhatIsGoneIsForgotten(t *testing.T) {
	w := &town{target: &fakeTarget{name: "one"}}
	w.put("good", "change", "0")
	play(t, Options{Renderer: w, View: w.view(), Validator: w, Targets: []Target{w.target}}, func(s *scene) {
		s.Trigger("start")
		pass(time.Second)
		for n := range 20 {
			w.clear("evil")
			for i := range 200 {
				w.put("evil", fmt.Sprintf("s%d-%d", n, i), "bad")
			}
			s.Trigger("evil")
			pass(2 * time.Second)
		}
		w.clear("evil")
		s.Trigger("evil")
		pass(10 * time.Second)
		s.rendering.Lock()
		defer s.rendering.Unlock()
		require.Less(t, len(s.quarantine.All()), 1000)
	})
}

// TestATrialThatHangsAmongOthers: one object that hangs does not keep the others of its
// namespace out that were left out with it.
func TestATrialThatHangsAmongOthers(t *testing.T) {
	w := &town{target: &fakeTarget{name: "one"}}
	w.put("good", "change", "0")
	for i := range 8 {
		w.put("evil", fmt.Sprintf("s%d", i), "bad")
	}
	play(t, Options{Renderer: w, View: w.view(), Validator: w, Targets: []Target{w.target}}, func(s *scene) {
		s.Trigger("start")
		pass(10 * time.Second)
		require.Len(t, strings.Fields(held(s.Loop)), 8)
		for i := range 8 {
			w.put("evil", fmt.Sprintf("s%d", i), "fine")
		}
		w.put("evil", "s3", "stuck")
		for n := range 400 {
			w.waits(s, "change", fmt.Sprint(n+1))
			pass(737 * time.Millisecond)
		}
		require.Equal(t, "s3", held(s.Loop))
	})
}

// TestManyTenantsTurnBadTogether: one bad change in each of many namespaces, of which haproxy
// names one at a time, does not stop the deployments of others.
func TestManyTenantsTurnBadTogether(t *testing.T) {
	for _, earlier := range []bool{false, true} {
		w := &town{target: &fakeTarget{name: "one"}}
		w.put("good", "change", "0")
		evil := func(text string) {
			for i := range 20 {
				w.put(fmt.Sprintf("evil-%d", i), fmt.Sprintf("s%d", i), text)
			}
		}
		if earlier {
			evil("fine")
		}
		play(t, Options{Renderer: w, View: w.view(), Validator: w, Targets: []Target{w.target}}, func(s *scene) {
			s.Trigger("start")
			pass(time.Second)
			evil("bad")
			with := w.waits(s, "change", "1")
			pass(30 * time.Second)
			after := w.waits(s, "change", "2")
			t.Logf("it waited %s with them, and %s after them", with, after)
			require.Less(t, with, 5*time.Second, "it changed with them, so that it is tried in its turn")
			require.Less(t, after, time.Second)
			require.Len(t, strings.Fields(held(s.Loop)), 20)
			require.Empty(t, s.State().LastError)
			require.Equal(t, earlier, w.served("s19 fine"))
		})
	}
}
