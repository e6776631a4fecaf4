package reconcile

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/viewtest"
)

// fetching is a renderer whose text has a content that was fetched: a word of the
// line of b, until a configuration with it is refused.
type fetching struct {
	*ward
	mu       sync.Mutex
	rejected bool
}

func (f *fetching) Settle(cfg *dataplane.Config, err error) (again bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil || f.rejected || !strings.Contains(cfg.Main(), "too-new") {
		return false
	}
	f.rejected = true
	f.put("b") // as it is without that content
	return true
}

// TestWhatWasFetchedIsRefusedByAll: the content is rejected, and no resource is to
// blame, whichever instance says so first.
func TestWhatWasFetchedIsRefusedByAll(t *testing.T) {
	fleet(t, func(o *Options) {
		o.Renderer = &fetching{ward: o.Renderer.(*ward)}
	}, func(s *scene, _ *ward, olds []*fakeTarget, recent *fakeTarget) {
		start(s)
		require.Empty(t, eventsOf[ResourceQuarantined](s))
		for _, f := range append(olds, recent) {
			require.Equal(t, "a b c", has(f), f.name)
		}
	})
}

// TestARefusalThatIsOver leads to no verdict: the instance has taken something newer
// since.
func TestARefusalThatIsOver(t *testing.T) {
	fleet(t, func(o *Options) { o.Targets = o.Targets[1:2] }, func(s *scene, w *ward, olds []*fakeTarget, _ *fakeTarget) {
		refuse := olds[1].behave
		olds[1].set(0, func(ctx context.Context, cfg *dataplane.Config) error {
			err := refuse(ctx, cfg)
			if err != nil {
				time.Sleep(700 * time.Millisecond)
			}
			return err
		})
		s.Trigger("start")
		pass(100 * time.Millisecond)
		w.files["haproxy.cfg"] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(loopTemplate, "    # {{ ing.Annotations[\"text\"] }}\n", "    # mended\n"))}
		w.compile()
		s.Trigger("other templates")
		pass(30 * time.Second)
		require.Empty(t, eventsOf[ResourceQuarantined](s))
		require.Equal(t, "a b c", has(olds[1]))
		require.Empty(t, s.State().Instances[0].Error)
	})
}

// TestANewVersionOfTheSameText is refused as the one before: the verdict does not
// wait for another change.
func TestANewVersionOfTheSameText(t *testing.T) {
	fleet(t, func(o *Options) { o.Targets = o.Targets[1:] }, func(s *scene, w *ward, olds []*fakeTarget, recent *fakeTarget) {
		refuse := olds[1].behave
		olds[1].set(0, func(ctx context.Context, cfg *dataplane.Config) error {
			time.Sleep(2 * time.Second)
			return refuse(ctx, cfg)
		})
		s.Trigger("start")
		pass(time.Second)
		w.put("b=too-new") // its status changed
		s.Trigger("b")
		pass(30 * time.Second)
		require.Equal(t, "b", held(s.Loop))
		require.Equal(t, "a c", has(olds[1]))
		require.Len(t, eventsOf[ResourceQuarantined](s), 1)
	})
}

// TestAnInstanceThatLeavesBeforeItsVerdict leaves none behind.
func TestAnInstanceThatLeavesBeforeItsVerdict(t *testing.T) {
	fleet(t, func(o *Options) {
		o.Targets = o.Targets[1:]
		validate := o.Validator.Validate
		o.Validator = ValidatorFunc(func(ctx context.Context, cfg *dataplane.Config) error {
			time.Sleep(time.Second)
			return validate(ctx, cfg)
		})
	}, func(s *scene, _ *ward, olds []*fakeTarget, recent *fakeTarget) {
		s.Trigger("start")
		pass(1500 * time.Millisecond) // the verdict is on its way
		require.NoError(t, s.SetTargets(recent))
		pass(20 * time.Second)
		require.Empty(t, held(s.Loop))
		require.Equal(t, "a b c", has(recent))
	})
}

// TestATrialThatHangs is repeated with back-off, also where the resource changed:
// changes of others do not wait for it each time.
func TestATrialThatHangs(t *testing.T) {
	w := newWard(t, map[string]string{"haproxy.cfg": loopTemplate})
	w.put("a", "b=bad", "c")
	opts := w.options()
	hangs := 0
	opts.Validator = ValidatorFunc(func(ctx context.Context, cfg *dataplane.Config) error {
		if strings.Contains(cfg.Main(), "hang") {
			hangs++
			time.Sleep(30 * time.Second)
			return context.DeadlineExceeded
		}
		return w.Validate(ctx, cfg)
	})
	play(t, opts, func(s *scene) {
		start(s)
		require.Equal(t, "b", held(s.Loop))
		w.put("b=hang")
		s.Trigger("b")
		pass(31 * time.Second)
		require.Equal(t, 1, hangs)
		for i := range 10 {
			w.put(fmt.Sprintf("c=%d", i))
			s.Trigger("another")
			pass(2 * time.Second)
			texts := w.target.texts()
			require.Contains(t, texts[len(texts)-1], fmt.Sprintf("# %d\n", i))
		}
		require.Equal(t, 1, hangs)
		w.put("b=mended")
		s.Trigger("b")
		pass(2 * time.Second)
		require.Empty(t, held(s.Loop))
	})
}

// objects renders a line for each object, and knows which one a line is of.
type objects struct {
	viewtest.View
	all  []*unstructured.Unstructured
	kept []any
}

func newObjects(all ...*unstructured.Unstructured) *objects {
	o := &objects{all: all}
	o.KeyOf = keyOf
	o.List = func() (list []any) {
		for _, obj := range o.all {
			list = append(list, obj)
		}
		return list
	}
	return o
}

func (o *objects) Render(context.Context) (*Rendered, error) { return renderLines(o.Reads()) }

// renderLines renders a line for each object.
func renderLines(all []any) (*Rendered, error) {
	text := "global\n"
	for _, one := range all {
		obj := one.(*unstructured.Unstructured)
		text += fmt.Sprintf("    # %s %s %v\n", obj.GetAPIVersion(), obj.GetName(), obj.Object["text"])
	}
	cfg, err := dataplane.NewConfig(text)
	return &Rendered{Config: cfg, Origins: &objects{kept: all}}, err
}

func (o *objects) Origin(_ context.Context, at dataplane.Position) (Origin, error) {
	return Origin{TemplateLine: TemplateLine{File: "haproxy.cfg", Line: 2}, Owners: o.kept[at.Line-2 : at.Line-1]}, nil
}

// TestKindsOfTheSameName: what is quarantined is one object, not the one that has
// its kind and name in another group of APIs.
func TestKindsOfTheSameName(t *testing.T) {
	object := func(apiVersion, text string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": "Service", "text": text,
			"metadata": map[string]any{"namespace": "ns", "name": "web", "uid": apiVersion + text, "resourceVersion": apiVersion + text}}}
	}
	w := newWard(t, nil)
	opts := w.options()
	r := newObjects(object("v1", "good"), object("serving.knative.dev/v1", "bad"), object("example.test/v1", "bad"))
	opts.Renderer, opts.View = r, r
	play(t, opts, func(s *scene) {
		start(s)
		texts := w.target.texts()
		require.Len(t, texts, 1)
		require.Equal(t, "global\n    # v1 web good\n", texts[0])
		require.Equal(t, "web web", held(s.Loop))
		require.Len(t, eventsOf[ReconciliationStarted](s), 1)
		r.all[1] = object("serving.knative.dev/v1beta1", "mended")
		s.Trigger("one of them")
		pass(time.Second)
		require.Equal(t, "web", held(s.Loop))
		require.Equal(t, "example.test/v1", s.State().Quarantined[0].Resource.APIVersion)
	})
}

// TestTheFirstResourceIsTheOneRefused: with nothing else to be served, no verdict
// helps; it comes once there is more.
func TestTheFirstResourceIsTheOneRefused(t *testing.T) {
	fleet(t, func(o *Options) { o.Targets = o.Targets[1:] }, func(s *scene, w *ward, olds []*fakeTarget, recent *fakeTarget) {
		w.remove("a")
		w.remove("c")
		start(s)
		require.Empty(t, held(s.Loop))
		w.put("b=too-new, still")
		s.Trigger("an edit")
		pass(5 * time.Second)
		require.Equal(t, 1, strings.Count(s.State().Instances[0].Error, "correct the template"))
		w.put("a", "c")
		s.Trigger("more")
		pass(5 * time.Second)
		require.Equal(t, "b", held(s.Loop))
		require.Equal(t, "a c", has(olds[1]))
		require.Equal(t, "a c", has(recent))
	})
}

// TestOnlyWithWhatIsInQuarantine is something valid: it is tried also where the
// configuration fails as a whole without it.
func TestOnlyWithWhatIsInQuarantine(t *testing.T) {
	w := newWard(t, map[string]string{"haproxy.cfg": loopTemplate})
	w.put("a", "b=bad")
	opts := w.options()
	opts.Validator = ValidatorFunc(func(ctx context.Context, cfg *dataplane.Config) error {
		if !strings.Contains(cfg.Main(), "backend") {
			return &verdict{lines: []int{1}}
		}
		return w.Validate(ctx, cfg)
	})
	play(t, opts, func(s *scene) {
		start(s)
		require.Equal(t, "b", held(s.Loop))
		require.Equal(t, "a", w.deployed())
		w.remove("a")
		s.Trigger("a is gone")
		pass(5 * time.Second)
		require.Equal(t, "a", w.deployed(), "the last good one")
		w.put("b=bad still")
		s.Trigger("an edit")
		pass(5 * time.Second)
		require.Equal(t, "b", held(s.Loop))
		w.put("b=mended")
		s.Trigger("b is mended")
		pass(10 * time.Second)
		require.Equal(t, "b", w.deployed())
		require.Empty(t, held(s.Loop))
		require.Empty(t, s.State().LastError)
	})
}

// TestTheTemplateWasToBlame until there is another resource for which it is right.
func TestTheTemplateWasToBlame(t *testing.T) {
	w := newWard(t, map[string]string{"haproxy.cfg": "global\n", "haproxy.d/ingress.cfg": itemTemplate})
	w.put("a")
	play(t, w.options(), func(s *scene) {
		start(s)
		require.Equal(t, "a", w.deployed())
		w.files["haproxy.d/ingress.cfg"] = &fstest.MapFile{Data: []byte("backend {{ ing.Name }}\n{% if ing.Name == \"a\" %}{{ fail(\"no\") }}{% end %}\n")}
		w.compile()
		s.Release()
		pass(5 * time.Second)
		require.Contains(t, s.State().LastError, "correct the template")
		w.put("b")
		s.Trigger("b")
		pass(5 * time.Second)
		require.Equal(t, "a", held(s.Loop))
		require.Equal(t, "b", w.deployed())
	})
}
