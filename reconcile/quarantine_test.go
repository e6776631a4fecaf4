package reconcile

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/viewtest"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/templating"
)

// ward is a cluster of Ingresses that templates print, a validator that knows
// what is wrong by the word "bad", and a target; it counts.
type ward struct {
	viewtest.View
	tb     testing.TB
	files  fstest.MapFS
	target *fakeTarget
	each   bool // the templates have an entry for each Ingress
	blind  bool // the validator says what is wrong, not where
	broken error

	mu        sync.Mutex
	ingresses []*networkingv1.Ingress
	version   int
	engine    *templating.Engine
	renders   int
	checks    int
	told      []string // Kubernetes Events
}

const (
	loopTemplate = "global\n{% for ing in ingresses %}\nbackend {{ ing.Name }}\n    # {{ ing.Annotations[\"text\"] }}\n{% end %}\n"
	itemTemplate = "backend {{ ing.Name }}\n{% if ing.Annotations[\"fail\"] != \"\" %}{{ fail(\"no \" + ing.Name) }}{% end %}    # {{ ing.Annotations[\"text\"] }}\n"
)

func newWard(tb testing.TB, files map[string]string) *ward {
	w := &ward{tb: tb, target: &fakeTarget{name: "one"}, files: fstest.MapFS{}}
	w.Plain = true
	w.View.KeyOf = keyOf
	w.View.List = func() (all []any) {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, ing := range w.ingresses {
			all = append(all, ing)
		}
		return all
	}
	for name, text := range files {
		w.files[name] = &fstest.MapFile{Data: []byte(text)}
		w.each = w.each || name == "haproxy.d/ingress.cfg"
	}
	w.compile()
	return w
}

func (w *ward) compile() {
	engine, err := templating.Compile(w.files, &templating.Options{
		Vars:    map[string]any{"ingresses": []*networkingv1.Ingress(nil), "ing": (*networkingv1.Ingress)(nil)},
		Globals: map[string]any{"linger": linger},
	})
	require.NoError(w.tb, err)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.engine = engine
}

// linger is for templates that hang: they take time, which in a bubble is none of
// the machine's, so that one that is busy stops no other render.
func linger() string {
	time.Sleep(100 * time.Millisecond)
	return ""
}

// put writes Ingresses: name=text, or name alone.
func (w *ward) put(all ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range all {
		name, text, _ := strings.Cut(one, "=")
		w.version++
		ing := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name),
			ResourceVersion: fmt.Sprint(w.version), Annotations: map[string]string{"text": text, k8swatch.SourceAnnotation: name + ".yaml:1"}}}
		if text == "fail" {
			ing.Annotations["fail"] = "yes"
		}
		if i := slices.IndexFunc(w.ingresses, func(ing *networkingv1.Ingress) bool { return ing.Name == name }); i >= 0 {
			w.ingresses[i] = ing
		} else {
			w.ingresses = append(w.ingresses, ing)
		}
	}
}

func (w *ward) remove(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ingresses = slices.DeleteFunc(w.ingresses, func(ing *networkingv1.Ingress) bool { return ing.Name == name })
}

func (w *ward) Render(ctx context.Context) (*Rendered, error) {
	var kept []*networkingv1.Ingress
	for _, o := range w.Reads() {
		kept = append(kept, o.(*networkingv1.Ingress))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.renders++
	t := &templated{engine: w.engine, vars: map[string]any{"ingresses": kept, "ing": (*networkingv1.Ingress)(nil)}}
	if w.each {
		t.items = append([]*networkingv1.Ingress{}, kept...)
	}
	return t.Render(ctx)
}

// verdict is what a validator finds.
type verdict struct {
	lines []int
	blind bool
}

func (v *verdict) Error() string { return fmt.Sprintf("not valid: %d lines", len(v.lines)) }

func (v *verdict) Positions() iter.Seq2[dataplane.Position, string] {
	return func(yield func(dataplane.Position, string) bool) {
		for _, n := range v.lines {
			if v.blind {
				n = 0
			}
			if !yield(dataplane.Position{Line: n}, `unknown keyword "bad"`) {
				return
			}
		}
	}
}

func (w *ward) Validate(_ context.Context, cfg *dataplane.Config) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.checks++
	if w.broken != nil {
		return w.broken
	}
	v := &verdict{blind: w.blind}
	n := 0
	for line := range strings.Lines(cfg.Main()) {
		if n++; strings.Contains(line, "bad") {
			v.lines = append(v.lines, n)
		}
	}
	if len(v.lines) == 0 {
		return nil
	}
	return v
}

func (w *ward) Event(object runtime.Object, eventtype, reason, message string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ref := object.(*corev1.ObjectReference)
	w.told = append(w.told, fmt.Sprintf("%s %s %s %s/%s %s: %s", eventtype, reason, ref.APIVersion, ref.Kind, ref.Name, ref.UID, message))
}

func (w *ward) options() Options {
	return Options{Renderer: w, View: w, Validator: w, Recorder: w, Targets: []Target{w.target}}
}

// counted returns what was counted since it was asked last.
func (w *ward) counted() (renders, checks int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	renders, checks = w.renders, w.checks
	w.renders, w.checks = 0, 0
	return renders, checks
}

// deployed says which Ingresses the target has.
func (w *ward) deployed() string {
	texts := w.target.texts()
	if len(texts) == 0 {
		return "nothing"
	}
	var names []string
	for line := range strings.Lines(texts[len(texts)-1]) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "backend "); ok {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

func held(l *Loop) string {
	var names []string
	for _, q := range l.State().Quarantined {
		names = append(names, q.Resource.Name)
	}
	return strings.Join(names, " ")
}

// TestQuarantineFigure: from a bad Ingress among many to the rest deployed it
// takes two renders and two validations where the position is known.
func TestQuarantineFigure(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"in a loop": {"haproxy.cfg": loopTemplate},
		"each":      {"haproxy.cfg": "global\n", "haproxy.d/ingress.cfg": itemTemplate},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWard(t, files)
			for i := range 500 {
				w.put(fmt.Sprintf("web-%d", i))
			}
			play(t, w.options(), func(s *scene) {
				s.Trigger("start")
				pass(time.Second)
				w.counted()
				w.put("web-77=bad")
				s.Trigger("an Ingress")
				pass(time.Second)
				renders, checks := w.counted()
				require.Equal(t, []int{2, 2}, []int{renders, checks})
				require.Equal(t, "web-77", held(s.Loop))
				require.Equal(t, 499, len(strings.Fields(w.deployed())))
				events := eventsOf[ResourceQuarantined](s)
				require.Len(t, events, 1)
				require.Contains(t, events[0].Quarantined.String(), "Ingress ns/web-77 (web-77.yaml:1)")
				line := "haproxy.cfg:4"
				if w.each {
					line = "haproxy.d/ingress.cfg:2"
				}
				require.Regexp(t, "^"+line+`: .*; rendered as line \d+ of haproxy.cfg for Ingress ns/web-77 \(web-77.yaml:1\)$`, events[0].Fault.String())

				// It stays there, without any more work, also when others change.
				w.put("web-78=x")
				s.Trigger("another")
				pass(time.Second)
				renders, checks = w.counted()
				require.Equal(t, []int{1, 1}, []int{renders, checks})
				require.Len(t, eventsOf[ResourceQuarantined](s), 1)
				require.Equal(t, []string{"Warning Quarantined networking.k8s.io/v1 Ingress/web-77 web-77"}, heads(w.told))
			})
		})
	}
}

func heads(told []string) (heads []string) {
	for _, s := range told {
		head, _, _ := strings.Cut(s, ":")
		heads = append(heads, head)
	}
	return heads
}

// TestQuarantineStory follows a resource through all that can happen to it.
func TestQuarantineStory(t *testing.T) {
	w := newWard(t, map[string]string{"haproxy.cfg": loopTemplate})
	w.put("a", "b=bad", "c", "d=bad")
	play(t, w.options(), func(s *scene) {
		act := func(what string) {
			s.Trigger(what)
			pass(time.Second)
		}
		act("start")
		require.Equal(t, "b d", held(s.Loop), "all at once")
		renders, _ := w.counted()
		require.Equal(t, 2, renders)
		require.Equal(t, "a c", w.deployed())
		require.Empty(t, s.State().LastError)

		w.put("b=still bad")
		act("b changes and is still bad")
		require.Equal(t, "b d", held(s.Loop))
		require.Equal(t, "a c", w.deployed())
		require.Len(t, eventsOf[ResourceQuarantined](s), 3, "once for each version")

		w.put("b=good")
		act("b is mended")
		require.Equal(t, "d", held(s.Loop))
		require.Equal(t, "a b c", w.deployed())
		require.Equal(t, "it changed or was deleted", eventsOf[ResourceReleased](s)[0].Reason)

		w.remove("d")
		act("d is deleted")
		require.Empty(t, held(s.Loop))
		require.Len(t, eventsOf[ResourceReleased](s), 2)
		require.Equal(t, []string{
			"Warning Quarantined networking.k8s.io/v1 Ingress/b b", "Warning Quarantined networking.k8s.io/v1 Ingress/d d",
			"Warning Quarantined networking.k8s.io/v1 Ingress/b b",
			"Normal Released networking.k8s.io/v1 Ingress/b b", "Normal Released networking.k8s.io/v1 Ingress/d d",
		}, heads(w.told))
	})
}

// TestQuarantineTrials: what a resource depends on may change without it.
func TestQuarantineTrials(t *testing.T) {
	w := newWard(t, map[string]string{"haproxy.cfg": loopTemplate})
	w.put("a", "b=bad")
	play(t, w.options(), func(s *scene) {
		s.Trigger("start")
		pass(time.Second)
		w.counted()
		pass(10 * time.Minute)
		require.Equal(t, "b", held(s.Loop))
		renders, _ := w.counted()
		require.Equal(t, 6, renders, "trials at 1, 3 and 7 minutes, two renders each")
		require.Equal(t, 3, s.State().Quarantined[0].Tries)
		require.Len(t, eventsOf[ResourceQuarantined](s), 1)
		require.Empty(t, eventsOf[ReconciliationFailed](s))
		require.Len(t, eventsOf[InstanceDeployed](s), 1, "a trial that fails disturbs nobody")
		require.Len(t, w.told, 1)

		w.files["haproxy.cfg"].Data = []byte(strings.ReplaceAll(loopTemplate, `ing.Annotations["text"]`, `"fine"`))
		w.compile()
		s.Release()
		pass(time.Second)
		require.Empty(t, held(s.Loop), "new templates release at once")
		require.Equal(t, "a b", w.deployed())
		require.Equal(t, "the configuration is valid with it again", eventsOf[ResourceReleased](s)[0].Reason)
	})
}

// TestQuarantineOfWhatFailsToRender has two kinds of that.
func TestQuarantineOfWhatFailsToRender(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"in a loop": {"haproxy.cfg": "global\n{% for ing in ingresses %}\n" + itemTemplate + "{% end %}\n"},
		"each":      {"haproxy.cfg": "global\n", "haproxy.d/ingress.cfg": itemTemplate},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWard(t, files)
			w.put("a", "b=fail", "c", "d=x\nbackend evil", "e=y\x00")
			play(t, w.options(), func(s *scene) {
				s.Trigger("start")
				pass(2 * time.Second)
				require.Equal(t, "b d e", held(s.Loop))
				require.Equal(t, "a c", w.deployed())
				renders, checks := w.counted()
				require.LessOrEqual(t, renders, 3, "what fails ends the render of a loop, what is refused does not")
				require.Equal(t, 1, checks)
				require.Contains(t, s.State().Quarantined[0].String(), "no b")
				require.Contains(t, s.State().Quarantined[1].String(), "d.yaml:1")
			})
		})
	}
}

// TestQuarantineSearches where nothing says who is at fault.
func TestQuarantineSearches(t *testing.T) {
	for _, bad := range [][]int{{0}, {63}, {17}, {5, 40}, {0, 1, 63}} {
		t.Run(fmt.Sprint(bad), func(t *testing.T) {
			w := newWard(t, map[string]string{"haproxy.cfg": loopTemplate})
			w.blind = true
			var names, good []string
			for i := range 64 {
				name := fmt.Sprintf("web-%02d", i)
				if slices.Contains(bad, i) {
					names = append(names, name)
					w.put(name + "=bad")
				} else {
					good = append(good, name)
					w.put(name)
				}
			}
			play(t, w.options(), func(s *scene) {
				s.Trigger("start")
				pass(5 * time.Second)
				require.Equal(t, strings.Join(names, " "), held(s.Loop))
				require.Equal(t, strings.Join(good, " "), w.deployed())
				renders, _ := w.counted()
				require.LessOrEqual(t, renders, 2+len(bad)*(6+2))
			})
		})
	}
	t.Run("only what changed is suspected", func(t *testing.T) {
		w := newWard(t, map[string]string{"haproxy.cfg": loopTemplate})
		w.blind = true
		for i := range 64 {
			w.put(fmt.Sprintf("web-%02d", i))
		}
		play(t, w.options(), func(s *scene) {
			s.Trigger("start")
			pass(time.Second)
			w.counted()
			w.put("web-09=bad")
			s.Trigger("one")
			pass(time.Second)
			require.Equal(t, "web-09", held(s.Loop))
			renders, _ := w.counted()
			require.Equal(t, 2, renders)
		})
	})
}

// TestNoQuarantine keeps the last good configuration, and still explains.
func TestNoQuarantine(t *testing.T) {
	w := newWard(t, map[string]string{"haproxy.cfg": loopTemplate})
	w.put("a", "b=bad")
	opts := w.options()
	opts.NoQuarantine = true
	play(t, opts, func(s *scene) {
		s.Trigger("start")
		pass(time.Second)
		require.Equal(t, "nothing", w.deployed())
		require.Equal(t, `validate: haproxy.cfg:4: unknown keyword "bad"; rendered as line 5 of haproxy.cfg for Ingress ns/b (b.yaml:1)`, s.State().LastError)
	})
}

// TestQuarantineIsBounded: if there are more bad resources than a search has rounds, all of
// their namespace are set back, and trials find out which.
func TestQuarantineIsBounded(t *testing.T) {
	w := newWard(t, map[string]string{"haproxy.cfg": loopTemplate})
	opts := w.options()
	opts.QuarantineTries = 3
	opts.Validator = ValidatorFunc(func(ctx context.Context, cfg *dataplane.Config) error {
		var v *verdict
		if err := w.Validate(ctx, cfg); !errors.As(err, &v) {
			return err
		}
		return &verdict{lines: v.lines[:1]} // one is found at a time
	})
	w.put("good")
	for i := range 10 {
		w.put(fmt.Sprintf("web-%d=bad", i))
	}
	play(t, opts, func(s *scene) {
		s.Trigger("start")
		pass(300 * time.Millisecond)
		renders, _ := w.counted()
		require.LessOrEqual(t, renders, 3+10+3)
		require.Equal(t, "good", w.deployed())
		require.Equal(t, 10, len(strings.Fields(held(s.Loop))))
	})
}
