// Command settings is a controller that knows nothing of Ingresses. A file of settings
// or a ConfigMap says what it watches, what it renders from that, and when it deploys.
// The settings may change while it runs. Try it in three steps: run the cases of the
// settings, see what the settings would deploy, and serve.
//
//	go run ./examples/settings -settings examples/settings/testdata/settings.yaml -test
//	go run ./examples/settings -settings examples/settings/testdata/settings.yaml -manifests examples/controller/demo -local /tmp/haptic -once -dry-run
//	go run ./examples/settings -settings examples/settings/testdata/settings.yaml -manifests examples/controller/demo -local /tmp/haptic
//
// With -local HAProxy runs on this host. Otherwise the instances are pods behind
// Dataplane APIs: dataplane.podSelector of the settings selects them in one namespace.
// Their credentials are in the Secret of credentialsSecretRef, or haptic-credentials.
// They speak https, and dataplane.tls says whom to trust. In a pod the environment says
// the rest: CONFIGMAP_NAME, SECRET_NAME and POD_NAMESPACE. A flag overrides it.
//
// Besides the resources of the settings, templates see two values of this program:
// httpAddress and runtimeSocket. testdata/settings.yaml serves Ingress resources,
// testdata/routes.yaml a custom resource. If new settings are bad, the program reports
// each mistake with its line, and keeps the settings before them.
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
	"github.com/hapticsdk/haptic/reconcile/kit"
	"github.com/hapticsdk/haptic/reconcile/observe"
	"github.com/hapticsdk/haptic/reconcile/settings"
	"github.com/hapticsdk/haptic/validate"
)

func main() { kit.Main(run) }

// run returns the exit code: 0, 1 for an error, or 2 if -once -dry-run found a difference.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	log, out := kit.NewLog(stderr), observe.Printable(stdout)
	cfg, err := parseFlags(args, log)
	if err == nil {
		err = act(ctx, cfg, log, out)
	}
	return kit.ExitCode(log, err)
}

func act(ctx context.Context, cfg *config, log *kit.Log, out io.Writer) error {
	c := &controller{config: cfg, log: log, out: out, bus: eventbus.New(nil), stopRecorder: func() {}}
	if c.test {
		return c.runCases(ctx)
	}
	defer func() { c.stopRecorder() }()
	for _, step := range []func() error{c.newSource, c.newLive, c.newLoop} {
		if err := step(); err != nil {
			return err
		}
	}
	if c.once {
		return c.runOnce(ctx)
	}
	return c.serve(ctx)
}

// controller is everything that runs, wired together.
type controller struct {
	*config
	log      *kit.Log
	out      io.Writer
	bus      *eventbus.Bus
	source   k8swatch.Source
	folder   *kit.Manifests    // nil: a cluster
	cluster  *k8swatch.Cluster // nil: a folder
	local    *dataplane.Local  // nil: Dataplane APIs
	election *kit.Election
	live     *settings.Live
	loop     *reconcile.Loop

	stopRecorder func() // of Kubernetes Events
}

// newSource opens the folder or the cluster.
func (c *controller) newSource() (err error) {
	if c.manifests != "" {
		opts := &k8swatch.FolderOptions{}
		if c.config.local != "" && !c.once {
			opts.LastGood = filepath.Join(c.config.local, "manifests")
		}
		folder, err := k8swatch.NewFolder(c.manifests, opts)
		c.folder, c.source = &kit.Manifests{Folder: folder}, folder
		return err
	}
	if c.cluster, err = k8swatch.NewCluster(&k8swatch.ClusterOptions{Kubeconfig: c.kubeconfig}); err != nil {
		return kit.OfCluster(err)
	}
	c.source = c.cluster
	if c.leaderElect {
		c.election, err = kit.NewElection(c.bus, k8swatch.ElectionOptions{Client: c.cluster.Clientset().CoordinationV1(),
			Namespace: c.namespace, Name: "haptic-settings", Logger: c.log.Logger})
	}
	return err
}

// program returns the values of this program that templates see besides the settings.
func (c *controller) program() settings.ProgramOptions {
	opts := settings.ProgramOptions{Namespace: c.namespace, Logging: settings.Logging{Level: c.log.Level(), Format: c.log.Format()}, Globals: map[string]any{"httpAddress": c.httpAddr, "runtimeSocket": c.socket}}
	if c.local != nil {
		opts.Layout, opts.Globals["runtimeSocket"] = c.local.Layout(), c.local.RuntimeSocket()
	}
	return opts
}

func (c *controller) validator(layout dataplane.Layout) reconcile.Validator {
	return &validate.Validator{Layout: layout, User: dataplane.DefaultUser(), Logger: c.log.Logger}
}

func (c *controller) newLive() (err error) {
	if c.config.local != "" {
		if c.local, err = dataplane.NewLocal(dataplane.LocalOptions{Dir: c.config.local, Logger: c.log.Logger,
			OnProcess: func(e dataplane.ProcessEvent) {
				eventbus.Publish(c.bus, reconcile.HAProxyChanged{Instance: c.local.Name(), ProcessEvent: e})
			}}); err != nil {
			return err
		}
	}
	c.live, err = settings.NewLive(settings.LiveOptions{
		Source: c.source, Bus: c.bus, Logger: c.log.Logger, Program: c.program(), Secret: c.secret, Validator: c.validator,
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
	if c.cluster != nil && !c.dryRun {
		opts.Recorder, c.stopRecorder = kit.NewRecorder(c.cluster, "haptic-settings", c.log.Logger)
	}
	c.loop, err = c.live.NewLoop(opts)
	return err
}

// newObserver makes the log, the metrics and the checks of the controller.
func (c *controller) newObserver() (*observe.Observer, error) {
	subject := observe.Subject{Loop: c.loop, Settings: c.live.State, HTTP: c.live.HTTP().Resources,
		Config: func() any { return map[string]any{"flags": c.Values(), "settings": c.live.InForce()} },
	}
	if c.local == nil {
		subject.Discovery = c.live.Discovery()
	}
	observer, err := observe.New(c.bus, subject, c.log.Logger)
	if err != nil {
		return nil, err
	}
	if c.folder != nil {
		observer.Health.Check("manifests", observe.Reported, c.folder.Check)
	}
	return observer, nil
}

// watch adds the goroutines that follow resources.
func (c *controller) watch(g *kit.Group) {
	g.Go("watches", c.live.Run)
	if c.folder != nil {
		g.Go("manifests", c.folder.Run)
	}
}

// serve runs everything until ctx ends, or something fails.
func (c *controller) serve(ctx context.Context) error {
	observer, err := c.newObserver()
	if err != nil {
		return err
	}
	p := &kit.Process{Name: "controller", Flags: c.Flags, Bus: c.bus, Observer: observer, Local: c.local,
		HAProxy: "pods that the settings select", Watches: "what " + c.settings + " says, in " + c.manifests}
	if c.cluster != nil {
		p.Watches = "what " + c.settings + " says, of " + c.cluster.RESTConfig().Host
	}
	c.watch(&p.Group)
	if c.local == nil {
		p.Go("watches of instances", c.live.FollowPods)
	}
	if c.election != nil {
		p.Go("election", func(ctx context.Context) error {
			return c.election.Run(ctx, func(context.Context) { c.loop.LeadershipChanged() }, c.loop.LeadershipChanged)
		})
	}
	p.Go("settings", func(ctx context.Context) error { return c.from(ctx, c.live.FollowConfigMap, c.live.FollowFile) })
	p.Go("loop", func(ctx context.Context) error {
		if c.deployed(ctx) && c.folder != nil {
			if err := c.folder.WaitForKnown(ctx); err != nil {
				return err
			}
		}
		return c.loop.Run(ctx)
	})
	return p.Run(ctx)
}

// deployed gives templates the configuration of a process before this one, and reports
// whether there is one. A new HAProxy behind a Dataplane API has a text, but no files.
func (c *controller) deployed(ctx context.Context) bool {
	if c.local == nil {
		previous := c.live.AwaitPods(ctx)
		return previous != nil && len(previous.Files()) > 0
	}
	previous, err := c.local.Current(ctx)
	if err != nil { // the first deployment replaces it
		c.log.Warn("the stored configuration cannot be read", "error", err)
	}
	c.live.SetPrevious(previous)
	return previous != nil
}

// runOnce is -once: one deployment or, with -dry-run, only its plan.
func (c *controller) runOnce(ctx context.Context) error {
	g := &kit.Group{Log: c.log.Logger}
	c.watch(g)
	return g.Until(ctx, func(ctx context.Context) error {
		if c.local != nil {
			c.deployed(ctx)
		}
		err := c.from(ctx, c.live.ApplyConfigMap, c.live.ApplyFile)
		if err == nil && c.folder != nil {
			err = c.folder.Check()
		}
		if err == nil && c.local == nil {
			err = c.live.FindPods(ctx)
		}
		if err != nil {
			return err
		}
		return kit.Once(ctx, c.loop, c.dryRun, c.out, c.log.Logger)
	})
}

// from reads the settings, from a ConfigMap or a file.
func (c *controller) from(ctx context.Context, cluster func(ctx context.Context, namespace, name string) error, file func(ctx context.Context, name string) error) error {
	object, ok := strings.CutPrefix(c.settings, configMap)
	if namespace, name, _ := strings.Cut(object, "/"); ok {
		return cluster(ctx, namespace, name)
	}
	return file(ctx, c.settings)
}

// runCases is -test.
func (c *controller) runCases(ctx context.Context) error {
	data, err := os.ReadFile(c.settings)
	if err != nil {
		return err
	}
	opts := c.program()
	program, err := settings.ParseProgram(c.settings, data, &opts)
	if err != nil {
		return err
	}
	validator := &validate.Validator{Layout: program.Settings().Layout(), User: dataplane.DefaultUser()}
	runner := &cases.Runner{Renderer: program.CaseRenderer, Validator: validator}
	results := runner.Run(ctx, program.Settings().Cases)
	fmt.Fprint(c.out, results)
	if len(results) == 0 {
		return errors.New("there are no cases: validationTests has them")
	}
	if !results.Passed() {
		return errors.New("cases failed")
	}
	return nil
}
