package ingress

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/derive"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/render"
	"github.com/hapticsdk/haptic/validate"
)

// ownTemplates are the built-in templates with what a user added: annotations
// of Ingresses and Secrets that end where they can do harm.
func ownTemplates(tb testing.TB) string {
	dir := tb.TempDir()
	require.NoError(tb, os.CopyFS(dir, os.DirFS("../templates")))
	change := func(name, old, new string) {
		file := filepath.Join(dir, name)
		text, err := os.ReadFile(file)
		require.NoError(tb, err)
		require.Contains(tb, string(text), old)
		require.NoError(tb, os.WriteFile(file, []byte(strings.Replace(string(text), old, new, 1)), 0o644))
	}
	change("haproxy.cfg", "    use_backend %", `{% for p in prefix %}
{% notes := p.Ingress.Annotations %}
{% if notes["fail"] != "" %}{{ fail("no " + notes["fail"]) }}{% end %}
{% if notes["snippet"] != "" %}
    {{ raw(notes["snippet"]) }}
{% end %}
{% if notes["tag"] != "" %}
    http-request set-var(txn.tag) str({{ notes["tag"] }})
{% end %}
{% end %}
    use_backend %`)
	change("crt-lists/certificates.txt", `{% for name in certificate.Hosts %}`,
		`{% if certificate.Secret.Annotations["options"] != "" %} [{{ raw(certificate.Secret.Annotations["options"]) }}]{% end %}{% for name in certificate.Hosts %}`)
	return dir
}

// watched is a cluster in memory that a model follows, as the controller's does.
type watched struct {
	source  *k8swatchtest.Source
	view    *k8swatch.View
	feed    *k8swatch.Feed
	model   *Model
	changed chan struct{}
}

// watch has a model follow the resources of a world.
func watch(tb testing.TB, w *world) *watched {
	c := &watched{source: k8swatchtest.NewSource(), changed: make(chan struct{}, 100)}
	for _, ing := range w.ingresses {
		c.source.Apply(ing)
	}
	for of, svc := range w.services {
		c.source.Apply(svc)
		for _, is := range w.slices[of] {
			is.Namespace, is.Name, is.Labels = svc.Namespace, svc.Name, map[string]string{discoveryv1.LabelServiceName: svc.Name}
			c.source.Apply(is)
		}
	}
	group := k8swatch.NewGroup(&k8swatch.GroupOptions{Debounce: -1, OnChange: func(_ context.Context, changes k8swatch.Changes) error {
		c.view.Changed(changes)
		c.changed <- struct{}{}
		return nil
	}})
	of := func(gv schema.GroupVersion, resource string) *k8swatch.Watcher {
		w, err := k8swatch.New(c.source, gv.WithResource(resource), nil)
		require.NoError(tb, err)
		require.NoError(tb, group.Add(w))
		return w
	}
	ingresses, services, slices := of(networkingv1.SchemeGroupVersion, "ingresses"), of(corev1.SchemeGroupVersion, "services"), of(discoveryv1.SchemeGroupVersion, "endpointslices")
	c.view = k8swatch.NewView(group.Snapshot)
	g := derive.New()
	c.feed = k8swatch.NewFeed(g, c.view)
	in := NewInputs(g)
	in.Ingresses, in.Services, in.Slices, in.Out = k8swatch.Input[*networkingv1.Ingress](c.feed, "Ingress", ingresses), k8swatch.Input[*corev1.Service](c.feed, "Service", services),
		k8swatch.Input[*discoveryv1.EndpointSlice](c.feed, "EndpointSlice", slices), c.feed.Left()
	c.model = NewModel(g, in, Options{Limits: mostLimits}, nil)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- group.Run(ctx) }()
	tb.Cleanup(func() { stop(); <-ended })
	_, err := group.WaitForSync(ctx)
	require.NoError(tb, err)
	return c
}

// apply changes an Ingress, and waits until the model can know.
func (c *watched) apply(ing *networkingv1.Ingress) {
	c.source.Apply(ing)
	<-c.changed
}

func (c *watched) input(ctx context.Context) (*render.Input, error) {
	c.feed.Fill()
	r, err := c.model.Routes(ctx)
	if err != nil {
		return nil, err
	}
	in := r.Input(benchSettings)
	in.Accepted = func() { _ = c.model.Accept(r) }
	return in, nil
}

// BenchmarkQuarantine goes from a bad Ingress among many to a configuration of
// all others that haproxy accepts; it fails where that takes more than two
// renders and two validations.
func BenchmarkQuarantine(b *testing.B) {
	needHAProxy(b)
	engine, err := Compile(os.DirFS(ownTemplates(b)), dataplane.Layout{})
	require.NoError(b, err)
	w := manyIngresses(brief(5000))
	cluster, validator := watch(b, w), &validate.Validator{}
	var renders, checks atomic.Int32
	templates := &render.Templates{Engine: engine, Pure: true, Input: func(ctx context.Context) (*render.Input, error) {
		renders.Add(1)
		return cluster.input(ctx)
	}}
	loop, err := reconcile.New(reconcile.Options{Renderer: templates, View: cluster.view, Validator: reconcile.ValidatorFunc(
		func(ctx context.Context, cfg *dataplane.Config) error {
			checks.Add(1)
			return validator.Validate(ctx, cfg)
		})})
	require.NoError(b, err)
	good := w.ingresses[77]
	_, err = loop.Once(b.Context())
	require.NoError(b, err)
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		good.Annotations = map[string]string{"version": fmt.Sprint(i)}
		cluster.apply(good.DeepCopy())
		loop.Release() // or it would wait for its trial
		_, err = loop.Once(b.Context())
		require.NoError(b, err)
		good.Annotations = map[string]string{"snippet": fmt.Sprintf("http-request deny deny_status x%d", i)}
		cluster.apply(good.DeepCopy())
		renders.Store(0)
		checks.Store(0)
		b.StartTimer()
		_, err = loop.Once(b.Context())
		require.NoError(b, err)
		require.Equal(b, []int32{2, 2}, []int32{renders.Load(), checks.Load()})
		require.Len(b, loop.State().Quarantined, 1)
		require.Equal(b, "svc-00077", loop.State().Quarantined[0].Resource.Name)
	}
}

// BenchmarkQuarantineMany is BenchmarkQuarantine for 200 bad Ingresses. Where
// the templates find them, or the syntax check, it takes two renders. (HAProxy
// itself ends with the first error of some rules: then it takes a render each.)
func BenchmarkQuarantineMany(b *testing.B) {
	needHAProxy(b)
	n, bad := brief(5000), brief(200)
	for name, c := range map[string]struct {
		annotation, value string
		renders           int32
	}{
		"refused": {"tag", "a\nb", 2},
		"fail":    {"fail", "way", 2},
		"line":    {"snippet", "foo bar", 2},
	} {
		b.Run(name, func(b *testing.B) {
			engine, err := Compile(os.DirFS(ownTemplates(b)), dataplane.Layout{})
			require.NoError(b, err)
			w, slots := manyIngresses(n), &Slots{}
			for i, ing := range w.ingresses {
				ing.ResourceVersion = "1"
				if i%(n/bad) == 7 {
					ing.Annotations = map[string]string{c.annotation: c.value}
				}
			}
			settings := Settings{HTTP: ":8080", Socket: "/run/haproxy.sock", MaxConn: 100, HardStopAfter: "30m"}
			for b.Loop() {
				var renders atomic.Int32
				view := viewOf(w)
				templates := &render.Templates{Engine: engine, Pure: true, Input: func(ctx context.Context) (*render.Input, error) {
					renders.Add(1)
					cluster := w.cluster()
					cluster.Held = view.Held()
					return Build(cluster, slots).input(settings), nil
				}}
				loop, err := reconcile.New(reconcile.Options{Renderer: templates, View: view, Validator: &validate.Validator{}})
				require.NoError(b, err)
				_, err = loop.Once(b.Context())
				require.NoError(b, err)
				require.Len(b, loop.State().Quarantined, bad)
				require.LessOrEqual(b, renders.Load(), c.renders)
			}
		})
	}
}

// TestQuarantineOfServices: a Service that is left out answers 503, whatever
// names it.
func TestQuarantineOfServices(t *testing.T) {
	w := newWorld(ingress("web", rule("x.test", path(prefix, "/", "a"), path(prefix, "/b", "b"))))
	cluster := w.cluster()
	cluster.Held = without(w.services["ns/a"])
	r := Build(cluster, &Slots{})
	require.Len(t, r.Backends.Slice(), 2)
	require.Empty(t, r.Backends.Slice()[0].Servers)
	require.Len(t, r.Backends.Slice()[1].Servers, 1)
	require.Contains(t, r.Refused[0].Reason, "Service ns/a is in quarantine")
	require.IsType(t, &corev1.Service{}, r.Backends.Slice()[1].Owners()[1])
	require.Len(t, r.Backends.Slice()[0].Owners(), 1)

	slots := &Slots{}
	w.slices["ns/a"] = []*discoveryv1.EndpointSlice{slice("http", 8080, "192.0.2.1", "192.0.2.7")}
	free, servers := w.cluster(), func(c *Cluster) []Server { return Build(c, slots).Backends.Slice()[0].Servers }
	require.Len(t, servers(free), 2)
	w.slices["ns/a"] = []*discoveryv1.EndpointSlice{slice("http", 8080, "192.0.2.7")}
	want := servers(free)
	require.Equal(t, "s2", want[0].Name)
	held := w.cluster()
	held.Held = cluster.Held
	require.Empty(t, servers(held))
	require.Same(t, Build(held, slots).Backends.Slice()[0], Build(held, slots).Backends.Slice()[0])
	require.Equal(t, want, servers(free), "endpoints find their slots again")

	w.slices["ns/a"] = []*discoveryv1.EndpointSlice{}
	w.services["ns/a"].ResourceVersion = "2"
	require.NotEmpty(t, Build(cluster, &Slots{}).Refused, "it changed, and is tried apart from the others")
}

// brief is n, or a part of it with -short: CI runs each benchmark once.
func brief(n int) int {
	if testing.Short() {
		return n / 50
	}
	return n
}
