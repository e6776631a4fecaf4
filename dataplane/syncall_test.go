package dataplane_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

// stub is an endpoint whose Sync does what it is told.
type stub struct {
	name string
	sync func(ctx context.Context) error

	running, most *atomic.Int32
}

func (s *stub) Name() string { return s.name }

func (s *stub) Sync(ctx context.Context, desired *dataplane.Config) (*dataplane.Result, error) {
	if s.running != nil {
		now := s.running.Add(1)
		defer s.running.Add(-1)
		for most := s.most.Load(); now > most && !s.most.CompareAndSwap(most, now); most = s.most.Load() {
		}
	}
	if err := s.sync(ctx); err != nil {
		return nil, err
	}
	return &dataplane.Result{Hash: desired.Hash()}, nil
}

// takes makes a Sync that takes so long.
func takes(d time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func hangs(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

func anyConfig(t testing.TB) *dataplane.Config {
	t.Helper()
	c, err := dataplane.NewConfig("global\n")
	require.NoError(t, err)
	return c
}

// One that hangs, one that fails and one that panics change nothing for the
// others, whose end is told when it comes.
func TestSyncAllIndependent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := &dataplane.Error{Endpoint: "refuses", Stage: "push", Err: dataplane.ErrInvalid}
		endpoints := []*stub{
			{name: "hangs", sync: hangs},
			{name: "quick", sync: takes(time.Second)},
			{name: "panics", sync: func(context.Context) error { panic("a bug") }},
			{name: "refuses", sync: func(context.Context) error { return broken }},
			{name: "slow", sync: takes(20 * time.Second)},
			{name: "foreign", sync: func(context.Context) error { return errors.New("of another kind") }},
		}
		config := anyConfig(t)
		start := time.Now()
		ended := map[string]time.Duration{}
		outcomes := dataplane.SyncAll(t.Context(), dataplane.DeployTo(config, endpoints...), &dataplane.SyncAllOptions{
			Timeout: time.Minute,
			Done:    func(o dataplane.Outcome) { ended[o.Endpoint] = time.Since(start) },
		})
		require.Equal(t, time.Minute, time.Since(start))
		require.Equal(t, map[string]time.Duration{"hangs": time.Minute, "quick": time.Second, "panics": 0, "refuses": 0,
			"slow": 20 * time.Second, "foreign": 0}, ended)
		for i, o := range outcomes {
			require.Equal(t, i, o.Index)
			require.Equal(t, endpoints[i].name, o.Endpoint)
			require.Equal(t, ended[o.Endpoint], o.Duration)
			require.Equal(t, o.Err == nil, o.Result != nil)
			var e *dataplane.Error
			require.Equal(t, o.Err != nil, errors.As(o.Err, &e))
			if o.Err != nil {
				require.Equal(t, o.Endpoint, e.Endpoint)
			}
		}
		require.Equal(t, config.Hash(), outcomes[1].Result.Hash)
		require.NoError(t, outcomes[4].Err)
		require.ErrorIs(t, outcomes[0].Err, context.DeadlineExceeded)
		require.True(t, dataplane.Retryable(outcomes[0].Err))
		require.ErrorContains(t, outcomes[2].Err, "panic: a bug")
		require.ErrorContains(t, outcomes[2].Err, "syncall_test.go", "says where")
		require.Same(t, broken, outcomes[3].Err)
		require.ErrorIs(t, outcomes.Err(), dataplane.ErrInvalid)
		require.ErrorIs(t, outcomes.Err(), context.DeadlineExceeded)
		require.NoError(t, outcomes[1:2].Err())
	})
}

// With a bound the others pass by those that hang, and the time of who waits
// does not run.
func TestSyncAllParallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, most atomic.Int32
		var endpoints []*stub
		for i := range 40 {
			s := &stub{name: fmt.Sprint(i), sync: takes(time.Second), running: &running, most: &most}
			if i == 0 || i == 7 {
				s.sync = hangs
			}
			endpoints = append(endpoints, s)
		}
		start := time.Now()
		var last time.Duration // of those that do not hang
		outcomes := dataplane.SyncAll(t.Context(), dataplane.DeployTo(anyConfig(t), endpoints...), &dataplane.SyncAllOptions{
			Parallel: 4, Timeout: 30 * time.Second,
			Done: func(o dataplane.Outcome) {
				if o.Err == nil {
					last = time.Since(start)
				}
			},
		})
		require.EqualValues(t, 4, most.Load())
		require.Less(t, last, 21*time.Second, "two of four places are left to 38 endpoints of a second")
		require.Len(t, outcomes, 40)
		for i, o := range outcomes {
			require.Equal(t, i == 0 || i == 7, o.Err != nil, "%v", o)
			require.Equal(t, fmt.Sprint(i), o.Endpoint)
		}

		// Where all places hang, the others still get their whole time.
		outcomes = dataplane.SyncAll(t.Context(), dataplane.DeployTo(anyConfig(t), endpoints[0], endpoints[7], endpoints[1]),
			&dataplane.SyncAllOptions{Parallel: 2, Timeout: 1500 * time.Millisecond})
		require.NoError(t, outcomes[2].Err)
		require.Equal(t, time.Second, outcomes[2].Duration)
	})
}

func TestSyncAllCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		begun := 0
		first := &stub{name: "first", sync: hangs}
		never := &stub{name: "never", sync: func(context.Context) error { begun++; return nil }}
		start := time.Now()
		outcomes := dataplane.SyncAll(ctx, dataplane.DeployTo(anyConfig(t), first, never), &dataplane.SyncAllOptions{Parallel: 1})
		require.Equal(t, 3*time.Second, time.Since(start))
		require.Zero(t, begun)
		for _, o := range outcomes {
			require.ErrorIs(t, o.Err, context.DeadlineExceeded)
			require.ErrorContains(t, o.Err, o.Endpoint)
		}
	})
}

func TestSyncAllOfNothing(t *testing.T) {
	require.Empty(t, dataplane.SyncAll(t.Context(), nil, nil))
	require.NoError(t, dataplane.Outcomes(nil).Err())
	outcomes := dataplane.SyncAll(t.Context(), []dataplane.Deployment{
		{Desired: anyConfig(t)}, {To: &stub{name: "a", sync: hangs}}, {To: (*stub)(nil), Desired: anyConfig(t)},
	}, nil)
	require.ErrorContains(t, outcomes[0].Err, "deployment 0 has no endpoint")
	require.ErrorIs(t, outcomes[1].Err, dataplane.ErrInvalidConfig)
	require.ErrorContains(t, outcomes[1].Err, "a: ")
	require.False(t, dataplane.Retryable(outcomes[0].Err))
	require.ErrorContains(t, outcomes[2].Err, "nil pointer", "one that cannot even tell its name")
}

// The deadline of SyncAll is that of a Client, too, and a configuration of its
// own for each endpoint reaches that endpoint.
func TestSyncAllClients(t *testing.T) {
	var apis []*memoryAPI // outside the bubble, see newMemoryAPI
	for range 3 {
		apis = append(apis, newMemoryAPI(t))
	}
	hanging := apis[1].client.Transport
	apis[1].client.Transport = hangsOnce{hanging, new(atomic.Bool)}
	synctest.Test(t, func(t *testing.T) {
		var deployments []dataplane.Deployment
		for i, api := range apis {
			c, err := dataplane.NewClient(api.endpoint, &dataplane.ClientOptions{HTTPClient: api.client})
			require.NoError(t, err)
			config, err := dataplane.NewConfig(fmt.Sprintf("global\n  maxconn %d\n", 10+i))
			require.NoError(t, err)
			deployments = append(deployments, dataplane.Deployment{To: c, Desired: config})
		}
		var order []int
		outcomes := dataplane.SyncAll(t.Context(), deployments, &dataplane.SyncAllOptions{
			Timeout: 2 * time.Second,
			Done:    func(o dataplane.Outcome) { order = append(order, o.Index) },
		})
		require.ErrorIs(t, outcomes[1].Err, context.DeadlineExceeded)
		require.Equal(t, 2*time.Second, outcomes[1].Duration)
		require.Equal(t, 1, order[len(order)-1])
		slices.Sort(order)
		require.Equal(t, []int{0, 1, 2}, order)
		for _, i := range []int{0, 2} {
			require.NoError(t, outcomes[i].Err)
			require.Contains(t, apis[i].Raw(), fmt.Sprintf("maxconn %d\n", 10+i))
		}
		// Again: who is done costs one request.
		before := len(apis[0].Requests())
		require.NoError(t, dataplane.SyncAll(t.Context(), deployments, nil).Err())
		require.Len(t, apis[0].Requests()[before:], 1)
	})
}

// hangsOnce answers the first request when nobody waits for it any more.
type hangsOnce struct {
	http.RoundTripper
	hung *atomic.Bool
}

func (h hangsOnce) RoundTrip(r *http.Request) (*http.Response, error) {
	if h.hung.CompareAndSwap(false, true) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return h.RoundTripper.RoundTrip(r)
}
