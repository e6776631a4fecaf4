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
	"iter"
	"log/slog"
	"net"
	"slices"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/examples/controller/ingress"
	"github.com/hapticsdk/haptic/examples/controller/migrate"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/endpoints"
	"github.com/hapticsdk/haptic/reconcile/fetch"
	"github.com/hapticsdk/haptic/reconcile/kit"
	"github.com/hapticsdk/haptic/reconcile/observe"
	"github.com/hapticsdk/haptic/reconcile/render"
	"github.com/hapticsdk/haptic/reconcile/status"
	"github.com/hapticsdk/haptic/validate"
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
	c := &controller{cfg: cfg, log: log, out: out, bus: eventbus.New(nil)}
	defer c.close()
	switch {
	case cfg.test != "":
		return c.test(ctx)
	case cfg.migrate:
		return c.migrate(ctx)
	}
	for _, step := range []func() error{c.newSource, c.newWatchers, c.newTargets, c.newLoop, c.newDemo} {
		if err := step(); err != nil {
			return err
		}
	}
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

	source   *kit.Source
	targets  *kit.Targets
	election *kit.Election // nil: this process always leads
	loop     *reconcile.Loop
	status   *publisher  // of Ingresses; nil: nothing writes it
	http     fetch.Store // resources that templates fetch

	watchers                             *k8swatch.Group // all resources of a configuration
	ingresses, services, slices, secrets watched
	opaque                               watched           // Secrets that annotations name; nil: none
	classes, configMaps                  *k8swatch.Watcher // the second is nil without TCP services
	ofCase                               bool              // the resources are those of a case

	settings    ingress.Settings
	pages       []dataplane.File // of -error-pages
	operator    operator
	model       *ingress.Model                      // of the renders
	feed        *k8swatch.Feed                      // its resources
	view        *k8swatch.View                      // what renders read
	previous    atomic.Pointer[*dataplane.Config]   // the next render makes another model, which knows this configuration
	addresses   endpoints.Addresses                 // see addresses.go
	instancesAt atomic.Pointer[endpoints.Addresses] // addresses, with those of the current instances
	routes      atomic.Pointer[ingress.Routes]      // of the last render
	each        map[string]bool                     // entries whose template is written for one item
	templates   *render.Templates                   // see templates.go
	broken      atomic.Pointer[error]               // what is wrong with the templates; nil: nothing

	backends []net.Listener // of the demo
}

func (c *controller) close() {
	for _, l := range c.backends {
		l.Close()
	}
	c.targets.Close()
	c.source.Close()
}

// newSource opens the cluster or the folder.
func (c *controller) newSource() (err error) {
	c.source, err = c.cfg.source.Open(kit.SourceOptions{State: c.cfg.targets.Local, Once: c.cfg.once})
	return err
}

// newTargets prepares the instances, and the settings that tell templates of them.
func (c *controller) newTargets() (err error) {
	if c.targets, err = c.cfg.targets.Open(kit.TargetOptions{Bus: c.bus, Stdout: c.out, Logger: c.log}); err != nil {
		return err
	}
	return cmp.Or(c.newSettings(), c.listen())
}

// newLoop makes the loop, with its renderer, validator, leader and status writer.
func (c *controller) newLoop() (err error) {
	c.http.Bus, c.http.OnChange = c.bus, func(reason string) { c.loop.Trigger(reason) }
	if err := c.newTemplates(); err != nil {
		return err
	}
	opts := reconcile.Options{
		Renderer:  c.templates,
		View:      c.view,
		Validator: &validate.Validator{Layout: c.targets.Layout, User: dataplane.DefaultUser(), Logger: c.log},
		Targets:   c.targets.OnThisHost(), Bus: c.bus, NoQuarantine: c.cfg.noQuarantine, BeginTerm: c.beginTerm,
	}
	c.cfg.intervals.Set(&opts)
	if c.election, err = c.cfg.leader.Election(c.source, c.bus, c.log); err != nil {
		return err
	}
	c.election.Set(&opts)
	if c.status, err = c.newPublisher(); err != nil {
		return err
	} else if c.status != nil {
		opts.Renderer = c.status.Renderer(opts.Renderer, func() iter.Seq[status.Item] { return c.statuses(c.routes.Load()) })
	}
	if !c.cfg.dryRun {
		opts.Recorder = c.source.Recorder("haptic", c.log)
	}
	if c.loop, err = reconcile.New(opts); err != nil {
		return err
	}
	return c.targets.Follow(c.source.Source, c.loop, c.listenAt)
}

// start waits for templates, resources and instances, and reads what is deployed. The
// first render comes after it.
func (c *controller) start(ctx context.Context) error {
	if err := c.awaitTemplates(ctx); err != nil {
		return err
	}
	if err := kit.AwaitSync(ctx, c.watchers, c.cfg.once); err != nil {
		return err
	}
	if err := c.targets.Wait(ctx, c.cfg.once); err != nil {
		return err
	}
	previous, deployed := c.targets.Current(ctx)
	if deployed && !c.cfg.once {
		if err := c.source.WaitForKnown(ctx); err != nil {
			return err
		}
	}
	c.holdDeployed(ctx, previous)
	c.newModel(previous) // endpoints keep their server, Secrets their last good certificate, and namespaces their hosts
	c.templates.SetPrevious(previous)
	return nil
}

// watch adds the parts that follow resources.
func (c *controller) watch(g *kit.Group) {
	g.Go("watches", c.watchers.Run)
	c.targets.Watch(g)
	c.source.Watch(g)
}

// newObserver makes metrics, log and checks of the controller. Call it before the bus starts.
//
// There are no traces without an exporter, which would bring gRPC to every user of the
// SDK. For traces copy traced.go of examples/traced here, and call its Export with
// c.bus. It works if OTEL_EXPORTER_OTLP_ENDPOINT is set.
func (c *controller) newObserver() (*observe.Observer, error) {
	subject := observe.Subject{
		Loop: c.loop, Config: c.cfg.public, HTTP: c.http.Resources,
		Watched: []func() map[schema.GroupVersionResource]k8swatch.State{c.watchers.States},
	}
	if c.targets.Discovery != nil {
		subject.Discovery = c.targets.Discovery
	}
	observer, err := observe.New(c.bus, subject, c.log)
	if err != nil {
		return nil, err
	}
	observer.Metrics.MustRegister(c.expiryMetric())
	c.source.Observe(observer.Health)
	if c.status != nil {
		observer.Health.Check("ingress-status", observe.Reported, c.status.Check)
	}
	if c.cfg.templates != "" {
		observer.Health.Check("templates", observe.ReadyToServe, c.templatesAreBroken)
	}
	return observer, nil
}

// run serves until ctx ends.
func (c *controller) run(ctx context.Context) error {
	observer, err := c.newObserver()
	if err != nil {
		return err
	}
	p := &kit.Process{Name: "controller", Flags: c.cfg.Flags, Bus: c.bus, Observer: observer, Watches: c.source.String(),
		Local: c.targets.Local, HAProxy: c.targets.String(), Drain: c.cfg.targets.Drain}
	if c.source.Cluster != nil {
		p.Watches = fmt.Sprintf("namespace %s of %s", cmp.Or(c.cfg.namespaces.String(), "*"), c.source)
	}
	c.printPlans()
	c.watch(&p.Group)
	p.Go("http resources", c.http.Run)
	p.Go("certificates", c.followCertificates)
	if c.cfg.demo {
		p.Go("backends of the demo", c.runDemo)
	}
	c.election.Watch(&p.Group, c.loop)
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

// once is a preflight with -dry-run, and otherwise a single deployment.
func (c *controller) once(ctx context.Context) error {
	g := &kit.Group{Log: c.log}
	c.watch(g)
	return g.Until(ctx, func(ctx context.Context) error {
		if err := c.start(ctx); err != nil {
			return err
		}
		if err := c.source.Check(); err != nil {
			return err
		}
		return kit.Once(ctx, c.loop, c.cfg.dryRun, c.out, c.log)
	})
}

// migrate is -migrate. It deploys nothing.
func (c *controller) migrate(ctx context.Context) error {
	if err := c.newSource(); err != nil {
		return err
	}
	if err := c.newWatchers(); err != nil {
		return err
	}
	g := &kit.Group{Log: c.log}
	c.watch(g)
	return g.Until(ctx, func(ctx context.Context) error {
		if err := kit.AwaitSync(ctx, c.watchers, true); err != nil {
			return err
		}
		all := c.watchers.Snapshot()
		ingresses, services := read[*networkingv1.Ingress](all, c.ingresses), read[*corev1.Service](all, c.services)
		secrets := read[*corev1.Secret](all, slices.Concat(c.secrets, c.opaque))
		_, err := fmt.Fprint(c.out, migrate.Report(ingresses.list(), services.list(), secrets.single))
		return err
	})
}
