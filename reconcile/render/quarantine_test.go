package render

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/rendering"
	"github.com/hapticsdk/haptic/internal/viewtest"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/templating"
)

// refusesBad is a validator for which a line that has the word "bad" is wrong.
type refusesBad struct{}

func (refusesBad) Validate(_ context.Context, cfg *dataplane.Config) error {
	n := 0
	for line := range strings.Lines(cfg.Main()) {
		if n++; strings.Contains(line, "bad") {
			return &dataplane.Error{Err: dataplane.ErrInvalid, File: "haproxy.cfg", Line: n}
		}
	}
	return nil
}

// viewOf is a view of the Ingresses that a function lists. Those that are held back have no
// earlier version.
func viewOf(list func() []*networkingv1.Ingress) *viewtest.View {
	return &viewtest.View{Plain: true, KeyOf: keyOf, List: func() (all []any) {
		for _, ing := range list() {
			all = append(all, ing)
		}
		return all
	}}
}

func keyOf(obj any) (rendering.Key, bool) {
	r, ok := reconcile.ResourceOf(obj)
	return rendering.Key{APIVersion: r.APIVersion, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}, ok
}

// ingressesIn returns what a render reads.
func ingressesIn(view *viewtest.View) (all []*networkingv1.Ingress) {
	for _, o := range view.Reads() {
		all = append(all, o.(*networkingv1.Ingress))
	}
	return all
}

// ingressesOf makes Ingresses: name=text.
func ingressesOf(version int, all ...string) (ingresses []*networkingv1.Ingress) {
	for _, one := range all {
		name, text, _ := strings.Cut(one, "=")
		ingresses = append(ingresses, &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, ResourceVersion: fmt.Sprint(version), Annotations: map[string]string{"text": text}}})
	}
	return ingresses
}

func quarantined(loop *reconcile.Loop) (names []string) {
	for _, q := range loop.State().Quarantined {
		names = append(names, q.Resource.Name)
	}
	return names
}

// TestQuarantineAndMemory: what templates remember of a resource is not stale
// when it comes back.
func TestQuarantineAndMemory(t *testing.T) {
	engine, err := templating.Compile(fstest.MapFS{"haproxy.cfg": {Data: []byte("global\n")},
		"haproxy.d/ingress.cfg": {Data: []byte("backend {{ ing.Name }}\n{% if ing.Annotations[\"text\"] == \"fail\" %}{{ fail(\"no\") }}{% end %}    # {{ ing.Annotations[\"text\"] }}\n")},
	}, &templating.Options{Vars: map[string]any{"ing": (*networkingv1.Ingress)(nil)}})
	require.NoError(t, err)
	var all []*networkingv1.Ingress
	view := viewOf(func() []*networkingv1.Ingress { return all })
	pure := &Templates{Engine: engine, Pure: true, Input: func(ctx context.Context) (*Input, error) {
		each := Each{Var: "ing"}
		for _, ing := range ingressesIn(view) {
			each.Items = append(each.Items, ing)
		}
		return &Input{Vars: map[string]any{"ing": (*networkingv1.Ingress)(nil)}, Each: map[string]Each{"haproxy.d/ingress.cfg": each}}, nil
	}}
	synctest.Test(t, func(t *testing.T) { badNowAndThen(t, pure, view, &all) })
}

// badNowAndThen has an Ingress that is bad every other time.
func badNowAndThen(t *testing.T, pure *Templates, view reconcile.View, all *[]*networkingv1.Ingress) {
	loop, err := reconcile.New(reconcile.Options{Renderer: pure, View: view, Validator: refusesBad{}})
	require.NoError(t, err)
	for i, text := range []string{"one", "bad", "two", "fail", "three", "bad\n", "four"} {
		*all = ingressesOf(i, "a", "b="+text, "c")
		<-time.After(time.Minute) // longer than it waits for its trial
		_, err = loop.Once(t.Context())
		require.NoError(t, err)
		if i%2 == 0 {
			require.Contains(t, loop.Validated().Main(), "# "+text+"\n")
			require.Empty(t, quarantined(loop))
		} else {
			require.Equal(t, []string{"b"}, quarantined(loop))
			require.Contains(t, loop.Validated().Main(), "backend a")
			require.NotContains(t, loop.Validated().Main(), "backend b")
		}
	}
}

// TestPostProcessedLinesAreMapped to the lines of the templates.
func TestPostProcessedLinesAreMapped(t *testing.T) {
	engine, err := templating.Compile(fstest.MapFS{"haproxy.cfg": {Data: []byte(
		"global\n{% for ing in ingresses %}\n\n\n\nbackend {{ ing.Name }}\n    # {{ ing.Annotations[\"text\"] }}\n{% end %}\n")},
	}, &templating.Options{Vars: map[string]any{"ingresses": []*networkingv1.Ingress(nil)}})
	require.NoError(t, err)
	all := ingressesOf(1, "a", "b=bad", "c")
	view := viewOf(func() []*networkingv1.Ingress { return all })
	templates := &Templates{Engine: engine, Post: []PostProcessor{{Squeeze: true}, {Pattern: `^backend (.*)`, Replacement: `backend x-$1`}},
		Input: func(ctx context.Context) (*Input, error) {
			return &Input{Vars: map[string]any{"ingresses": ingressesIn(view)}}, nil
		}}
	loop, err := reconcile.New(reconcile.Options{Renderer: templates, View: view, Validator: refusesBad{}})
	require.NoError(t, err)
	_, err = loop.Once(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"b"}, quarantined(loop))
	require.Regexp(t, `^haproxy.cfg:7: .*; rendered as line \d+ of haproxy.cfg for Ingress ns/b`, loop.State().Quarantined[0].Fault.String())
	require.Contains(t, loop.Validated().Main(), "backend x-a")
	require.Contains(t, loop.Validated().Main(), "backend x-c")
}
