package reconciletest

import (
	"context"
	"sync"

	"github.com/hapticsdk/haptic/dataplane"
)

// Target is a HAProxy that is not there: it has the configuration that it was
// given last, and says of the next what it would take, as [dataplane.Diff] does.
// All methods may be called concurrently.
type Target struct {
	name string

	mu          sync.Mutex
	current     *dataplane.Config
	reloads     int
	deployments int
	fault       error // of each call; nil for none
	hanging     bool
}

// NewTarget returns a target without a configuration.
func NewTarget(name string) *Target { return &Target{name: name} }

// Name implements reconcile.Target.
func (t *Target) Name() string { return t.name }

// Current returns what the target has; nil for nothing.
func (t *Target) Current() *dataplane.Config {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.current
}

// Counts returns how many Syncs changed something, and how many reloads there
// were.
func (t *Target) Counts() (deployments, reloads int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.deployments, t.reloads
}

// Fail makes all calls fail with err from now on; nil ends that, and Hang.
func (t *Target) Fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fault, t.hanging = err, false
}

// Hang makes all calls end with their context only.
func (t *Target) Hang() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hanging = true
}

// Drift gives the target a configuration behind everybody's back; nil for none.
func (t *Target) Drift(cfg *dataplane.Config) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.current = cfg
}

// DryRun implements reconcile.Target.
func (t *Target) DryRun(ctx context.Context, cfg *dataplane.Config) (*dataplane.Plan, error) {
	if err := t.faulty(ctx); err != nil {
		return nil, err
	}
	return dataplane.Diff(t.Current(), cfg)
}

// Sync implements reconcile.Target. Without a reload it applies a configuration
// whole or not at all.
func (t *Target) Sync(ctx context.Context, cfg *dataplane.Config, options ...dataplane.SyncOption) (*dataplane.Result, error) {
	if err := t.faulty(ctx); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	plan, err := dataplane.Diff(t.current, cfg)
	if err != nil {
		return nil, err
	}
	if plan.Impact() == dataplane.ImpactReload && dataplane.LimitsOf(options...).WithoutReload {
		return &dataplane.Result{Plan: plan, Left: plan}, nil
	}
	result := &dataplane.Result{Plan: plan, Hash: cfg.Hash()}
	switch plan.Impact() {
	case dataplane.ImpactReload:
		result.Reloads = 1
	case dataplane.ImpactRuntime:
		result.Commands = len(plan.Ops)
	}
	if !plan.Empty() {
		t.deployments++
	}
	t.current = cfg
	t.reloads += result.Reloads
	return result, nil
}

func (t *Target) faulty(ctx context.Context) error {
	t.mu.Lock()
	fault, hanging := t.fault, t.hanging
	t.mu.Unlock()
	if hanging {
		<-ctx.Done()
		return &dataplane.Error{Endpoint: t.name, Stage: "probe", Err: ctx.Err()}
	}
	if fault == nil {
		return ctx.Err()
	}
	return fault
}
