// Command settings is a controller that knows nothing of Ingresses: what it
// watches, what it renders from that and when it deploys stand in a file of
// settings or in a ConfigMap, and change while it runs.
//
//	settings -settings FILE|configmap:NAMESPACE/NAME [-manifests DIR | -kubeconfig FILE] [-local DIR] [-leader-elect]
//	settings -settings FILE -test
//
// With -local the HAProxy is one on this host. Without, the instances are the pods
// that the settings select with dataplane.podSelector in one namespace, behind Dataplane
// APIs whose credentials are in the Secret of credentialsSecretRef. They speak https,
// and dataplane.tls says whom to trust. The templates see two values of this program besides
// what the settings watch: httpAddress and runtimeSocket. testdata/settings.yaml is an
// example that serves Ingress resources, testdata/routes.yaml one for a custom
// resource; -test runs the cases in them. Settings that are not good are reported, with all that is wrong and the
// line of each, and those before stay in use.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/cases"
	"github.com/hapticsdk/haptic/reconcile/observe"
	"github.com/hapticsdk/haptic/reconcile/settings"
	"github.com/hapticsdk/haptic/validate"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	stderr := observe.Printable(os.Stderr)
	err := run(ctx, os.Args[1:], observe.Printable(os.Stdout), stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(stderr, "error:", err)
		os.Exit(1)
	}
}

// controller is everything that runs, wired together.
type controller struct {
	*config
	log      *slog.Logger
	level    *slog.LevelVar
	bus      *eventbus.Bus
	source   k8swatch.Source
	folder   *k8swatch.Folder // nil: a cluster
	local    *dataplane.Local // nil: Dataplane APIs
	election *k8swatch.Election
	live     *settings.Live
	loop     *reconcile.Loop
}

// run serves until ctx ends.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	cfg, err := parseFlags(args, stderr)
	if err != nil {
		return err
	}
	c := &controller{config: cfg, level: &slog.LevelVar{}, bus: eventbus.New(nil)}
	c.log = slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: c.level}))
	if c.test {
		return c.runCases(ctx, stdout)
	}
	for _, step := range []func() error{c.newSource, c.newLive, c.newLoop} {
		if err := step(); err != nil {
			return err
		}
	}
	if err := c.serve(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// newSource says where resources come from.
func (c *controller) newSource() (err error) {
	if c.manifests != "" {
		opts := &k8swatch.FolderOptions{}
		if c.config.local != "" {
			opts.LastGood = filepath.Join(c.config.local, "manifests")
		}
		c.folder, err = k8swatch.NewFolder(c.manifests, opts)
		c.source = c.folder
		return err
	}
	cluster, err := k8swatch.NewCluster(&k8swatch.ClusterOptions{Kubeconfig: c.kubeconfig})
	if err != nil {
		return err
	}
	c.source = cluster
	if c.leaderElect {
		c.election, err = k8swatch.NewElection(&k8swatch.ElectionOptions{Client: cluster.Clientset().CoordinationV1(),
			Namespace: c.namespace, Name: "haptic-settings", Logger: c.log,
			OnLeader: func(id string) { eventbus.Publish(c.bus, reconcile.LeaderObserved{Identity: id}) }})
	}
	return err
}

// program says what templates have besides what the settings name.
func (c *controller) program() settings.ProgramOptions {
	opts := settings.ProgramOptions{Namespace: c.namespace, Globals: map[string]any{"httpAddress": c.httpAddr, "runtimeSocket": c.socket}}
	if c.local != nil {
		opts.Layout, opts.Globals["runtimeSocket"] = c.local.Layout(), c.local.RuntimeSocket()
	}
	return opts
}

func validator(layout dataplane.Layout) reconcile.Validator {
	return &validate.Validator{Layout: layout, User: dataplane.DefaultUser()}
}

func (c *controller) newLive() (err error) {
	if c.config.local != "" {
		if c.local, err = dataplane.NewLocal(dataplane.LocalOptions{Dir: c.config.local, Logger: c.log,
			OnProcess: func(e dataplane.ProcessEvent) { eventbus.Publish(c.bus, reconcile.OfProcess(c.local.Name(), e)) }}); err != nil {
			return err
		}
	}
	c.live, err = settings.NewLive(settings.LiveOptions{
		Source: c.source, Bus: c.bus, Logger: c.log, Program: c.program(), Validator: validator,
		OnApply: func(p *settings.Program) { _ = c.level.UnmarshalText([]byte(p.Settings().Logging.Level)) }, // checked before
	})
	return err
}

func (c *controller) newLoop() (err error) {
	opts := reconcile.Options{}
	if c.election != nil {
		opts.Leader = c.election
	}
	if c.local != nil {
		opts.Targets = []reconcile.Target{c.local}
	}
	c.loop, err = c.live.NewLoop(opts)
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

// serve runs everything until ctx ends, or something fails.
func (c *controller) serve(ctx context.Context) error {
	observer := observe.New(c.bus, observe.Subject{Loop: c.loop, Settings: c.live.State}, c.log)
	if c.local != nil {
		observer.Health.CheckQuietly("haproxy", observe.ReadyToServe, c.local.Serving) // events tell of it
		observer.Health.Check("haproxy-master", observe.Reported, c.local.MasterAnswers)
	}
	if c.folder != nil {
		observer.Health.Check("manifests", observe.Reported, func() error { return errors.Join(c.folder.Errors()...) })
	}
	debug := observer.Server()
	debug.Addr, debug.Token, debug.Logger = c.debugAddr, c.debugToken, c.log
	deployed := false // by a process before this one
	if c.local != nil {
		if previous, err := c.local.Current(ctx); err == nil {
			c.live.SetPrevious(previous)
			deployed = previous != nil
		}
	}
	c.bus.Start()
	asked := ctx
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return c.sayStop(asked, ctx) })
	g.Go(func() error { return c.live.Run(ctx) })
	g.Go(func() error {
		if c.folder != nil && deployed {
			if err := c.folder.WaitForKnown(ctx); err != nil {
				return err
			}
		}
		return c.loop.Run(ctx)
	})
	g.Go(func() error { return c.follow(ctx) })
	g.Go(func() error { return observer.Run(ctx) })
	if c.local != nil {
		g.Go(func() error { return c.local.Run(ctx) })
	} else {
		g.Go(func() error { return c.live.FollowPods(ctx) })
	}
	if c.folder != nil {
		g.Go(func() error { return c.folder.Run(ctx) })
	}
	if c.election != nil {
		g.Go(func() error { return c.election.Run(ctx, c.lead) })
	}
	if c.debugAddr != "" {
		g.Go(func() error { return debug.Run(ctx) })
	}
	err := g.Wait()
	end, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := c.bus.Close(end); err != nil {
		c.log.Warn("events not delivered", "error", err)
	}
	return err
}

// follow applies the settings, now and whenever they change.
func (c *controller) follow(ctx context.Context) error {
	object, ok := strings.CutPrefix(c.settings, "configmap:")
	if namespace, name, both := strings.Cut(object, "/"); ok && both {
		return c.live.FollowConfigMap(ctx, namespace, name)
	}
	return c.live.FollowFile(ctx, c.settings)
}

// lead is one term as leader.
func (c *controller) lead(ctx context.Context) {
	eventbus.Publish(c.bus, reconcile.LeaderBecame{Identity: c.election.Identity()})
	c.loop.LeadershipChanged()
	<-ctx.Done()
	eventbus.Publish(c.bus, reconcile.LeaderLost{Identity: c.election.Identity()})
}

// runCases is -test.
func (c *controller) runCases(ctx context.Context, out io.Writer) error {
	data, err := os.ReadFile(c.settings)
	if err != nil {
		return err
	}
	opts := c.program()
	program, err := settings.ParseProgram(c.settings, data, &opts)
	if err != nil {
		return err
	}
	runner := &cases.Runner{Renderer: program.CaseRenderer, Validator: validator(program.Settings().Layout())}
	results := runner.Run(ctx, program.Settings().Cases)
	fmt.Fprint(out, results)
	if len(results) == 0 || !results.Passed() {
		return errors.New("cases failed, or there are none")
	}
	return nil
}
