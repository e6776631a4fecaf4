package ingress

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/hapticsdk/haptic/dataplane"
)

// canaryOf is an Ingress that takes a part of x.test/.
func canaryOf(name, service string, annotations ...string) *networkingv1.Ingress {
	ing := ingress(name, rule("x.test", path(prefix, "/", service)))
	ing.Annotations = map[string]string{nginx + "canary": "true"}
	for i := 0; i < len(annotations); i += 2 {
		ing.Annotations[nginx+annotations[i]] = annotations[i+1]
	}
	return ing
}

func allSaid(r *Routes) string {
	var all []string
	for _, s := range r.Refused {
		all = append(all, s.Resource+" "+s.Field+": "+s.Reason)
	}
	return strings.Join(all, "\n")
}

// TestCanaryByCostlyPattern: HAProxy does not look for it in a header that is too long.
func TestCanaryByCostlyPattern(t *testing.T) {
	w := newWorld(canaryOf("new", "b", "canary-by-header", "X-V", "canary-by-header-pattern", "Chrome.*Mobile"), ingress("web", rule("x.test", path(prefix, "/", "a"))))
	layout := dataplane.Layout{Base: t.TempDir()}
	cfg := renderRoutes(t, layout, w.build())
	require.Regexp(t, `\{ req\.fhdr\(X-V\),length gt \d{3} \} \{ req\.fhdr\(X-V\) -m reg -- '\(\*LIMIT_MATCH=500000\)Chrome\.\*Mobile' \}`, cfg.Main())
	acceptable(t, layout, cfg)
}

// TestCanaries: a canary has the options of the Ingress whose path it takes a part of.
func TestCanaries(t *testing.T) {
	stable := ingress("web", rule("x.test", path(prefix, "/", "a"), path(prefix, "/other", "a")), rule("y.test", path(prefix, "/", "a")))
	stable.Annotations = map[string]string{nginx + "proxy-read-timeout": "7"}
	w := newWorld(canaryOf("new", "b", "canary-weight", "30", "canary-weight-total", "120", "canary-by-header", "X-V", "canary-by-header-pattern", "^v[0-9]$", "canary-by-cookie", "v", "whitelist-source-range", "nonsense"), stable)
	routes := w.build()
	require.Len(t, routes.Prefix.Slice(), 3)
	require.Len(t, routes.Canaries.Slice(), 1)
	c := routes.Canaries.Slice()[0]
	require.Equal(t, 250_000, c.PerMillion())
	require.Equal(t, routes.Prefix.Slice()[0].Backend, c.From)
	require.Equal(t, "x.test/", routes.Prefix.Slice()[0].Key)
	require.NotEqual(t, c.From, routes.Prefix.Slice()[2].Backend, "another host goes on as it was")
	layout := dataplane.Layout{Base: t.TempDir()}
	cfg := renderRoutes(t, layout, routes)
	lines := cfg.Main()
	for _, line := range []string{
		"http-request set-var(txn.canary) str(always) if { var(txn.backend) -m str " + c.From + " } { req.fhdr(X-V) -m reg -- '(*LIMIT_MATCH=500000)^v[0-9]$' }",
		"http-request set-var(txn.canary) req.cook(v) if { var(txn.backend) -m str " + c.From + " } !canary-open { req.cook(v) -m str always never }",
		"http-request set-var(txn.backend) str(" + c.To + ") if canary-always { var(txn.backend) -m str " + c.From + " }",
		"backend " + c.To + "\n    timeout server 7s\n    server s1 192.0.2.2:8080",
	} {
		require.Contains(t, lines, line)
	}
	acceptable(t, layout, cfg)

	// The weight alone changes no backend, and so takes no reload.
	w.ingresses[0] = canaryOf("new", "b", "canary-weight", "100", "canary-weight-total", "120", "canary-by-header", "X-V", "canary-by-header-pattern", "^v[0-9]$", "canary-by-cookie", "v")
	plan, err := dataplane.Diff(cfg, renderRoutes(t, layout, w.build()))
	require.NoError(t, err)
	require.Equal(t, dataplane.ImpactRuntime, plan.Impact(), "%s", plan)
}

// TestCanariesThatAreNone: what a canary lacks is said of it, and the others go on.
func TestCanariesThatAreNone(t *testing.T) {
	stable := ingress("web", rule("x.test", path(prefix, "/", "a")))
	for name, c := range map[string]struct {
		canary *networkingv1.Ingress
		why    string
		some   int
	}{
		"no such path":   {func() *networkingv1.Ingress { c := canaryOf("new", "b"); c.Spec.Rules[0].Host = "z.test"; return c }(), "no other Ingress of the namespace has one of these hosts and paths", 0},
		"no Service":     {canaryOf("new", "none"), "Ingress ns/new spec.rules[0].http.paths[0].backend.service.name: answers 503: Service ns/none does not exist", 1},
		"wrong weight":   {canaryOf("new", "b", "canary-weight", "101"), `canary-weight]: "101" is not at most canary-weight-total, 100`, 1},
		"no header":      {canaryOf("new", "b", "canary-by-header-value", "x"), "there is no canary-by-header", 1},
		"another's path": {by("other", 1, canaryOf("new", "b")), "belongs to namespace", 0},
	} {
		t.Run(name, func(t *testing.T) {
			routes := newWorld(stable, c.canary).build()
			require.Contains(t, allSaid(routes), c.why)
			require.Len(t, routes.Canaries.Slice(), c.some)
			require.Len(t, routes.Prefix.Slice(), 1)
		})
	}
	two := newWorld(stable, canaryOf("new", "b"), canaryOf("newer", "b")).build()
	require.Contains(t, allSaid(two), "Ingress ns/newer spec.rules[0].http.paths[0].path: Ingress ns/new is the canary of it already")
	require.Len(t, two.Canaries.Slice(), 1)
}

// TestPatternsInOrder: the longest goes first, and both kinds of claims have their map.
func TestPatternsInOrder(t *testing.T) {
	ing := ingress("web", rule("x.test", path(specific, "/a.*", "a"), path(specific, "/a/[b-z]+/c", "b"), path(exact, "/a", "a")), rule("*.y.test", path(prefix, "/", "a")), rule("", path(prefix, "/any", "a")))
	ing.Annotations = map[string]string{nginx + "use-regex": "true"}
	routes := newWorld(ing).build()
	require.Empty(t, allSaid(routes))
	var keys []string
	for _, p := range routes.Patterns.Slice() {
		keys = append(keys, p.Key)
	}
	require.Equal(t, []string{`^x\.test/a/[b-z]+/c`, `^\*\.y\.test/`, `^x\.test/a.*`, `^\*/any`}, keys)
	require.Len(t, routes.Exact.Slice(), 1)
	require.Empty(t, routes.Prefix.Slice())
}

// TestLimitsOfAnnotations: what HAProxy goes through for each request is bounded.
func TestLimitsOfAnnotations(t *testing.T) {
	ing := ingress("web", rule("x.test", path(specific, "/a", "a"), path(specific, "/b", "a"), path(specific, "/c", "a")))
	ing.Annotations = map[string]string{nginx + "use-regex": "true"}
	c := newWorld(ing).cluster()
	c.Limits = Limits{PatternsPerNamespace: 2}
	routes := Build(c, &Slots{})
	require.Len(t, routes.Patterns.Slice(), 2)
	require.Contains(t, allSaid(routes), "more than the 2 patterns of one namespace (patterns-per-namespace)")

	w := newWorld()
	for i := range 3 {
		host := fmt.Sprintf("x%d.test", i)
		canary := canaryOf("c"+host, "b")
		canary.Spec.Rules[0].Host = host
		w.ingresses = append(w.ingresses, ingress(host, rule(host, path(prefix, "/", "a"))), canary)
	}
	c = w.cluster()
	c.Limits = Limits{CanariesPerNamespace: 2}
	routes = Build(c, &Slots{})
	require.Len(t, routes.Canaries.Slice(), 2)
	require.Len(t, routes.Prefix.Slice(), 3)
	require.Contains(t, allSaid(routes), "more than the 2 canaries of one namespace (canaries-per-namespace)")
}
