// Command routes watches a custom resource as a Go type, from a folder of manifests or
// a cluster. For each changed object it prints a line of a HAProxy map. Copy it to
// begin with a resource of your own.
//
//	routes [-manifests DIR]
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

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hapticsdk/haptic/k8swatch"
)

// Route sends requests for a host to a Service.
type Route struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              RouteSpec `json:"spec"`
}

// RouteSpec is the part of a Route that its author writes.
type RouteSpec struct {
	Host    string `json:"host"`
	Service string `json:"service"`
	Port    int32  `json:"port"`
}

// DeepCopyObject implements [runtime.Object]. A generator such as controller-gen writes
// it for types with pointers, slices and maps.
func (r *Route) DeepCopyObject() runtime.Object {
	c := *r
	r.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c
}

var (
	kind   = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Route"}
	routes = kind.GroupVersion().WithResource("routes")
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, slog.Default()); err != nil && !errors.Is(err, flag.ErrHelp) {
		slog.Error("routes ends", "error", err)
		os.Exit(1)
	}
}

// run prints until ctx ends.
func run(ctx context.Context, args []string, out io.Writer, log *slog.Logger) error {
	flags := flag.NewFlagSet("routes", flag.ContinueOnError)
	manifests := flags.String("manifests", "", "watch a `folder` of manifests; empty: the cluster of kubectl")
	if err := flags.Parse(args); err != nil {
		return err
	}

	// The types of the program, in a scheme of its own.
	types := runtime.NewScheme()
	types.AddKnownTypeWithName(kind, &Route{})

	g, ctx := errgroup.WithContext(ctx)
	source, err := newSource(ctx, g, *manifests, types, log)
	if err != nil {
		return err
	}
	watcher, err := k8swatch.New(source, routes, &k8swatch.Options{
		Logger: log, IndexBy: []string{"spec.host"}, // New refuses a path that Route does not have
		CallOnChangeDuringSync: true,
		OnChange:               func(ctx context.Context, c k8swatch.Changes) error { return show(ctx, out, c) },
	})
	if err != nil {
		return err
	}
	g.Go(func() error { return watcher.Run(ctx) })
	g.Go(func() error {
		_, err := watcher.WaitForSync(ctx)
		if errors.Is(err, k8swatch.ErrNotInstalled) || errors.Is(err, k8swatch.ErrForbidden) {
			log.Warn("waiting", "error", err) // the watcher tries again
		}
		return nil
	})
	return g.Wait()
}

func newSource(ctx context.Context, g *errgroup.Group, manifests string, types *runtime.Scheme, log *slog.Logger) (k8swatch.Source, error) {
	if manifests == "" {
		cluster, err := k8swatch.NewCluster(&k8swatch.ClusterOptions{Scheme: types})
		if errors.Is(err, k8swatch.ErrNoCluster) {
			err = fmt.Errorf("%w; give -manifests DIR", err)
		}
		return cluster, err
	}
	folder, err := k8swatch.NewFolder(manifests, &k8swatch.FolderOptions{Scheme: types,
		OnError: func(err error) { log.Error("manifest", "error", err) }}) // with file, line and field
	if err == nil {
		g.Go(func() error { return folder.Run(ctx) })
	}
	return folder, err
}

// show prints the changes. If their list is not complete it prints all routes.
func show(ctx context.Context, out io.Writer, c k8swatch.Changes) error {
	now := k8swatch.Read[*Route](c.Snapshot.Resource(routes))
	if c.More > 0 {
		fmt.Fprintf(out, "# all %d routes\n", now.Len())
		for r := range now.All() {
			fmt.Fprintf(out, "%s %s_%s_%d\n", r.Spec.Host, r.Namespace, r.Spec.Service, r.Spec.Port)
		}
		return nil
	}
	for _, o := range c.Objects {
		fmt.Fprintf(out, "# %s\n", o)
		if r := now.ByName(o.Namespace, o.Name); r != nil {
			fmt.Fprintf(out, "%s %s_%s_%d\n", r.Spec.Host, r.Namespace, r.Spec.Service, r.Spec.Port)
		}
	}
	return nil
}
