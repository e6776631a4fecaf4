// Command settings is a controller that knows nothing of Ingresses: what it
// watches, what it renders from that and when it deploys stand in a file of
// settings or in a ConfigMap, and change while it runs.
//
//	settings -settings FILE|configmap:NAMESPACE/NAME [-manifests DIR | -kubeconfig FILE] [-local DIR] [-http-addr ADDRESS]
//
// The HAProxy is one on this host. The templates see two values of this program
// besides what the settings watch: httpAddress and runtimeSocket. testdata/settings.yaml is
// an example that serves Ingress resources. Settings that are not good are reported,
// with all that is wrong and the line of each, and those before stay in use.
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
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/observe"
	"github.com/hapticsdk/haptic/validate"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// config is what the flags say.
type config struct {
	settings, manifests, kubeconfig, local, httpAddr, debugAddr string
}

func parseFlags(args []string, stderr io.Writer) (*config, error) {
	c := &config{}
	fs := flag.NewFlagSet("settings", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&c.settings, "settings", "", "`FILE` of settings, or configmap:NAMESPACE/NAME")
	fs.StringVar(&c.manifests, "manifests", "", "watch a `folder` of manifests in place of a cluster")
	fs.StringVar(&c.kubeconfig, "kubeconfig", "", "`file` that says how to reach the cluster; empty: as kubectl does")
	fs.StringVar(&c.local, "local", "", "`folder` for the state of the HAProxy; required")
	fs.StringVar(&c.httpAddr, "http-addr", ":8080", "address for HTTP: httpAddress in templates")
	fs.StringVar(&c.debugAddr, "debug-addr", "127.0.0.1:9090", "loopback address for metrics, debug pages and probes; empty: none")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if c.settings == "" || c.local == "" || fs.NArg() > 0 {
		return nil, errors.New("-settings and -local are required, and nothing else than flags; -h lists them")
	}
	return c, nil
}

// run serves until ctx ends.
func run(ctx context.Context, args []string, stderr io.Writer) error {
	cfg, err := parseFlags(args, stderr)
	if err != nil {
		return err
	}
	level := &slog.LevelVar{}
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level}))
	bus := eventbus.New(nil)
	g, ctx := errgroup.WithContext(ctx)

	source, err := newSource(ctx, g, cfg, bus)
	if err != nil {
		return err
	}
	local, err := dataplane.NewLocal(dataplane.LocalOptions{Dir: cfg.local, Logger: log})
	if err != nil {
		return err
	}
	live, err := reconcile.NewLive(reconcile.LiveOptions{
		Source: source, Bus: bus, Logger: log,
		Program: reconcile.ProgramOptions{Layout: local.Layout(), Globals: map[string]any{
			"httpAddress": cfg.httpAddr, "runtimeSocket": local.RuntimeSocket(),
		}},
		OnApply: func(p *reconcile.Program) { _ = level.UnmarshalText([]byte(p.Settings().Logging.Level)) }, // checked before
	})
	if err != nil {
		return err
	}
	if previous, err := local.Current(ctx); err == nil {
		live.SetPrevious(previous)
	}
	loop, err := live.NewLoop(reconcile.Options{Validator: &validate.Validator{Layout: local.Layout()}, Targets: []reconcile.Target{local}})
	if err != nil {
		return err
	}
	report(bus, log)
	debug(ctx, g, cfg, log, bus, loop, live)
	bus.Start()
	g.Go(func() error { return local.Run(ctx) })
	g.Go(func() error { return live.Run(ctx) })
	g.Go(func() error { return loop.Run(ctx) })
	g.Go(func() error {
		object, ok := strings.CutPrefix(cfg.settings, "configmap:")
		if namespace, name, both := strings.Cut(object, "/"); ok && both {
			return live.FollowConfigMap(ctx, namespace, name)
		}
		return live.FollowFile(ctx, cfg.settings)
	})
	err = g.Wait()
	end, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := bus.Close(end); err != nil {
		log.Warn("events not delivered", "error", err)
	}
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// newSource says where resources come from.
func newSource(ctx context.Context, g *errgroup.Group, cfg *config, bus *eventbus.Bus) (k8swatch.Source, error) {
	if cfg.manifests == "" {
		return k8swatch.NewCluster(&k8swatch.ClusterOptions{Kubeconfig: cfg.kubeconfig})
	}
	folder, err := k8swatch.NewFolder(cfg.manifests, &k8swatch.FolderOptions{
		OnError: func(err error) { eventbus.Publish(bus, reconcile.SourceFailed{Err: err}) }})
	if err != nil {
		return nil, err
	}
	g.Go(func() error { return folder.Run(ctx) })
	return folder, nil
}

// debug serves metrics, debug pages and probes.
func debug(ctx context.Context, g *errgroup.Group, cfg *config, log *slog.Logger, bus *eventbus.Bus, loop *reconcile.Loop, live *reconcile.Live) {
	metrics := observe.NewMetrics(bus)
	if cfg.debugAddr == "" {
		return
	}
	server := &observe.Server{Addr: cfg.debugAddr, Metrics: metrics.Registry(), Logger: log,
		Ready: func() error { return observe.Ready(loop.State()) }}
	server.Register("state", func() any { return loop.State() })
	server.Register("settings", func() any { return live.State() })
	g.Go(func() error { return server.Run(ctx) })
}

// report logs what becomes of settings; the commentator speaks of the rest.
func report(bus *eventbus.Bus, log *slog.Logger) {
	observe.Comment(bus, log)
	eventbus.Subscribe(bus, eventbus.Lossless, func(_ context.Context, d eventbus.Delivery[reconcile.ConfigApplied]) {
		log.Info("settings are in use", "settings", d.Event)
	})
	eventbus.Subscribe(bus, eventbus.Lossless, func(_ context.Context, d eventbus.Delivery[reconcile.ConfigInvalid]) {
		log.Error("settings do not take effect", "settings", d.Event)
	})
}
