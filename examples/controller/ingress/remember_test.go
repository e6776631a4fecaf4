package ingress

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/hapticsdk/haptic/dataplane"
)

// TestAnExceptionEnds: a name that another namespace gives back is served with the
// wildcard's certificate again.
func TestAnExceptionEnds(t *testing.T) {
	crt, key := certificate(t)
	w := newTenants(by("evil", 1, ingress("web", rule("a.x.test", path(prefix, "/a", "a")))))
	w.build(t)
	w.ingresses = append(w.ingresses, by("shop", 0, withTLS(ingress("web", rule("*.x.test", path(prefix, "/", "a"))), "*.x.test", "own")))
	w.secrets["shop/own"] = secret("own", crt, key)
	w.secrets["shop/own"].Namespace = "shop"
	before := w.build(t)
	require.Equal(t, []string{"a.x.test"}, before.Certificates[0].Except)
	w.ingresses = w.ingresses[1:]
	after := w.build(t)
	require.Empty(t, after.Certificates[0].Except)
}

// TestATrialForgetsNoServer: a render that leaves out most of a cluster takes no name
// from the servers of the others.
func TestATrialForgetsNoServer(t *testing.T) {
	kept := by("shop", 1, ingress("kept", rule("x.test", path(prefix, "/", "a"))))
	w := newTenants(kept)
	for i := range 4000 {
		w.ingresses = append(w.ingresses, by(fmt.Sprintf("ns%d", i), 2, ingress("one", rule(fmt.Sprintf("h%d.test", i), path(prefix, "/", "none")))))
	}
	build := func(quarantined ...*networkingv1.Ingress) []Server {
		c := w.cluster()
		c.Hosts = &w.hosts
		c.Held = without(quarantined...)
		r := Build(c, &Slots{})
		if len(quarantined) == 0 {
			r.Accepted()
		}
		for _, b := range r.Backends.Slice() {
			if b.Name == "shop_a_80" {
				return b.Servers
			}
		}
		return nil
	}
	w.slices["shop/a"] = []*discoveryv1.EndpointSlice{slice("http", 8080, "192.0.2.1", "192.0.2.2")}
	build()
	w.slices["shop/a"] = []*discoveryv1.EndpointSlice{slice("http", 8080, "192.0.2.2")}
	want := []Server{{Name: "s2", Address: "192.0.2.2:8080"}}
	require.Equal(t, want, build())
	require.Empty(t, build(w.ingresses...))
	require.Equal(t, want, build())
}

// TestARestartChangesNothing: neither does the order in which resources are read.
func TestARestartChangesNothing(t *testing.T) {
	crt, key := certificate(t)
	hosts := []string{"x.test", "a.x.test", "*.x.test", "b.a.x.test", "*.a.x.test", "*.test", "", "s.test", "*.y.test", "q.y.test"}
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(1, seed))
		pick := func(words ...string) string { return words[r.IntN(len(words))] }
		w := newTenants()
		if seed%2 == 0 {
			w.hosts.Shared = []string{"s.test", "*.y.test"}
		}
		for _, ns := range []string{"shop", "evil", "aaa"} {
			w.secrets[ns+"/own"] = secret("own", crt, key)
			w.secrets[ns+"/own"].Namespace = ns
		}
		for step := range 12 {
			ing := ingress(fmt.Sprintf("i%d", step))
			for range r.IntN(3) {
				ing.Spec.Rules = append(ing.Spec.Rules, rule(pick(hosts...), path([]networkingv1.PathType{prefix, exact, specific}[r.IntN(3)], pick("/", "/p"), pick("a", "b", "none"))))
			}
			if r.IntN(2) == 0 {
				ing = withTLS(ing, pick(hosts[:6]...), "own")
			}
			if r.IntN(6) == 0 {
				ing.Spec.TLS = append(ing.Spec.TLS, networkingv1.IngressTLS{SecretName: "own"})
				b := backendOf("a")
				ing.Spec.DefaultBackend = &b
			}
			if w.ingresses = append(w.ingresses, by(pick("shop", "evil", "aaa"), int64(r.IntN(3)), ing)); step > 6 {
				w.ingresses = w.ingresses[1:]
			}
			one := w.build(t)
			r.Shuffle(len(w.ingresses), func(i, j int) { w.ingresses[i], w.ingresses[j] = w.ingresses[j], w.ingresses[i] })
			require.Equal(t, one, w.build(t), "seed %d step %d", seed, step)
			w.restart(t, one)
			require.Equal(t, one, w.build(t), "restart, seed %d step %d", seed, step)
		}
	}
}

// TestRememberOfANewInstance: a configuration that says nothing of hosts, such as that
// of an instance that is new, takes no host from anybody.
func TestRememberOfANewInstance(t *testing.T) {
	w := newTenants(by("shop", 2, ingress("web", rule("x.test", path(prefix, "/", "a")))))
	w.build(t)
	w.ingresses = append(w.ingresses, by("evil", 1, ingress("web", rule("x.test", path(prefix, "/", "b")))))
	came, err := dataplane.NewConfig("global\n    maxconn 100\n")
	require.NoError(t, err)
	w.hosts.Remember(came)
	require.Equal(t, map[string]string{"x.test/": "shop"}, lines(w.build(t)))
}

// BenchmarkDeepNames: 8,000 hosts of 250 bytes and 123 labels, beside a wildcard.
func BenchmarkDeepNames8000(b *testing.B) {
	w := newTenants(by("shop", 1, ingress("web", rule("*.shop.test", path(prefix, "/", "a")))))
	for i := range 8 {
		evil := by("evil", 2, ingress(fmt.Sprintf("e%d", i)))
		for j := range 1000 {
			host := fmt.Sprintf("%04d.%s", i*1000+j, strings.Repeat("a.", 120)+"aaa")
			evil.Spec.Rules = append(evil.Spec.Rules, networkingv1.IngressRule{Host: host})
		}
		w.ingresses = append(w.ingresses, evil)
	}
	c := w.cluster()
	c.Hosts = &w.hosts
	for b.Loop() {
		Build(c, &Slots{})
	}
}

// TestRememberIsNewer: what was rendered before a term of leadership began, and is
// accepted in it, does not undo what the deployed configuration says.
func TestRememberIsNewer(t *testing.T) {
	evil, shop := by("evil", 1, ingress("web", rule("x.test", path(prefix, "/", "a")))), by("shop", 2, ingress("web", rule("x.test", path(prefix, "/", "a"))))
	leader := newTenants(shop)
	cfg := renderRoutes(t, dataplane.Layout{Base: t.TempDir()}, leader.build(t))
	w := newTenants(evil, shop)
	cluster := w.cluster()
	cluster.Hosts = &w.hosts
	before := Build(cluster, &Slots{})
	require.Equal(t, "evil_a_80", serves(t, before), "the older Ingress, as nothing is known")
	w.hosts.Remember(cfg)
	before.Accepted()
	require.Equal(t, "shop_a_80", serves(t, w.build(t)))
}

// TestOnlyTheLastIsAccepted: the routes of an earlier attempt do not accept those of a later one,
// as in a search that goes back to what was valid.
func TestOnlyTheLastIsAccepted(t *testing.T) {
	w := newTenants(by("shop", 1, ingress("web", rule("x.test", path(prefix, "/", "a")))))
	valid := w.build(t)
	build := func() *Routes {
		c := w.cluster()
		c.Hosts = &w.hosts
		return Build(c, &Slots{})
	}
	again := build()
	w.ingresses = nil
	build() // not valid: the host would be free
	again.Accepted()
	w.ingresses = []*networkingv1.Ingress{valid.Prefix.Slice()[0].Ingress, by("evil", 0, ingress("web", rule("x.test", path(prefix, "/", "b"))))}
	require.Equal(t, map[string]string{"x.test/": "shop"}, lines(w.build(t)))
}
