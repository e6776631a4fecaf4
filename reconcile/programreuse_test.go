package reconcile

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
)

const reuseSettings = `
watchedResources:
  things: {apiVersion: v1, resources: services}
haproxyConfig:
  template: |
    # {{ path("map", "hosts.map") }} {{ pathResolver.GetPath("hosts.map", "map") }}
    {{ render "part.cfg" }}
    {% for thing in resources.things.List() %}
    # {{ digString(thing, "metadata.name") }}
    {% end %}
templateSnippets:
  part.cfg: {template: "# a part"}
maps:
  hosts.map:
    template: |
      {% for thing in resources.things.List() %}
      {{ digString(thing, "metadata.name") }} b
      {% end %}
`

// TestProgramAfterAnother: a program renders the same, whichever one was in use
// before it.
func TestProgramAfterAnother(t *testing.T) {
	variants := map[string][2]string{
		"nothing":         {"", ""},
		"a snippet":       {"# a part", "# another part"},
		"a map":           {"}} b", "}} c"},
		"a type":          {"v1, resources: services", "example.test/v1, resources: routes"},
		"a folder":        {"maps:\n", "dataplane: {mapsDir: /srv/maps}\nmaps:\n"},
		"a resource more": {"watchedResources:\n", "watchedResources:\n  more: {apiVersion: v1, resources: secrets}\n"},
		"squeezed":        {"  template: |\n", "  postProcessing: [{type: squeeze}]\n  template: |\n"},
	}
	source := k8swatchtest.Objects("apiVersion: v1\nkind: Service\nmetadata: {namespace: default, name: web}\n---\napiVersion: example.test/v1\nkind: Route\nmetadata: {namespace: default, name: r}\n")
	render := func(p *Program) string {
		stores := Stores{}
		for _, r := range p.resources {
			stores[r.name] = Store{Get: func(context.Context, []string) ([]k8swatch.Object, error) {
				for _, o := range source {
					if u := o.(k8swatch.Object); k8swatch.TypeOf(r.gvr) != nil == (u.GetName() == "web") {
						return []k8swatch.Object{u}, nil
					}
				}
				return nil, nil
			}}
		}
		rendered, err := p.Render(t.Context(), stores)
		require.NoError(t, err)
		text := rendered.Config.Main()
		for _, f := range rendered.Config.Files() {
			text += f.Name + "\n" + string(f.Content)
		}
		return text
	}
	compile := func(name string, previous *Program) *Program {
		text := strings.Replace(reuseSettings, variants[name][0], variants[name][1], 1)
		s, errs := readSettings("s.yaml", []byte(text))
		require.Empty(t, errs, name)
		p, errs := compileProgram(s, nil, previous)
		require.Empty(t, errs, name)
		return p
	}
	for name := range variants {
		for _, pair := range [][2]string{{"nothing", name}, {name, "nothing"}} {
			first, second := pair[0], pair[1]
			require.Equal(t, render(compile(second, nil)), render(compile(second, compile(first, nil))), "%s after %s", second, first)
		}
	}
}
