package reconcile

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

// hungTarget hangs in one of its calls.
type hungTarget struct {
	fakeTarget
	in string
}

func (h *hungTarget) hang(ctx context.Context, call string) error {
	if h.in != call {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

func (h *hungTarget) Probe(ctx context.Context) (dataplane.Target, error) {
	return dataplane.Target{}, h.hang(ctx, "probe")
}

func (h *hungTarget) DryRun(ctx context.Context, cfg *dataplane.Config) (*dataplane.Plan, error) {
	if err := h.hang(ctx, "dry run"); err != nil {
		return nil, err
	}
	return h.fakeTarget.DryRun(ctx, cfg)
}

func (h *hungTarget) Sync(ctx context.Context, cfg *dataplane.Config, options ...dataplane.SyncOption) (*dataplane.Result, error) {
	if err := h.hang(ctx, "sync"); err != nil {
		return nil, err
	}
	return h.fakeTarget.Sync(ctx, cfg, options...)
}

// TestManyHang: however many of 100 instances hang, and in which call, each of
// 200 changes reaches the others at the moment it is made, and no goroutine is
// left over for any of them.
func TestManyHang(t *testing.T) {
	const instances, rounds = 100, 200
	for _, c := range []struct {
		in   string
		hung int
	}{{"sync", 1}, {"sync", 50}, {"probe", 10}, {"dry run", 2}} {
		t.Run(fmt.Sprintf("%d in %s", c.hung, c.in), func(t *testing.T) {
			var targets []Target
			var others []*hungTarget
			for i := range instances {
				h := &hungTarget{fakeTarget: fakeTarget{name: fmt.Sprintf("e%02d", i)}}
				h.impact = dataplane.ImpactRuntime
				if i < c.hung {
					h.in, h.impact = c.in, dataplane.ImpactReload
				} else {
					others = append(others, h)
				}
				targets = append(targets, h)
			}
			play(t, Options{Targets: targets, DriftInterval: 24 * time.Hour}, func(s *scene) {
				early := 0
				for round := range rounds {
					s.source.set(fmt.Sprintf("round %d", round), nil)
					s.Trigger("change")
					synctest.Wait()
					for _, h := range others {
						if n := len(h.synced); n != round+1 || h.times[n-1] != time.Now() {
							t.Fatalf("%s waited in round %d: it has %d", h.name, round, n)
						}
					}
					pass(time.Second)
					if round == rounds/10 {
						early = runtime.NumGoroutine()
					}
				}
				require.LessOrEqual(t, runtime.NumGoroutine(), early+instances/10, "goroutines add up")
			})
		})
	}
}
