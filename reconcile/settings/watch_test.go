package settings

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
	"github.com/hapticsdk/haptic/reconcile"
)

// TestLiveTellsOfItsWatchers: it says what the settings in use watch, again where that
// is more, and what changes of it, by the names of the settings.
func TestLiveTellsOfItsWatchers(t *testing.T) {
	runLive(t, func(ctx context.Context, t *testing.T, l *liveTest) {
		eventbus.Subscribe(l.bus, func(_ context.Context, d eventbus.Delivery[reconcile.IndexSynchronized]) {
			l.note("synchronized %v", d.Event.Resources)
		})
		eventbus.Subscribe(l.bus, func(_ context.Context, d eventbus.Delivery[reconcile.ResourceIndexUpdated]) {
			l.note("updated %+v", d.Event)
		})
		require.NoError(t, l.live.ApplyYAML(ctx, "s.yaml", []byte(liveSettings)))
		require.ElementsMatch(t, []string{"synchronized map[configs:1]", "applied, started [configs], stopped []"}, l.happened())
		l.source.Apply(k8swatchtest.Objects("apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: default, name: two}\n")...)
		require.Equal(t, []string{"updated {Resource:configs Created:1 Modified:0 Deleted:0 Objects:2}"}, l.happened())
		next := strings.Replace(liveSettings, "haproxyConfig", "  services: {apiVersion: v1, resources: services, store: on-demand}\nhaproxyConfig", 1)
		require.NoError(t, l.live.ApplyYAML(ctx, "s.yaml", []byte(next)))
		require.ElementsMatch(t, []string{"synchronized map[configs:2 services:1]", "applied, started [services], stopped []"}, l.happened())
		require.NoError(t, l.live.ApplyYAML(ctx, "s.yaml", []byte(strings.Replace(next, "# hello", "# welcome", 1))))
		require.Equal(t, []string{"applied, started [], stopped []"}, l.happened())
	})
}
