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
				play(t, Options{Renderer: w, Validator: w, Targets: []Target{w.target}}, func(s *scene) {
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
