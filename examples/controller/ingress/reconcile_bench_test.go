package ingress

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/render"
)

// changing is a cluster of which one thing differs at each step.
type changing struct {
	*state
	world *world
	input time.Duration // that took so far
	cpu   time.Duration // of the process before
}

// cpu is what the process has used. It does not grow with what others do.
func cpu() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func newChanging(n int) *changing {
	w := manyIngresses(n)
	return &changing{state: newBench(w), world: w}
}

// moves gives a server of the backend in the middle another address.
func (c *changing) moves(i int) {
	c.setEndpoint(c.world.ingresses[len(c.world.ingresses)/2].Name, i)
}

// bothMove gives a server of the first and one of the last backend another address.
func (c *changing) bothMove(i int) {
	c.setEndpoint(c.world.ingresses[0].Name, i)
	c.setEndpoint(c.world.ingresses[len(c.world.ingresses)-1].Name, i)
}

// comes has the Ingress in the middle come or go.
func (c *changing) comes(i int) {
	ing := c.world.ingresses[len(c.world.ingresses)/2]
	if i%2 == 0 {
		c.model.Ingresses.Delete(nameOf(ing))
	} else {
		c.model.Ingresses.Set(nameOf(ing), ing)
	}
}

// templates render what change makes of the routes.
func (c *changing) templates(tb testing.TB, change func(i int)) *render.Templates {
	engine, err := Compile(os.DirFS("../templates"), dataplane.Layout{})
	require.NoError(tb, err)
	i := 0
	return &render.Templates{Engine: engine, Pure: true, Input: func(context.Context) (*render.Input, error) {
		began := time.Now()
		i++
		change(i)
		in := c.routes(tb).Input(benchSettings)
		c.input += time.Since(began)
		return in, nil
	}}
}

// eachChange runs a benchmark for each kind of change, and size.
func eachChange(b *testing.B, run func(b *testing.B, c *changing, templates *render.Templates)) {
	for _, kind := range []string{"one_item_changes", "two_items_change", "one_item_comes"} {
		for _, n := range []int{100, brief(1000), brief(10000)} {
			b.Run(fmt.Sprintf("%s/%d", kind, n), func(b *testing.B) {
				c := newChanging(n)
				change := c.moves
				switch kind {
				case "two_items_change":
					change = c.bothMove
				case "one_item_comes":
					change = c.comes
				}
				run(b, c, c.templates(b, change))
				b.ReportMetric(float64((cpu()-c.cpu).Microseconds())/float64(b.N), "cpu-µs/op")
				b.ReportMetric(float64(c.input.Microseconds())/float64(b.N), "input-µs/op")
			})
		}
	}
}

// BenchmarkRenderChange is a render after a change of one Ingress.
func BenchmarkRenderChange(b *testing.B) {
	eachChange(b, func(b *testing.B, c *changing, templates *render.Templates) {
		_, err := templates.Render(b.Context())
		require.NoError(b, err)
		b.ReportAllocs()
		c.input, c.cpu = 0, cpu()
		for b.Loop() {
			if _, err := templates.Render(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkReconcile is a whole reconciliation after a change of one Ingress, without
// the validation and the instance.
func BenchmarkReconcile(b *testing.B) {
	eachChange(b, func(b *testing.B, c *changing, templates *render.Templates) {
		loop, err := reconcile.New(reconcile.Options{Renderer: templates, Targets: []reconcile.Target{idle{}}})
		require.NoError(b, err)
		_, err = loop.Once(b.Context())
		require.NoError(b, err)
		b.ReportAllocs()
		c.input, c.cpu = 0, cpu()
		for b.Loop() {
			if _, err := loop.Once(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// idle is a target that has whatever it shall have.
type idle struct{}

func (idle) Name() string { return "idle" }
func (idle) DryRun(context.Context, *dataplane.Config) (*dataplane.Plan, error) {
	return &dataplane.Plan{}, nil
}
func (idle) Sync(context.Context, *dataplane.Config, ...dataplane.SyncOption) (*dataplane.Result, error) {
	return &dataplane.Result{Plan: &dataplane.Plan{}}, nil
}
