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

func TestEndpointSchedule(t *testing.T) {
	a := &validated{id: 1, config: configOf(t, "a")}
	a2 := &validated{id: 2, config: configOf(t, "a")} // another reconciliation, the same configuration
	b := &validated{id: 3, config: configOf(t, "b")}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }
	timing := timing{minInterval: 2 * time.Second, drift: time.Minute, retryBase: time.Second, retryMax: 10 * time.Second}

	for _, c := range []struct {
		name  string
		state endpointState
		now   float64
		want  step
		until float64 // -1: until something changes
	}{
		{"nothing validated yet", endpointState{leading: true}, 0, stepWait, -1},
		{"another process leads", endpointState{want: a}, 0, stepWait, -1},
		{"first configuration", endpointState{want: a, leading: true}, 0, stepDeploy, -1},
		{"it is there", endpointState{want: a, have: a, leading: true, lastEnd: at(0)}, 1, stepWait, 60},
		{"the same again", endpointState{want: a2, have: a, leading: true, lastEnd: at(0)}, 1, stepWait, 60},
		{"idle for a minute", endpointState{want: a, have: a, leading: true, lastEnd: at(0)}, 60, stepCheck, -1},
		{"a new one, reloaded long ago", endpointState{want: b, have: a, leading: true, lastReload: at(0), lastEnd: at(0)}, 2, stepDeploy, -1},
		{"a new one, reloaded just now", endpointState{want: b, have: a, leading: true, lastReload: at(0), lastEnd: at(0)}, 1, stepRuntime, -1},
		{"which takes a reload", endpointState{want: b, have: a, probed: b, leading: true, lastReload: at(0), lastEnd: at(0)}, 1, stepWait, 2},
		{"whose time has come", endpointState{want: b, have: a, probed: b, leading: true, lastReload: at(0), lastEnd: at(0)}, 2, stepDeploy, -1},
		{"newer than what was found to reload", endpointState{want: b, have: a, probed: a, leading: true, lastReload: at(0), lastEnd: at(0)}, 1, stepRuntime, -1},
		{"failed once", endpointState{want: a, failed: a, failures: 1, leading: true, lastEnd: at(0)}, 0.5, stepWait, 1},
		{"failed once, a second ago", endpointState{want: a, failed: a, failures: 1, leading: true, lastEnd: at(0)}, 1, stepDeploy, -1},
		{"failed three times", endpointState{want: a, failed: a, failures: 3, leading: true, lastEnd: at(0)}, 1, stepWait, 4},
		{"failed for ever", endpointState{want: a, failed: a, failures: 1000, leading: true, lastEnd: at(0)}, 1, stepWait, 10},
		{"failed, no hope", endpointState{want: a, failed: a, failures: 1, hopeless: true, leading: true, lastEnd: at(0)}, 5, stepWait, 60},
		{"failed, but that was another", endpointState{want: b, failed: a, failures: 3, hopeless: true, leading: true, lastEnd: at(0)}, 0.1, stepDeploy, -1},
		{"failed, the clock was set back a day", endpointState{want: b, failed: a, failures: 1, leading: true, lastEnd: at(86400)}, 0, stepDeploy, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, until := c.state.next(timing, at(c.now))
			require.Equal(t, c.want, got)
			if c.until < 0 {
				require.Zero(t, until)
			} else {
				require.Equal(t, at(c.until), until)
			}
		})
	}
}

func TestFailureForgetsTheBaseline(t *testing.T) {
	a := &validated{config: configOf(t, "a")}
	now := time.Unix(100, 0)
	e := endpointState{want: a, have: a, leading: true}
	e.failedWith(a, 1, false, now)
	require.Nil(t, e.have, "nobody knows what a failure left")
	require.Equal(t, now, e.lastReload, "a reload that failed counts")
	e.succeeded(a, 0, now.Add(time.Second))
	require.Zero(t, e.failures)
	require.Equal(t, a, e.have)
	require.Equal(t, now, e.lastReload, "no reload, no mark")
}

func TestPacerActsAtOnceThenHolds(t *testing.T) {
	now := time.Unix(100, 0)
	after := func(ms int) time.Time { return now.Add(time.Duration(ms) * time.Millisecond) }
	p := pacer{hold: 500 * time.Millisecond}
	require.Equal(t, now, p.at(now), "the first acts at once")
	p.acted(now, after(20), false)
	require.Equal(t, after(500), p.at(after(21)))
	require.Equal(t, after(500), p.at(after(499)), "a storm does not push it back")
	require.Equal(t, after(501), p.at(after(501)))

	p.acted(now, after(20), true)
	require.Equal(t, after(60), p.at(after(21)), "nothing to deploy: a third of the time at most")
	p.acted(now, after(400), true)
	require.Equal(t, after(500), p.at(after(401)), "and never longer than the hold")
}
