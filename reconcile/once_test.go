package reconcile

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
)

// probedTarget says what it is, or fails to.
type probedTarget struct {
	fakeTarget
	is     dataplane.Target
	probed error
}

func (p *probedTarget) Probe(context.Context) (dataplane.Target, error) { return p.is, p.probed }

// onceStage is a loop that does not run, and what its bus was told of instances.
type onceStage struct {
	*Loop
	mu   sync.Mutex
	told []string
	bus  *eventbus.Bus
}

func newOnce(t *testing.T, opts Options) *onceStage {
	s := &onceStage{bus: eventbus.New(nil)}
	eventbus.Subscribe(s.bus, func(_ context.Context, d eventbus.Delivery[any]) {
		s.mu.Lock()
		defer s.mu.Unlock()
		switch e := d.Event.(type) {
		case DeploymentStarted:
			s.told = append(s.told, e.Instance+" started")
		case InstanceDeployed:
			s.told = append(s.told, e.Instance+" deployed")
		case InstanceDeploymentFailed:
			s.told = append(s.told, fmt.Sprintf("%s failed %d", e.Instance, e.Failures))
		}
	})
	s.bus.Start()
	opts.Bus = s.bus
	var err error
	s.Loop, err = New(opts)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.bus.Close(context.Background()) })
	return s
}

// events are those of one instance; nothing is told any more after that.
func (s *onceStage) events(t *testing.T, instance string) (found []string) {
	require.NoError(t, s.bus.Close(t.Context()))
	for _, e := range s.told {
		if strings.HasPrefix(e, instance+" ") {
			found = append(found, strings.TrimPrefix(e, instance+" "))
		}
	}
	return found
}

// TestOnceIsAsRunIs is a table of instances, and of what Once says of each: the
// same as Run would.
func TestOnceIsAsRunIs(t *testing.T) {
	old := &dataplane.Error{Endpoint: "one", Stage: "probe", Err: dataplane.ErrUnsupported, Output: "too old"}
	for name, c := range map[string]struct {
		one    *probedTarget
		events []string
		err    error // of the instance
		unfit  string
		synced int
	}{
		"all is well":         {&probedTarget{}, []string{"started", "deployed"}, nil, "", 1},
		"it does not fit":     {&probedTarget{probed: old}, []string{"failed 1"}, dataplane.ErrUnsupported, old.Error(), 0},
		"it is not there":     {&probedTarget{probed: dataplane.ErrNotRunning}, []string{"failed 1"}, dataplane.ErrNotRunning, "", 0},
		"it refuses":          {&probedTarget{fakeTarget: fakeTarget{behave: func(context.Context, *dataplane.Config) error { return dataplane.ErrInvalid }}}, []string{"started", "failed 1"}, dataplane.ErrInvalid, "", 0},
		"it panics, says who": {&probedTarget{fakeTarget: fakeTarget{behave: func(context.Context, *dataplane.Config) error { panic("boom") }}}, []string{"started", "failed 1"}, &PanicError{}, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			c.one.name = "one"
			c.one.is = dataplane.Target{Version: dataplane.Version{Major: 2, Minor: 6}, API: dataplane.Version{Major: 3, Minor: 2}}
			two := &fakeTarget{name: "two", impact: dataplane.ImpactReload}
			s := newOnce(t, Options{Renderer: &source{t: t, text: "a"}, Targets: []Target{two, c.one}})
			state := s.State()
			require.Equal(t, []InstanceState{{Name: "one"}, {Name: "two"}}, state.Instances, "before anything is known of them")
			require.False(t, state.Ready())

			outcomes, err := s.Once(t.Context())
			state = s.State()
			one, other := state.Instances[0], state.Instances[1]
			require.Len(t, c.one.texts(), c.synced)
			require.Equal(t, "one", outcomes[1].Instance)
			require.Equal(t, c.unfit, one.Unfit)
			if c.err == nil {
				require.NoError(t, err)
				require.Equal(t, []any{"2.6", "3.2", "", 0, time.Time{}}, []any{one.HAProxy, one.API, one.Error, one.Failures, one.StaleSince})
				require.Equal(t, state.Validated, one.Hash)
				require.NotZero(t, one.DeployedAt)
			} else {
				var panicked *PanicError
				if !errors.As(c.err, &panicked) {
					require.ErrorIs(t, outcomes[1].Err, c.err)
				} else {
					require.ErrorAs(t, outcomes[1].Err, &panicked)
				}
				require.ErrorContains(t, err, "one: ")
				require.Equal(t, outcomes[1].Err.Error(), one.Error)
				require.Equal(t, []any{"", 1}, []any{one.Hash, one.Failures})
				require.NotZero(t, one.StaleSince)
				require.Nil(t, outcomes[1].Plan)
			}
			require.Equal(t, c.err == nil || c.unfit != "", state.Ready())
			require.Equal(t, []any{"two", "", state.Validated, uint64(1), time.Time{}}, []any{other.Name, other.HAProxy, other.Hash, other.Reloads, other.StaleSince})
			require.NotNil(t, other.Last)
			require.Equal(t, c.events, s.events(t, "one"))
			require.Equal(t, []string{"started", "deployed"}, s.events(t, "two"))
		})
	}
}

// TestPreviewFailsWhereOnceWould, and nothing of it stays.
func TestPreviewFailsWhereOnceWould(t *testing.T) {
	one := &probedTarget{fakeTarget: fakeTarget{name: "one"}, probed: dataplane.ErrUnsupported}
	s := newOnce(t, Options{Renderer: &source{t: t, text: "a"}, Targets: []Target{one, &fakeTarget{name: "two"}}})
	outcomes, err := s.Preview(t.Context())
	require.ErrorIs(t, err, dataplane.ErrUnsupported)
	require.Nil(t, outcomes[0].Plan)
	require.NotNil(t, outcomes[1].Plan)
	for _, e := range s.State().Instances {
		require.Equal(t, []any{"", "", 0}, []any{e.Hash, e.Error, e.Failures})
		require.NotZero(t, e.StaleSince, "it has not what was validated")
	}
	require.Empty(t, s.events(t, "one"))
}

// TestOnceMoreThanOnce counts failures, and knows what became stale.
func TestOnceMoreThanOnce(t *testing.T) {
	one, from := &probedTarget{fakeTarget: fakeTarget{name: "one"}}, &source{t: t, text: "a"}
	s := newOnce(t, Options{Renderer: from, Targets: []Target{one}})
	_, err := s.Once(t.Context())
	require.NoError(t, err)
	has := s.State().Instances[0]
	from.set("b", nil)
	one.probed = dataplane.ErrNotRunning
	for i := range 3 {
		_, err = s.Once(t.Context())
		require.ErrorIs(t, err, dataplane.ErrNotRunning)
		e := s.State().Instances[0]
		require.Equal(t, i+1, e.Failures)
		require.Equal(t, has.Hash, e.Hash, "of before")
		require.NotZero(t, e.StaleSince)
	}
	one.probed = nil
	_, err = s.Once(t.Context())
	require.NoError(t, err)
	e := s.State().Instances[0]
	require.Zero(t, e.Failures)
	require.Empty(t, e.Error)
	require.NotEqual(t, has.Hash, e.Hash)

	require.NoError(t, s.SetTargets(&fakeTarget{name: "one"}))
	e = s.State().Instances[0]
	require.Empty(t, e.Hash, "another one of that name")
	require.Equal(t, []string{"started", "deployed", "failed 1", "failed 2", "failed 3", "started", "deployed"}, s.events(t, "one"))
}

// TestOnceBoundsEachCall: one that hangs when it is probed is given up.
func TestOnceBoundsEachCall(t *testing.T) {
	for _, call := range []string{"probe", "sync", "dry run"} {
		t.Run(call, func(t *testing.T) {
			hung := &hungTarget{fakeTarget: fakeTarget{name: "hung"}, in: call}
			play(t, Options{}, func(*scene) { // for its time
				loop, err := New(Options{Renderer: &source{t: t, text: "a"}, Targets: []Target{hung}})
				require.NoError(t, err)
				act, start := loop.Once, time.Now()
				if call == "dry run" {
					act = loop.Preview
				}
				_, err = act(context.Background())
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.Equal(t, 30*time.Second, time.Since(start))
			})
		})
	}
}

// TestRunForgetsWhatOnceFound, and begins anew.
func TestRunForgetsWhatOnceFound(t *testing.T) {
	one := &fakeTarget{name: "one"}
	var before InstanceState
	play(t, Options{}, func(s *scene) {
		loop, err := New(Options{Renderer: s.source, Targets: []Target{one}})
		require.NoError(t, err)
		_, err = loop.Once(context.Background())
		require.NoError(t, err)
		before = loop.State().Instances[0]
		require.NotEmpty(t, before.Hash)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error)
		go func() { done <- loop.Run(ctx) }()
		pass(time.Second)
		require.Len(t, one.texts(), 2, "what Once validated is the newest there is")
		require.Equal(t, before.Hash, loop.State().Instances[0].Hash)
		cancel()
		require.NoError(t, <-done)
		require.Empty(t, loop.State().Instances[0].Hash, "nobody looks any more")
		require.False(t, loop.State().Ready())
	})
}
