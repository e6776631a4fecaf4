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
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/cases"
	"github.com/hapticsdk/haptic/reconcile/command"
	"github.com/hapticsdk/haptic/reconcile/observe"
	"github.com/hapticsdk/haptic/reconcile/settings"
	"github.com/hapticsdk/haptic/validate"
)

func main() { command.Main(run) }

// run returns the exit code: 0, or 1 for an error.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	log, out := command.NewLog(stderr), observe.Printable(stdout)
	cfg, err := parseFlags(args, log)
	if err == nil {
		err = act(ctx, cfg, log, out)
	}
	return command.ExitCode(log, err)
}

// act does what the flags say.
func act(ctx context.Context, cfg *config, log *command.Log, out io.Writer) error {
	c := &controller{config: cfg, log: log, bus: eventbus.New(nil)}
	if c.test {
		return c.runCases(ctx, out)
	}
	for _, step := range []func() error{c.newSource, c.newLive, c.newLoop} {
		if err := step(); err != nil {
			return err
		}
	}
	return c.serve(ctx)
}

// controller is everything that runs, wired together.
type controller struct {
	*config
	log      *command.Log
	bus      *eventbus.Bus
	source   k8swatch.Source
	folder   *k8swatch.Folder // nil: a cluster
	local    *dataplane.Local // nil: Dataplane APIs
	election *command.Election
	live     *settings.Live
	loop     *reconcile.Loop
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
		c.election, err = command.NewElection(c.bus, k8swatch.ElectionOptions{Client: cluster.Clientset().CoordinationV1(),
			Namespace: c.namespace, Name: "haptic-settings", Logger: c.log.Logger})
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
		if c.local, err = dataplane.NewLocal(dataplane.LocalOptions{Dir: c.config.local, Logger: c.log.Logger,
			OnProcess: func(e dataplane.ProcessEvent) { eventbus.Publish(c.bus, reconcile.OfProcess(c.local.Name(), e)) }}); err != nil {
			return err
		}
	}
	c.live, err = settings.NewLive(settings.LiveOptions{
		Source: c.source, Bus: c.bus, Logger: c.log.Logger, Program: c.program(), Validator: validator,
		OnApply: func(p *settings.Program) {
			logging := p.Settings().Logging
			c.log.Follow(logging.Level, logging.Format)
		},
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

// serve runs everything until ctx ends, or something fails.
func (c *controller) serve(ctx context.Context) error {
	subject := observe.Subject{Loop: c.loop, Settings: c.live.State}
	if c.local == nil {
		subject.Discovery = c.live.Discovery()
	}
	observer := observe.New(c.bus, subject, c.log.Logger)
	p := &command.Process{Name: "controller", Flags: c.Flags, Bus: c.bus, Observer: observer}
	p.Watches = "what the settings in " + c.settings + " say"
	p.HAProxy, p.AtEnd = "pods that the settings select", "HAProxies behind Dataplane APIs serve on"
	deployed := false // by a process before this one
	if c.local != nil {
		p.HAProxy, p.AtEnd = "on this host: "+c.local.Layout().ConfigPath(), "HAProxy is stopped with this controller"
		p.Go("HAProxy", c.local.Run)
		observer.Health.CheckQuietly("haproxy", observe.ReadyToServe, c.local.Serving) // events tell of it
		observer.Health.Check("haproxy-master", observe.Reported, c.local.MasterAnswers)
		if previous, err := c.local.Current(ctx); err == nil {
			c.live.SetPrevious(previous)
			deployed = previous != nil
		}
	} else {
		p.Go("watches of instances", c.live.FollowPods)
	}
	if c.folder != nil {
		p.Go("manifests", c.folder.Run)
		observer.Health.Check("manifests", observe.Reported, func() error { return errors.Join(c.folder.Errors()...) })
	}
	if c.election != nil {
		p.Go("election", func(ctx context.Context) error {
			return c.election.Run(ctx, func(context.Context) { c.loop.LeadershipChanged() }, nil)
		})
	}
	p.Go("watches", c.live.Run)
	p.Go("settings", c.follow)
	p.Go("loop", func(ctx context.Context) error {
		if c.folder != nil && deployed {
			if err := c.folder.WaitForKnown(ctx); err != nil {
				return err
			}
		}
		return c.loop.Run(ctx)
	})
	return p.Run(ctx)
}

// follow applies the settings, now and whenever they change.
func (c *controller) follow(ctx context.Context) error {
	object, ok := strings.CutPrefix(c.settings, "configmap:")
	if namespace, name, both := strings.Cut(object, "/"); ok && both {
		return c.live.FollowConfigMap(ctx, namespace, name)
	}
	return c.live.FollowFile(ctx, c.settings)
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
