package reconcile

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

// storingTarget tells first and stores later.
type storingTarget struct {
	fakeTarget
	pending atomic.Bool
	stores  atomic.Int32
	fails   atomic.Bool
}

func (s *storingTarget) Sync(ctx context.Context, cfg *dataplane.Config, options ...dataplane.SyncOption) (*dataplane.Result, error) {
	result, err := s.fakeTarget.Sync(ctx, cfg, options...)
	if err == nil && dataplane.LimitsOf(options...).StoreLater {
		s.pending.Store(true)
		result.Pending = true
	}
	return result, err
}

func (s *storingTarget) Store(ctx context.Context, options ...dataplane.SyncOption) error {
	if err := dataplane.LimitsOf(options...).Fence(); err != nil {
		return err
	}
	if ctx.Err() != nil || s.fails.Load() {
		return errors.New("not stored")
	}
	if s.pending.Swap(false) {
		select {
		case <-time.After(time.Second):
			s.stores.Add(1)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Each change is told at once, and several are stored together: once in six seconds, and
// when the loop ends.
func TestStoresLater(t *testing.T) {
	target := &storingTarget{fakeTarget: fakeTarget{name: "one"}}
	play(t, Options{Targets: []Target{target}}, func(s *scene) {
		for i := range 40 {
			s.source.set(string(rune('a'+i%26))+text("x"), nil)
			s.Trigger("change")
			pass(600 * time.Millisecond)
		}
		require.Len(t, target.texts(), 40, "no change waits for a store")
		require.LessOrEqual(t, target.stores.Load(), int32(5))
		pass(time.Minute)
		require.False(t, target.pending.Load(), "the last one is stored")
		s.source.set("z", nil)
		s.Trigger("change")
		pass(10 * time.Millisecond)
		s.source.set("y", nil)
		s.Trigger("change")
		pass(500 * time.Millisecond)
		require.True(t, target.pending.Load(), "stored at the end of the loop")
	})
	require.False(t, target.pending.Load())
}

// After a store that failed, the next call comes at once and finds out.
func TestAStoreFails(t *testing.T) {
	target := &storingTarget{fakeTarget: fakeTarget{name: "one"}}
	target.fails.Store(true)
	play(t, Options{Targets: []Target{target}}, func(s *scene) {
		s.Trigger("start")
		pass(time.Millisecond)
		require.Len(t, target.texts(), 2)
		target.fails.Store(false)
		pass(10 * time.Second)
		require.Len(t, target.texts(), 2)
		require.False(t, target.pending.Load())
	})
}

// A Store under way when the loop ends goes on, and one more stores what a Sync told
// that was under way then, too.
func TestStoresWhatIsUnderWayAtTheEnd(t *testing.T) {
	var calls atomic.Int32
	target := &storingTarget{fakeTarget: fakeTarget{name: "one"}}
	target.behave = func(context.Context, *dataplane.Config) error {
		if calls.Add(1) == 2 {
			<-time.After(time.Second) // it cannot be stopped any more
		}
		return nil
	}
	play(t, Options{Targets: []Target{target}}, func(s *scene) {
		s.Trigger("start")
		pass(100 * time.Millisecond)
		s.source.set("b", nil)
		s.Trigger("change")
		pass(600 * time.Millisecond)
		require.EqualValues(t, 2, calls.Load())
		require.Zero(t, target.stores.Load())
	})
	require.False(t, target.pending.Load())
	require.EqualValues(t, 2, target.stores.Load())
}
