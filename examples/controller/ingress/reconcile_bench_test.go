package ingress

import (
	"context"
	"fmt"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/render"
)

// changing are routes of which one thing differs at each step.
type changing struct {
	routes *Routes
	gone   *Backend      // that comes in the next step; nil: the one in the middle goes
	input  time.Duration // that took so far
	cpu    time.Duration // of the process before
}

// cpu is what the process has used. It does not grow with what others do.
func cpu() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func newChanging(n int) *changing {
	return &changing{routes: Build(manyIngresses(n).cluster(), &Slots{})}
}

// moves gives a server of the backend in the middle another address.
func (c *changing) moves(i int) *Routes {
	next := *c.routes
	at := len(next.Backends) / 2
	b := *next.Backends[at]
	b.Servers = slices.Clone(b.Servers)
	b.Servers[0].Address = fmt.Sprintf("192.0.2.%d:8080", 1+i%200)
	next.Backends = slices.Clone(next.Backends)
	next.Backends[at] = &b
	return &next
}

// comes has the backend in the middle come or go, with its host and its path.
func (c *changing) comes(int) *Routes {
	next := *c.routes
	at := len(next.Backends) / 2
	if c.gone == nil {
		c.gone = next.Backends[at]
		next.Backends = slices.Delete(slices.Clone(next.Backends), at, at+1)
		next.Hosts = slices.Delete(slices.Clone(next.Hosts), at, at+1)
		next.Prefix = slices.Delete(slices.Clone(next.Prefix), at, at+1)
	} else {
		name := c.gone.Ingress.Name + ".test"
		next.Backends = slices.Insert(slices.Clone(next.Backends), at, c.gone)
		next.Hosts = slices.Insert(slices.Clone(next.Hosts), at, Host{name, "ns"})
		next.Prefix = slices.Insert(slices.Clone(next.Prefix), at, Path{name + "/", c.gone.Name, c.gone.Ingress})
		c.gone = nil
	}
	return &next
}

// templates render what change makes of the routes.
func (c *changing) templates(tb testing.TB, change func(i int) *Routes) *render.Templates {
	engine, err := Compile(os.DirFS("../templates"), dataplane.Layout{})
	require.NoError(tb, err)
	i := 0
	return &render.Templates{Engine: engine, Pure: true, Input: func(context.Context) (*render.Input, error) {
		began := time.Now()
		i++
		next := change(i)
		next.Keep(c.routes)
		c.routes = next
		in := next.Input(benchSettings)
		c.input += time.Since(began)
		return in, nil
	}}
}

// eachChange runs a benchmark for each kind of change, and size.
func eachChange(b *testing.B, run func(b *testing.B, c *changing, templates *render.Templates)) {
	for _, kind := range []string{"one_item_changes", "one_item_comes"} {
		for _, n := range []int{100, brief(1000), brief(10000)} {
			b.Run(fmt.Sprintf("%s/%d", kind, n), func(b *testing.B) {
				c := newChanging(n)
				change := c.moves
				if kind == "one_item_comes" {
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
