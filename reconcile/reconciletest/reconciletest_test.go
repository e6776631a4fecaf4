package reconciletest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/cases"
	"github.com/hapticsdk/haptic/reconcile/reconciletest"
	"github.com/hapticsdk/haptic/reconcile/render"
	"github.com/hapticsdk/haptic/templating"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// templates make a backend of each Service, but of one without an address.
var templates = fstest.MapFS{
	"haproxy.cfg": {Data: []byte(`global
    maxconn 100
{% for s in services %}
backend {{ s.Name }}
{% if s.Spec.ClusterIP == "None" %}{{ fail("no address") }}{% end %}
    server s1 {{ s.Spec.ClusterIP }}:80
{% end %}
`)},
	"maps/hosts.map": {Data: []byte("# hosts\n{% for s in services %}{{ s.Name }}.test {{ s.Name }}\n{% end %}")},
}

var services = corev1.SchemeGroupVersion.WithResource("services")

func service(name, address string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: corev1.ServiceSpec{ClusterIP: address}}
}

func compile(t *testing.T) *templating.Engine {
	engine, err := templating.Compile(templates, &templating.Options{Vars: map[string]any{"services": []*corev1.Service(nil)}})
	require.NoError(t, err)
	return engine
}

// input reads what the templates see.
func input(w *k8swatch.Watcher, view *k8swatch.View) func(context.Context) (*render.Input, error) {
	return func(context.Context) (*render.Input, error) {
		list := k8swatch.Read[*corev1.Service](view.Snapshot().Of(w)).List()
		return &render.Input{Vars: map[string]any{"services": list}}, nil
	}
}

// run starts a small controller, which ends with the test.
func run(t *testing.T, source *k8swatchtest.Source, targets ...reconcile.Target) *reconcile.Loop {
	watcher, err := k8swatch.New(source, services, nil)
	require.NoError(t, err)
	view := k8swatch.NewView(func() *k8swatch.GroupSnapshot { return k8swatch.SnapshotOf(watcher) })
	loop, err := reconcile.New(reconcile.Options{
		Renderer: &render.Templates{Engine: compile(t), Input: input(watcher, view), Pure: true}, View: view, Targets: targets})
	require.NoError(t, err)
	group := k8swatch.NewGroup(&k8swatch.GroupOptions{Debounce: -1, OnChange: func(_ context.Context, c k8swatch.Changes) error {
		loop.Trigger(c.String())
		return nil
	}})
	require.NoError(t, group.Add(watcher))
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	t.Cleanup(func() { stop(); running.Wait() })
	running.Go(func() { _ = group.Run(ctx) })
	if _, err := group.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	loop.Trigger("start")
	running.Go(func() { _ = loop.Run(ctx) })
	synctest.Wait()
	return loop
}

// has waits, and says whether the text of a target has all of some parts, and none of
// those that begin with "-".
func has(t *testing.T, target *reconciletest.Target, wait time.Duration, parts ...string) {
	t.Helper()
	<-time.After(wait)
	synctest.Wait()
	cfg := target.Current()
	for _, part := range parts {
		part, not := strings.CutPrefix(part, "-")
		if is := cfg != nil && strings.Contains(cfg.Main(), part); is == not {
			t.Fatalf("%s has %q: %t", target.Name(), part, is)
		}
	}
}

// TestController is a test as one of your own: what changes, is wrong, fails, drifts or
// is deleted, and what HAProxy has then.
func TestController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := k8swatchtest.NewSource(service("web", "192.0.2.1"))
		a, b := reconciletest.NewTarget("a"), reconciletest.NewTarget("b")
		loop := run(t, source, a, b)
		has(t, a, 0, "server s1 192.0.2.1:80")

		// What is bad is left out, by name, until it is mended.
		source.Apply(service("worse", "None"), service("web", "192.0.2.2"))
		has(t, a, 5*time.Second, "192.0.2.2", "-worse")
		if q := loop.State().Quarantined; len(q) != 1 || !strings.Contains(q[0].String(), "Service shop/worse") || !strings.Contains(q[0].String(), "no address") {
			t.Fatal(q)
		}
		source.Apply(service("worse", "192.0.2.3"))
		has(t, a, 5*time.Second, "backend worse")

		// An instance that fails holds up no other, and is tried again.
		b.Fail(&dataplane.Error{Endpoint: "b", Stage: "probe", Status: 500, Err: errors.New("unexpected answer")})
		source.Apply(service("web", "192.0.2.4"))
		has(t, a, 5*time.Second, "192.0.2.4")
		has(t, b, 0, "-192.0.2.4")
		b.Fail(nil)
		has(t, b, 5*time.Second, "192.0.2.4")

		a.Drift(nil)
		has(t, a, time.Minute, "192.0.2.4")
		source.Delete(service("web", ""), service("worse", ""))
		has(t, a, 5*time.Second, "maxconn", "-backend")
	})
}

func TestCases(t *testing.T) {
	engine := compile(t)
	runner := &cases.Runner{
		Timeout: time.Minute,
		Renderer: func(ctx context.Context, in *cases.Input) (reconcile.Renderer, error) {
			watcher, err := k8swatch.New(in.Source, services, nil)
			if err != nil {
				return nil, err
			}
			watchers := k8swatch.NewGroup(nil)
			if err := watchers.Add(watcher); err != nil {
				return nil, err
			}
			return &render.Templates{Engine: engine, Input: input(watcher, k8swatch.NewView(watchers.Snapshot))}, in.Sync(ctx, watchers)
		},
	}
	reconciletest.Cases(t, runner, os.DirFS("testdata/cases"))
}

// failing is a test that notes why it fails, and ends there.
type failing struct {
	testing.TB
	why string
}

func (f *failing) Helper() {}

func (f *failing) Fatalf(format string, args ...any) {
	f.why = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// TestWhyThereIsNone: a test that looks at the text of a target without a configuration fails
// with the reason, whether the target failed, nothing was deployed, or it lost what it had.
func TestWhyThereIsNone(t *testing.T) {
	why := func(target *reconciletest.Target) string {
		f, ended := &failing{TB: t}, make(chan struct{})
		go func() {
			defer close(ended)
			_ = target.Config(f).Main()
		}()
		<-ended
		return f.why
	}
	synctest.Test(t, func(t *testing.T) {
		source, target := k8swatchtest.NewSource(service("web", "192.0.2.1")), reconciletest.NewTarget("a")
		is := why(target)
		if is != "reconciletest: a has no configuration, as no Sync deployed one: LastError of Loop.State says why, or the loop is still at work" {
			t.Error(is)
		}
		target.Fail(errors.New("connection refused"))
		run(t, source, target)
		settle(5 * time.Second)
		if is := why(target); is != "reconciletest: a has no configuration, as its last call failed: connection refused" {
			t.Error(is)
		}
		target.Fail(nil)
		settle(time.Minute)
		if is, err := why(target), target.LastError(); is != "" || err != nil {
			t.Error(is, err)
		}
		target.Fail(errors.New("connection refused"))
		source.Apply(service("web", "192.0.2.2"))
		settle(5 * time.Second)
		if err := target.LastError(); err == nil || err.Error() != "a has an earlier configuration, as its last call failed: connection refused" {
			t.Error(err)
		}
	})
	target := reconciletest.NewTarget("b")
	if _, err := target.Sync(t.Context(), nil); err == nil || !strings.Contains(why(target), "no desired configuration") {
		t.Error(err, why(target))
	}
	cfg, err := dataplane.NewConfig("global\n")
	require.NoError(t, err)
	if _, err := target.Sync(t.Context(), cfg); err != nil {
		t.Error(err)
	}
	target.Drift(nil)
	if is := why(target); is != "reconciletest: b has no configuration any more: Drift took it" {
		t.Error(is)
	}
}

func settle(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}
