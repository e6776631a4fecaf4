package settings

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hapticsdk/haptic/dataplane"
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

// TestPodsThatSettingsWatch: settings that watch the pods of HAProxy themselves share the
// watcher, and the instances follow it all the same.
func TestPodsThatSettingsWatch(t *testing.T) {
	inDiscovery(t, func(t *testing.T, d *discovery) {
		text := strings.Replace(fmt.Sprintf(discoverySettings, "", "credentials"), "haproxyConfig", "  mine: {apiVersion: v1, resources: pods, namespace: edge, labelSelector: app=haproxy}\nhaproxyConfig", 1)
		require.NoError(t, d.live.ApplyYAML(t.Context(), "s.yaml", []byte(text)))
		pass(time.Second)
		require.Len(t, d.live.current.watchers, 3)
		require.Same(t, d.live.current.watchers["mine"], d.live.current.watchers[haproxyPods])
		d.source.Apply(k8swatchtest.Objects(`
apiVersion: v1
kind: Pod
metadata: {name: haproxy-0, namespace: edge, labels: {app: haproxy}}
status: {podIP: 127.0.0.1, containerStatuses: [{name: dataplane, ready: true, state: {running: {}}}]}
`)...)
		pass(time.Second)
		var names []string
		for _, i := range d.loop.State().Instances {
			names = append(names, i.Name)
		}
		require.Equal(t, []string{"edge/haproxy-0"}, names)
	})
}

// TestEventsOfARenamedResource: a watcher that goes on under another name tells that
// name, and nothing of settings that are only being checked.
func TestEventsOfARenamedResource(t *testing.T) {
	runLive(t, func(ctx context.Context, t *testing.T, l *liveTest) {
		eventbus.Subscribe(l.bus, func(_ context.Context, d eventbus.Delivery[reconcile.IndexSynchronized]) { l.note("synchronized") })
		eventbus.Subscribe(l.bus, func(_ context.Context, d eventbus.Delivery[reconcile.ResourceIndexUpdated]) {
			l.note("updated %s", d.Event.Resource)
		})
		config := func(name string) {
			l.source.Apply(k8swatchtest.Objects("apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: default, name: " + name + "}\n")...)
		}
		l.check = nil
		l.validate = func(context.Context, *dataplane.Config) error {
			if l.live.Program() == nil { // while the first settings are tried
				config("early")
				time.Sleep(time.Second)
			}
			return nil
		}
		require.NoError(t, l.live.ApplyYAML(ctx, "s.yaml", []byte(liveSettings)))
		events := l.happened()
		require.Contains(t, events, "synchronized")
		require.NotEqual(t, "updated configs", events[0], events)
		require.NoError(t, l.live.ApplyYAML(ctx, "s.yaml", []byte(strings.ReplaceAll(strings.Replace(liveSettings, "configs:", "maps:", 1), "resources.configs", "resources.maps"))))
		require.Equal(t, []string{"applied, started [], stopped []"}, l.happened())
		config("late")
		require.Equal(t, []string{"updated maps"}, l.happened())
	})
}
