package ingress

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
)

// reloads are the effects with which an endpoint more takes a reload, by what stands in
// their backends. One in place of another takes none at all.
var reloads = []string{"hash-type consistent", " cookie s1"}

// TestEndpointsOfAnnotatedIngresses: an endpoint in place of another is told to the running
// HAProxy, whatever the annotations, and so is one more where HAProxy can add a server.
func TestEndpointsOfAnnotatedIngresses(t *testing.T) {
	layout := dataplane.Layout{Base: "/x"}
	w, slots := effectsWorld(t), &Slots{}
	render := func() *dataplane.Config { return renderRoutes(t, layout, Build(w.cluster(), slots)) }
	before := render()
	sections := map[string]string{}
	for _, section := range strings.Split(before.Main(), "\nbackend ") {
		name, _, _ := strings.Cut(section, "\n")
		sections[name] = section
	}
	served, grows := []string{}, []string{} // Services whose servers can change, and those that get one more as well
	for i, e := range effects {
		if e.path == "/(a+)+b" {
			continue // is not served
		}
		text := ""
		for name, section := range sections {
			if strings.HasPrefix(name, fmt.Sprintf("ns_e%d_", i)) {
				text += section
			}
		}
		service := fmt.Sprintf("ns/e%d", i)
		served = append(served, service)
		if !slices.ContainsFunc(reloads, func(r string) bool { return strings.Contains(text, r) }) {
			grows = append(grows, service)
		}
	}
	require.Greater(t, len(grows), len(served)/2)
	for _, c := range []struct {
		services, addresses []string
	}{{served, []string{"192.0.2.9"}}, {grows, []string{"192.0.2.9", "192.0.2.8"}}} {
		for _, service := range c.services {
			w.slices[service] = []*discoveryv1.EndpointSlice{slice("http", 8080, c.addresses...)}
		}
		after := render()
		plan, err := dataplane.Diff(before, after)
		require.NoError(t, err)
		require.Equal(t, dataplane.ImpactRuntime, plan.Impact(), "%s", plan)
		require.GreaterOrEqual(t, len(plan.Ops), len(c.services))
		before = after
	}
}

// TestAnnotationsThroughADataplaneAPI: it stores what annotations become as it was sent.
func TestAnnotationsThroughADataplaneAPI(t *testing.T) {
	w := effectsWorld(t)
	w.ingresses = append(w.ingresses, ingress("web", rule("x.test", path(prefix, "/", "a"))), canaryOf("new", "b", "canary-weight", "10", "canary-by-header", "X-V", "canary-by-cookie", "v"))
	api := dataplanetest.New(t, nil)
	cfg := renderRoutes(t, dataplane.Layout{}, w.build())
	_, err := dataplane.Sync(t.Context(), api.Endpoint(), cfg, nil)
	require.NoError(t, err)
	plan, err := dataplane.DryRun(t.Context(), api.Endpoint(), cfg, nil)
	require.NoError(t, err)
	require.True(t, plan.Empty(), "%s", plan)
}
