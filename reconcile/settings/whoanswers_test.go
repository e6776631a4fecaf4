package settings

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
)

const poolsWatched = `
watchedResources:
  routes: {apiVersion: example.test/v1, resources: routes}
  pools: {apiVersion: example.test/v1, resources: pools}
`

func poolRoute(name string, more string) string {
	return fmt.Sprintf("apiVersion: example.test/v1\nkind: Route\nmetadata: {namespace: demo, name: %s}\nspec: {pool: shared%s}\n---\n", name, more)
}

func pool(name, address string) string {
	return fmt.Sprintf("apiVersion: example.test/v1\nkind: Pool\nmetadata: {namespace: demo, name: %s}\nspec: {address: %q, addresses: [%[2]q]}\n---\n", name, address)
}

// poolTemplates print an address of a pool for each route, as people write that.
var poolTemplates = map[string]string{
	"a variable": `haproxyConfig:
  template: |
    # start
    {% for r in resources.routes.List() %}
    {% p := resources.pools.GetSingle("demo", digString(r, "spec.pool")) %}
    # {{ r.metadata.name }} at {{ dig(p, "spec.address") }}
    {% end %}
`,
	"each, and a loop": `haproxyConfig: {template: "# start\n"}
haproxySections:
  routes.cfg:
    each: {resource: routes, as: r}
    template: |
      {% for p in resources.pools.Get("demo", digString(r, "spec.pool")) %}
      {% for a in digList(p, "spec.addresses") %}
      # {{ r.metadata.name }} at {{ a }}
      {% end %}
      {% end %}
`,
	"in a call": `haproxyConfig: {template: "# start\n"}
haproxySections:
  routes.cfg:
    each: {resource: routes, as: r}
    template: |
      # {{ r.metadata.name }} at {{ dig(resources.pools.GetSingle("demo", digString(r, "spec.pool")), "spec.address") }}
`,
	"a macro in a snippet": `haproxyConfig:
  template: |
    {% import "server.cfg" for Server %}
    # start
    {% for r in resources.routes.List() %}
    {% if p := resources.pools.GetSingle("demo", digString(r, "spec.pool")); p != nil %}
    {{ Server(digString(r, "metadata.name"), digString(p, "spec.address")) }}
    {% end %}
    {% end %}
templateSnippets:
  server.cfg:
    template: |
      {% macro Server(name, address string) %}# {{ name }} at {{ address }}{% end %}
`,
	"a template that fails": `haproxyConfig:
  template: |
    # start
    {% for r in resources.routes.List() %}
    {% p := resources.pools.GetSingle("demo", digString(r, "spec.pool")) %}
    {% if digString(p, "spec.address") == "bad" %}{{ fail("no address: " + digString(p, "spec.address")) }}{% end %}
    # {{ r.metadata.name }} at {{ dig(p, "spec.address") }}
    {% end %}
`,
}

// refusesBad takes no line that ends in the word "bad".
func refusesBad(_ context.Context, cfg *dataplane.Config) error {
	v := &verdict{}
	for i, line := range strings.Split(cfg.Main(), "\n") {
		if strings.HasSuffix(line, "bad") {
			v.lines = append(v.lines, i+1)
		}
	}
	if len(v.lines) == 0 {
		return nil
	}
	return v
}

// TestOneBadObjectOfManyRoutes: an object whose value is wrong in the lines of 200 others
// is named once, those go on with its earlier version, and all have the new one in the
// reconciliation that follows when it is mended.
func TestOneBadObjectOfManyRoutes(t *testing.T) {
	const routes = 200
	for name, templates := range poolTemplates {
		t.Run(name, func(t *testing.T) {
			runLive(t, func(ctx context.Context, t *testing.T, l *liveTest) {
				l.validate = refusesBad
				require.NoError(t, l.live.ApplyYAML(ctx, "s.yaml", []byte(poolsWatched+templates)))
				all := pool("shared", "one") + pool("other", "fine")
				for i := range routes {
					all += poolRoute(fmt.Sprint("r", i), "")
				}
				l.source.Apply(k8swatchtest.Objects(all)...)
				l.happened()
				require.Equal(t, routes, strings.Count(l.deployed(), " at one\n"), l.deployed())

				l.source.Apply(k8swatchtest.Objects(pool("shared", "bad"))...)
				l.happened()
				require.Equal(t, routes, strings.Count(l.deployed(), " at one\n"))
				held := l.loop.State().Quarantined
				require.Len(t, held, 1, "named once")
				require.Equal(t, "Pool demo/shared", held[0].Resource.String())
				require.Contains(t, held[0].String(), "the earlier version is served")

				l.source.Apply(k8swatchtest.Objects(poolRoute("new", ""))...)
				l.happened()
				require.Equal(t, routes+1, strings.Count(l.deployed(), " at one\n"), "a new one is served")

				begun := time.Now()
				l.source.Apply(k8swatchtest.Objects(pool("shared", "two"))...)
				l.happened()
				require.Equal(t, routes+1, strings.Count(l.deployed(), " at two\n"))
				require.Empty(t, l.loop.State().Quarantined)
				require.Less(t, time.Since(begun), time.Minute, "before any trial is due")
			})
		})
		t.Run(name+", from the start", func(t *testing.T) {
			runLive(t, func(ctx context.Context, t *testing.T, l *liveTest) {
				l.validate = refusesBad
				all := pool("shared", "bad") + pool("other", "fine")
				for i := range routes {
					all += poolRoute(fmt.Sprint("r", i), "")
				}
				all += strings.Replace(poolRoute("good", ""), "shared", "other", 1)
				l.source.Apply(k8swatchtest.Objects(all)...)
				require.NoError(t, l.live.ApplyYAML(ctx, "s.yaml", []byte(poolsWatched+templates)))
				l.happened()
				held := l.loop.State().Quarantined
				if strings.Contains(templates, "p != nil") || strings.Contains(templates, "for p in") {
					require.Len(t, held, 1, "named once")
				} // else the template needs a pool, which there is none of
				require.Equal(t, "Pool demo/shared", held[0].Resource.String())
				require.Contains(t, held[0].Fault.String(), "bad")
				require.Contains(t, l.deployed(), "# good at fine\n")
				l.source.Apply(k8swatchtest.Objects(pool("shared", "two"))...)
				l.happened()
				require.Equal(t, routes, strings.Count(l.deployed(), " at two\n"))
				require.Empty(t, l.loop.State().Quarantined)
			})
		})
	}
}

// TestTheOneThatChangedAnswers: of two objects whose values a line shows, that which was
// right before is not taken from the others that use it.
func TestTheOneThatChangedAnswers(t *testing.T) {
	const templates = `haproxyConfig:
  template: |
    # start
    {% for r in resources.routes.List() %}
    {% for p in resources.pools.Get("demo", digString(r, "spec.pool")) %}
    # {{ r.metadata.name }}{{ dig(r, "spec.text") }} at {{ dig(p, "spec.address") }}{{ dig(r, "spec.text") }}
    # {{ dig(r, "spec.text") }} {{ dig(p, "spec.address") }}
    {% end %}
    {% end %}
`
	runLive(t, func(ctx context.Context, t *testing.T, l *liveTest) {
		l.validate = refusesBadWords
		require.NoError(t, l.live.ApplyYAML(ctx, "s.yaml", []byte(poolsWatched+templates)))
		l.source.Apply(k8swatchtest.Objects(pool("shared", "one") + poolRoute("a", ", text: ''") + poolRoute("b", ", text: ''"))...)
		l.happened()
		l.source.Apply(k8swatchtest.Objects(poolRoute("b", ", text: bad") + poolRoute("c", ", text: bad"))...)
		l.happened()
		var names []string
		for _, q := range l.loop.State().Quarantined {
			names = append(names, q.Resource.String())
		}
		require.Equal(t, []string{"Route demo/b", "Route demo/c"}, names)
		require.Contains(t, l.deployed(), "# a at one\n")
		require.Contains(t, l.deployed(), "# b at one\n", "as it was")
	})
}

// TestNobodyIsRobbedOfWhatHeNames: a Route of another namespace that makes a wrong line of
// a pool is left out, and not the pool, which is new and which others use.
func TestNobodyIsRobbedOfWhatHeNames(t *testing.T) {
	const lines = `{% p := resources.pools.GetSingle("demo", digString(r, "spec.pool")) %}
    {% if p != nil %}
    LINE
    {% end %}`
	for name, body := range map[string]string{
		"pool last":  strings.Replace(lines, "LINE", `# {{ r.metadata.name }} {{ dig(r, "spec.text") }} at {{ dig(p, "spec.address") }}`, 1),
		"pool first": strings.Replace(lines, "LINE", `# {{ dig(p, "spec.address") }} of {{ r.metadata.name }} {{ dig(r, "spec.text") }}`, 1),
		"a macro":    strings.Replace(lines, "LINE", `{{ Line(digString(p, "spec.address") + " of " + digString(r, "metadata.name") + " " + digString(r, "spec.text")) }}`, 1),
		"it fails": strings.Replace(lines, "LINE", `{% if digString(r, "spec.text") == "bad" %}{{ fail(digString(p, "spec.address") + digString(r, "spec.text")) }}{% end %}`+
			"\n    # {{ dig(p, \"spec.address\") }} of {{ r.metadata.name }}", 1),
	} {
		t.Run(name, func(t *testing.T) {
			runLive(t, func(ctx context.Context, t *testing.T, l *liveTest) {
				l.validate = refusesBadWords
				require.NoError(t, l.live.ApplyYAML(ctx, "s.yaml", []byte(poolsWatched+`haproxyConfig:
  template: |
    {% macro Line(text string) %}# {{ raw(text) }}{% end %}
    {% for r in resources.routes.List() %}
    `+body+`
    {% end %}
`)))
				evil := strings.Replace(poolRoute("evil", ", text: bad"), "demo", "evil", 1)
				l.source.Apply(k8swatchtest.Objects(pool("other", "x") + evil + poolRoute("mine", ", text: ''"))...)
				l.happened()
				require.Empty(t, l.loop.State().Quarantined, "there is no pool yet")
				for _, address := range []string{"one", "two"} {
					l.source.Apply(k8swatchtest.Objects(pool("shared", address))...)
					l.happened()
					held := l.loop.State().Quarantined
					require.Len(t, held, 1)
					require.Equal(t, "Route evil/evil", held[0].Resource.String())
					require.Contains(t, l.deployed(), address)
					require.Contains(t, l.deployed(), "mine")
				}
			})
		})
	}
}

func refusesBadWords(_ context.Context, cfg *dataplane.Config) error {
	v := &verdict{}
	for i, line := range strings.Split(cfg.Main(), "\n") {
		if strings.Contains(line, "bad") {
			v.lines = append(v.lines, i+1)
		}
	}
	if len(v.lines) == 0 {
		return nil
	}
	return v
}
