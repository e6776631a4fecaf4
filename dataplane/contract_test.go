package dataplane_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

// contractSeries is how many series of steps run side by side at each place, and
// drawnPairs how many pairs a place draws without -full.
const (
	contractSeries = 2
	drawnPairs     = 20
)

// TestContract goes from one configuration of testdata/contract to another,
// through everything that deploys. A step ends when HAProxy answers as
// configured, what is stored is what was desired, and nothing is left to do.
//
// Each place goes from base to each other configuration and back, and on through
// drawn pairs. With -full it goes from each configuration to each other one.
func TestContract(t *testing.T) {
	t.Parallel()
	names, archives := readArchives(t, "*.txtar")
	require.GreaterOrEqual(t, len(names), 10)
	w := newWorld(t)
	w.prepare(t, archives)
	t.Run("at", func(t *testing.T) {
		places(t, func(t *testing.T, settle func(t *testing.T) *place) {
			walk := star(len(names), slices.Index(names, "base"), drawnPairs, drawn(t))
			if *full {
				walk = allPairs(len(names))
			}
			for i := range contractSeries {
				from, to := i*(len(walk)-1)/contractSeries, (i+1)*(len(walk)-1)/contractSeries
				t.Run(fmt.Sprint("series", i), func(t *testing.T) {
					t.Parallel()
					c := &contract{world: w, place: settle(t), states: map[string][]string{}}
					for j, at := range walk[from : to+1] {
						before := "nothing"
						if j > 0 {
							before = names[walk[from+j-1]]
						}
						c.step(t, before, names[at], archives[names[at]], j > 0)
						if t.Failed() {
							t.Fatalf("from %s to %s", before, names[at])
						}
					}
				})
			}
		})
	})
}

// star is a walk over n nodes that goes from the base to each other one and
// back, and on over that many pairs, none of which it has gone before.
func star(n, base, pairs int, random *rand.Rand) []int {
	last := (base + n - 1) % n // from which pairs are left
	walk := []int{last, base}
	for i := range n {
		if i != base && i != last {
			walk = append(walk, i, base)
		}
	}
	walk = append(walk, last)
	seen := map[[2]int]bool{}
	for i := range len(walk) - 1 {
		seen[[2]int{walk[i], walk[i+1]}] = true
	}
	for here := last; pairs > 0; pairs-- {
		for _, to := range random.Perm(n) {
			if pair := [2]int{here, to}; to != here && !seen[pair] {
				seen[pair], walk, here = true, append(walk, to), to
				break
			}
		}
	}
	return walk
}

// allPairs is a walk over n nodes that goes from each to each other one
// exactly once.
func allPairs(n int) []int {
	var walk []int
	for i := range n {
		// From i there and back again to each later one; then on to the next.
		for j := i + 2; j < n; j++ {
			walk = append(walk, i, j)
		}
		walk = append(walk, i)
	}
	for i := n - 2; i >= 0; i-- {
		walk = append(walk, i)
	}
	return walk
}

func TestWalks(t *testing.T) {
	t.Parallel()
	for n := 2; n < 13; n++ {
		seen := map[[2]int]int{}
		walk := allPairs(n)
		for i := range len(walk) - 1 {
			require.NotEqual(t, walk[i], walk[i+1])
			seen[[2]int{walk[i], walk[i+1]}]++
		}
		require.Len(t, seen, n*(n-1))
		require.Len(t, walk, n*(n-1)+1)
	}
	const n, base = 12, 3
	seen := map[[2]int]bool{}
	walk := star(n, base, 20, drawn(t))
	for i := range len(walk) - 1 {
		require.NotEqual(t, walk[i], walk[i+1])
		seen[[2]int{walk[i], walk[i+1]}] = true
	}
	for i := range n {
		require.True(t, i == base || seen[[2]int{base, i}] && seen[[2]int{i, base}], i)
	}
	require.Len(t, seen, 2*(n-1)+20)
	require.Len(t, walk, 2*(n-1)+20+1)
}

// contract is a series of steps at one place.
type contract struct {
	*world
	*place
	states map[string][]string // of each configuration, as it was first seen
}

// step goes to a configuration, and checks everything that is promised.
func (c *contract) step(t *testing.T, before, after string, archive *txtar.Archive, running bool) {
	t.Helper()
	config, checks := c.render(t, archive, c.place)
	planned, err := c.DryRun(t.Context(), config)
	require.NoError(t, err)
	worker := c.worker()
	result, err := c.Sync(t.Context(), config)
	require.NoError(t, err, "from %s to %s", before, after)
	if running {
		c.asPlanned(t, planned, result, worker)
	}
	c.serves(t, checks, result.Reloads > 0)
	c.sameState(t, after)
	c.isStored(t, config)
	c.isDone(t, config)
}

// asPlanned checks that the step cost what the preflight said.
func (c *contract) asPlanned(t *testing.T, planned *dataplane.Plan, result *dataplane.Result, worker string) {
	t.Helper()
	require.False(t, planned.Empty())
	require.Equal(t, planned.String(), result.Plan.String())
	require.Empty(t, result.Fallback, "%s", planned)
	if planned.Impact() == dataplane.ImpactReload {
		require.Equal(t, 1, result.Reloads, "%s", planned)
		require.NotEqual(t, worker, fmt.Sprint(result.WorkerPID))
		c.alone(t)
		now := c.worker()
		require.NotEmpty(t, now)
		require.NotEqual(t, worker, now)
		return
	}
	require.Zero(t, result.Reloads, "%s", planned)
	require.Equal(t, worker, c.worker(), "%s", planned)
}

// sameState checks that the process has the same in memory however it came to a
// configuration.
func (c *contract) sameState(t *testing.T, name string) {
	t.Helper()
	state := c.state(t)
	if first, ok := c.states[name]; ok {
		require.Equal(t, strings.Join(first, "\n"), strings.Join(state, "\n"))
	}
	c.states[name] = state
}

// isStored checks that reading back shows what was desired, and nothing else.
func (c *contract) isStored(t *testing.T, config *dataplane.Config) {
	t.Helper()
	current := c.current(t, config)
	plan, err := dataplane.Diff(current, config)
	require.NoError(t, err)
	require.True(t, plan.Empty(), "%s\n%s", plan, current.Main())
	if c.api { // it normalises the text
		plan, err = c.anew().DryRun(t.Context(), config)
		require.NoError(t, err)
		require.True(t, plan.Empty(), "%s\n%s", plan, current.Main())
	} else {
		require.Equal(t, config.Hash(), current.Hash())
	}
	for _, f := range config.Files() {
		got, _ := current.File(f.Kind, f.Name)
		require.Equal(t, string(f.Content), string(got.Content), "%s", f)
	}
	require.Len(t, c.names(t), len(config.Files()), "%s", c.names(t))
}

// isDone checks that nothing is left to do.
func (c *contract) isDone(t *testing.T, config *dataplane.Config) {
	t.Helper()
	worker := c.worker()
	again, err := c.Sync(t.Context(), config)
	require.NoError(t, err)
	require.True(t, again.Plan.Empty(), "%s", again.Plan)
	require.Zero(t, again.Reloads+again.Commands+again.Files)
	require.Equal(t, worker, c.worker())
}
