package observe

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
)

// NewGroup returns a group of watchers that publishes on bus. Before OnSyncComplete it
// publishes [reconcile.IndexSynchronized], with the time since NewGroup. Before OnChange it
// publishes [reconcile.ResourceIndexUpdated] for each changed resource. If bus is nil, no
// events are published.
func NewGroup(bus *eventbus.Bus, opts *k8swatch.GroupOptions) *k8swatch.Group {
	if opts == nil {
		opts = &k8swatch.GroupOptions{}
	}
	own, begin := *opts, time.Now()
	var group *k8swatch.Group
	var last k8swatch.Changes // already published: a failed call comes again with the changes since
	own.OnSyncComplete = func(count int) {
		counts := map[string]int{}
		for _, w := range group.Watchers() {
			counts[w.Resource().Resource] += w.Snapshot().Len()
		}
		eventbus.Publish(bus, reconcile.IndexSynchronized{Resources: counts, Took: time.Since(begin)})
		if opts.OnSyncComplete != nil {
			opts.OnSyncComplete(count)
		}
	}
	own.OnChange = func(ctx context.Context, c k8swatch.Changes) error {
		if c.From != last.From {
			last = k8swatch.Changes{}
		}
		publish(bus, c, last.ByResource)
		last = k8swatch.Changes{From: c.From, ByResource: c.ByResource}
		if opts.OnChange == nil {
			return nil
		}
		return opts.OnChange(ctx, c)
	}
	group = k8swatch.NewGroup(&own)
	return group
}

// publish publishes changes, except those already published.
func publish(bus *eventbus.Bus, c k8swatch.Changes, last map[schema.GroupVersionResource]k8swatch.Counts) {
	resources := make([]schema.GroupVersionResource, 0, len(c.ByResource))
	for gvr := range c.ByResource {
		resources = append(resources, gvr)
	}
	slices.SortFunc(resources, func(a, b schema.GroupVersionResource) int {
		return cmp.Or(strings.Compare(a.Resource, b.Resource), strings.Compare(a.String(), b.String()))
	})
	for _, gvr := range resources {
		n, before := c.ByResource[gvr], last[gvr]
		e := reconcile.ResourceIndexUpdated{Resource: gvr.Resource, Created: n.Created - before.Created,
			Modified: n.Modified - before.Modified, Deleted: n.Deleted - before.Deleted, Objects: c.Snapshot.Count(gvr)}
		if n != before {
			eventbus.Publish(bus, e)
		}
	}
}
