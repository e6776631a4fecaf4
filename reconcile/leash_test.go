package reconcile

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

// TestWhatHangsHoldsUpNobody: a render or a validation hangs with one object until its
// time-out of 30 s, whichever version of it, or whatever name it has. A change of another
// reaches HAProxy within about a second all the same, and what changed besides is served.
func TestWhatHangsHoldsUpNobody(t *testing.T) {
	for _, text := range []string{"stuck", "endless"} { // a template, haproxy -c
		for name, act := range map[string]func(w *town, n int){
			"once": func(w *town, n int) {
				if n == 0 {
					w.put("evil", "s", text)
				}
			},
			"another version each time": func(w *town, n int) { w.put("evil", "s", fmt.Sprint(text, n)) },
			"another name each time": func(w *town, n int) {
				w.clear("evil")
				w.put("evil", fmt.Sprint("s", n), text)
			},
			"together with others": func(w *town, n int) {
				if n%20 == 0 {
					w.put("evil", "s", fmt.Sprint(text, n))
					w.put("calm", "c", fmt.Sprint("calm ", n))
				}
			},
		} {
			t.Run(text+", "+name, func(t *testing.T) {
				w := &town{target: &fakeTarget{name: "one"}}
				w.target.set(dataplane.ImpactRuntime, nil)
				w.put("good", "change", "0")
				w.put("calm", "c", "calm")
				w.put("evil", "s", "fine")
				play(t, Options{Renderer: w, View: w.view(), Validator: w, Targets: []Target{w.target}}, func(s *scene) {
					start(s)
					var took []time.Duration
					for n := range 100 {
						act(w, n)
						s.Trigger("evil")
						pass(300 * time.Millisecond)
						took = append(took, w.waits(s, "change", fmt.Sprint(n+1)))
						pass(737 * time.Millisecond)
					}
					slices.Sort(took)
					t.Logf("a change waited: median %s, p99 %s, longest %s; %d validations", took[50], took[98], took[99], w.checks)
					require.Less(t, took[99], 2*time.Second)
					require.Less(t, took[90], 1300*time.Millisecond)
					if !strings.Contains(name, "name") {
						require.True(t, w.served("s fine"), "what hangs is served as it was")
						require.Contains(t, held(s.Loop), "s")
					}
					if strings.Contains(name, "together") {
						require.True(t, w.served("c calm 80"))
					}
					w.clear("evil")
					w.put("evil", "s", "mended")
					s.Trigger("mended")
					for range 200 {
						if pass(time.Second); w.served("s mended") {
							break
						}
					}
					require.True(t, w.served("s mended"))
					inOrder(t, s)
				})
			})
		}
	}
}

// TestWhatHangsIsSaidAtOnce: what is held back as an attempt took too long is named within
// two seconds, in one line, and so is its end. The time-out of 30 s adds one line.
func TestWhatHangsIsSaidAtOnce(t *testing.T) {
	for text, does := range map[string]string{"stuck": "rendering", "endless": "validating"} {
		t.Run(text, func(t *testing.T) {
			w := &town{target: &fakeTarget{name: "one"}}
			w.target.set(dataplane.ImpactRuntime, nil)
			w.put("evil", "s", "fine")
			play(t, Options{Renderer: w, View: w.view(), Validator: w, Targets: []Target{w.target}}, func(s *scene) {
				said := func() (lines []string) {
					for _, e := range eventsOf[ResourceQuarantined](s) {
						if line := e.Report().Sentence; line != "" {
							lines = append(lines, line)
						}
					}
					return lines
				}
				start(s)
				w.put("evil", "s", text)
				s.Trigger("evil")
				pass(1900 * time.Millisecond)
				require.Equal(t, []string{"in quarantine, all others are served: Secret evil/s: " + does +
					" takes longer than 1s since it changed: the controller holds it back and tries it separately for up to 30s; the earlier version is served"}, said())
				require.Contains(t, s.State().Quarantined[0].String(), does+" takes longer than 1s")
				pass(40 * time.Second)
				require.Len(t, said(), 2)
				require.Contains(t, said()[1], ": "+does+" takes longer than 30s, apart from others, too; the earlier version is served")
				pass(10 * time.Minute)
				require.Len(t, said(), 2)
				require.Empty(t, eventsOf[ResourceReleased](s))
				w.put("evil", "s", "mended")
				s.Trigger("mended")
				pass(5 * time.Second)
				require.True(t, w.served("s mended"))
				require.Len(t, eventsOf[ResourceReleased](s), 1)

				for i := range 50 { // of them one hangs
					w.put(fmt.Sprint("calm", i), "c", "calm")
				}
				w.put("evil", "s", text)
				s.Trigger("evil")
				pass(15 * time.Second)
				require.LessOrEqual(t, len(said()), 4, "%q", said())
				require.Contains(t, said()[len(said())-1], "Secret evil/s", "the others are not told of: they are tried, and served")
				pass(time.Minute)
				released := 0
				for _, e := range eventsOf[ResourceReleased](s) {
					if e.Report().Sentence != "" {
						released++
					}
				}
				require.True(t, w.served("c calm"))
				require.Equal(t, "s", held(s.Loop))
				require.LessOrEqual(t, released, 3)
				for i := range 100 {
					w.put("evil", "s", fmt.Sprint(text, i))
					s.Trigger("evil")
					pass(300 * time.Millisecond)
				}
				require.LessOrEqual(t, len(said()), 6, "%q", said())
			})
		})
	}
}
