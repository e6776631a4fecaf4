// Command minimal is the smallest complete controller: copy this folder and change it. It
// serves each Service with the annotation example.com/host at that host, by a HAProxy on
// this machine. The Services come from a folder of manifests or a cluster.
//
//	minimal -manifests FOLDER
//	minimal [-kubeconfig FILE]
package main

import (
	"context"
	"embed"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/kit"
	"github.com/hapticsdk/haptic/reconcile/observe"
	"github.com/hapticsdk/haptic/reconcile/render"
	"github.com/hapticsdk/haptic/templating"
	"github.com/hapticsdk/haptic/validate"
)

//go:embed haproxy.cfg maps
var templates embed.FS

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], ":8080", filepath.Join(os.TempDir(), "haptic-minimal")); err != nil && !errors.Is(err, flag.ErrHelp) {
		slog.Error("the controller ends", "error", err)
		os.Exit(1)
	}
}

// run serves at an address until ctx ends. HAProxy's configuration is in the folder state.
func run(ctx context.Context, args []string, addr, state string) error {
	flags, from := flag.NewFlagSet("minimal", flag.ContinueOnError), kit.SourceFlags{}
	flags.StringVar(&from.Manifests, "manifests", "", "watch a `folder` of manifests in place of a cluster")
	flags.StringVar(&from.Kubeconfig, "kubeconfig", "", "`file` that says how to reach the cluster; empty: as kubectl")
	if err := flags.Parse(args); err != nil {
		return err
	}

	// Watch: two resources, read as one snapshot.
	source, err := from.Open(kit.SourceOptions{})
	if err != nil {
		return err
	}
	bus := eventbus.New(nil)
	var loop *reconcile.Loop
	watched := observe.NewGroup(bus, &k8swatch.GroupOptions{Debounce: -1, // the loop already holds back renders
		OnChange: func(context.Context, k8swatch.Changes) error { loop.Trigger("resources changed"); return nil }})
	services, err1 := k8swatch.Add[*corev1.Service](watched, source.Source, corev1.SchemeGroupVersion.WithResource("services"), nil)
	slices, err2 := k8swatch.Add[*discoveryv1.EndpointSlice](
		watched,
		source.Source,
		discoveryv1.SchemeGroupVersion.WithResource("endpointslices"),
		&k8swatch.Options{
			IndexBy: []string{"metadata.namespace", "metadata.labels['kubernetes.io/service-name']"}},
	)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}

	view := k8swatch.NewView(watched.Snapshot) // the loop holds back what breaks the configuration

	// Render, validate, deploy to the HAProxy that local runs.
	local, err := dataplane.NewLocal(dataplane.LocalOptions{Dir: state, Logger: slog.Default()})
	if err != nil {
		return err
	}
	vars := render.HostVars()
	vars["addr"], vars["socket"], vars["backends"] = addr, local.RuntimeSocket(), []*backend(nil)
	engine, err := templating.Compile(
		templates,
		&templating.Options{Vars: vars, Globals: map[string]any{"pathResolver": render.PathResolver{Layout: local.Layout()}}},
	)
	if err != nil {
		return err
	}
	loop, err = reconcile.New(reconcile.Options{
		Bus: bus, Targets: []reconcile.Target{local}, Validator: &validate.Validator{Layout: local.Layout(), User: dataplane.DefaultUser()},
		View: view,
		Renderer: &render.Templates{Engine: engine, Layout: local.Layout(), Input: func(ctx context.Context) (*render.Input, error) {
			all := view.Snapshot()
			vars["backends"] = backends(services.Read(all), slices.Read(all))
			return &render.Input{Vars: vars}, nil
		}},
	})
	if err != nil {
		return err
	}

	observer, err := observe.New(bus, observe.Subject{Loop: loop}, slog.Default()) // the log
	if err != nil {
		return err
	}
	source.Observe(observer.Health)
	bus.Start()
	defer bus.Close(context.WithoutCancel(ctx))
	var parts kit.Group
	source.Watch(&parts)
	parts.Go("watches", watched.Run)
	parts.Go("HAProxy", local.Run)
	parts.Go("observer", observer.Run)
	parts.Go("loop", func(ctx context.Context) error {
		if _, err := watched.WaitForSync(ctx); err != nil {
			return err
		}
		loop.Trigger("start")
		return loop.Run(ctx)
	})
	return parts.Run(ctx)
}

// backend is what templates see. Errors name the object in a field; only that is left out.
type backend struct {
	Name, Host string
	Servers    []server
	Service    *corev1.Service
}
type server struct {
	Address string
	Slice   *discoveryv1.EndpointSlice
}

func backends(services k8swatch.Reader[*corev1.Service], slices k8swatch.Reader[*discoveryv1.EndpointSlice]) (all []*backend) {
	for _, s := range services.List() {
		b := &backend{Name: fmt.Sprintf("%s_%s", s.Namespace, s.Name), Host: s.Annotations["example.com/host"], Service: s}
		if b.Host == "" {
			continue
		}
		for _, slice := range slices.Get(s.Namespace, s.Name) {
			for _, e := range slice.Endpoints {
				if ports := slice.Ports; len(e.Addresses) > 0 && len(ports) > 0 && ports[0].Port != nil && ptr.Deref(e.Conditions.Ready, true) {
					b.Servers = append(b.Servers, server{net.JoinHostPort(e.Addresses[0], fmt.Sprint(*ports[0].Port)), slice})
				}
			}
		}
		all = append(all, b)
	}
	return all
}
