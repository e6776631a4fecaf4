package settings

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
	"github.com/hapticsdk/haptic/reconcile/cases"
)

// eachSettings render a section and two lines of a map for each object of a kind
// that client-go does not know.
const eachSettings = `
watchedResources:
  routes: {apiVersion: example.test/v1, resources: routes}
  configs: {apiVersion: v1, resources: configmaps}
haproxyConfig: {template: "# start\n"}
haproxySections:
  routes.cfg:
    each: {resource: routes, as: route}
    template: |
      # {{ made(digString(route, "metadata.name")) }} to {{ route.spec.to }}
      {% for c in resources.configs.Get("default", digString(route, "metadata.name")) %}
      # with {{ c.Data["k"] }}
      {% end %}
maps:
  hosts.map:
    each: {resource: routes, as: route}
    template: |
      {% for host in digList(route, "spec.hosts") %}
      {{ host }} {{ route.metadata.name }}
      {% end %}
`

func route(name, to string, hosts ...string) string {
	return fmt.Sprintf("apiVersion: example.test/v1\nkind: Route\nmetadata: {namespace: default, name: %s}\nspec: {to: %q, hosts: [%s]}\n",
		name, to, strings.Join(hosts, ", "))
}

// TestEachUntyped: each is for objects of any kind, and a change of one of them
// costs the render of that one.
func TestEachUntyped(t *testing.T) {
	runLive(t, func(ctx context.Context, t *testing.T, l *liveTest) {
		l.source.Apply(k8swatchtest.Objects(route("a", "one", "a.test", "b.test") + "---\n" + route("b", "two", "c.test"))...)
		require.NoError(t, l.live.ApplyYAML(ctx, "s.yaml", []byte(eachSettings)))
		l.happened()
		require.Equal(t, "a b", l.wereMade())
		require.Equal(t, "# start\n# a to one\n# b to two\n", l.deployed())
		for _, c := range []struct{ change, made, text string }{
			{route("b", "three", "c.test"), "b", "# start\n# a to one\n# b to three\n"},
			{route("c", "four"), "c", "# start\n# a to one\n# b to three\n# c to four\n"},
			{configMap("a", "more"), "a", "# start\n# a to one\n# with more\n# b to three\n# c to four\n"},
			{"apiVersion: v1\nkind: Secret\nmetadata: {namespace: default, name: s}\n", "", "# start\n# a to one\n# with more\n# b to three\n# c to four\n"},
		} {
			l.source.Apply(k8swatchtest.Objects(c.change)...)
			l.happened()
			require.Equal(t, c.made, l.wereMade(), c.change)
			require.Equal(t, c.text, l.deployed(), c.change)
		}
		l.source.Delete(k8swatchtest.Objects(route("a", "one"))...)
		l.happened()
		require.Empty(t, l.wereMade())
		require.Equal(t, "# start\n# b to three\n# c to four\n", l.deployed())
		require.Equal(t, "c.test b", strings.TrimSpace(l.deployedFile("hosts.map")))
	})
}

// TestEachUntypedFaults: what is wrong with one object names it and the line of the
// settings; the others are served.
func TestEachUntypedFaults(t *testing.T) {
	for name, c := range map[string]struct{ spec, want string }{
		"of another type":       {"{to: x, hosts: 5}", "s.yaml:18: maps['hosts.map'].template: digList: spec.hosts is a int64, not a list for Route default/bad"},
		"not what can be there": {`{to: "x\ny"}`, "s.yaml:10:"},
		"missing":               {"{}", "s.yaml:10:"},
		"refused by haproxy":    {"{to: bad}", `s.yaml:10: haproxySections['routes.cfg'].template: unknown keyword "bad"; rendered as line 2 of haproxy.cfg for Route default/bad`},
	} {
		t.Run(name, func(t *testing.T) {
			runLive(t, func(ctx context.Context, t *testing.T, l *liveTest) {
				l.validate = func(_ context.Context, cfg *dataplane.Config) error {
					for i, line := range strings.Split(cfg.Main(), "\n") {
						if strings.HasSuffix(line, "to bad") {
							return &verdict{lines: []int{i + 1}}
						}
					}
					return nil
				}
				l.source.Apply(k8swatchtest.Objects(route("good", "one"))...)
				require.NoError(t, l.live.ApplyYAML(ctx, "s.yaml", []byte(eachSettings)))
				l.happened()
				l.source.Apply(k8swatchtest.Objects("apiVersion: example.test/v1\nkind: Route\nmetadata: {namespace: default, name: bad}\nspec: " + c.spec + "\n---\n" + route("good", "two"))...)
				l.happened()
				held := l.loop.State().Quarantined
				require.Len(t, held, 1, "%+v", l.loop.State())
				require.Equal(t, "Route default/bad", held[0].Resource.String())
				require.Contains(t, held[0].Fault.String(), c.want)
				require.Contains(t, held[0].Fault.String(), "for Route default/bad")
				require.Equal(t, "# start\n# good to two\n", l.deployed())

				l.source.Apply(k8swatchtest.Objects(route("bad", "three"))...)
				l.happened()
				require.Empty(t, l.loop.State().Quarantined)
				require.Equal(t, "# start\n# bad to three\n# good to two\n", l.deployed())
			})
		})
	}
}

// TestEachUntypedMistakes: what is wrong for every object is found before settings
// take effect, where it can be, with what to write instead.
func TestEachUntypedMistakes(t *testing.T) {
	for name, c := range map[string]struct{ old, new, want string }{
		"a loop":      {`digList(route, "spec.hosts")`, "route.spec.hosts", `s.yaml:18:32: maps['hosts.map'].template: cannot range over route.spec.hosts (type interface {}); digList(route, "spec.hosts") is a list`},
		"a variable":  {"route.spec.to", "rout.spec.to", "s.yaml:10:61: haproxySections['routes.cfg'].template: undefined: rout"},
		"a resource":  {"resource: routes, as: route}\n    template: |\n      # ", "resource: rotes, as: route}\n    template: |\n      # ", `s.yaml:8:22: haproxySections['routes.cfg'].each.resource: "rotes" is not in watchedResources; did you mean routes?`},
		"fetched":     {"resources: routes}", "resources: routes, store: on-demand}", "s.yaml:8:22: haproxySections['routes.cfg'].each.resource: routes is fetched on demand: set its store: full, or take another resource"},
		"a typed use": {"route.spec.to", "route.Spec.To", ""}, // a map has any key: found when there is an object
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(eachSettings, c.old, c.new, 1)
			require.NotEqual(t, eachSettings, text)
			_, err := ParseProgram("s.yaml", []byte(text), &ProgramOptions{Globals: map[string]any{"made": func(s string) string { return s }}})
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}

// TestEachUntypedCases: cases have such objects as fixtures.
func TestEachUntypedCases(t *testing.T) {
	program, err := ParseProgram("s.yaml", []byte(eachSettings+`
validationTests:
- name: a host leads to its route
  fixtures: [{apiVersion: example.test/v1, kind: Route, metadata: {namespace: default, name: web}, spec: {to: shop, hosts: [a.test, b.test]}}]
  assertions:
  - {type: contains, pattern: "^# web to shop$"}
  - {type: equals, target: "map:hosts.map", expected: "a.test web\nb.test web\n"}
  - {type: deterministic}
`), &ProgramOptions{Globals: map[string]any{"made": func(s string) string { return s }}})
	require.NoError(t, err)
	results := (&cases.Runner{Renderer: program.CaseRenderer}).Run(t.Context(), program.Settings().Cases)
	require.True(t, results.Passed(), results.String())
}

// deployedFile is the content of a file of what was deployed last.
func (l *liveTest) deployedFile(name string) string {
	l.target.mu.Lock()
	defer l.target.mu.Unlock()
	for _, f := range l.target.synced[len(l.target.synced)-1].Files() {
		if f.Name == name {
			return string(f.Content)
		}
	}
	return ""
}
