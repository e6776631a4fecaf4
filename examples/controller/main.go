// Command controller is the reference ingress controller: Ingress resources of
// a cluster, or of a folder of manifests, served by a HAProxy on this host or
// by those behind Dataplane APIs. It is meant to be copied: this file wires the
// packages of haptic together, the folder ingress says what an Ingress means, and
// the templates say how that reads as configuration.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/record"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/examples/controller/ingress"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/discover"
	"github.com/hapticsdk/haptic/reconcile/fetch"
	"github.com/hapticsdk/haptic/reconcile/observe"
	"github.com/hapticsdk/haptic/reconcile/render"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run returns the exit code: 0, 1 for an error, or 2 for a difference that
// -once -dry-run found.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	stdout, stderr = observe.Printable(stdout), observe.Printable(stderr)
	log := slog.New(slog.NewTextHandler(stderr, nil))
	cfg, err := parseFlags(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err == nil && cfg.test != "" {
		err = testTemplates(ctx, cfg, log, stdout)
	} else if err == nil {
		var c *controller
		if c, err = newController(cfg, log, stdout); err == nil {
			defer c.close()
			if cfg.once {
				var different bool
				if different, err = c.once(ctx); err == nil && different {
					return 2
				}
			} else {
				err = c.run(ctx)
			}
		}
	}
	if err != nil {
		fmt.Fprintln(stderr, "error:", err)
		return 1
	}
	return 0
}

// controller is everything that runs, wired together.
type controller struct {
	cfg *config
	log *slog.Logger
	out io.Writer
	bus *eventbus.Bus

	cluster   *k8swatch.Cluster // or folder, never both
	folder    *k8swatch.Folder
	waiting   atomic.Bool      // for manifests, while what is deployed stays
	fixtures  *k8swatch.Static // of a case, in place of both
	watchers  *k8swatch.Group  // what a configuration is made of
	instances *k8swatch.Group  // which instances there are
	ingresses, classes, services, slices, secrets,
	pods, credentials *k8swatch.Watcher // the last two only where they are asked for

	scratch     string // folder to remove at the end, "" for none
	local       *dataplane.Local
	clients     discover.Clients
	endpointTLS *tls.Config // one value: another one is another endpoint
	settings    ingress.Settings
	layout      dataplane.Layout // where HAProxy finds its files
	finding     sync.Mutex       // held by discover, which start calls too
	slots       ingress.Slots
	addresses   ingress.Addresses // see addresses.go
	instancesAt atomic.Pointer[ingress.Listeners]
	hosts       ingress.Hosts
	routes      atomic.Pointer[ingress.Routes] // of the last render
	eachBackend bool                           // whether the templates have an entry for that
	templates   *render.Templates              // see render.go
	broken      atomic.Pointer[error]          // of templates; nil: they are in order
	http        fetch.Store                    // what templates fetch
	election    *k8swatch.Election             // nil: this process always leads
	handover    *handover                      // of the election
	loop        *reconcile.Loop

	backends    []net.Listener          // of the demo
	broadcaster record.EventBroadcaster // of Kubernetes Events, nil for a folder
	recorder    record.EventRecorder
}

func newController(cfg *config, log *slog.Logger, out io.Writer) (*controller, error) {
	c := &controller{cfg: cfg, log: log, out: out, bus: eventbus.New(nil)}
	for _, step := range []func() error{c.newWatchers, c.newTargets, c.newElection, c.newLoop, c.newDemo} {
		if err := step(); err != nil {
			c.close()
			return nil, err
		}
	}
	return c, nil
}

// close removes what a run leaves.
func (c *controller) close() {
	if c.broadcaster != nil {
		c.broadcaster.Shutdown()
	}
	for _, l := range c.backends {
		l.Close()
	}
	if c.scratch != "" {
		os.RemoveAll(c.scratch)
	}
}

// newTargets prepares the HAProxy on this host, or says how those behind
// Dataplane APIs are laid out; which those are is found out by discover.
func (c *controller) newTargets() (err error) {
	if c.cfg.remote() {
		c.layout = dataplane.Layout{Base: c.cfg.endpointBase}
		c.clients.Options = &dataplane.ClientOptions{Layout: c.layout}
		c.settings.Socket = c.cfg.endpointSocket
		c.endpointTLS = &tls.Config{ServerName: c.cfg.endpointName, MinVersion: tls.VersionTLS12}
	} else {
		dir := c.cfg.local
		if dir == "" {
			if c.scratch, err = os.MkdirTemp("", "haptic-"); err != nil {
				return err
			}
			if err := os.Chmod(c.scratch, 0o711); err != nil { // haproxy runs under an account of its own
				return err
			}
			dir = filepath.Join(c.scratch, "haproxy")
		}
		if c.local, err = dataplane.NewLocal(dataplane.LocalOptions{
			Dir: dir, Temporary: c.scratch != "", MaxOldWorkers: c.cfg.maxOldWorkers, Logger: c.log,
			OnProcess: func(e dataplane.ProcessEvent) { eventbus.Publish(c.bus, reconcile.OfProcess(c.local.Name(), e)) },
		}); err != nil {
			return err
		}
		c.layout, c.settings.Socket = c.local.Layout(), c.local.RuntimeSocket()
	}
	c.settings.HTTP, c.settings.HTTPS = c.cfg.httpAddr, c.cfg.httpsAddr
	c.settings.MaxConn = c.cfg.maxConn
	c.settings.HardStopAfter = fmt.Sprintf("%ds", int(c.cfg.hardStopAfter.Seconds()))
	c.slots.Step, c.hosts.Shared = c.cfg.spareSlots, c.cfg.sharedHosts
	return c.listen()
}

func (c *controller) newElection() (err error) {
	if !c.cfg.leaderElect {
		return nil
	}
	namespace, name, _ := strings.Cut(c.cfg.lease, "/")
	c.election, err = k8swatch.NewElection(&k8swatch.ElectionOptions{
		Client: c.cluster.Clientset().CoordinationV1(), Namespace: namespace, Name: name, Logger: c.log,
		OnLeader: func(id string) { eventbus.Publish(c.bus, reconcile.LeaderObserved{Identity: id}) },
	})
	return err
}

// start renders for the first time once everything that is watched is known.
func (c *controller) start(ctx context.Context) error {
	if err := c.awaitTemplates(ctx); err != nil {
		return err
	}
	begin := time.Now()
	if err := c.await(ctx); err != nil {
		return err
	}
	count := map[string]int{}
	for resource, state := range c.watchers.States() {
		count[resource.Resource] = state.Objects
	}
	eventbus.Publish(c.bus, reconcile.IndexSynchronized{Resources: count, Took: time.Since(begin)})
	if err := c.discover(ctx, k8swatch.Changes{}); err != nil {
		if c.cfg.once || c.credentials == nil {
			return err
		}
		c.log.Warn("waiting for credentials", "error", err) // a change of the Secret tries again
	}
	previous, err := c.deployed(ctx)
	if some := previous != nil && (c.local != nil || len(previous.Files()) > 0); c.folder != nil && !c.cfg.once && (some || err != nil) {
		c.waiting.Store(true)
		if err := c.folder.WaitForKnown(ctx); err != nil {
			return err
		}
		c.waiting.Store(false)
	}
	c.slots.Remember(previous) // endpoints keep the server that they had, and Secrets the certificate that was good
	c.hosts.Remember(previous) // and namespaces their hosts
	c.templates.SetPrevious(previous)
	return nil
}

// run serves until ctx ends.
func (c *controller) run(ctx context.Context) error {
	observer, debug := c.newDebug()
	c.printPlans()
	c.bus.Start()
	asked := ctx
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return c.sayStop(asked, ctx) })
	g.Go(func() error { return c.watchers.Run(ctx) })
	g.Go(func() error { return c.instances.Run(ctx) })
	g.Go(func() error { return c.http.Run(ctx) })
	g.Go(func() error { return observer.Run(ctx) })
	g.Go(func() error { return c.followCertificates(ctx) })
	if c.folder != nil {
		g.Go(func() error { return c.folder.Run(ctx) })
	}
	if c.local != nil {
		g.Go(func() error { return c.local.Run(ctx) })
	}
	if c.cfg.demo {
		g.Go(func() error { return c.runDemo(ctx) })
	}
	if c.election != nil {
		g.Go(func() error { return c.election.Run(ctx, c.lead) })
	}
	if c.cfg.debugAddr != "" {
		g.Go(func() error { return ofFlag("debug-addr", debug.Run(ctx)) })
	}
	g.Go(func() error {
		if err := c.start(ctx); err != nil {
			return err
		}
		c.loop.Trigger("start")
		return c.loop.Run(ctx)
	})
	err := g.Wait()
	end, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := c.bus.Close(end); err != nil {
		c.log.Warn("events not delivered", "error", err)
	}
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// sayStop says at the end that it was asked for, and what becomes of HAProxy.
func (c *controller) sayStop(asked, ctx context.Context) error {
	<-ctx.Done()
	what := "stopping: HAProxies behind Dataplane APIs serve on"
	if c.local != nil {
		what = "stopping: HAProxy is stopped with this controller"
	}
	if asked.Err() != nil {
		c.log.Info(what, "cause", context.Cause(asked))
	}
	return nil
}

// once is a preflight with -dry-run, and a single deployment without.
func (c *controller) once(ctx context.Context) (different bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return c.watchers.Run(ctx) })
	g.Go(func() error { return c.instances.Run(ctx) })
	if c.folder != nil {
		g.Go(func() error { return c.folder.Run(ctx) })
	}
	g.Go(func() error {
		defer cancel()
		if err := c.start(ctx); err != nil {
			return err
		}
		if c.folder != nil {
			if err := errors.Join(c.folder.Errors()...); err != nil {
				return err
			}
		}
		act := c.loop.Once
		if c.cfg.dryRun {
			act = c.loop.Preview
		}
		outcomes, err := act(ctx)
		for _, o := range outcomes {
			if o.Plan != nil {
				fmt.Fprintf(c.out, "%s:\n%s", o.Instance, o.Plan)
				different = different || c.cfg.dryRun && !o.Plan.Empty()
			}
		}
		for _, refused := range c.loop.State().Refused {
			if refused.Warning {
				c.log.Warn(refused.String())
				continue
			}
			err = errors.Join(err, errors.New(refused.String()))
		}
		for _, quarantined := range c.loop.State().Quarantined {
			err = errors.Join(err, fmt.Errorf("in quarantine: %s", quarantined))
		}
		return err
	})
	err = g.Wait() // different is known from here on
	return different, err
}
