package settings

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
)

// rememberSettings have one entry of each sort; made() says which are rendered.
const rememberSettings = `
watchedResources:
  configs: {apiVersion: v1, resources: configmaps}
  services: {apiVersion: v1, resources: services}
  routes: {apiVersion: example.test/v1, resources: routes}
haproxyConfig:
  template: |
    # {{ made("main") }}
haproxySections:
  services.cfg:
    each: {resource: services, as: svc}
    template: |
      # {{ made(svc.Name) }}
      {% for c in resources.configs.Get(svc.Namespace, svc.Name) %}
      # {{ c.Data["k"] }}
      {% end %}
maps:
  all.map: {template: '{{ made("all") }} {{ len(resources.configs.List()) }}'}
  web.map: {template: '{{ made("web-only") }} {{ resources.configs.GetSingle("default", "web") != nil }}'}
  routes.map: {template: '{{ made("routes") }} {{ len(resources.routes.Get("default")) }}'}
`

func configMap(name, value string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: default, name: %s}\ndata: {k: %q}\n", name, value)
}

// TestProgramRemembers: an entry, or an item of one, is rendered again exactly
// when something changed that it read.
func TestProgramRemembers(t *testing.T) {
	const service = "apiVersion: v1\nkind: Service\nmetadata: {namespace: default, name: %s, labels: {now: %q}}\n"
	const route = "apiVersion: example.test/v1\nkind: Route\nmetadata: {namespace: %s, name: r}\n"
	for name, c := range map[string]struct{ change, want string }{
		"nothing that is watched":       {"apiVersion: v1\nkind: Secret\nmetadata: {namespace: default, name: s}\n", ""},
		"object under a key":            {configMap("web", "2"), "all web web-only"},
		"object under no key":           {configMap("nobody", "2"), "all"},
		"item":                          {fmt.Sprintf(service, "web", "2"), "web"},
		"new item":                      {fmt.Sprintf(service, "shop", "1"), "shop"},
		"untyped, of the prefix":        {fmt.Sprintf(route, "default"), "routes"},
		"untyped, of another namespace": {fmt.Sprintf(route, "other"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			runLive(t, func(ctx context.Context, t *testing.T, l *liveTest) {
				require.NoError(t, l.live.ApplyYAML(ctx, "s.yaml", []byte(rememberSettings)))
				l.happened()
				require.Equal(t, "all main routes web web-only", l.wereMade())
				l.source.Apply(k8swatchtest.Objects(c.change)...)
				l.happened()
				require.Equal(t, c.want, l.wereMade())
				full, err := l.live.Program().Render(ctx, withoutRevisions(l.live.stores()))
				require.NoError(t, err)
				require.Equal(t, full.Config.Main(), l.deployed(), "as if everything was rendered")
			})
		})
	}
}

// TestProgramAsksWhatAChangeCanAnswer: of many look-ups, a change asks those again that the
// object answers or answered.
func TestProgramAsksWhatAChangeCanAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := k8swatchtest.NewSource(manyIngresses(50)...)
		live, err := NewLive(LiveOptions{Source: source})
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = live.Run(ctx) })
		defer func() { stop(); running.Wait() }()
		require.NoError(t, live.ApplyYAML(ctx, "s.yaml", []byte(manyHead+"haproxySections:\n  backends.cfg:\n    each: {resource: services, as: svc}\n    template: |"+manyBackend)))
		render := func() (asked []string) {
			synctest.Wait()
			stores := live.stores()
			for name, store := range stores {
				get := store.Get
				store.Get = func(ctx context.Context, keys []string) ([]k8swatch.Object, error) {
					asked = append(asked, fmt.Sprint(name, keys))
					return get(ctx, keys)
				}
				stores[name] = store
			}
			_, err := live.Program().Render(ctx, stores)
			require.NoError(t, err)
			slices.Sort(asked)
			return slices.Compact(asked) // once to compare, once to render
		}
		require.Empty(t, render(), "settings are rendered before they take effect")
		slice := oneSlice("web7", "192.0.2.99")
		slice.Labels["kubernetes.io/service-name"] = "web8"
		source.Apply(slice)
		require.Equal(t, []string{"slices[shop web7]", "slices[shop web8]"}, render())
		source.Apply(oneSlice("web9", "192.0.2.98"))
		require.Equal(t, []string{"slices[shop web9]"}, render())
		require.Empty(t, render())
	})
}

// withoutRevisions are stores of which nothing is remembered.
func withoutRevisions(stores Stores) Stores {
	for name, store := range stores {
		store.Revision = 0
		stores[name] = store
	}
	return stores
}

// wereMade returns what made() was called with since, sorted.
func (l *liveTest) wereMade() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	made := l.made
	l.made = nil
	slices.Sort(made)
	return strings.Join(made, " ")
}

// TestProgramShared: what an entry has from another one is not remembered longer
// than that one's.
func TestProgramShared(t *testing.T) {
	runLive(t, func(ctx context.Context, t *testing.T, l *liveTest) {
		require.NoError(t, l.live.ApplyYAML(ctx, "s.yaml", []byte(`
watchedResources:
  configs: {apiVersion: v1, resources: configmaps}
  services: {apiVersion: v1, resources: services}
haproxyConfig:
  template: |
    # {{ shared.ComputeIfAbsent("n", func() any { return len(resources.configs.List()) }) }} in all
haproxySections:
  a.cfg:
    template: |
      # {{ shared.Get("n") }} in a, {{ len(resources.services.List()) }}
`)))
		l.happened()
		require.Contains(t, l.deployed(), "# 1 in a, 1")
		l.source.Apply(k8swatchtest.Objects(configMap("two", "2"))...)
		l.happened()
		require.Contains(t, l.deployed(), "# 2 in all\n# 2 in a, 1")
	})
}

// TestProgramQuarantine: one bad resource of any sort stops nobody, nor does it
// stop settings; what is wrong has its line in the settings.
func TestProgramQuarantine(t *testing.T) {
	const (
		watched = "watchedResources:\n  configs: {apiVersion: v1, resources: configmaps}\n  routes: {apiVersion: example.test/v1, resources: routes}\n"
		good    = "apiVersion: example.test/v1\nkind: Route\nmetadata: {namespace: default, name: good}\nspec: {text: fine}\n"
		bad     = "apiVersion: example.test/v1\nkind: Route\nmetadata: {namespace: default, name: worse}\nspec: {text: bad}\n"
	)
	for name, c := range map[string]struct {
		settings, objects, who, line string
		blind                        bool
	}{
		"typed, in a loop": {watched + `
haproxyConfig:
  template: |
    # start
    {% for c in resources.configs.List() %}
    # {{ c.Name }} {{ c.Data["k"] }}
    {% end %}
`, configMap("good", "fine") + "---\n" + configMap("worse", "bad"), "ConfigMap default/worse", "s.yaml:9", false},
		"typed, each": {watched + `
haproxyConfig: {template: "# start\n"}
haproxySections:
  c.cfg:
    each: {resource: configs, as: c}
    template: |
      # {{ c.Name }} {{ c.Data["k"] }}
`, configMap("good", "fine") + "---\n" + configMap("worse", "bad"), "ConfigMap default/worse", "s.yaml:10", false},
		"untyped, in a snippet": {watched + `
haproxyConfig:
  template: |
    # start
    {{ render "routes.cfg" }}
templateSnippets:
  routes.cfg:
    template: |
      {% for r in resources.routes.List() %}
      # {{ dig(r, "metadata.name") }} {{ dig(r, "spec.text") }}
      {% end %}
`, good + "---\n" + bad, "Route default/worse", "s.yaml:13", false},
		"read by its key, which no loop says": {watched + `
haproxyConfig:
  template: |
    # start {% if c := resources.configs.GetSingle("default", "good"); c != nil %}{{ c.Name }} {{ c.Data["k"] }}{% end %}
    # {% if c := resources.configs.GetSingle("default", "worse"); c != nil %}{{ c.Name }} {{ c.Data["k"] }}{% end %}
`, configMap("good", "fine") + "---\n" + configMap("worse", "bad"), "ConfigMap default/worse", "", true},
		"refused by the template": {watched + `
haproxyConfig:
  template: |
    # start
    {% for c in resources.configs.List() %}
    # {{ c.Name }} {% if c.Data["k"] == "bad" %}{{ fail("no") }}{% end %}
    {% end %}
`, configMap("good", "fine") + "---\n" + configMap("worse", "bad") + "---\n" + configMap("worst", "bad"), "ConfigMap default/worse", "s.yaml:9", false},
	} {
		t.Run(name, func(t *testing.T) {
			runLive(t, func(ctx context.Context, t *testing.T, l *liveTest) {
				l.validate = func(_ context.Context, cfg *dataplane.Config) error {
					v := &verdict{blind: c.blind}
					for i, line := range strings.Split(cfg.Main(), "\n") {
						if strings.Contains(line, " bad") {
							v.lines = append(v.lines, i+1)
						}
					}
					if len(v.lines) > 0 {
						return v
					}
					return nil
				}
				require.NoError(t, l.live.ApplyYAML(ctx, "s.yaml", []byte(c.settings)))
				l.happened()
				require.Contains(t, l.deployed(), "# start")
				l.source.Apply(k8swatchtest.Objects(c.objects)...)
				l.happened()
				held := l.loop.State().Quarantined
				require.NotEmpty(t, held, "%+v", l.loop.State())
				require.Equal(t, c.who, held[0].Resource.String())
				require.Contains(t, held[0].Fault.Template.String(), c.line)
				require.Contains(t, l.deployed(), "good")
				require.NotContains(t, l.deployed(), "worse ")

				// New settings do not have to do better than those before.
				next := strings.Replace(c.settings, "# start", "# begin", 1)
				require.NoError(t, l.live.ApplyYAML(ctx, "s.yaml", []byte(next)))
				l.happened()
				require.Contains(t, l.deployed(), "# begin")
				require.Contains(t, l.deployed(), "good")
				require.NotContains(t, l.deployed(), "worse ")
				// But they are tried with all.
				better := strings.ReplaceAll(strings.ReplaceAll(next, `{{ c.Data["k"] }}`, "x"), `{{ dig(r, "spec.text") }}`, "x")
				better = strings.ReplaceAll(better, `== "bad"`, `== "gone"`)
				require.NoError(t, l.live.ApplyYAML(ctx, "s.yaml", []byte(better)))
				l.happened()
				require.Empty(t, l.loop.State().Quarantined)
				require.Contains(t, l.deployed(), "worse ")
				// Settings for which a resource would have to go are refused.
				require.Error(t, l.live.ApplyYAML(ctx, "s.yaml", []byte(next)))
			})
		})
	}
}

// TestProgramReadsAllAndThoseUnderAnEmptyKey: one answer does not stand for the other.
func TestProgramReadsAllAndThoseUnderAnEmptyKey(t *testing.T) {
	runLive(t, func(ctx context.Context, t *testing.T, l *liveTest) {
		require.NoError(t, l.live.ApplyYAML(ctx, "s.yaml", []byte(`
watchedResources:
  configs: {apiVersion: v1, resources: configmaps}
haproxyConfig:
  template: |
    # {{ len(resources.configs.List()) }} {{ len(resources.configs.Get("")) }}
`)))
		l.happened()
		before := l.deployed()
		l.source.Apply(k8swatchtest.Objects(configMap("another", "1"))...)
		l.happened()
		require.NotEqual(t, before, l.deployed())
	})
}
