package settings

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
)

const lastGoodSettings = `
watchedResources:
  services: {apiVersion: v1, resources: services}
  slices: {apiVersion: discovery.k8s.io/v1, resources: endpointslices, indexBy: [metadata.namespace, "metadata.labels['kubernetes.io/service-name']"]}
  routes: {apiVersion: example.test/v1, resources: routes}
haproxyConfig:
  template: |
    # routes
    {% for r in resources.routes.List() %}
    # {{ r.spec.path }}
    {% end %}
haproxySections:
  services.cfg:
    each: {resource: services, as: svc}
    template: |
      # backend {{ svc.Name }}
      {% for s in resources.slices.Get(svc.Namespace, svc.Name) %}
      {% for e in s.Endpoints %}
      # server {{ svc.Name }} {{ e.Addresses[0] }}
      {% end %}
      {% end %}
      # note {{ svc.Annotations["note"] }}
`

func slice(name, service, address string) string {
	return fmt.Sprintf("apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {namespace: default, name: %s, labels: {kubernetes.io/service-name: %s}}\naddressType: IPv4\nendpoints: [{addresses: [%q]}]\n---\n", name, service, address)
}

// TestLastGoodOfStores: typed and untyped objects that turn bad are read as they were, by
// all that reads them, under the keys that they had.
func TestLastGoodOfStores(t *testing.T) {
	const route = "apiVersion: example.test/v1\nkind: Route\nmetadata: {namespace: default, name: r}\nspec: {path: %s}\n---\n"
	const service = "apiVersion: v1\nkind: Service\nmetadata: {namespace: default, name: %s, annotations: {note: %q}}\n---\n"
	runLive(t, func(ctx context.Context, t *testing.T, l *liveTest) {
		l.validate = func(_ context.Context, cfg *dataplane.Config) error {
			v, n := &verdict{}, 0
			for line := range strings.Lines(cfg.Main()) {
				if n++; strings.Contains(line, "bad") {
					v.lines = append(v.lines, n)
				}
			}
			if len(v.lines) == 0 {
				return nil
			}
			return v
		}
		change := func(manifests ...string) string {
			l.source.Apply(k8swatchtest.Objects(strings.Join(manifests, ""))...)
			l.happened()
			return l.deployed()
		}
		require.NoError(t, l.live.ApplyYAML(ctx, "s.yaml", []byte(lastGoodSettings)))
		good := change(fmt.Sprintf(route, "/a"), fmt.Sprintf(service, "web", "one"), fmt.Sprintf(service, "calm", "one"),
			slice("web-1", "web", "192.0.2.1"), slice("web-2", "web", "192.0.2.2"), slice("calm-1", "calm", "192.0.2.3"))
		require.Contains(t, good, "# server web 192.0.2.2\n")
		require.Contains(t, good, "# /a\n")

		require.Equal(t, good, change(fmt.Sprintf(route, "/bad"), fmt.Sprintf(service, "web", "bad"), slice("web-2", "web", "192.0.2.bad")))
		require.Len(t, l.loop.State().Quarantined, 3)
		for _, q := range l.loop.State().Quarantined {
			require.NotZero(t, q.Before, "%s", q)
		}
		now := change(slice("web-1", "web", "192.0.2.11"), fmt.Sprintf(service, "calm", "two"))
		require.Equal(t, strings.NewReplacer("192.0.2.1\n", "192.0.2.11\n", "calm\n# server calm 192.0.2.3\n# note one", "calm\n# server calm 192.0.2.3\n# note two").Replace(good), now)

		now = change(slice("web-2", "calm", "192.0.2.bad"))
		require.Contains(t, now, "# server web 192.0.2.2\n", "it is as it was, also its key")
		now = change(slice("web-2", "web", "192.0.2.4"), fmt.Sprintf(route, "/b"), fmt.Sprintf(service, "web", "three"))
		for _, line := range []string{"# server web 192.0.2.4\n", "# /b\n", "# note three\n"} {
			require.Contains(t, now, line)
		}
		require.Empty(t, l.loop.State().Quarantined)
	})
}
