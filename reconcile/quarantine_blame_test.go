package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/internal/viewtest"
	"github.com/hapticsdk/haptic/templating"
)

// TestTemplatesAreToBlame: no resource is left out for what the templates do
// wrong, and the last good configuration stays.
func TestTemplatesAreToBlame(t *testing.T) {
	for name, c := range map[string]struct {
		template string
		blind    bool
		want     string
	}{
		"outside of all":     {"bad\n" + loopTemplate, false, "haproxy.cfg:1"},
		"outside, blind":     {"bad\n" + loopTemplate, true, "correct the templates"},
		"in the loop":        {strings.Replace(loopTemplate, "    #", "    bad\n    #", 1), false, "haproxy.cfg:4"},
		"in the loop, shown": {strings.Replace(loopTemplate, "    #", "    bad {{ ing.Name }}\n    #", 1), false, "is wrong for every Ingress"},
		"fails":              {loopTemplate + "{{ fail(\"always\") }}\n", false, "haproxy.cfg:6"},
	} {
		for _, count := range []int{1, 5} {
			t.Run(fmt.Sprintf("%s, of %d", name, count), func(t *testing.T) {
				w := newWard(t, map[string]string{"haproxy.cfg": loopTemplate})
				for i := range count {
					w.put(fmt.Sprintf("web-%d", i))
				}
				play(t, w.options(), func(s *scene) {
					s.Trigger("start")
					pass(time.Second)
					w.files["haproxy.cfg"].Data = []byte(c.template)
					w.blind = c.blind
					w.compile()
					w.put("web-0=changed")
					s.Release()
					pass(30 * time.Second)
					require.Empty(t, held(s.Loop))
					require.Len(t, w.target.texts(), 1)
					require.Equal(t, count, len(strings.Fields(w.deployed())))
					require.Contains(t, s.State().LastError, c.want)
					require.Empty(t, eventsOf[ResourceQuarantined](s))
					require.Empty(t, w.told)
					var blamed *ConfigError
					require.ErrorAs(t, eventsOf[ReconciliationFailed](s)[0].Err, &blamed)
					w.counted()
					s.Trigger("again")
					pass(time.Second)
					renders, _ := w.counted()
					require.LessOrEqual(t, renders, 1, "the same failure is not searched again")
				})
			})
		}
	}
}

// TestNobodyIsBlamedForTheValidator that gives no verdict.
func TestNobodyIsBlamedForTheValidator(t *testing.T) {
	w := newWard(t, map[string]string{"haproxy.cfg": loopTemplate})
	w.put("a", "b")
	for _, broken := range []error{errors.New("no haproxy"), context.DeadlineExceeded, &PanicError{Value: "x"}} {
		w.broken = broken
		play(t, w.options(), func(s *scene) {
			s.Trigger("start")
			pass(10 * time.Second)
			require.Empty(t, held(s.Loop))
			require.ErrorIs(t, eventsOf[ReconciliationFailed](s)[0].Err, broken)
			require.Equal(t, "validate: "+broken.Error(), s.State().LastError)
		})
	}
}

// chart is a value that belongs to an Ingress and, within that, to a Service.
type chart struct {
	Text    string
	ing     *networkingv1.Ingress
	service *corev1.Service
}

func (c *chart) Owners() []any {
	if c.service == nil {
		return []any{c.ing}
	}
	return []any{c.ing, c.service}
}

// TestTheInnocentGoFree: where leaving the innermost resource out did not help,
// that one is not left out in the end.
func TestTheInnocentGoFree(t *testing.T) {
	files := fstest.MapFS{"haproxy.cfg": {Data: []byte("global\n{% for c in charts %}\nbackend {{ c.Text }}\n{% end %}\n")}}
	engine, err := templating.Compile(files, &templating.Options{Vars: map[string]any{"charts": []*chart(nil)}})
	require.NoError(t, err)
	ing := func(name string) *networkingv1.Ingress {
		return &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	}
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "svc"}}
	all := []chart{{"good", ing("good"), svc}, {"bad", ing("wrong"), svc}}
	w := newWard(t, map[string]string{"haproxy.cfg": "global\n"})
	opts := w.options()
	view := &viewtest.View{KeyOf: keyOf, List: func() []any { return []any{all[0].ing, all[1].ing, svc} }}
	opts.View = view
	opts.Renderer = RendererFunc(func(ctx context.Context) (*Rendered, error) {
		var charts []*chart
		for _, c := range all {
			if !slices.Contains(view.Reads(), any(c.ing)) {
				continue
			}
			if !slices.Contains(view.Reads(), any(c.service)) {
				c.service = nil
			}
			charts = append(charts, &c)
		}
		t := &templated{engine: engine, vars: map[string]any{"charts": charts}}
		return t.Render(ctx)
	})
	play(t, opts, func(s *scene) {
		s.Trigger("start")
		pass(time.Second)
		require.Equal(t, "wrong", held(s.Loop))
		require.Equal(t, "good", w.deployed())
	})
}
