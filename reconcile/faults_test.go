package reconcile

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

// Of 100 instances one never answers: the 99 others get every configuration at
// the moment at which they would have got it without that one, and the hung one
// the newest, once it answers.
func TestOneHungAmongHundred(t *testing.T) {
	const instances, rounds = 100, 20
	var release chan struct{} // of the bubble
	var targets []Target
	var fakes []*fakeTarget
	for i := range instances {
		f := &fakeTarget{name: fmt.Sprintf("e%02d", i)}
		f.impact = dataplane.ImpactRuntime
		fakes, targets = append(fakes, f), append(targets, f)
	}
	hung := fakes[42]
	hung.behave = func(ctx context.Context, _ *dataplane.Config) error {
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	play(t, Options{Targets: targets, DriftInterval: time.Hour}, func(s *scene) {
		release = make(chan struct{})
		for round := range rounds {
			s.source.set(fmt.Sprintf("round %d", round), nil)
			s.Trigger("change")
			synctest.Wait()
			now := time.Now()
			for _, f := range fakes {
				if f == hung {
					continue
				}
				texts := f.texts()
				require.Len(t, texts, round+1, f.name)
				f.mu.Lock()
				last := f.times[len(f.times)-1]
				f.mu.Unlock()
				require.Equal(t, now, last, "%s waited", f.name)
			}
			pass(time.Second)
		}
		require.Empty(t, hung.texts())
		for _, e := range s.State().Instances {
			require.Equal(t, e.Name == hung.name, !e.StaleSince.IsZero(), e.Name)
		}
		close(release)
		pass(time.Minute)
		texts := hung.texts()
		require.NotEmpty(t, texts)
		require.Equal(t, fakes[0].texts()[rounds-1], texts[len(texts)-1])
	})
}
