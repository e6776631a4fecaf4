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
	"strings"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
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
	c := &controller{config: cfg, log: log, out: out, bus: eventbus.New(nil)}
	if c.test {
		return c.runCases(ctx)
	}
	defer func() { c.source.Close() }()
	if err := c.wire(); err != nil {
		return err
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
	source   *kit.Source
	targets  *kit.Targets // nil: the settings say where Dataplane APIs are
	election *kit.Election
	live     *settings.Live
	loop     *reconcile.Loop
}

// wire makes all parts.
func (c *controller) wire() (err error) {
	if c.source, err = c.config.source.Open(kit.SourceOptions{State: c.local, Once: c.once}); err != nil {
		return err
	}
	if c.local != "" {
		host := kit.TargetFlags{Local: c.local}
		if c.targets, err = host.Open(kit.TargetOptions{Bus: c.bus, Logger: c.log.Logger}); err != nil {
			return err
		}
	}
	c.live, err = settings.NewLive(settings.LiveOptions{
		Source: c.source.Source, Bus: c.bus, Logger: c.log.Logger, Program: c.program(), Secret: c.secret, Validator: c.validator,
		OnApply: func(p *settings.Program) {
			logging := p.Settings().Logging
			c.log.Follow(logging.Level, logging.Format)
		},
	})
	if err != nil {
		return err
	}
	opts := reconcile.Options{Targets: c.targets.OnThisHost()}
	leader := kit.LeaderFlags{Elect: c.leaderElect, Lease: c.namespace + "/haptic-settings"}
	if c.election, err = leader.Election(c.source, c.bus, c.log.Logger); err != nil {
		return err
	}
	c.election.Set(&opts)
	if !c.dryRun {
		opts.Recorder = c.source.Recorder("haptic-settings", c.log.Logger)
	}
	c.loop, err = c.live.NewLoop(opts)
	return err
}

// program returns the values of this program that templates see besides the settings.
func (c *controller) program() settings.ProgramOptions {
	opts := settings.ProgramOptions{
		Namespace: c.namespace,
		Logging:   settings.Logging{Level: c.log.Level(), Format: c.log.Format()},
		Globals:   map[string]any{"httpAddress": c.httpAddr, "runtimeSocket": c.socket},
	}
	if c.targets != nil {
		opts.Layout, opts.Globals["runtimeSocket"] = c.targets.Layout, c.targets.Socket
	}
	return opts
}

func (c *controller) validator(layout dataplane.Layout) reconcile.Validator {
	return &validate.Validator{Layout: layout, User: dataplane.DefaultUser(), Logger: c.log.Logger}
}

// watch adds the parts that follow resources.
func (c *controller) watch(g *kit.Group) {
	g.Go("watches", c.live.Run)
	c.source.Watch(g)
}

// serve runs everything until ctx ends, or something fails.
func (c *controller) serve(ctx context.Context) (err error) {
	subject := observe.Subject{Loop: c.loop, Settings: c.live.State, HTTP: c.live.HTTP().Resources,
		Config: func() any { return map[string]any{"flags": c.Values(), "settings": c.live.InForce()} },
	}
	p := &kit.Process{Name: "controller", Flags: c.Flags, Bus: c.bus, HAProxy: "pods that the settings select",
		Watches: fmt.Sprintf("what %s says, of %s", c.settings, c.source)}
	if c.targets != nil {
		p.Local = c.targets.Local
	} else {
		subject.Discovery = c.live.Discovery()
		p.Go("watches of instances", c.live.FollowPods)
	}
	if p.Observer, err = observe.New(c.bus, subject, c.log.Logger); err != nil {
		return err
	}
	c.source.Observe(p.Observer.Health)
	c.watch(&p.Group)
	c.election.Watch(&p.Group, c.loop)
	p.Go("settings", func(ctx context.Context) error { return c.from(ctx, c.live.FollowConfigMap, c.live.FollowFile) })
	p.Go("loop", func(ctx context.Context) error {
		if c.deployed(ctx) {
			if err := c.source.WaitForKnown(ctx); err != nil {
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
	if c.targets == nil {
		previous := c.live.AwaitPods(ctx)
		return previous != nil && len(previous.Files()) > 0
	}
	previous, deployed := c.targets.Current(ctx)
	c.live.SetPrevious(previous)
	return deployed
}

// runOnce is -once: one deployment or, with -dry-run, only its plan.
func (c *controller) runOnce(ctx context.Context) error {
	g := &kit.Group{Log: c.log.Logger}
	c.watch(g)
	return g.Until(ctx, func(ctx context.Context) error {
		if c.targets != nil {
			c.deployed(ctx)
		}
		err := c.from(ctx, c.live.ApplyConfigMap, c.live.ApplyFile)
		if err == nil {
			err = c.source.Check()
		}
		if err == nil && c.targets == nil {
			err = c.live.FindPods(ctx)
		}
		if err != nil {
			return err
		}
		return kit.Once(ctx, c.loop, c.dryRun, c.out, c.log.Logger)
	})
}

// from reads the settings, from a ConfigMap or a file.
func (c *controller) from(
	ctx context.Context,
	cluster func(ctx context.Context, namespace, name string) error,
	file func(ctx context.Context, name string) error,
) error {
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
