package ingress

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"
)

// checked is an Ingress for a Service of its own name, whose servers have health checks.
func checked(name, every string) *networkingv1.Ingress {
	ing := ingress(name, rule(name+".test", toPort("/", name, 1)))
	ing.Annotations = map[string]string{"haproxy.org/check": "true", "haproxy.org/check-http": "/health"}
	if every != "" {
		ing.Annotations["haproxy.org/check-interval"] = every
	}
	return ing
}

// TestHealthChecks: servers beyond a limit of health checks serve without them, and take
// nothing from others.
func TestHealthChecks(t *testing.T) {
	for name, c := range map[string]struct {
		limits  Limits
		every   string
		why     []string
		checked []string
	}{
		"all": {checked: []string{"a", "b", "c"}},
		"a namespace": {
			limits: Limits{ChecksPerNamespace: 5}, checked: []string{"a", "c"},
			why: []string{"Service evil/b: namespace evil has more than the 5 servers with health checks of one namespace (checks-per-namespace): the 3 servers of port 1 are used without checks"},
		},
		"a rate by default": {
			limits: Limits{ChecksPerSecondPerNamespace: 2}, checked: []string{"a", "c"},
			why: []string{"Service evil/b: namespace evil has more than the 2 health checks a second of one namespace (checks-per-second-per-namespace): the 3 servers of port 1 are used without checks"},
		},
		"a slow rate":     {limits: Limits{ChecksPerSecondPerNamespace: 2}, every: "3s", checked: []string{"a", "b", "c"}},
		"all namespaces":  {limits: Limits{ChecksOfAll: 5}, checked: []string{"a", "c"}, why: []string{"Service evil/b: namespace evil has more than 4 servers with health checks, its share of the 5 of all namespaces (checks-of-all): the 3 servers of port 1 are used without checks"}},
		"a rate of all":   {limits: Limits{ChecksPerSecondOfAll: 1}, every: "2m", checked: []string{"a", "b", "c"}},
		"first its share": {limits: Limits{ChecksPerNamespace: 2, ChecksOfAll: 2}, checked: []string{"c"}, why: []string{"(checks-of-all)", "(checks-of-all)"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(checked("a", c.every), checked("b", c.every), checked("c", c.every))
			for i, ing := range w.ingresses {
				w.addService(ing.Name, 1, 3)
				evil(ing)
				if ing.Name == "c" { // of another namespace, the youngest, with one endpoint
					w.addService("c", 1, 1)
					ing.Namespace = "later"
					w.services["later/c"], w.slices["later/c"] = w.services["evil/c"], w.slices["evil/c"]
					w.services["later/c"].Namespace = "later"
				}
				ing.CreationTimestamp.Time = ing.CreationTimestamp.Add(time.Duration(i) * time.Second)
			}
			cluster := w.cluster()
			cluster.Limits = c.limits
			r := Build(cluster, &Slots{})
			require.Len(t, r.Refused, len(c.why))
			for i, why := range c.why {
				require.Contains(t, r.Refused[i].String(), why)
			}
			var got []string
			for _, b := range r.Backends.Slice() {
				require.NotEmpty(t, b.Servers, "it serves in any case")
				if b.Options.Server.Check {
					got = append(got, b.Service.Name)
				} else {
					require.Empty(t, b.Options.Server.CheckPath)
				}
			}
			require.ElementsMatch(t, c.checked, got)
		})
	}
}
