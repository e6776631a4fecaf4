package settings

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/haproxytest"
)

func TestMain(m *testing.M) { haproxytest.Main(m) }

// fakeTarget takes every configuration and remembers it.
type fakeTarget struct {
	name string

	mu     sync.Mutex
	synced []*dataplane.Config
}

func (f *fakeTarget) Name() string { return f.name }

func (f *fakeTarget) plan() *dataplane.Plan {
	return &dataplane.Plan{Ops: []dataplane.Op{{Action: dataplane.Update, Kind: "backend"}}}
}

func (f *fakeTarget) DryRun(context.Context, *dataplane.Config) (*dataplane.Plan, error) {
	return f.plan(), nil
}

func (f *fakeTarget) Sync(_ context.Context, cfg *dataplane.Config, _ ...dataplane.SyncOption) (*dataplane.Result, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.synced = append(f.synced, cfg)
	return &dataplane.Result{Plan: f.plan(), Hash: cfg.Hash()}, nil
}

func (f *fakeTarget) texts() (texts []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.synced {
		texts = append(texts, c.Main())
	}
	return texts
}

// pass lets time go by in a bubble, and what is due happen.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// verdict is an error of a validator that knows the lines, or is blind.
type verdict struct {
	lines []int
	blind bool
}

func (v *verdict) Error() string { return fmt.Sprintf("not valid: %d lines", len(v.lines)) }

func (v *verdict) Positions() iter.Seq2[dataplane.Position, string] {
	return func(yield func(dataplane.Position, string) bool) {
		for _, n := range v.lines {
			if v.blind {
				n = 0
			}
			if !yield(dataplane.Position{Line: n}, `unknown keyword "bad"`) {
				return
			}
		}
	}
}
