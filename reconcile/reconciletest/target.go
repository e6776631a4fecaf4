package reconciletest

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/hapticsdk/haptic/dataplane"
)

// Target is a fake HAProxy. It has the configuration that it was given last, and computes
// the cost of the next one, as [dataplane.Diff] does. All methods may be called
// concurrently.
type Target struct {
	name string

	mu          sync.Mutex
	current     *dataplane.Config
	reloads     int
	deployments int
	fault       error // of each call; nil for none
	hanging     bool
	last        error // of the last call
}

// NewTarget returns a target without a configuration.
func NewTarget(name string) *Target { return &Target{name: name} }

// Name implements reconcile.Target.
func (t *Target) Name() string { return t.name }

// Config returns the target's configuration. If it has none, the test fails with
// [Target.LastError]. Call it from the goroutine of the test.
func (t *Target) Config(tb testing.TB) *dataplane.Config {
	tb.Helper()
	cfg := t.Current()
	if cfg == nil {
		tb.Fatalf("reconciletest: %v", t.LastError())
	}
	return cfg
}

// LastError returns why the last call to the target failed, or why the target has no
// configuration; nil: it has one, and the last call succeeded.
func (t *Target) LastError() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.last != nil && t.current == nil:
		return fmt.Errorf("%s has no configuration, as its last call failed: %w", t.name, t.last)
	case t.last != nil:
		return fmt.Errorf("%s has an earlier configuration, as its last call failed: %w", t.name, t.last)
	case t.current == nil && t.deployments == 0:
		return fmt.Errorf("%s has no configuration, as no Sync deployed one: LastError of Loop.State says why, or the loop is still at work", t.name)
	case t.current == nil:
		return fmt.Errorf("%s has no configuration any more: Drift took it", t.name)
	}
	return nil
}

// Current returns the target's configuration; nil: it has none. [Target.Config] fails a test
// then.
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

// Fail makes all calls fail with err from now on. A nil err ends that, and ends Hang.
func (t *Target) Fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fault, t.hanging = err, false
}

// Hang makes all calls wait until their context ends.
func (t *Target) Hang() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hanging = true
}

// Drift changes the target's configuration without a Sync; nil: it has none then.
func (t *Target) Drift(cfg *dataplane.Config) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.current = cfg
}

// DryRun implements reconcile.Target.
func (t *Target) DryRun(ctx context.Context, cfg *dataplane.Config) (plan *dataplane.Plan, err error) {
	if err := t.faulty(ctx); err != nil {
		return nil, t.ended(err)
	}
	plan, err = dataplane.Diff(t.Current(), cfg)
	return plan, t.ended(err)
}

// Sync implements reconcile.Target. Without a reload it applies a configuration
// whole or not at all.
func (t *Target) Sync(ctx context.Context, cfg *dataplane.Config, options ...dataplane.SyncOption) (*dataplane.Result, error) {
	err := t.faulty(ctx)
	var result *dataplane.Result
	if err == nil {
		result, err = t.sync(cfg, dataplane.LimitsOf(options...))
	}
	return result, t.ended(err)
}

// ended notes how a call ended.
func (t *Target) ended(err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = err
	return err
}

func (t *Target) sync(cfg *dataplane.Config, limits dataplane.SyncLimits) (*dataplane.Result, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	plan, err := dataplane.Diff(t.current, cfg)
	if err != nil {
		return nil, err
	}
	if plan.Impact() == dataplane.ImpactReload && limits.WithoutReload {
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
