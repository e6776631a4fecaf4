package reconcile

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

// chaos is a fleet of instances of other versions and of this one, and all that
// may happen to it, at random. It checks whatever is deployed.
type chaos struct {
	*scene
	t     *testing.T
	rng   *rand.Rand
	w     *ward
	all   []*fakeTarget
	words map[string][]string // that an instance refuses
	here  []*fakeTarget
	texts map[string]string // of Ingresses
	lead  atomic.Bool
	hung  sync.Map // instances that hang
	valid sync.Map // hashes of what was validated
}

func newChaos(t *testing.T, seed uint64) *chaos {
	c := &chaos{t: t, rng: rand.New(rand.NewPCG(seed, 7)), w: newWard(t, map[string]string{"haproxy.cfg": loopTemplate}), texts: map[string]string{},
		all:   []*fakeTarget{old("e0", "x"), old("e1", "y"), old("e2", "x", "y"), {name: "e3"}, {name: "e4"}},
		words: map[string][]string{"e0": {"x"}, "e1": {"y"}, "e2": {"x", "y"}}}
	c.w.put("good")
	c.lead.Store(true)
	for _, f := range c.all {
		refuse := f.behave
		f.behave = func(ctx context.Context, cfg *dataplane.Config) error {
			if _, ok := c.valid.Load(cfg.Hash()); !ok {
				t.Errorf("%s gets what was not validated", f.name)
			}
			if !c.lead.Load() {
				t.Errorf("%s is called by a process that does not lead", f.name)
			}
			if _, hangs := c.hung.Load(f.name); hangs {
				<-ctx.Done()
				return ctx.Err()
			}
			if refuse != nil {
				return refuse(ctx, cfg)
			}
			return nil
		}
	}
	return c
}

func (c *chaos) options() Options {
	opts := c.w.options()
	opts.Targets, opts.Leader = []Target{c.all[3]}, leaderFunc(c.lead.Load)
	opts.Validator = ValidatorFunc(func(ctx context.Context, cfg *dataplane.Config) error {
		err := c.w.Validate(ctx, cfg)
		if err == nil {
			c.valid.Store(cfg.Hash(), true)
		}
		return err
	})
	c.here = []*fakeTarget{c.all[3]}
	return opts
}

// happen lets one random thing happen.
func (c *chaos) happen() {
	synctest.Wait() // no call is between its last look at who leads and the instance
	name := fmt.Sprintf("ing-%d", c.rng.IntN(5))
	switch c.rng.IntN(12) {
	case 0, 1:
		c.w.remove(name)
		delete(c.texts, name)
	case 2, 3, 4, 5:
		c.texts[name] = []string{"x", "y", "fine", "bad"}[c.rng.IntN(4)]
		c.w.put(name + "=" + c.texts[name])
	case 6, 7:
		c.here = nil
		var targets []Target
		for _, f := range c.all {
			if c.rng.IntN(2) == 0 {
				c.here, targets = append(c.here, f), append(targets, f)
			}
		}
		require.NoError(c.t, c.SetTargets(targets...))
	case 8:
		c.lead.Store(!c.lead.Load())
		if c.rng.IntN(2) == 0 {
			c.LeadershipChanged()
		}
	case 9:
		c.Release()
	case 10:
		if f := c.all[c.rng.IntN(len(c.all))]; c.rng.IntN(2) == 0 {
			c.hung.Store(f.name, true)
		} else {
			c.hung.Delete(f.name)
		}
	case 11:
		c.breaks(c.rng.IntN(2) == 0)
	}
	c.Trigger("random")
	pass(time.Duration(c.rng.IntN(10000)) * time.Millisecond)
}

// settled checks that what some instance refuses is left out, and nothing else.
func (c *chaos) settled() {
	refused := map[string]bool{}
	for _, f := range c.here {
		for _, word := range c.words[f.name] {
			refused[word] = true
		}
	}
	for name, text := range c.texts {
		out := text == "bad" || refused[text]
		for _, f := range c.here {
			require.Equal(c.t, !out, strings.Contains(" "+has(f)+" ", " "+name+" "), "%s of %s at %s", name, text, f.name)
		}
	}
	for _, e := range c.State().Instances {
		require.Zero(c.t, e.StaleSince, "%s: %s", e.Name, e.Error)
	}
}

// told checks the events of deployments: each has a beginning and at most one
// end, and no instance gets a configuration older than one that it had.
func (c *chaos) told() {
	inOrder(c.t, c.scene)
	c.mu.Lock()
	defer c.mu.Unlock()
	began, newest := map[string]uint64{}, map[string]uint64{}
	// A reconciliation that changes nothing leaves the one before deployed.
	hashOf, newestOf := map[uint64]string{}, map[string]uint64{}
	for _, e := range c.events {
		switch e := e.(type) {
		case ReconciliationCompleted:
			hashOf[e.ID], newestOf[e.Hash] = e.Hash, e.ID
		case DeploymentStarted:
			began[e.Instance] = e.ID
			require.GreaterOrEqual(c.t, max(e.ID, newestOf[hashOf[e.ID]]), newest[e.Instance], "%s gets an older one", e.Instance)
		case InstanceDeployed:
			require.Equal(c.t, began[e.Instance], e.ID, "%s: an end without a beginning", e.Instance)
			newest[e.Instance] = e.ID
			began[e.Instance] = 0
		case InstanceDeploymentFailed:
			if began[e.Instance] != 0 { // else a check failed
				require.Equal(c.t, began[e.Instance], e.ID)
				began[e.Instance] = 0
			}
		case InstancesChanged:
			for _, name := range e.Removed {
				delete(began, name)
				delete(newest, name)
			}
		}
	}
}

// breaks has the validator fail, or work again.
func (c *chaos) breaks(broken bool) {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	c.w.broken = nil
	if broken {
		c.w.broken = errors.New("haproxy is not there")
	}
}

// TestRandomFleets: whatever comes and goes, hangs and leads, in the end what some
// instance refuses is left out, and nothing else; all instances have the same, and
// keep it but for rare trials.
func TestRandomFleets(t *testing.T) {
	t.Parallel()
	for seed := range uint64(15) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			c := newChaos(t, seed)
			play(t, c.options(), func(s *scene) {
				c.scene = s
				start(s)
				for range 60 {
					c.happen()
				}
				synctest.Wait()
				c.lead.Store(true)
				c.hung.Clear()
				c.breaks(false)
				s.Trigger("calm")
				pass(3 * time.Hour) // every trial has been made
				c.settled()
				c.told()
				var before []int
				for _, f := range c.here {
					before = append(before, len(history(f)))
				}
				late := len(s.State().Quarantined)
				pass(6 * time.Hour)
				c.settled()
				for i, f := range c.here { // at most two trials of each: it comes, and it goes
					require.LessOrEqual(t, len(history(f))-before[i], 4*late, "%s flaps", f.name)
				}
			})
		})
	}
}
