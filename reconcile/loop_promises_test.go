package reconcile

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

// uncomparable is a target that == panics over.
type uncomparable struct {
	Target
	f []func()
}

func TestSetTargetsRefuses(t *testing.T) {
	good := &fakeTarget{name: "good"}
	loop, err := New(Options{Renderer: &source{t: t, text: "a"}, Targets: []Target{good}})
	require.NoError(t, err)
	for want, target := range map[string]Target{
		"is nil":             nil,
		"target 2 of 2":      (*fakeTarget)(nil),
		"cannot be compared": uncomparable{Target: good},
		"has no name":        &fakeTarget{},
		`the name "good"`:    &fakeTarget{name: "good"},
	} {
		require.ErrorContains(t, loop.SetTargets(good, target), want)
	}
	outcomes, err := loop.Once(t.Context())
	require.NoError(t, err)
	require.Len(t, outcomes, 1, "nothing changed")
}

// TestANewInstanceIsServedWhileTheNewestIsBad: from the last validated one.
func TestANewInstanceIsServedWhileTheNewestIsBad(t *testing.T) {
	one, two := &fakeTarget{name: "one"}, &fakeTarget{name: "two"}
	play(t, Options{Targets: []Target{one}}, func(s *scene) {
		s.Trigger("start")
		pass(time.Second)
		s.source.set("", errors.New("broken"))
		s.Trigger("broken")
		pass(time.Second)
		require.NoError(t, s.SetTargets(one, two))
		pass(0)
		require.Equal(t, []string{text("a")}, two.texts())
		pass(2 * time.Minute)
		require.Greater(t, len(two.texts()), 1, "and its drift is repaired")
		require.NotEmpty(t, s.State().LastError)
	})
}

// TestAFailureThatStaysIsTriedNowAndThen: what validates may be a process that
// takes a second of a core.
func TestAFailureThatStaysIsTriedNowAndThen(t *testing.T) {
	var tries atomic.Int32
	validator := ValidatorFunc(func(context.Context, *dataplane.Config) error { tries.Add(1); return errors.New("unknown keyword") })
	play(t, Options{Validator: validator}, func(s *scene) {
		s.Trigger("start")
		pass(time.Hour)
		require.LessOrEqual(t, tries.Load(), int32(66), "1, 2, 4 ... 60 s")
		require.GreaterOrEqual(t, tries.Load(), int32(60))
		before := tries.Load()
		for range 600 { // a storm of changes, 10 a second
			s.Trigger("storm")
			pass(100 * time.Millisecond)
		}
		require.LessOrEqual(t, tries.Load()-before, int32(122), "two a second")
	})
}

// TestFlappingInstances: they come and go ten times a second, one of them hung,
// and nothing piles up.
func TestFlappingInstances(t *testing.T) {
	var calls, most atomic.Int32
	hung := &fakeTarget{name: "hung", behave: func(ctx context.Context, _ *dataplane.Config) error {
		rise(&most, calls.Add(1))
		defer calls.Add(-1)
		<-ctx.Done()
		<-time.After(time.Second) // it takes its time to notice
		return ctx.Err()
	}}
	still := &fakeTarget{name: "still"}
	play(t, Options{Targets: []Target{still}}, func(s *scene) {
		s.Trigger("start")
		for i := range 300 {
			require.NoError(t, s.SetTargets(still, hung, &fakeTarget{name: fmt.Sprint("pod-", i)}))
			pass(50 * time.Millisecond)
			require.NoError(t, s.SetTargets(still))
			pass(50 * time.Millisecond)
		}
		pass(2 * time.Second)
		require.EqualValues(t, 1, most.Load(), "one call at a time, whoever is called")
		s.Loop.mu.Lock()
		defer s.Loop.mu.Unlock()
		require.Len(t, s.workers, 1)
		require.Len(t, s.sched.instances, 1)
		require.Len(t, still.texts(), 1, "undisturbed")
	})
}

// TestAStatefulPodInheritsNothing: another address under the same name.
func TestAStatefulPodInheritsNothing(t *testing.T) {
	old := &fakeTarget{name: "web-0", impact: dataplane.ImpactReload, behave: func(context.Context, *dataplane.Config) error { return dataplane.ErrInvalid }}
	play(t, Options{Targets: []Target{old}}, func(s *scene) {
		s.Trigger("start")
		pass(time.Millisecond)
		require.NotEmpty(t, s.State().Instances[0].Error)
		again := &fakeTarget{name: "web-0", impact: dataplane.ImpactReload}
		require.NoError(t, s.SetTargets(again))
		pass(0)
		require.Equal(t, []string{text("a")}, again.texts(), "no back-off, no interval")
		e := s.State().Instances[0]
		require.Empty(t, e.Error)
		require.Zero(t, e.Failures)
		require.EqualValues(t, 1, e.Reloads)
	})
}

// TestANewTermTriesAtOnceWhatFailedInAnother: the figure is a second.
func TestANewTermTriesAtOnceWhatFailedInAnother(t *testing.T) {
	target, leader := &fakeTarget{name: "one"}, &fakeLeader{}
	target.behave = func(context.Context, *dataplane.Config) error { return dataplane.ErrUnauthorized }
	leader.Store(true)
	play(t, Options{Targets: []Target{target}, Leader: leader}, func(s *scene) {
		s.Trigger("start")
		pass(time.Second)
		leader.Store(false)
		pass(time.Second)
		target.set(0, nil)
		leader.Store(true) // and nobody calls LeadershipChanged
		pass(leadershipPoll)
		require.Len(t, target.texts(), 1)
	})
}

// TestTimesAreMonotonic: a wall clock that is set changes no wait, since every
// time that the schedule keeps was read with the monotonic clock.
func TestTimesAreMonotonic(t *testing.T) {
	loop, err := New(Options{Renderer: &source{t: t, text: "a"}, Targets: []Target{&fakeTarget{name: "one", impact: dataplane.ImpactReload}}})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = loop.Run(ctx) })
	loop.Trigger("start")
	require.Eventually(t, func() bool {
		loop.mu.Lock()
		defer loop.mu.Unlock()
		e := loop.sched.instances["one"]
		return e != nil && e.have != nil
	}, time.Minute, time.Millisecond)
	loop.mu.Lock()
	e := *loop.sched.instances["one"]
	loop.mu.Unlock()
	cancel()
	wg.Wait()
	for _, at := range []time.Time{e.lastEnd, e.lastReload} {
		require.Contains(t, at.String(), " m=", "the monotonic part was lost")
	}
}

// TestEveryEventSaysWhichReconciliation but those that come before one, or
// belong to none.
func TestEveryEventSaysWhichReconciliation(t *testing.T) {
	target, leader := &fakeTarget{name: "one", impact: dataplane.ImpactReload}, &fakeLeader{}
	leader.Store(true)
	bad := Refusal{Resource: "Ingress shop/web", Reason: "no host"}
	play(t, Options{Targets: []Target{target}, Leader: leader}, func(s *scene) {
		change := func(text string, err error, refused ...Refusal) {
			s.source.set(text, err, refused...)
			s.Trigger(text)
			pass(time.Second)
		}
		change("a", nil, bad)
		change("b", nil)
		change("", errors.New("broken"))
		target.set(dataplane.ImpactReload, func(context.Context, *dataplane.Config) error { return dataplane.ErrInvalid })
		change("c", nil)
		target.set(dataplane.ImpactReload, nil)
		pass(3 * time.Minute)
		seen := map[string]bool{}
		for _, e := range eventsOf[any](s) {
			name := strings.TrimPrefix(reflect.TypeOf(e).String(), "reconcile.")
			seen[name] = true
			id := reflect.ValueOf(e).FieldByName("ID")
			if name == "ReconciliationTriggered" || name == "InstancesChanged" {
				continue
			}
			require.True(t, id.IsValid() && id.Uint() > 0, "%s: %+v", name, e)
		}
		for _, name := range []string{"ReconciliationStarted", "TemplateRendered", "TemplateRenderFailed", "ReconciliationFailed", "ReconciliationCompleted",
			"ResourceRefused", "ResourceAccepted", "DeploymentScheduled", "DeploymentStarted", "InstanceDeployed", "InstanceDeploymentFailed", "DriftRepaired"} {
			require.True(t, seen[name], "%s was not published", name)
		}
	})
}

// TestStateIsOneInstant: while configurations follow each other, a state never
// shows an instance ahead of what is validated, nor one as stale that has it.
func TestStateIsOneInstant(t *testing.T) {
	var n atomic.Int64
	var order sync.Map // hash to number
	renderer := RendererFunc(func(context.Context) (*Rendered, error) {
		i := n.Add(1)
		cfg := configOf(t, fmt.Sprint(i))
		order.Store(cfg.Hash(), i)
		return &Rendered{Config: cfg}, nil
	})
	var targets []Target
	for i := range 10 {
		targets = append(targets, &fakeTarget{name: fmt.Sprint(i)})
	}
	loop, err := New(Options{Renderer: renderer, Targets: targets, Debounce: time.Microsecond})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = loop.Run(ctx) })
	number := func(hash string) int64 { i, _ := order.Load(hash); v, _ := i.(int64); return v }
	for n.Load() < 300 {
		loop.Trigger("change")
		s := loop.State()
		for _, e := range s.Instances {
			require.LessOrEqual(t, number(e.Hash), number(s.Validated), "ahead of what is validated")
			if s.Validated != "" {
				require.Equal(t, e.Hash == s.Validated, e.StaleSince.IsZero(), "%+v", e)
			}
		}
	}
	cancel()
	wg.Wait()
}
