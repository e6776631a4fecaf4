package reconcile

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/viewtest"
)

// town has objects of a good tenant and of a hostile one. A validation takes 100 ms
// and names one bad line, as haproxy does, or none where it is blind.
type town struct {
	target *fakeTarget
	blind  bool
	plain  bool // what is in quarantine is left out, also where it worked before

	View    viewtest.View
	mu      sync.Mutex
	objs    []*unstructured.Unstructured
	at      map[string]int // of objs, by namespace/name; nil: not known
	version int
	checks  int
}

func (w *town) put(namespace, name, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.version++
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "text": text}}
	obj.SetNamespace(namespace)
	obj.SetName(name)
	obj.SetResourceVersion(fmt.Sprint(w.version))
	obj.SetUID(types.UID(fmt.Sprint("born at ", w.version)))
	if w.at == nil {
		w.at = map[string]int{}
		for i, o := range w.objs {
			w.at[o.GetNamespace()+"/"+o.GetName()] = i
		}
	}
	if i, is := w.at[namespace+"/"+name]; is {
		obj.SetUID(w.objs[i].GetUID())
		w.objs[i] = obj
	} else {
		w.at[namespace+"/"+name] = len(w.objs)
		w.objs = append(w.objs, obj)
	}
}

func (w *town) remove(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = nil
	w.objs = slices.DeleteFunc(w.objs, func(o *unstructured.Unstructured) bool { return o.GetName() == name })
}

// clear deletes all objects of a tenant.
func (w *town) clear(namespace string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = nil
	w.objs = slices.DeleteFunc(w.objs, func(o *unstructured.Unstructured) bool { return o.GetNamespace() == namespace })
}

// view returns what renders read.
func (w *town) view() *viewtest.View {
	w.View.Plain = w.plain
	w.View.KeyOf = keyOf
	w.View.List = func() (all []any) {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, o := range w.objs {
			all = append(all, o)
		}
		return all
	}
	return &w.View
}

func (w *town) Render(ctx context.Context) (*Rendered, error) {
	rendered, err := renderLines(w.View.Reads())
	if err == nil && strings.Contains(rendered.Config.Main(), "stuck") {
		<-ctx.Done()
		return &Rendered{Origins: rendered.Origins}, ctx.Err()
	}
	return rendered, err
}

func (w *town) Validate(ctx context.Context, cfg *dataplane.Config) error {
	w.mu.Lock()
	w.checks++
	w.mu.Unlock()
	took := 100 * time.Millisecond
	if strings.Contains(cfg.Main(), "endless") {
		took = 30 * time.Second
	}
	select {
	case <-time.After(took):
		if took > time.Second {
			return context.DeadlineExceeded
		}
	case <-ctx.Done():
		return ctx.Err()
	}
	n := 0
	for line := range strings.Lines(cfg.Main()) {
		if n++; strings.Contains(line, "bad") {
			return &verdict{lines: []int{n}, blind: w.blind}
		}
	}
	return nil
}

// served reports whether the target has a line.
func (w *town) served(line string) bool {
	w.target.mu.Lock()
	defer w.target.mu.Unlock()
	n := len(w.target.synced)
	return n > 0 && strings.Contains(w.target.synced[n-1].Main(), line+"\n")
}

// waits is how long it takes until the target has what a change of the good tenant
// says.
func (w *town) waits(s *scene, name, text string) time.Duration {
	w.put("good", name, text)
	s.Trigger("good")
	begun := time.Now()
	for !w.served(name + " " + text) {
		if pass(5 * time.Millisecond); time.Since(begun) > time.Minute {
			break
		}
	}
	return time.Since(begun)
}

// TestHostileTenant: whatever a tenant does to 200 objects, a change of another
// waits for less than a second where a validation takes 100 ms. It waits a little
// longer where no line says what is bad, and for objects that nobody has seen before.
func TestHostileTenant(t *testing.T) {
	t.Parallel()
	const many = 200
	all := func(w *town, text func(i int) string) {
		for i := range many {
			w.put("evil", fmt.Sprintf("s%d", i), text(i))
		}
	}
	goodOrBad := []string{"fine", "bad"}
	unison := func(w *town, n int) { all(w, func(int) string { return goodOrBad[n%2] }) }
	for name, c := range map[string]struct {
		every  time.Duration // between two acts of the hostile tenant; 0: there is one
		act    func(w *town, n int)
		blind  bool
		rounds int
		most   time.Duration
	}{
		"turn bad together":        {0, unison, false, 40, time.Second},
		"turn bad together, blind": {0, unison, true, 40, time.Second},
		"flip at 100 ms":           {100 * time.Millisecond, unison, false, 60, time.Second},
		"flip at 100 ms, blind":    {100 * time.Millisecond, unison, true, 60, 1300 * time.Millisecond},
		"flip at 10 s":             {10 * time.Second, unison, false, 60, time.Second},
		"turn bad one after the other": {7 * time.Millisecond, func(w *town, n int) {
			w.put("evil", fmt.Sprintf("s%d", n%many), goodOrBad[(n/many+1)%2])
		}, false, 60, time.Second},
		"flip at random": {100 * time.Millisecond, func(w *town, _ int) {
			all(w, func(int) string { return goodOrBad[rand.N(2)] })
		}, false, 60, time.Second},
		"have new names": {300 * time.Millisecond, func(w *town, n int) {
			w.clear("evil")
			for i := range many {
				w.put("evil", fmt.Sprintf("s%d-%d", n, i), "bad")
			}
		}, false, 60, 1300 * time.Millisecond},
	} {
		run := func(t *testing.T, plain bool, rounds int) {
			t.Parallel()
			w := &town{target: &fakeTarget{name: "one"}, blind: c.blind, plain: plain}
			w.target.set(dataplane.ImpactRuntime, nil)
			all(w, func(int) string { return "fine" })
			w.put("good", "change", "0")
			play(t, Options{Renderer: w, View: w.view(), Validator: w, Targets: []Target{w.target}}, func(s *scene) {
				s.Trigger("start")
				pass(2 * time.Second)
				require.True(t, w.served("change 0"))
				stop, stopped := make(chan struct{}), make(chan struct{})
				go func() {
					defer close(stopped)
					for n := 1; ; n++ {
						c.act(w, n)
						s.Trigger("evil")
						if c.every == 0 {
							return
						}
						select {
						case <-stop:
							return
						case <-time.After(c.every):
						}
					}
				}()
				var took []time.Duration
				for n := range rounds {
					took = append(took, w.waits(s, "change", fmt.Sprint(n+1)))
					pass(737 * time.Millisecond)
				}
				close(stop)
				<-stopped
				t.Logf("the longest of %d changes waited %s; %d validations", rounds, slices.Max(took), w.checks)
				for _, e := range eventsOf[ReconciliationFailed](s) {
					t.Log(e.Err)
				}
				require.Less(t, slices.Max(took), c.most, "%s", took)
			})
		}
		t.Run(name, func(t *testing.T) { run(t, false, c.rounds) })
		t.Run(name+", left out", func(t *testing.T) { run(t, true, 8) })
	}
}

// TestMendedBesideAHostileTenant: what another broke and mended comes back, however
// many objects of a hostile tenant are due for a trial, too.
func TestMendedBesideAHostileTenant(t *testing.T) {
	w := &town{target: &fakeTarget{name: "one"}}
	w.put("good", "change", "0")
	play(t, Options{Renderer: w, View: w.view(), Validator: w, Targets: []Target{w.target}}, func(s *scene) {
		s.Trigger("start")
		pass(time.Second)
		w.put("good", "own", "bad")
		s.Trigger("good")
		pass(2 * time.Second)
		require.Equal(t, "own", held(s.Loop))
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			for n := 0; ; n++ {
				for i := range 200 {
					w.put("evil", fmt.Sprintf("s%d", i), []string{"fine", "bad"}[rand.N(2)])
				}
				s.Trigger("evil")
				select {
				case <-stop:
					return
				case <-time.After(100 * time.Millisecond):
				}
			}
		}()
		pass(5 * time.Second)
		took := w.waits(s, "own", "mended")
		close(stop)
		<-stopped
		t.Logf("it waited %s", took)
		require.Less(t, took, 2*time.Second)
	})
}

// TestATrialThatHangsYields: what changes while a trial hangs does not wait for the
// time-out of a render.
func TestATrialThatHangsYields(t *testing.T) {
	w := &town{target: &fakeTarget{name: "one"}}
	w.put("good", "change", "0")
	w.put("evil", "s", "bad")
	play(t, Options{Renderer: w, View: w.view(), Validator: w, Targets: []Target{w.target}}, func(s *scene) {
		s.Trigger("start")
		pass(time.Second)
		require.Equal(t, "s", held(s.Loop))
		w.put("evil", "s", "stuck")
		s.Trigger("evil")
		pass(300 * time.Millisecond)
		took := w.waits(s, "change", "1")
		t.Logf("it waited %s", took)
		require.Less(t, took, time.Second)
	})
}

// TestLeftOutTogether: what changed together with what is bad is left out in one
// step, and back as soon as a trial has shown that it is right.
func TestLeftOutTogether(t *testing.T) {
	w := &town{target: &fakeTarget{name: "one"}}
	for i := range 20 {
		w.put("evil", fmt.Sprintf("s%d", i), "fine")
	}
	w.put("evil", "calm", "fine")
	play(t, Options{Renderer: w, View: w.view(), Validator: w, Targets: []Target{w.target}}, func(s *scene) {
		s.Trigger("start")
		pass(time.Second)
		for i := range 20 {
			w.put("evil", fmt.Sprintf("s%d", i), []string{"bad", "better"}[i/10])
		}
		s.Trigger("evil")
		pass(20 * time.Second)
		require.Len(t, strings.Fields(held(s.Loop)), 10)
		require.Len(t, eventsOf[ResourceQuarantined](s), 10, "a resource that is left out until the trial is not quarantined")
		require.Empty(t, eventsOf[ResourceReleased](s))
		most := 0
		for _, e := range eventsOf[ReconciliationCompleted](s) {
			most = max(most, e.HeldBack)
		}
		require.Equal(t, 17, most, "3 validations take longer than the patience for a search")
		for _, text := range w.target.texts() {
			require.Contains(t, text, "calm fine", "what did not change is served all along")
		}
		require.True(t, w.served("s19 better"))
	})
}
