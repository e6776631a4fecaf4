package main

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/render"
	"github.com/hapticsdk/haptic/templating"
)

// recordTarget notes what is deployed to it.
type recordTarget struct {
	mu    sync.Mutex
	texts []string
}

func (*recordTarget) Name() string { return "instance" }

func (*recordTarget) DryRun(context.Context, *dataplane.Config) (*dataplane.Plan, error) {
	return &dataplane.Plan{}, nil
}

func (r *recordTarget) Sync(_ context.Context, cfg *dataplane.Config, _ ...dataplane.SyncOption) (*dataplane.Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.texts = append(r.texts, cfg.Main())
	return &dataplane.Result{Plan: &dataplane.Plan{}}, nil
}

// deployed returns what was deployed since the last call.
func (r *recordTarget) deployed() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	texts := r.texts
	r.texts = nil
	return texts
}

type candidate struct{ atomic.Bool }

func (c *candidate) Leading() bool { return c.Load() }

// TestHandover: in no term is deployed what was rendered before the process read
// what the leader before it deployed.
func TestHandover(t *testing.T) {
	engine, err := templating.Compile(fstest.MapFS{"haproxy.cfg": {Data: []byte("global\n    description {{ owner }}\n")}},
		&templating.Options{Vars: map[string]any{"owner": ""}})
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		var owner atomic.Value
		owner.Store("evil")
		var election candidate
		target := &recordTarget{}
		h := &handover{election: &election, Templates: &render.Templates{Engine: engine, Input: func(context.Context) (*render.Input, error) {
			return &render.Input{Vars: map[string]any{"owner": owner.Load()}}, nil
		}}}
		h.loop, err = reconcile.New(reconcile.Options{Renderer: h, Leader: h, Targets: []reconcile.Target{target}})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		go func() { _ = h.loop.Run(ctx) }()
		h.loop.Trigger("start")
		for _, name := range []string{"shop", "other", "other"} {
			time.Sleep(10 * time.Second)
			require.Empty(t, target.deployed(), "it follows")
			election.Store(true)
			time.Sleep(10 * time.Second)
			require.Empty(t, target.deployed(), "it does not know yet who has what")
			owner.Store(name)
			h.begin()
			time.Sleep(10 * time.Second)
			require.Equal(t, []string{"global\n    description " + name + "\n"}, slices.Compact(target.deployed()))
			owner.Store("evil")
			election.Store(false)
			h.end()
			h.loop.Trigger("a change that others see otherwise")
		}
	})
}
