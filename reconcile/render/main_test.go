package render

import (
	"context"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/hapticsdk/haptic/dataplane"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeTarget takes every configuration, and remembers the texts.
type fakeTarget struct {
	name string

	mu     sync.Mutex
	synced []string
}

func (f *fakeTarget) Name() string { return f.name }

func (f *fakeTarget) DryRun(context.Context, *dataplane.Config) (*dataplane.Plan, error) {
	return &dataplane.Plan{}, nil
}

func (f *fakeTarget) Sync(_ context.Context, cfg *dataplane.Config, _ ...dataplane.SyncOption) (*dataplane.Result, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.synced = append(f.synced, cfg.Main())
	return &dataplane.Result{Plan: &dataplane.Plan{}, Hash: cfg.Hash()}, nil
}

func (f *fakeTarget) texts() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.synced
}

// follower never leads.
type follower struct{}

func (follower) Leading() bool { return false }
