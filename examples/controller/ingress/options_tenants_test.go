package ingress

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/dataplane"
)

// TestPatternsStayWithTheirHost: no pattern matches a path of another host.
func TestPatternsStayWithTheirHost(t *testing.T) {
	evil := by("evil", 1, ingress("web", rule("evil.test", path(specific, `/a|victim\.test/`, "a"), path(specific, `/(a|victim\.test/)`, "a"), path(specific, "/[(]|.*", "a"), path(specific, `/\(|.*`, "a"), path(specific, "/*", "a"), path(specific, "/?", "a"), path(specific, "/{0,1}a", "a"), path(specific, "/*?a", "a"))))
	evil.Annotations = map[string]string{nginx + "use-regex": "true"}
	routes := newWorld(evil).build()
	require.Len(t, routes.Patterns.Slice(), 1)
	require.Equal(t, `^evil\.test/(a|victim\.test/)`, routes.Patterns.Slice()[0].Key)
	require.Equal(t, 3, strings.Count(allSaid(routes), "has a | outside of parentheses"))
	require.Equal(t, 4, strings.Count(allSaid(routes), "begins with a slash that may be missing"), "it would match evil.test.victim, too")

	shared := by("evil", 1, ingress("web", rule("apps.test", path(specific, "/.*", "a"), path(exact, "/own", "a"))))
	shared.Annotations = evil.Annotations
	c := newWorld(shared).cluster()
	c.Hosts = &Hosts{Shared: []string{"apps.test"}}
	routes = Build(c, &Slots{})
	require.Empty(t, routes.Patterns.Slice(), "it would go before the paths of others")
	require.Len(t, routes.Exact.Slice(), 1)
	require.Contains(t, allSaid(routes), "the host is for all namespaces, and a pattern could match paths of others")
}

// TestCanariesOfOneService: two canaries that lead to the same Service, from paths of the
// same Service, each have their own rules, and one with two paths has them once.
func TestCanariesOfOneService(t *testing.T) {
	one, two := canaryOf("one", "b", "canary-weight", "10"), canaryOf("two", "b", "canary-by-header", "X-V")
	one.Spec.Rules[0].HTTP.Paths = append(one.Spec.Rules[0].HTTP.Paths, path(prefix, "/more", "b"))
	two.Spec.Rules[0].Host = "y.test"
	stable := ingress("web", rule("x.test", path(prefix, "/", "a"), path(prefix, "/more", "a")), rule("y.test", path(prefix, "/", "a")))
	routes := newWorld(stable, one, two).build()
	require.Empty(t, allSaid(routes))
	require.Len(t, routes.Canaries.Slice(), 2)
	from := map[string]string{}
	for _, p := range routes.Prefix.Slice() {
		from[p.Key] = p.Backend
	}
	require.Equal(t, from["x.test/"], from["x.test/more/"])
	require.NotEqual(t, from["x.test/"], from["y.test/"])
	for _, c := range routes.Canaries.Slice() {
		require.Equal(t, map[string]string{"one": from["x.test/"], "two": from["y.test/"]}[c.Ingress.Name], c.From)
	}

	wrong := canaryOf("wrong", "b", "canary-weight", "100")
	wrong.Annotations[nginx+"canary"] = "ture"
	old := by("ns", -5, wrong) // older than the Ingress whose path it names
	routes = newWorld(stable, old).build()
	for _, p := range routes.Prefix.Slice() {
		require.True(t, strings.HasPrefix(p.Backend, "ns_a_"), "%v", p)
	}
	require.Zero(t, routes.Canaries.Slice()[0].PerMillion())

	brace := canaryOf("brace", "b", "canary-by-header", "X-V", "canary-by-header-pattern", "}")
	routes = newWorld(stable, brace).build()
	require.Contains(t, allSaid(routes), `canary-by-header-pattern]: "}" is not a pattern here`)
	layout := dataplane.Layout{Base: t.TempDir()}
	acceptable(t, layout, renderRoutes(t, layout, routes))
}

// TestRewritesToGroups: a path that a group alone makes begins with a slash.
func TestRewritesToGroups(t *testing.T) {
	ing := ingress("web", rule("x.test", path(specific, "/a(/.*)?", "a")))
	ing.Annotations = map[string]string{nginx + "rewrite-target": "$1"}
	layout := dataplane.Layout{Base: t.TempDir()}
	routes := newWorld(ing).build()
	require.Empty(t, allSaid(routes))
	cfg := renderRoutes(t, layout, routes)
	require.Contains(t, cfg.Main(), "    http-request replace-path '(*LIMIT_MATCH=500000)^/a(/.*)?' '\\1'\n    http-request set-path /%[path] unless { path -m beg / }\n")
	acceptable(t, layout, cfg)
}

// TestCostOfAnnotations: what takes HAProxy long to read is bounded for each namespace.
func TestCostOfAnnotations(t *testing.T) {
	w := newWorld()
	for i := range 3 {
		name := fmt.Sprintf("u%d", i)
		ing := ingress(name, rule(name+".test", path(prefix, "/", "a")))
		ing.Annotations = map[string]string{nginx + "auth-type": "basic", nginx + "auth-secret": name}
		w.ingresses = append(w.ingresses, ing)
		w.secrets["ns/"+name] = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Data: map[string][]byte{"auth": []byte("a:" + userHash + "\nb:" + userHash)}}
	}
	c := w.cluster()
	c.Limits = Limits{UserMillisecondsPerNamespace: 7}
	routes := Build(c, &Slots{})
	require.Len(t, routes.Userlists.Slice(), 2)
	require.Contains(t, allSaid(routes), "Ingress ns/u2 metadata.annotations[nginx.ingress.kubernetes.io/auth-secret]: Secret ns/u2: to read its users, HAProxy would take more than the 7 ms of one namespace (user-milliseconds-per-namespace)")
	require.Contains(t, renderRoutes(t, dataplane.Layout{Base: t.TempDir()}, routes).Main(), closedLine, "it is not open")

	var list []string
	for i := range 500 {
		list = append(list, fmt.Sprintf("10.0.%d.%d", i/250, i%250))
	}
	rules := rule("x.test", path(prefix, "/a", "a"), path(prefix, "/b", "b"))
	ing := ingress("long", rules)
	ing.Annotations = map[string]string{nginx + "whitelist-source-range": strings.Join(list, ",")}
	c = newWorld(ing).cluster()
	c.Limits = Limits{OptionBytesPerNamespace: 40_000}
	routes = Build(c, &Slots{})
	require.Len(t, routes.Backends.Slice(), 1)
	require.Contains(t, allSaid(routes), "annotations of namespace ns have, times their backends, more than the 40,000 bytes of one namespace (option-bytes-per-namespace): Service ns/b is not served")

	rate := ingress("rate", rules)
	rate.Annotations = map[string]string{nginx + "limit-rps": "5", tech + "rate-limit-size": "10k"}
	c = newWorld(rate).cluster()
	c.Limits = Limits{RateAddressesPerNamespace: 15_000}
	routes = Build(c, &Slots{})
	require.Len(t, routes.Backends.Slice(), 1)
	require.Contains(t, allSaid(routes), "rates of namespace ns count more than the 15,000 addresses of one namespace (rate-addresses-per-namespace): Service ns/b is not served; haproxy.org/rate-limit-size has it count fewer")

	slow := ingress("slow", rule("x.test", path(specific, "/(.*)/(.*)x", "a"), path(specific, "/(.*)/(.*)y", "a"), path(specific, "/z/(.*)", "a")))
	slow.Annotations = map[string]string{nginx + "use-regex": "true"}
	c = newWorld(slow).cluster()
	c.Limits = Limits{PatternsPerNamespace: 16}
	routes = Build(c, &Slots{})
	require.Len(t, routes.Patterns.Slice(), 3, "one with two repeats counts for 13, and leaves room for a plain one; longer paths get 414")
	require.Equal(t, Path{"^x\\.test.{480}", tooLong, slow, pattern}, *routes.Patterns.Slice()[0])
}

// TestSameBackendByOptionsOfBoth: Ingresses whose options become the same by those of the
// Service share a backend, also after its endpoints changed.
func TestSameBackendByOptionsOfBoth(t *testing.T) {
	one, two := ingress("one", rule("x.test", path(prefix, "/", "a"))), ingress("two", rule("y.test", path(prefix, "/", "a")))
	one.Annotations = map[string]string{tech + "load-balance": "leastconn"}
	w := newWorld(one, two)
	w.services["ns/a"].Annotations = one.Annotations
	c := w.cluster()
	c.Hosts = &Hosts{}
	Build(c, &Slots{}).Accepted()
	w.slices["ns/a"] = []*discoveryv1.EndpointSlice{slice("http", 8080, "192.0.2.7")}
	routes := Build(c, &Slots{})
	require.Len(t, routes.Backends.Slice(), 1)
	require.Equal(t, "192.0.2.7:8080", routes.Backends.Slice()[0].Servers[0].Address)
}
