package reconcile

import (
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// world is a random controller around a schedule: instances that come, go, hang
// and fail, configurations, terms of leadership. It plays the part of the loop,
// and checks each call that the schedule asks for.
type world struct {
	t   *testing.T
	rng *rand.Rand
	s   *schedule
	t0  *Options
	now time.Time

	configs []*validated
	newest  int // index of the newest that was accepted
	seen    map[string]*worldInstance
	calls   []*worldCall
}

type worldInstance struct {
	probe      bool
	probed     bool
	broken     bool // every call fails
	hopeless   bool
	has        *validated
	lastReload time.Time
	lastFail   time.Time
	failures   int
	failedIn   uint64 // the term
	failedCall outcome
	failedFor  *validated
}

type worldCall struct {
	call
	ends   time.Time
	target *worldInstance
}

func newWorld(t *testing.T, seed uint64, configs []*validated) *world {
	return &world{t: t, rng: rand.New(rand.NewPCG(seed, 1)), t0: testTiming(), now: seconds(0), configs: configs, newest: -1,
		s: &schedule{instances: map[string]*instanceState{}}, seen: map[string]*worldInstance{}}
}

// happen lets one random thing happen.
func (w *world) happen() {
	name := fmt.Sprintf("pod-%d", w.rng.IntN(4))
	switch n := w.rng.IntN(100); {
	case n < 12 && w.seen[name] == nil:
		e := &worldInstance{probe: w.rng.IntN(2) == 0}
		w.s.arrived(name, e.probe)
		w.seen[name] = e
	case n < 18 && w.seen[name] != nil:
		w.s.left(name)
		delete(w.seen, name)
	case n < 30:
		w.newest = w.rng.IntN(len(w.configs))
		w.s.accepted(w.configs[w.newest])
	case n < 36:
		w.s.leads(!w.s.leading)
	case n < 38:
		w.s.newTerm()
	case n < 46 && w.seen[name] != nil:
		e := w.seen[name]
		e.broken, e.hopeless = !e.broken, w.rng.IntN(3) == 0
	case n < 50 && w.seen[name] != nil && !w.busy(name):
		w.s.hurry(name) // as Once does
		w.seen[name].lastReload, w.seen[name].lastFail, w.seen[name].failedCall.hopeless = time.Time{}, time.Time{}, false
		w.seen[name].probed = false
	default:
		w.now = w.now.Add(time.Duration(w.rng.Int64N(int64(3 * time.Second))))
	}
	w.settle()
}

// settle ends the calls that are due and makes those that the schedule asks for.
func (w *world) settle() {
	turns := 0
	for again := true; again; turns++ {
		again = false
		require.Less(w.t, turns, 100, "calls follow each other without a wait")
		for i := 0; i < len(w.calls); i++ {
			if c := w.calls[i]; !c.ends.After(w.now) {
				w.calls = append(w.calls[:i], w.calls[i+1:]...)
				w.end(c)
				again, i = true, i-1
			}
		}
		for _, name := range w.inSomeOrder(maps.Keys(w.s.instances)) {
			again = w.ask(name) || again
		}
	}
}

// inSomeOrder gives names in an order that follows from the seed, so that what one
// seed finds it finds each time.
func (w *world) inSomeOrder(names iter.Seq[string]) []string {
	all := slices.Sorted(names)
	w.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

func (w *world) ask(name string) bool {
	c, until := w.s.next(name, w.t0, w.now)
	e := w.seen[name]
	if c.what == stepWait {
		require.True(w.t, until.IsZero() || until.After(w.now), "%s: waits for the past: %s", name, until)
		require.False(w.t, until.After(w.now.Add(time.Minute)), "%s: waits beyond every back-off", name)
		if e != nil && w.newest >= 0 && w.s.leading && until.IsZero() {
			require.True(w.t, w.busy(name), "%s: waits for somebody else", name)
		}
		return false
	}
	require.NotNil(w.t, e, "%s: a call to an instance that is gone", name)
	for _, other := range w.calls {
		require.NotEqual(w.t, name, other.instance, "two calls at once")
	}
	require.GreaterOrEqual(w.t, w.newest, 0, "nothing was validated yet")
	require.Same(w.t, w.configs[w.newest], c.want, "%s: not the newest that was validated", name)
	require.Equal(w.t, w.now.Add(30*time.Second), c.deadline)
	require.True(w.t, w.s.leading || c.what == stepProbe, "%s: step %d without leading", name, c.what)
	require.True(w.t, c.what == stepProbe || !e.probe || e.probed, "%s: deployed to before it was known what it is", name)
	if e.failures > 0 && e.failedIn == w.s.term {
		if !e.failedCall.hopeless {
			require.False(w.t, w.now.Before(e.lastFail.Add(w.t0.RetryBase)), "%s: hammered", name)
		} else if c.what != stepProbe && c.want == e.failedFor {
			require.False(w.t, w.now.Before(e.lastFail.Add(w.t0.DriftInterval)), "%s: sent again what it refused", name)
		}
	}
	w.s.began(c)
	w.calls = append(w.calls, &worldCall{call: c, target: e, ends: w.now.Add(w.took())})
	return true
}

// took is how long a call takes: most are short, some run into their time-out.
func (w *world) took() time.Duration {
	if w.rng.IntN(10) == 0 {
		return w.t0.DeployTimeout
	}
	return time.Duration(w.rng.Int64N(int64(time.Second)))
}

func (w *world) busy(name string) bool {
	return slices.ContainsFunc(w.calls, func(c *worldCall) bool { return c.instance == name })
}

func (w *world) end(c *worldCall) {
	e, o := c.target, outcome{}
	reload := c.want != e.has && w.rng.IntN(2) == 0
	switch {
	case e.broken:
		o.failed, o.hopeless = true, e.hopeless
		e.failures, e.lastFail, e.failedIn, e.failedCall, e.failedFor = e.failures+1, w.now, c.term, o, c.want
	case c.what == stepProbe:
		e.probed = true
	case c.what == stepRuntime && reload:
		o.waits = true
	default:
		if reload {
			require.False(w.t, !e.lastReload.IsZero() && w.now.Sub(e.lastReload) < w.t0.MinInterval, "%s: two reloads at once", c.instance)
			o.reloads, e.lastReload = 1, w.now
		}
		e.has, e.failures = c.want, 0
	}
	w.s.ended(c.call, o, w.now)
}

// calm lets all faults end, and time pass.
func (w *world) calm() {
	w.s.leads(true)
	for _, e := range w.seen {
		e.broken = false
	}
	for range 300 {
		w.settle()
		w.now = w.now.Add(500 * time.Millisecond)
	}
}

// TestScheduleKeepsItsPromises plays random sequences of events. In each: only
// what is validated, and the newest of it, is deployed; never two calls to one
// instance at once; only by a process that leads; reloads keep their distance;
// what fails is not hammered; what an instance refused it is not sent again within
// the drift interval of one term, unless somebody is in a hurry; and when all faults
// have ended, every instance has the newest configuration.
func TestScheduleKeepsItsPromises(t *testing.T) {
	var configs []*validated
	for i := range 5 {
		configs = append(configs, &validated{id: uint64(i + 1), config: configOf(t, fmt.Sprint(i))})
	}
	for seed := range uint64(500) {
		w := newWorld(t, seed, configs)
		for range 100 {
			w.happen()
		}
		w.calm()
		for name, e := range w.seen {
			if w.newest >= 0 {
				require.Same(t, w.configs[w.newest], e.has, "seed %d: %s", seed, name)
			}
		}
		require.Len(t, w.s.instances, len(w.seen), "seed %d: nothing is kept of what is gone", seed)
	}
}
