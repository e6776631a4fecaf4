// Command controller is the reference ingress controller. It serves Ingress resources of
// a cluster or of a folder of manifests. HAProxy runs on this host or behind Dataplane
// APIs. Copy it: this file wires the packages of haptic together, the folder ingress says
// what an Ingress means, and the templates print that as configuration.
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/examples/controller/ingress"
	"github.com/hapticsdk/haptic/examples/controller/status"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/discover"
	"github.com/hapticsdk/haptic/reconcile/endpoints"
	"github.com/hapticsdk/haptic/reconcile/fetch"
	"github.com/hapticsdk/haptic/reconcile/kit"
	"github.com/hapticsdk/haptic/reconcile/observe"
	"github.com/hapticsdk/haptic/reconcile/render"
)

func main() { kit.Main(run) }

// run returns the exit code: 0, 1 for an error, or 2 if -once -dry-run found a difference.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	log, out := kit.NewLog(stderr), observe.Printable(stdout)
	cfg, err := parseFlags(args, log)
	if err == nil {
		err = act(ctx, cfg, log.Logger, out)
	}
	return kit.ExitCode(log, err)
}

func act(ctx context.Context, cfg *config, log *slog.Logger, out io.Writer) error {
	if cfg.test != "" {
		return testTemplates(ctx, cfg, log, out)
	}
	if cfg.migrate {
		c := &controller{cfg: cfg, log: log, out: out, bus: eventbus.New(nil)}
		if err := c.newWatchers(); err != nil {
			return err
		}
		return c.migrate(ctx)
	}
	c, err := newController(cfg, log, out)
	if err != nil {
		return err
	}
	defer c.close()
	if cfg.once {
		return c.once(ctx)
	}
	return c.run(ctx)
}

// controller is everything that runs, wired together.
type controller struct {
	cfg *config
	log *slog.Logger
	out io.Writer
	bus *eventbus.Bus

	cluster                              *k8swatch.Cluster // or folder, never both
	folder                               *kit.Manifests
	fixtures                             *k8swatch.Static // of a case, in place of both
	source                               k8swatch.Source  // one of the three
	watchers                             *k8swatch.Group  // all resources of a configuration
	ingresses, services, slices, secrets watched
	opaque                               watched           // Secrets that annotations name; nil: none
	classes, configMaps                  *k8swatch.Watcher // the second is nil without TCP services

	scratch     string // folder to remove at the end, "" for none
	local       *dataplane.Local
	discovery   *discover.Follower // of instances behind Dataplane APIs, or nil
	settings    ingress.Settings
	pages       []dataplane.File // of -error-pages
	operator    operator
	layout      dataplane.Layout                    // where HAProxy finds its files
	model       *ingress.Model                      // of the renders
	feed        atomic.Pointer[k8swatch.Feed]       // its resources
	previous    atomic.Pointer[*dataplane.Config]   // the next render makes another model, which knows this configuration
	addresses   endpoints.Addresses                 // see addresses.go
	instancesAt atomic.Pointer[endpoints.Addresses] // addresses, with those of the current instances
	routes      atomic.Pointer[ingress.Routes]      // of the last render
	each        map[string]bool                     // entries whose template is written for one item
	templates   *render.Templates                   // see render.go
	broken      atomic.Pointer[error]               // what is wrong with the templates; nil: nothing
	http        fetch.Store                         // resources that templates fetch
	election    *kit.Election                       // nil: this process always leads
	loop        *reconcile.Loop
	status      *status.Writer // of Ingresses; nil: nothing writes it

	backends     []net.Listener // of the demo
	stopRecorder func()         // of Kubernetes Events, nil for a folder
}

func newController(cfg *config, log *slog.Logger, out io.Writer) (*controller, error) {
	c := &controller{cfg: cfg, log: log, out: out, bus: eventbus.New(nil)}
	for _, step := range []func() error{c.newWatchers, c.newTargets, c.newElection, c.newLoop, c.newDiscovery, c.newDemo} {
		if err := step(); err != nil {
			c.close()
			return nil, err
		}
	}
	return c, nil
}

func (c *controller) close() {
	if c.stopRecorder != nil {
		c.stopRecorder()
	}
	for _, l := range c.backends {
		l.Close()
	}
	if c.scratch != "" {
		os.RemoveAll(c.scratch)
	}
}

// newTargets prepares the HAProxy on this host, or the layout of those behind Dataplane
// APIs. newDiscovery finds out which instances there are.
func (c *controller) newTargets() (err error) {
	if c.cfg.remote() {
		c.layout = dataplane.Layout{Base: c.cfg.endpointBase}
		c.settings.Socket = c.cfg.endpointSocket
	} else {
		dir := c.cfg.local
		if dir == "" {
			if c.scratch, err = os.MkdirTemp("", "haptic-"); err != nil {
				return err
			}
			if err := os.Chmod(c.scratch, 0o711); err != nil { // haproxy runs under its own account
				return err
			}
			dir = filepath.Join(c.scratch, "haproxy")
		}
		if c.local, err = dataplane.NewLocal(dataplane.LocalOptions{
			Dir: dir, Temporary: c.scratch != "", MaxOldWorkers: c.cfg.maxOldWorkers, StopTimeout: c.cfg.stopTimeout, Stdout: c.out, Logger: c.log,
			OnProcess: func(e dataplane.ProcessEvent) {
				eventbus.Publish(c.bus, reconcile.HAProxyChanged{Instance: c.local.Name(), ProcessEvent: e})
			},
		}); err != nil {
			return err
		}
		c.layout, c.settings.Socket, c.settings.SpareBackends = c.local.Layout(), c.local.RuntimeSocket(), c.cfg.spareBackends
	}
	c.settings.HTTP, c.settings.HTTPS = c.cfg.httpAddr, c.cfg.httpsAddr
	c.settings.MaxConn = c.cfg.maxConn
	c.settings.HardStopAfter = fmt.Sprintf("%ds", int(c.cfg.hardStopAfter.Seconds()))
	if err := c.serves(); err != nil {
		return err
	}
	return c.listen()
}

func (c *controller) newElection() (err error) {
	if !c.cfg.leaderElect {
		return nil
	}
	namespace, name, _ := strings.Cut(c.cfg.lease, "/")
	c.election, err = kit.NewElection(c.bus, k8swatch.ElectionOptions{
		Client: c.cluster.Clientset().CoordinationV1(), Namespace: namespace, Name: name, Logger: c.log,
	})
	return err
}

// start waits for templates, resources and instances, and reads what is deployed. The
// first render comes after it.
func (c *controller) start(ctx context.Context) error {
	if err := c.awaitTemplates(ctx); err != nil {
		return err
	}
	if err := c.await(ctx); err != nil {
		return err
	}
	if err := c.awaitInstances(ctx); err != nil {
		return err
	}
	previous, err := c.deployed(ctx)
	if some := previous != nil && (c.local != nil || len(previous.Files()) > 0); c.folder != nil && !c.cfg.once && (some || err != nil) {
		if err := c.folder.WaitForKnown(ctx); err != nil {
			return err
		}
	}
	c.newModel(previous) // endpoints keep their server, Secrets their last good certificate, and namespaces their hosts
	c.templates.SetPrevious(previous)
	return nil
}

// run serves until ctx ends.
func (c *controller) run(ctx context.Context) error {
	observer, err := c.newObserver()
	if err != nil {
		return err
	}
	p := &kit.Process{Name: "controller", Flags: c.cfg.Flags, Bus: c.bus, Observer: observer, Local: c.local, Drain: c.cfg.drain}
	p.Watches, p.HAProxy = c.words()
	c.printPlans()
	c.watch(&p.Group)
	p.Go("http resources", c.http.Run)
	p.Go("certificates", c.followCertificates)
	if c.cfg.demo {
		p.Go("backends of the demo", c.runDemo)
	}
	if c.election != nil {
		p.Go("election", func(ctx context.Context) error {
			return c.election.Run(ctx, func(context.Context) { c.loop.LeadershipChanged() }, c.loop.LeadershipChanged)
		})
	}
	if c.status != nil {
		p.Go("status of Ingresses", c.status.Run)
	}
	p.Go("loop", func(ctx context.Context) error {
		if err := c.start(ctx); err != nil {
			return err
		}
		c.loop.Trigger("start")
		return c.loop.Run(ctx)
	})
	return p.Run(ctx)
}

// words describes the watched resources and the place of HAProxy, for the log.
func (c *controller) words() (watches, haproxy string) {
	watches = "manifests in " + c.cfg.manifests
	if c.cluster != nil {
		watches = fmt.Sprintf("namespace %s of %s", cmp.Or(c.cfg.namespaces.String(), "*"), c.cluster.RESTConfig().Host)
	}
	if c.cfg.pods != "" {
		return watches, fmt.Sprintf("pods %s of namespace %s", c.cfg.pods, c.cfg.podNamespace)
	}
	if len(c.cfg.endpoints) == 1 {
		return watches, "behind 1 Dataplane API"
	}
	return watches, fmt.Sprintf("behind %d Dataplane APIs", len(c.cfg.endpoints))
}

// watch adds the goroutines that follow resources.
func (c *controller) watch(g *kit.Group) {
	g.Go("watches", c.watchers.Run)
	if c.discovery != nil {
		g.Go("watches of instances", c.discovery.Run)
	}
	if c.folder != nil {
		g.Go("manifests", c.folder.Run)
	}
}

// once is a preflight with -dry-run, and otherwise a single deployment.
func (c *controller) once(ctx context.Context) error {
	g := &kit.Group{Log: c.log}
	c.watch(g)
	return g.Until(ctx, func(ctx context.Context) error {
		if err := c.start(ctx); err != nil {
			return err
		}
		if c.folder != nil {
			if err := c.folder.Check(); err != nil {
				return err
			}
		}
		return kit.Once(ctx, c.loop, c.cfg.dryRun, c.out, c.log)
	})
}
