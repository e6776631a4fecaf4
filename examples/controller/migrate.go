package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/examples/controller/migrate"
	"github.com/hapticsdk/haptic/reconcile/kit"
)

// printMigration is -migrate. It changes and deploys nothing.
func printMigration(ctx context.Context, cfg *config, log *slog.Logger, out io.Writer) error {
	c := &controller{cfg: cfg, log: log, bus: eventbus.New(nil)}
	if err := c.newSource(); err != nil {
		return err
	}
	if err := c.newWatchers(); err != nil {
		return err
	}
	g := &kit.Group{Log: log}
	g.Go("watches", c.watchers.Run)
	c.source.Watch(g)
	return g.Until(ctx, func(ctx context.Context) error {
		if err := kit.AwaitSync(ctx, c.watchers, true); err != nil {
			return err
		}
		all := c.watchers.Snapshot()
		_, err := fmt.Fprint(out, migrate.Report(read[*networkingv1.Ingress](ctx, all, c.ingresses).list(), read[*corev1.Service](ctx, all, c.services).list(),
			read[*corev1.Secret](ctx, all, slices.Concat(c.secrets, c.opaque)).single))
		return err
	})
}
