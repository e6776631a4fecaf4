package status

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/reconciletest"
)

// rendersGateways makes a frontend of each Gateway, and counts its renders.
type rendersGateways struct {
	watcher *k8swatch.Watcher
	renders int
	served  []Item
}

func (r *rendersGateways) Render(ctx context.Context) (*reconcile.Rendered, error) {
	r.renders, r.served = r.renders+1, nil
	text := "global\n"
	for _, g := range k8swatch.Read[*unstructured.Unstructured](r.watcher.Snapshot()).List() {
		port := g.Object["spec"].(map[string]any)["port"]
		text += fmt.Sprintf("frontend %s\n    bind :%s\n", g.GetName(), port)
		r.served = append(r.served, Item{Resource: gateways, Namespace: g.GetNamespace(), Name: g.GetName(), UID: g.GetUID(),
			Status: map[string]any{"addresses": []string{"192.0.2.1"}, "port": port}})
	}
	cfg, err := dataplane.NewConfig(text)
	return &reconcile.Rendered{Config: cfg}, err
}

// TestStatusTriggersNothing: a whole controller of Gateways. The write of a status comes back
// as an event of the watch, and leads to no other render. A change of the spec does.
func TestStatusTriggersNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gateway := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway",
			"metadata": map[string]any{"namespace": "shop", "name": "web", "uid": "1"}, "spec": map[string]any{"port": "80"}}}
		source, a, target := k8swatchtest.NewSource(gateway), newAPI(), reconciletest.NewTarget("a")
		a.putAs("1", "gateways/shop/web")
		a.wrote = func(u *unstructured.Unstructured) {
			source.Edit(gateways, u.GetNamespace(), u.GetName(), func(o k8swatch.Object) { o.(*unstructured.Unstructured).Object["status"] = u.Object["status"] })
		}
		var loop *reconcile.Loop
		watcher, err := k8swatch.New(source, gateways, &k8swatch.Options{IgnoreFields: []string{"status"}, Debounce: -1,
			OnChange: func(_ context.Context, c k8swatch.Changes) error { loop.Trigger(c.String()); return nil }})
		require.NoError(t, err)
		writer, err := New(Options{Client: a, Term: func() uint64 { return loop.Term() }})
		require.NoError(t, err)
		r := &rendersGateways{watcher: watcher}
		loop, err = reconcile.New(reconcile.Options{Targets: []reconcile.Target{target},
			Renderer: writer.Renderer(r, func() iter.Seq[Item] { return slices.Values(r.served) })})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		running.Go(func() { _ = watcher.Run(ctx) })
		_, err = watcher.WaitForSync(ctx)
		require.NoError(t, err)
		running.Go(func() { _ = loop.Run(ctx) })
		running.Go(func() { _ = writer.Run(ctx) })
		loop.Trigger("start")
		settle(soon)
		require.Equal(t, "192.0.2.1", a.addresses("shop/web"))
		require.Len(t, a.patches(), 1)
		has := source.List(gateways)[0].(*unstructured.Unstructured).Object["status"]
		require.NotNil(t, has, "the watch has seen the write")
		require.Equal(t, 1, r.renders, "and rendered nothing")

		source.Edit(gateways, "shop", "web", func(o k8swatch.Object) {
			o.(*unstructured.Unstructured).Object["spec"] = map[string]any{"port": "81"}
		})
		settle(soon)
		require.Equal(t, 2, r.renders)
		require.Contains(t, target.Config(t).Main(), "bind :81")
		require.Len(t, a.patches(), 1)

		target.Fail(fmt.Errorf("it is gone"))
		source.Edit(gateways, "shop", "web", func(o k8swatch.Object) {
			o.(*unstructured.Unstructured).Object["spec"] = map[string]any{"port": "82"}
		})
		settle(soon)
		require.Empty(t, a.patches(), "no HAProxy has it")
		target.Fail(nil)
		settle(20 * soon)
		require.Len(t, a.patches(), 1)
	})
}
