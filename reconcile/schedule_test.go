package reconcile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

func configOf(t testing.TB, text string) *dataplane.Config {
	t.Helper()
	cfg, err := dataplane.NewConfig("# " + text + "\nglobal\n")
	require.NoError(t, err)
	return cfg
}

func seconds(s float64) time.Time {
	return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(s * float64(time.Second)))
}

func testTiming() *Options {
	return &Options{MinInterval: 2 * time.Second, DriftInterval: time.Minute, DeployTimeout: 30 * time.Second, RetryBase: time.Second, RetryMax: 10 * time.Second}
}

func TestInstanceSchedule(t *testing.T) {
	a := &validated{id: 1, config: configOf(t, "a")}
	a2 := &validated{id: 2, config: configOf(t, "a")} // another reconciliation, the same configuration
	b := &validated{id: 3, config: configOf(t, "b")}
	at := seconds

	for _, c := range []struct {
		name     string
		state    instanceState
		follower bool
		now      float64
		want     step
		until    float64 // -1: until something changes
	}{
		{"nothing validated yet", instanceState{}, false, 0, stepWait, -1},
		{"nothing validated yet, and not probed", instanceState{probe: true}, false, 0, stepWait, -1},
		{"another process leads", instanceState{want: a}, true, 0, stepWait, -1},
		{"first configuration", instanceState{want: a}, false, 0, stepDeploy, -1},
		{"a call is under way", instanceState{want: a, busy: 1}, false, 0, stepWait, -1},
		{"it is there", instanceState{want: a, have: a, lastEnd: at(0)}, false, 1, stepWait, 60},
		{"the same again", instanceState{want: a2, have: a, lastEnd: at(0)}, false, 1, stepWait, 60},
		{"idle for a minute", instanceState{want: a, have: a, lastEnd: at(0)}, false, 60, stepCheck, -1},
		{"idle for a minute, another process leads", instanceState{want: a, have: a, lastEnd: at(0)}, true, 60, stepWait, -1},
		{"a new one, reloaded long ago", instanceState{want: b, have: a, lastReload: at(0), lastEnd: at(0)}, false, 2, stepDeploy, -1},
		{"a new one, reloaded just now", instanceState{want: b, have: a, lastReload: at(0), lastEnd: at(0)}, false, 1, stepRuntime, -1},
		{"which takes a reload", instanceState{want: b, have: a, reloads: b, lastReload: at(0), lastEnd: at(0)}, false, 1, stepWait, 2},
		{"whose time has come", instanceState{want: b, have: a, reloads: b, lastReload: at(0), lastEnd: at(0)}, false, 2, stepDeploy, -1},
		{"newer than what was found to reload", instanceState{want: b, have: a, reloads: a, lastReload: at(0), lastEnd: at(0)}, false, 1, stepRuntime, -1},
		{"failed once", instanceState{want: a, failed: a, failures: 1, lastEnd: at(0)}, false, 0.5, stepWait, 1},
		{"failed once, a second ago", instanceState{want: a, failed: a, failures: 1, lastEnd: at(0)}, false, 1, stepDeploy, -1},
		{"failed three times", instanceState{want: a, failed: a, failures: 3, lastEnd: at(0)}, false, 1, stepWait, 4},
		{"failed for ever", instanceState{want: a, failed: a, failures: 1000, lastEnd: at(0)}, false, 1, stepWait, 10},
		{"failed, no hope", instanceState{want: a, failed: a, failures: 1, hopeless: true, lastEnd: at(0)}, false, 5, stepWait, 60},
		{"refused, but that was another", instanceState{want: b, failed: a, failures: 3, hopeless: true, lastEnd: at(0)}, false, 0.1, stepDeploy, -1},
		{"away, and a storm of new ones", instanceState{want: b, failed: a, failures: 9, lastEnd: at(0)}, false, 0.1, stepWait, 1},
		{"idle, the clock was set ahead a year", instanceState{want: a, have: a, lastEnd: at(0)}, false, 31536000, stepCheck, -1},
		{"not probed", instanceState{want: a, probe: true}, false, 0, stepProbe, -1},
		{"not probed, another process leads", instanceState{want: a, probe: true}, true, 0, stepProbe, -1},
		{"its version fits", instanceState{want: a, probe: true, fits: true}, false, 0, stepDeploy, -1},
		{"not reached when probed", instanceState{want: a, probe: true, failed: a, failures: 1, lastEnd: at(0)}, false, 0, stepWait, 1},
		{"its version does not fit", instanceState{want: a, probe: true, failed: a, failures: 1, hopeless: true, lastEnd: at(0)}, false, 0, stepWait, 5},
		{"nor a second time", instanceState{want: a, probe: true, failed: a, failures: 2, hopeless: true, lastEnd: at(0)}, false, 0, stepWait, 10},
		{"nor ever", instanceState{want: a, probe: true, failed: a, failures: 99, hopeless: true, lastEnd: at(0)}, false, 0, stepWait, 60},
		{"nor for another configuration", instanceState{want: b, probe: true, failed: a, failures: 1, hopeless: true, lastEnd: at(0)}, false, 0, stepWait, 5},
		{"does not fit, tried again", instanceState{want: a, probe: true, failed: a, failures: 1, hopeless: true, lastEnd: at(0)}, false, 5, stepProbe, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := schedule{leading: !c.follower, instances: map[string]*instanceState{"one": &c.state}}
			got, until := s.next("one", testTiming(), at(c.now))
			require.Equal(t, c.want, got.what)
			if got.what != stepWait {
				require.Equal(t, at(c.now+30), got.deadline)
			}
			if c.until < 0 {
				require.Zero(t, until)
			} else {
				require.Equal(t, at(c.until), until)
			}
		})
	}
}

// TestACheckKeepsTheDistanceToo: what has drifted may take a reload.
func TestACheckKeepsTheDistanceToo(t *testing.T) {
	a := &validated{config: configOf(t, "a")}
	timing := testTiming()
	timing.DriftInterval = time.Second
	s := schedule{leading: true, instances: map[string]*instanceState{"one": {want: a, have: a, lastEnd: seconds(0), lastReload: seconds(0)}}}
	_, until := s.next("one", timing, seconds(1))
	require.Equal(t, seconds(2), until)
}

// TestScheduleEvents plays events against one instance and says what it does
// next after each.
func TestScheduleEvents(t *testing.T) {
	a, b := &validated{config: configOf(t, "a")}, &validated{config: configOf(t, "b")}
	s := &schedule{instances: map[string]*instanceState{}}
	var c call
	next := func(at float64, want step) {
		t.Helper()
		var until time.Time
		c, until = s.next("one", testTiming(), seconds(at))
		require.Equal(t, want, c.what, "%s", until)
	}
	begin := func(at float64, want step) { t.Helper(); next(at, want); s.began(c) }

	s.accepted(a)
	s.leads(true)
	s.arrived("one", false)
	begin(0, stepDeploy)
	first := c
	next(0, stepWait) // one call at a time
	s.left("one")
	next(1, stepWait)
	s.arrived("one", false) // under the same name, with another address
	next(1, stepWait)       // the old call has not returned
	require.False(t, s.ended(first, outcome{reloads: 1}, seconds(1)), "nothing of it is inherited")
	begin(1, stepDeploy)
	require.True(t, s.ended(c, outcome{reloads: 1, changed: true}, seconds(2)))
	next(2, stepWait)

	s.accepted(b)
	begin(3, stepRuntime)
	s.ended(c, outcome{waits: true}, seconds(3))
	next(3, stepWait)
	begin(4, stepDeploy)
	s.ended(c, outcome{waits: true, held: true}, seconds(4))
	next(4.9, stepWait)
	begin(5, stepDeploy) // perhaps an old worker has ended
	s.ended(c, outcome{failed: true, reloads: 1}, seconds(5))
	next(5, stepWait)
	require.Nil(t, s.instances["one"].have, "nobody knows what a failure left")
	require.Equal(t, seconds(5), s.instances["one"].lastReload, "a reload that failed counts")

	s.leads(false)
	next(9, stepWait)
	s.leads(true)
	begin(9, stepDeploy) // what failed in another term is tried at once
	s.newTerm()
	s.ended(c, outcome{}, seconds(9))
	begin(9, stepDeploy) // another process may have led meanwhile
	s.ended(c, outcome{}, seconds(9))
	next(9, stepWait)
	s.leads(false)
	s.leads(true)
	next(9, stepDeploy)

	s.left("one")
	require.Empty(t, s.instances)
	next(9, stepWait)
}
