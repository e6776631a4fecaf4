package reconciletest_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/cases"
	"github.com/hapticsdk/haptic/reconcile/reconciletest"
	"github.com/hapticsdk/haptic/reconcile/render"
	"github.com/hapticsdk/haptic/templating"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// defaultTemplates are for scripts without any.
var defaultTemplates = fstest.MapFS{
	"haproxy.cfg": {Data: []byte(`global
    maxconn 100
{% for s in services %}
backend {{ s.Name }}
    balance roundrobin
    server s1 {{ s.Spec.ClusterIP }}:80
{% if s.Spec.ExternalName != "" %}
backend {{ s.Spec.ExternalName }}
{% end %}
{% end %}
`)},
	"maps/hosts.map": {Data: []byte("# hosts\n{% for s in services %}{{ s.Name }}.test {{ s.Name }}\n{% end %}")},
}

var services = corev1.SchemeGroupVersion.WithResource("services")

// compile compiles the templates of a script.
func compile(files fs.FS) (*templating.Engine, error) {
	if _, err := fs.Stat(files, "templates/haproxy.cfg"); err == nil {
		if files, err = fs.Sub(files, "templates"); err != nil {
			return nil, err
		}
	} else {
		files = defaultTemplates
	}
	return templating.Compile(files, &templating.Options{Vars: map[string]any{"services": []*corev1.Service(nil)}})
}

// input reads what the templates see.
func input(w *k8swatch.Watcher) func(context.Context) (*render.Input, error) {
	return func(ctx context.Context) (*render.Input, error) {
		list := k8swatch.Read[*corev1.Service](ctx, w.Snapshot()).List()
		return &render.Input{Vars: map[string]any{"services": list}}, nil
	}
}

// setup is a small controller: a backend for each Service.
func setup(s *reconciletest.Scene) (*reconciletest.Controller, error) {
	engine, err := compile(s.Files)
	if err != nil {
		return nil, err
	}
	watcher, err := k8swatch.New(s.Source, services, nil)
	if err != nil {
		return nil, err
	}
	watchers := k8swatch.NewGroup(&k8swatch.GroupOptions{Debounce: -1, OnChange: s.Changed})
	return &reconciletest.Controller{
		Watchers: watchers,
		Options: reconcile.Options{
			Renderer: &render.Templates{Engine: engine, Input: input(watcher), Pure: true},
			Validator: reconcile.ValidatorFunc(func(_ context.Context, cfg *dataplane.Config) error {
				if strings.Contains(cfg.Main(), "broken") {
					return errors.New("a broken configuration")
				}
				return nil
			}),
		},
	}, watchers.Add(watcher)
}

// TestLoop is what the loop promises, as scripts.
func TestLoop(t *testing.T) { reconciletest.Run(t, "testdata/*.txtar", setup) }

func TestCases(t *testing.T) {
	engine, err := compile(os.DirFS("testdata"))
	if err != nil {
		t.Fatal(err)
	}
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
			return &render.Templates{Engine: engine, Input: input(watcher)}, in.Sync(ctx, watchers)
		},
	}
	reconciletest.Cases(t, runner, os.DirFS("testdata/cases"))
}
