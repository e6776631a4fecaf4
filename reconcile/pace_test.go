package reconcile

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

func TestPacerActsAtOnceThenHolds(t *testing.T) {
	const most = 500 * time.Millisecond
	now := time.Unix(100, 0)
	after := func(ms int) time.Time { return now.Add(time.Duration(ms) * time.Millisecond) }
	acted := func(took int, unchanged bool) *pacer {
		p := &pacer{}
		p.acted(now, after(took), most, unchanged)
		return p
	}
	require.Equal(t, now, (&pacer{}).at(now, false), "the first acts at once")

	p := acted(2, false)
	require.Equal(t, after(22), p.at(after(3), false))
	require.Equal(t, after(22), p.at(after(21), false), "a storm does not push it back")
	require.Equal(t, after(23), p.at(after(23), false))
	require.Equal(t, after(500), p.at(after(23), true), "a failure holds as long as may be")
	require.Equal(t, after(501), p.at(after(501), true))

	require.Equal(t, after(300), acted(100, false).at(after(101), false), "a third of the time at most")
	require.Equal(t, after(500), acted(400, false).at(after(401), false), "never longer than Debounce")
	require.Equal(t, after(700), acted(700, false).at(after(700), false))
	require.Equal(t, after(6), acted(2, true).at(after(3), false), "nothing to deploy: nothing to gather")
	require.Equal(t, after(500), acted(400, true).at(after(401), false))
}

func TestPacerKeepsToItsShare(t *testing.T) {
	for _, took := range []time.Duration{100 * time.Microsecond, 2500 * time.Microsecond, 10 * time.Millisecond, 24 * time.Millisecond, 200 * time.Millisecond} {
		for _, unchanged := range []bool{false, true} {
			start := time.Unix(100, 0)
			now, longest, times := start, time.Duration(0), 0
			var p pacer
			for ; now.Sub(start) < 10*time.Minute; times++ {
				at := p.at(now, false)
				longest = max(longest, at.Sub(now)+took)
				now = at.Add(took)
				p.acted(at, now, 500*time.Millisecond, unchanged)
			}
			earned := now.Sub(start) + paceSaved
			require.LessOrEqual(t, longest, 500*time.Millisecond, took)
			if took <= 24*time.Millisecond { // others go by Debounce
				require.LessOrEqual(t, time.Duration(times-1)*took, earned/price, "%s: more than its share of the time", took)
			}
			if !unchanged {
				require.LessOrEqual(t, times-1, int(earned/paceLeast), "%s: more than 7 a second", took)
			}

			now = now.Add(paceSaved + time.Second)
			p.acted(now, now.Add(took), 500*time.Millisecond, unchanged)
			require.LessOrEqual(t, p.at(now.Add(took), false).Sub(now), max(3*took, took+gather), "%s: a storm that is over is forgotten", took)
		}
	}
}

// TestABurstIsFewReloads: renders follow each other faster than reloads.
func TestABurstIsFewReloads(t *testing.T) {
	target := &fakeTarget{name: "one", impact: dataplane.ImpactReload}
	play(t, Options{Targets: []Target{target}}, func(s *scene) {
		for n := range 100 {
			s.source.set(fmt.Sprint("Ingress ", n), nil)
			s.Trigger("a new Ingress")
			pass(10 * time.Millisecond)
		}
		require.Len(t, target.texts(), 1, "the first at once, the others wait")
		require.NotEmpty(t, target.early, "but for what takes no reload")
		pass(time.Second + 100*time.Millisecond)
		require.Equal(t, []string{text("Ingress 0"), text("Ingress 99")}, target.texts())
		pass(5 * time.Second)
		require.Len(t, target.texts(), 2)
	})
}

// steady renders in a time of its own.
type steady struct {
	*source
	took   time.Duration
	starts []time.Time
}

func (r *steady) Render(ctx context.Context) (*Rendered, error) {
	r.starts = append(r.starts, time.Now())
	time.Sleep(r.took)
	return r.source.Render(ctx)
}

// TestWhatChangesWithoutEndTakesAShare: a resource that flaps without end does not take a
// core, whether it is used or not, and what is wrong is rendered twice a second at most.
func TestWhatChangesWithoutEndTakesAShare(t *testing.T) {
	const minute, took = time.Minute, 4 * time.Millisecond
	fails := func(err error) func(s *scene, target *fakeTarget, n int) {
		return func(s *scene, target *fakeTarget, n int) {
			target.set(0, func(context.Context, *dataplane.Config) error { return err })
			s.source.set(fmt.Sprint(n), nil)
		}
	}
	for name, c := range map[string]struct {
		flap   func(s *scene, target *fakeTarget, n int)
		each   time.Duration // a render on average; 0: spaced
		spaced time.Duration // at least so far apart
	}{
		"used":            {func(s *scene, _ *fakeTarget, n int) { s.source.set(fmt.Sprint(n), nil) }, paceLeast, 0},
		"not used":        {func(*scene, *fakeTarget, int) {}, price * took, 0},
		"does not render": {func(s *scene, _ *fakeTarget, n int) { s.source.set("", fmt.Errorf("bad %d", n)) }, 0, 500 * time.Millisecond},
		"refused by one":  {fails(&dataplane.Error{Endpoint: "one", Stage: "check", Err: dataplane.ErrInvalid}), 0, 500 * time.Millisecond},
		"one is down":     {fails(dataplane.ErrNotRunning), paceLeast, 0},
	} {
		t.Run(name, func(t *testing.T) {
			target, renderer := &fakeTarget{name: "one"}, &steady{took: took}
			play(t, Options{Targets: []Target{target}, Renderer: renderer}, func(s *scene) {
				renderer.source = s.source
				s.Trigger("start")
				pass(minute)
				renderer.starts = nil
				begin := time.Now()
				for n := 0; time.Since(begin) < minute; n++ {
					c.flap(s, target, n)
					s.Trigger("flap")
					pass(3 * time.Millisecond)
				}
				synctest.Wait()
				if c.each > 0 {
					require.InDelta(t, (minute+paceSaved)/c.each, len(renderer.starts), 20)
					return
				}
				for i, at := range renderer.starts[2:] { // the first failure was not known before it
					require.GreaterOrEqual(t, at.Sub(renderer.starts[i+1]), c.spaced)
				}
			})
		})
	}
}

// TestASearchIsPaced: an object that goes bad again and again is looked at twice a
// second, but for the first few, however often it changes.
func TestASearchIsPaced(t *testing.T) {
	w := &town{target: &fakeTarget{name: "one"}}
	play(t, Options{Renderer: w, View: w.view(), Validator: w, Targets: []Target{w.target}}, func(s *scene) {
		w.put("good", "change", "0")
		s.Trigger("start")
		pass(time.Minute)
		for n := range 1000 {
			w.put("evil", "s", fmt.Sprint("bad ", n))
			s.Trigger("evil")
			pass(10 * time.Millisecond)
		}
		rounds := 0
		for _, e := range eventsOf[ReconciliationStarted](s) {
			if slices.Contains(e.Reasons, "evil") {
				rounds++
			}
		}
		require.LessOrEqual(t, rounds, 25, "in 10 s")
		require.Greater(t, rounds, 15)
	})
}
