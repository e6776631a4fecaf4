package status

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/rendering"
	"github.com/hapticsdk/haptic/internal/viewtest"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/reconciletest"
)

// tenants have Gateways. Each is a line of the configuration, and "bad" is not valid.
type tenants struct {
	view viewtest.View

	mu      sync.Mutex
	all     []*unstructured.Unstructured
	version int
	tries   int    // validations that failed
	served  []Item // of the newest render
}

// put makes or changes a Gateway.
func (f *tenants) put(namespace, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.version++
	g := &unstructured.Unstructured{Object: map[string]any{"apiVersion": gateways.GroupVersion().String(), "kind": "Gateway", "text": text}}
	g.SetNamespace(namespace)
	g.SetName("web")
	g.SetUID(types.UID("uid of " + namespace + "/web"))
	g.SetResourceVersion(fmt.Sprint(f.version))
	f.all = slices.DeleteFunc(f.all, func(o *unstructured.Unstructured) bool { return o.GetNamespace() == namespace })
	f.all = append(f.all, g)
}

func (f *tenants) Render(context.Context) (*reconcile.Rendered, error) {
	r := linesOf{}
	text := "global\n"
	var served []Item
	for _, one := range f.view.Reads() {
		g := one.(*unstructured.Unstructured)
		r = append(r, g)
		text += fmt.Sprintf("    # %s %s\n", g.GetNamespace(), g.Object["text"])
		served = append(served, items(ours, g.GetNamespace()+"/web")...)
	}
	f.mu.Lock()
	f.served = served
	f.mu.Unlock()
	cfg, err := dataplane.NewConfig(text)
	return &reconcile.Rendered{Config: cfg, Origins: r}, err
}

// items are those of the newest render.
func (f *tenants) items() iter.Seq[Item] {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Values(f.served)
}

// Validate takes as long as haproxy does.
func (f *tenants) Validate(ctx context.Context, cfg *dataplane.Config) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(20 * time.Millisecond):
	}
	n := 0
	for line := range strings.Lines(cfg.Main()) {
		if n++; strings.Contains(line, "bad") {
			f.mu.Lock()
			f.tries++
			f.mu.Unlock()
			return &dataplane.Error{Err: dataplane.ErrInvalid, File: "haproxy.cfg", Line: n}
		}
	}
	return nil
}

// linesOf are the Gateways of the lines.
type linesOf []*unstructured.Unstructured

func (l linesOf) Origin(_ context.Context, at dataplane.Position) (reconcile.Origin, error) {
	return reconcile.Origin{TemplateLine: reconcile.TemplateLine{File: "haproxy.cfg", Line: 2, Text: "# {{ text }}"}, Owners: []any{l[at.Line-2]}}, nil
}

// slow takes a second for each deployment.
type slow struct{ *reconciletest.Target }

func (s slow) Sync(ctx context.Context, cfg *dataplane.Config, options ...dataplane.SyncOption) (*dataplane.Result, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(time.Second):
	}
	return s.Target.Sync(ctx, cfg, options...)
}

// TestStatusBesideTries: 20 quarantined tenants that are tried together, each render of a try
// after the one that is deployed, do not hold up the status of another. Deployments are slow.
func TestStatusBesideTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, f := newAPI(), &tenants{}
		f.view.KeyOf = func(obj any) (rendering.Key, bool) {
			r, ok := reconcile.ResourceOf(obj)
			return rendering.Key{APIVersion: r.APIVersion, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}, ok
		}
		f.view.List = func() (all []any) {
			f.mu.Lock()
			defer f.mu.Unlock()
			for _, g := range f.all {
				all = append(all, g)
			}
			return all
		}
		var loop *reconcile.Loop
		writer, err := New(Options{Client: a, Term: func() uint64 { return loop.Term() }})
		require.NoError(t, err)
		loop, err = reconcile.New(reconcile.Options{Renderer: writer.Renderer(f, f.items), View: &f.view, Validator: f,
			Targets: []reconcile.Target{slow{reconciletest.NewTarget("a")}}})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		running.Go(func() { _ = loop.Run(ctx) })
		running.Go(func() { _ = writer.Run(ctx) })

		a.put("quiet/web")
		f.put("quiet", "fine")
		loop.Trigger("start")
		settle(soon)
		var took []time.Duration
		for n := range 6 {
			evil := make([]string, 20)
			for i := range evil {
				evil[i] = fmt.Sprintf("evil-%d-%02d", n, i)
				f.put(evil[i], "bad")
				loop.Trigger("evil")
				settle(soon)
			}
			require.Len(t, loop.State().Quarantined, 20*(n+1))
			for _, namespace := range evil { // they change, so that all are due
				f.put(namespace, "bad still")
			}
			loop.Trigger("evil")
			time.Sleep(time.Duration(n) * 80 * time.Millisecond) // in the middle of their tries
			good := fmt.Sprint("good-", n)
			a.put(good + "/web")
			f.put(good, "fine")
			loop.Trigger("good")
			begun := time.Now()
			for a.addresses(good+"/web") == "" && time.Since(begun) < 5*time.Minute {
				settle(10 * time.Millisecond)
			}
			took = append(took, time.Since(begun))
			settle(soon)
		}
		t.Logf("statuses were there after %s; %d validations failed", took, f.tries)
		require.GreaterOrEqual(t, f.tries, 6*2*20)
		require.Less(t, slices.Max(took), 5*time.Second)
	})
}
