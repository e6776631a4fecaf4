package settings

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
	"github.com/hapticsdk/haptic/reconcile"
)

// webRoute is a custom resource of the program.
type webRoute struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Host              string `json:"host"`
}

func (r *webRoute) DeepCopyObject() runtime.Object {
	c := *r
	r.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c
}

// TestLiveOfTypedSource: templates of settings read custom resources by name, also
// where the program has a type for them.
func TestLiveOfTypedSource(t *testing.T) {
	runLive(t, func(ctx context.Context, t *testing.T, l *liveTest) {
		types := runtime.NewScheme()
		types.AddKnownTypeWithName(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Route"}, &webRoute{})
		l.source.SetScheme(types)
		l.source.Apply(&webRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}, Host: "a.test"})
		text := strings.Replace(liveSettings, "{apiVersion: v1, resources: configmaps}", "{apiVersion: example.com/v1, resources: routes, indexBy: [host]}", 1)
		text = strings.Replace(text, "configs.List()", `configs.Get("a.test")`, 1)
		require.NoError(t, l.live.ApplyYAML(ctx, "s.yaml", []byte(strings.Replace(text, "c.Name", `dig(c, "metadata.name")`, 1))))
		require.NotEmpty(t, l.happened())
		require.Contains(t, l.deployed(), "# a\n")
	})
}

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
