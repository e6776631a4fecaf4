package reconcile

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
)

// fakeTarget records what it is asked; behave says how it answers.
type fakeTarget struct {
	name string

	mu     sync.Mutex
	synced []*dataplane.Config
	early  []string // what it got without a reload
	times  []time.Time
	impact dataplane.Impact
	same   bool         // nothing ever differs
	fence  func() error // of the last Sync
	behave func(ctx context.Context, cfg *dataplane.Config) error
}

func (f *fakeTarget) Name() string { return f.name }

func (f *fakeTarget) plan() *dataplane.Plan {
	if f.same {
		return &dataplane.Plan{}
	}
	return &dataplane.Plan{Ops: []dataplane.Op{{Action: dataplane.Update, Kind: "backend", Impact: f.impact}}}
}

func (f *fakeTarget) DryRun(context.Context, *dataplane.Config) (*dataplane.Plan, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.plan(), nil
}

func (f *fakeTarget) Sync(ctx context.Context, cfg *dataplane.Config, options ...dataplane.SyncOption) (*dataplane.Result, error) {
	f.mu.Lock()
	behave := f.behave
	f.fence = dataplane.LimitsOf(options...).Fence
	f.mu.Unlock()
	if behave != nil {
		if err := behave(ctx, cfg); err != nil {
			return nil, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.impact == dataplane.ImpactReload && dataplane.LimitsOf(options...).WithoutReload {
		f.early = append(f.early, cfg.Main())
		return &dataplane.Result{Plan: f.plan(), Left: f.plan(), Commands: 1}, nil
	}
	f.synced = append(f.synced, cfg)
	f.times = append(f.times, time.Now())
	result := &dataplane.Result{Plan: f.plan(), Hash: cfg.Hash()}
	if f.impact == dataplane.ImpactReload {
		result.Reloads = 1
	}
	return result, nil
}

func (f *fakeTarget) set(impact dataplane.Impact, behave func(context.Context, *dataplane.Config) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.impact, f.behave = impact, behave
}

func (f *fakeTarget) texts() (texts []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.synced {
		texts = append(texts, c.Main())
	}
	return texts
}

// source renders the text it was given last, or fails.
type source struct {
	t       *testing.T
	mu      sync.Mutex
	text    string
	err     error
	refused []Refusal
	renders int
}

func (s *source) set(text string, err error, refused ...Refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text, s.err, s.refused = text, err, refused
}

func (s *source) Render(context.Context) (*Rendered, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renders++
	if s.err != nil {
		return nil, s.err
	}
	return &Rendered{Config: configOf(s.t, s.text), Refused: s.refused}, nil
}

func text(name string) string { return "# " + name + "\nglobal\n" }

// scene is a loop in a bubble of its own time.
type scene struct {
	*Loop
	source *source
	events []any
	mu     sync.Mutex
	end    func() // ends the loop; play does it at the latest
}

// play runs f beside a running loop, in virtual time.
func play(t *testing.T, opts Options, f func(s *scene)) {
	synctest.Test(t, func(t *testing.T) {
		s := &scene{source: &source{t: t, text: "a"}}
		if opts.Renderer == nil {
			opts.Renderer = s.source
		}
		opts.Bus = eventbus.New(nil)
		eventbus.Subscribe(opts.Bus, func(_ context.Context, d eventbus.Delivery[any]) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.events = append(s.events, d.Event)
		})
		opts.Bus.Start()
		var err error
		s.Loop, err = New(opts)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()
		s.end = sync.OnceFunc(func() {
			cancel()
			require.NoError(t, <-done)
			require.NoError(t, opts.Bus.Close(context.Background()))
		})
		defer s.end() // also where a check in f ends the test
		synctest.Wait()
		f(s)
	})
}

func eventsOf[E any](s *scene) (found []E) {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.events {
		if e, ok := e.(E); ok {
			found = append(found, e)
		}
	}
	return found
}

func TestFirstTriggerActsAtOnce(t *testing.T) {
	target := &fakeTarget{name: "one"}
	play(t, Options{Targets: []Target{target}}, func(s *scene) {
		start := time.Now()
		s.Trigger("test")
		synctest.Wait()
		require.Equal(t, []string{text("a")}, target.texts())
		require.Zero(t, time.Since(start))

		for range 100 {
			s.Trigger("storm")
		}
		s.source.set("b", nil)
		synctest.Wait()
		require.Len(t, target.texts(), 1, "held back")
		pass(500 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, []string{text("a"), text("b")}, target.texts())
		require.Equal(t, 2, s.source.renders)
		started := eventsOf[ReconciliationStarted](s)
		require.Len(t, started, 2)
		require.LessOrEqual(t, len(started[1].Reasons), 16)
	})
}

func TestWhatChangesNothingHoldsNothingBack(t *testing.T) {
	target := &fakeTarget{name: "one"}
	play(t, Options{Targets: []Target{target}}, func(s *scene) {
		s.Trigger("start")
		pass(time.Second)
		s.Trigger("a Service that no Ingress names")
		pass(time.Millisecond)
		require.Len(t, target.texts(), 1)
		s.source.set("b", nil)
		s.Trigger("its Ingress")
		pass(time.Millisecond)
		require.Equal(t, []string{text("a"), text("b")}, target.texts())
	})
}

func TestReloadsKeepTheirDistanceAndRuntimeChangesDoNot(t *testing.T) {
	target := &fakeTarget{name: "one", impact: dataplane.ImpactReload}
	play(t, Options{Targets: []Target{target}, Debounce: time.Millisecond}, func(s *scene) {
		change := func(name string) {
			s.source.set(name, nil)
			s.Trigger(name)
			pass(2 * time.Millisecond)
			synctest.Wait()
		}
		change("a")
		change("b")
		change("c")
		require.Equal(t, []string{text("a")}, target.texts(), "one reload, the rest waits")
		require.Equal(t, []string{text("b"), text("c")}, target.early, "what takes no reload does not wait")
		scheduled := eventsOf[DeploymentScheduled](s)
		require.Len(t, scheduled, 2)
		require.Equal(t, 1, scheduled[0].Applied.Commands)
		require.NotEmpty(t, scheduled[0].Applied.Left)
		change("a")
		require.Equal(t, []string{text("b"), text("c"), text("a")}, target.early, "a part of c has taken the place of a")
		target.set(dataplane.ImpactRuntime, nil)
		change("d")
		require.Equal(t, []string{text("a"), text("d")}, target.texts(), "a runtime change does not wait")
		target.set(dataplane.ImpactReload, nil)
		change("e")
		change("f")
		pass(3 * time.Second)
		synctest.Wait()
		require.Equal(t, []string{text("a"), text("d"), text("f")}, target.texts(), "the latest wins")
		require.GreaterOrEqual(t, target.times[2].Sub(target.times[0]), 2*time.Second)
	})
}

func TestWhatFailsLeavesTheLastGoodOne(t *testing.T) {
	target := &fakeTarget{name: "one"}
	var invalid atomic.Bool
	validator := ValidatorFunc(func(_ context.Context, cfg *dataplane.Config) error {
		if invalid.Load() {
			return errors.New("haproxy.cfg:2: unknown keyword")
		}
		return nil
	})
	play(t, Options{Targets: []Target{target}, Validator: validator}, func(s *scene) {
		s.Trigger("start")
		synctest.Wait()

		invalid.Store(true)
		s.source.set("bad", nil)
		s.Trigger("bad")
		pass(time.Second)
		require.Len(t, eventsOf[ValidationFailed](s), 1)
		require.Contains(t, s.State().LastError, "unknown keyword")

		s.source.set("", errors.New("shop.yaml:3: broken"))
		s.Trigger("broken")
		pass(time.Second)
		require.ErrorContains(t, eventsOf[TemplateRenderFailed](s)[0].Err, "shop.yaml:3")

		pass(2 * time.Minute)
		synctest.Wait()
		for _, got := range target.texts() {
			require.Equal(t, text("a"), got, "drift is repaired with what is valid, nothing else is ever deployed")
		}
		require.Greater(t, len(target.texts()), 1)

		invalid.Store(false)
		s.source.set("good", nil)
		s.Trigger("mended")
		pass(time.Second)
		synctest.Wait()
		require.Empty(t, s.State().LastError)
		require.True(t, s.State().Ready())
	})
}

func TestInstancesAreIndependent(t *testing.T) {
	hung := &fakeTarget{name: "hung", behave: func(ctx context.Context, _ *dataplane.Config) error {
		<-ctx.Done()
		return &dataplane.Error{Endpoint: "hung", Stage: "probe", Err: ctx.Err()}
	}}
	panics := &fakeTarget{name: "panics", behave: func(context.Context, *dataplane.Config) error { panic("boom") }}
	good := &fakeTarget{name: "good"}
	play(t, Options{Targets: []Target{hung, panics, good}}, func(s *scene) {
		s.Trigger("start")
		synctest.Wait()
		require.Len(t, good.texts(), 1)
		pass(30*time.Second + time.Millisecond)
		failures := eventsOf[InstanceDeploymentFailed](s)
		require.Len(t, failures, 2)
		require.Equal(t, "panics", failures[0].Instance)
		require.Equal(t, "hung", failures[1].Instance)
		require.ErrorIs(t, failures[1].Err, context.DeadlineExceeded)
		require.False(t, s.State().Ready())

		hung.set(0, nil)
		pass(2 * time.Second)
		require.Len(t, hung.texts(), 1, "tried again by itself")
		require.Len(t, good.texts(), 1, "while nobody else was disturbed")
		panics.set(0, nil)
		pass(time.Minute)
		synctest.Wait()
		require.True(t, s.State().Ready())
	})
}

func TestBackOffDoubles(t *testing.T) {
	var tries []time.Time
	target := &fakeTarget{name: "one"}
	target.behave = func(context.Context, *dataplane.Config) error {
		tries = append(tries, time.Now())
		return dataplane.ErrNotRunning
	}
	play(t, Options{Targets: []Target{target}}, func(s *scene) {
		s.Trigger("start")
		pass(8 * time.Second)
		synctest.Wait()
		var waits []time.Duration
		for i := 1; i < len(tries); i++ {
			waits = append(waits, tries[i].Sub(tries[i-1]))
		}
		require.Equal(t, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}, waits)
	})
}

func TestWhichFailuresAreWorthAnotherTry(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{&dataplane.Error{Err: dataplane.ErrReload, Output: "cannot bind socket (Address already in use)"}, true},
		{dataplane.ErrNotRunning, true},
		{dataplane.ErrInvalid, false},
		{dataplane.ErrUnauthorized, false},
		{&PanicError{Value: dataplane.ErrReload}, false},
	} {
		require.Equal(t, c.want, retryable(c.err), "%v", c.err)
	}
}

func TestTargetsComeAndGo(t *testing.T) {
	one, two := &fakeTarget{name: "one"}, &fakeTarget{name: "two"}
	play(t, Options{Targets: []Target{one}}, func(s *scene) {
		s.Trigger("start")
		synctest.Wait()
		require.NoError(t, s.SetTargets(one, two))
		synctest.Wait()
		require.Equal(t, []string{text("a")}, two.texts(), "a new instance is served at once")
		require.Len(t, one.texts(), 1, "the old one goes on")

		again := &fakeTarget{name: "one"} // the same name, other credentials
		require.NoError(t, s.SetTargets(again))
		synctest.Wait()
		require.Len(t, again.texts(), 1)
		require.Len(t, s.State().Instances, 1)
		s.source.set("b", nil)
		s.Trigger("change")
		pass(time.Second)
		synctest.Wait()
		require.Len(t, one.texts(), 1, "forgotten")
		require.Len(t, two.texts(), 1, "forgotten")
		require.Len(t, again.texts(), 2)

		require.ErrorContains(t, s.SetTargets(one, again), `"one"`)
		require.Len(t, eventsOf[InstancesChanged](s), 3)
	})
}

type fakeLeader struct{ atomic.Bool }

func (f *fakeLeader) Leading() bool { return f.Load() }

// TestReadyTakesAnInstance: a loop is ready once an instance had its configuration, not
// before there is one; that all go, as in a restart of them, changes nothing.
func TestReadyTakesAnInstance(t *testing.T) {
	target := &fakeTarget{name: "one"}
	play(t, Options{}, func(s *scene) {
		s.Trigger("start")
		pass(time.Minute)
		require.NotEmpty(t, s.State().Validated)
		require.False(t, s.State().Ready(), "nobody serves it")
		require.NoError(t, s.SetTargets(target))
		pass(time.Second)
		require.True(t, s.State().Ready())
		require.NoError(t, s.SetTargets())
		pass(time.Minute)
		require.True(t, s.State().Ready())
		require.NoError(t, s.SetTargets(&fakeTarget{name: "two", behave: func(context.Context, *dataplane.Config) error { return dataplane.ErrUnauthorized }}))
		pass(time.Second)
		require.False(t, s.State().Ready(), "this one has none")
	})
}

func TestOnlyTheLeaderDeploys(t *testing.T) {
	target, leader := &fakeTarget{name: "one"}, &fakeLeader{}
	play(t, Options{Targets: []Target{target}, Leader: leader}, func(s *scene) {
		s.Trigger("start")
		pass(5 * time.Second)
		synctest.Wait()
		require.Empty(t, target.texts())
		require.True(t, s.State().Ready(), "a follower is ready with what it validated")
		leader.Store(true)
		s.LeadershipChanged()
		synctest.Wait()
		require.Len(t, target.texts(), 1, "a new leader deploys at once what it has validated")
		leader.Store(false)
		s.source.set("b", nil)
		s.Trigger("change")
		pass(2 * time.Minute)
		synctest.Wait()
		require.Len(t, target.texts(), 1)
	})
}

// TestLeadershipLostWithinADeployment does what a Client does that was frozen
// between two of its calls.
func TestLeadershipLostWithinADeployment(t *testing.T) {
	leader := &fakeLeader{}
	leader.Store(true)
	calls := 0
	target := &fakeTarget{name: "one"}
	target.behave = func(context.Context, *dataplane.Config) error {
		for range 3 {
			if err := target.fence(); err != nil {
				return &dataplane.Error{Endpoint: "one", Stage: "push", Err: err}
			}
			calls++
			leader.Store(false)
		}
		return nil
	}
	play(t, Options{Targets: []Target{target}, Leader: leader}, func(s *scene) {
		s.Trigger("start")
		pass(time.Minute)
		require.Equal(t, 1, calls, "no further call that changes something")
		require.Empty(t, eventsOf[InstanceDeploymentFailed](s), "nothing failed")
		target.set(0, nil)
		leader.Store(true)
		s.LeadershipChanged()
		pass(time.Millisecond)
		require.Len(t, target.texts(), 1, "it deploys again when it leads again")
	})
}

func TestRefusalsAreToldOnce(t *testing.T) {
	bad := Refusal{Resource: "Ingress shop/web", Source: "web.yaml:3", Field: "spec.rules[0].host", Reason: "not a host name"}
	play(t, Options{}, func(s *scene) {
		s.source.set("a", nil, bad)
		for range 3 {
			s.Trigger("again")
			pass(time.Second)
		}
		require.Equal(t, []ResourceRefused{{ID: 1, Refusal: bad}}, eventsOf[ResourceRefused](s))
		require.Equal(t, []Refusal{bad}, s.State().Refused)
		s.source.set("a", nil)
		s.Trigger("mended")
		pass(time.Second)
		require.Equal(t, []ResourceAccepted{{ID: 4, Refusal: bad}}, eventsOf[ResourceAccepted](s))
		require.Equal(t, "Ingress shop/web (web.yaml:3): spec.rules[0].host: not a host name", bad.String())
	})
}

// TestAFigureThatChangesIsNoNews: pods that come and go while none is ready are one
// line at the beginning and one at the end; the page has the figure of now.
func TestAFigureThatChangesIsNoNews(t *testing.T) {
	none := Refusal{Resource: "Service shop/web", Reason: "no endpoint is ready", Warning: true}
	play(t, Options{}, func(s *scene) {
		for n := range 50 {
			none.Detail = fmt.Sprintf("%d not ready", n+1)
			s.source.set("a", nil, none)
			s.Trigger("pods")
			pass(time.Second)
		}
		require.Equal(t, "Service shop/web: no endpoint is ready; 50 not ready", s.State().Refused[0].String())
		s.source.set("a", nil)
		s.Trigger("one is")
		pass(time.Second)
		require.Equal(t, []string{"warning: Service shop/web: no endpoint is ready; 1 not ready"}, sentences(eventsOf[ResourceRefused](s)))
		require.Equal(t, []string{"in order again: Service shop/web"}, sentences(eventsOf[ResourceAccepted](s)))
	})
}

func TestACheckThatFindsNothingIsNoDeployment(t *testing.T) {
	target := &fakeTarget{name: "one", same: true}
	play(t, Options{Targets: []Target{target}}, func(s *scene) {
		s.Trigger("start")
		pass(time.Second)
		first := s.State().Instances[0].DeployedAt
		pass(2 * time.Minute)
		require.Greater(t, len(target.texts()), 1, "checked")
		require.Equal(t, first, s.State().Instances[0].DeployedAt)
		require.Empty(t, eventsOf[DriftRepaired](s))
		_, err := s.Once(t.Context())
		require.ErrorContains(t, err, "is running")
		_, err = s.Preview(t.Context())
		require.ErrorContains(t, err, "is running")
	})
}

func TestOnceAndPreview(t *testing.T) {
	good := &fakeTarget{name: "good", impact: dataplane.ImpactReload}
	bad := &fakeTarget{name: "bad", behave: func(context.Context, *dataplane.Config) error { return dataplane.ErrUnauthorized }}
	loop, err := New(Options{Renderer: &source{t: t, text: "a"}, Targets: []Target{good, bad}})
	require.NoError(t, err)

	outcomes, err := loop.Preview(t.Context())
	require.NoError(t, err)
	require.Equal(t, dataplane.ImpactReload, outcomes[0].Plan.Impact())
	require.Empty(t, good.texts(), "a preview changes nothing")

	outcomes, err = loop.Once(t.Context())
	require.ErrorIs(t, err, dataplane.ErrUnauthorized)
	require.ErrorContains(t, err, "bad: ")
	require.NoError(t, outcomes[0].Err)
	require.Equal(t, 1, outcomes[0].Result.Reloads)
}

func TestNewRefusesNonsense(t *testing.T) {
	_, err := New(Options{})
	require.ErrorContains(t, err, "Renderer")
	_, err = New(Options{Renderer: &source{}, Debounce: -1})
	require.ErrorContains(t, err, "negative")
	_, err = New(Options{Renderer: &source{}, Targets: []Target{&fakeTarget{name: "x"}, &fakeTarget{name: "x"}}})
	require.ErrorContains(t, err, `"x"`)
}

// pass lets virtual time pass, and everything that is due in it happen.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}
