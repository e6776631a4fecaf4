package ingress

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile/claims"
	"github.com/hapticsdk/haptic/templating"
)

// tenants is a cluster of several namespaces, each with the Services a and b.
type tenants struct {
	*world
	hosts  Hosts
	engine *templating.Engine // of all restarts
}

func newTenants(ingresses ...*networkingv1.Ingress) *tenants {
	w := newWorld(ingresses...)
	for _, ns := range []string{"aaa", "evil", "shop"} {
		for _, name := range []string{"a", "b"} {
			service := w.services["ns/"+name].DeepCopy()
			service.Namespace = ns
			w.services[ns+"/"+name], w.slices[ns+"/"+name] = service, w.slices["ns/"+name]
		}
	}
	return &tenants{world: w}
}

// build says what the Ingresses mean now, without those in quarantine, and accepts that.
func (w *tenants) build(t *testing.T, quarantined ...*networkingv1.Ingress) *Routes {
	cluster := w.cluster()
	cluster.Hosts = &w.hosts
	cluster.Held = without(quarantined...)
	r := Build(cluster, &Slots{})
	r.Accepted()
	return r
}

// restart is another process, that knows what this one deployed.
func (w *tenants) restart(t *testing.T, deployed *Routes) {
	routes := *deployed // Input keeps something in it
	layout := dataplane.Layout{Base: "/etc/haproxy"}
	if w.engine == nil {
		w.engine = compiled(t, layout)
	}
	cfg := renderWith(t, w.engine, layout, &routes)
	w.hosts = Hosts{Shared: w.hosts.Shared}
	w.hosts.Remember(cfg)
}

// by gives an Ingress to a namespace; the larger, the younger.
func by(ns string, created int64, ing *networkingv1.Ingress) *networkingv1.Ingress {
	ing.Namespace, ing.CreationTimestamp = ns, metav1.Unix(created, 0)
	return ing
}

// lines are who answers for what.
func lines(r *Routes) map[string]string {
	all := map[string]string{}
	for _, p := range r.Exact.Slice() {
		all["="+p.Key], _, _ = strings.Cut(p.Backend, "_")
	}
	for _, p := range r.Prefix.Slice() {
		all[p.Key], _, _ = strings.Cut(p.Backend, "_")
	}
	return all
}

// TestHostsOfAnotherNamespace: evil gets nothing of what shop has, however it asks,
// in the same process and after a restart.
func TestHostsOfAnotherNamespace(t *testing.T) {
	shop := func() *networkingv1.Ingress {
		return by("shop", 100, ingress("web", rule("shop.test", path(prefix, "/", "a")), rule("*.shop.test", path(prefix, "/", "a"))))
	}
	mine := map[string]string{"shop.test/": "shop", "*.shop.test/": "shop"}
	exactLogin := rule("shop.test", path(exact, "/", "b"), path(exact, "/login", "b"))
	for name, c := range map[string]struct {
		evil *networkingv1.Ingress
		says string
	}{
		"exact paths below a prefix":        {by("evil", 200, ingress("web", exactLogin)), "Ingress evil/web: spec.rules[0].host: shop.test belongs to namespace shop, which claimed it first"},
		"the same from an older Ingress":    {by("evil", 1, ingress("web", exactLogin)), "shop.test belongs to namespace shop"},
		"at the same time, an earlier name": {by("aaa", 100, ingress("aaa", exactLogin)), "shop.test belongs to namespace shop"},
		"a name below the wildcard":         {by("evil", 1, ingress("web", rule("a.shop.test", path(prefix, "/", "b")))), "a.shop.test belongs to namespace shop with *.shop.test"},
		"a name further below":              {by("evil", 1, ingress("web", rule("a.b.shop.test", path(prefix, "/", "b")))), "a.b.shop.test belongs to namespace shop"},
		"a wildcard below the wildcard":     {by("evil", 1, ingress("web", rule("*.a.shop.test", path(prefix, "/", "b")))), "*.a.shop.test belongs to namespace shop"},
		"by upper case":                     {by("evil", 1, ingress("web", rule("Shop.test", path(exact, "/x", "b")))), "not a host name"},
		"by a trailing dot":                 {by("evil", 1, ingress("web", rule("shop.test.", path(exact, "/x", "b")))), "not a host name"},
		"by a port":                         {by("evil", 1, ingress("web", rule("shop.test:80", path(exact, "/x", "b")))), "not a host name"},
		"by other letters":                  {by("evil", 1, ingress("web", rule("ѕhop.test", path(exact, "/x", "b")))), "not a host name"},
		"all hosts by a literal":            {by("evil", 1, ingress("web", rule("*", path(exact, "/x", "b")))), "not a host name"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTenants(shop())
			deployed := w.build(t)
			require.Equal(t, mine, lines(deployed))
			w.ingresses = append(w.ingresses, c.evil)
			for range 2 {
				r := w.build(t)
				require.Equal(t, mine, lines(r))
				require.Len(t, r.Refused, 1)
				require.Contains(t, r.Refused[0].String(), c.says)
				w.restart(t, deployed)
			}
			// The owner is quarantined, edited, and renamed: it still is the owner.
			require.Empty(t, lines(w.build(t, w.ingresses[0])))
			w.ingresses[0] = by("shop", 300, ingress("other", shop().Spec.Rules...))
			require.Equal(t, mine, lines(w.build(t)))
		})
	}
}

// TestHostsBecomeFree: a host that no Ingress of its namespace claims any more goes
// to the one that waits.
func TestHostsBecomeFree(t *testing.T) {
	shop := by("shop", 1, ingress("web", rule("x.test", path(prefix, "/", "a"))))
	second := by("shop", 9, withTLS(ingress("second"), "x.test", "none"))
	waits := by("aaa", 5, ingress("web", rule("x.test", path(prefix, "/", "b"))))
	w := newTenants(shop, second, waits)
	require.Equal(t, map[string]string{"x.test/": "shop"}, lines(w.build(t)))
	w.ingresses = []*networkingv1.Ingress{second, waits}
	require.Empty(t, lines(w.build(t)), "spec.tls alone claims it, too")
	w.ingresses = []*networkingv1.Ingress{waits}
	require.Equal(t, map[string]string{"x.test/": "aaa"}, lines(w.build(t)))
	w.ingresses = []*networkingv1.Ingress{shop, waits}
	r := w.build(t)
	require.Equal(t, map[string]string{"x.test/": "aaa"}, lines(r))
	require.Contains(t, r.Refused[0].String(), "Ingress shop/web: spec.rules[0].host: x.test belongs to namespace aaa")

	foreign := "nginx" // that is of no class of ours
	waits.Spec.IngressClassName = &foreign
	w.classes = []*networkingv1.IngressClass{{ObjectMeta: metav1.ObjectMeta{Name: "haptic", Annotations: map[string]string{networkingv1.AnnotationIsDefaultIngressClass: "true"}},
		Spec: networkingv1.IngressClassSpec{Controller: ControllerName}}}
	require.Equal(t, map[string]string{"x.test/": "shop"}, lines(w.build(t)))
}

// TestWildcardAfterANameBelow: the wildcard gets all names but those that are taken.
func TestWildcardAfterANameBelow(t *testing.T) {
	crt, key := certificate(t)
	evil := by("evil", 1, ingress("web", rule("a.x.test", path(prefix, "/a", "a"))))
	w := newTenants(evil)
	w.build(t)
	shop := by("shop", 0, withTLS(ingress("web", rule("*.x.test", path(prefix, "/", "a"))), "*.x.test", "own"))
	w.secrets["shop/own"] = secret("own", crt, key)
	w.secrets["shop/own"].Namespace = "shop"
	w.ingresses = append(w.ingresses, shop, by("shop", 0, withTLS(ingress("tls"), "b.x.test", "none")))
	for range 2 {
		r := w.build(t)
		require.Equal(t, map[string]string{"a.x.test/a/": "evil", "*.x.test/": "shop"}, lines(r))
		require.Equal(t, []Host{{Name: "*.x.test", Namespace: "shop"}, {Name: "a.x.test", Namespace: "evil"}}, values(r.Hosts.Slice()), "b.x.test has no paths of its own")
		require.Equal(t, []string{"*.x.test"}, r.Certificates[0].Hosts)
		require.Equal(t, []string{"a.x.test"}, r.Certificates[0].Except, "nor does it get the certificate")
		w.restart(t, r)
	}
}

// TestNoHost: rules without a host and the default backend belong to one namespace.
func TestNoHost(t *testing.T) {
	b := backendOf("b")
	shop := by("shop", 1, ingress("any", rule("", path(prefix, "/any", "a"))))
	w := newTenants(shop)
	deployed := w.build(t)
	evil := by("aaa", 0, ingress("acme", rule("", path(prefix, "/.well-known/acme-challenge/", "a"))))
	evil.Spec.DefaultBackend = &b
	w.ingresses = append(w.ingresses, evil)
	for range 2 {
		r := w.build(t)
		require.Equal(t, map[string]string{"*/any/": "shop"}, lines(r))
		require.Empty(t, r.Default)
		require.Equal(t, "Ingress aaa/acme: spec.defaultBackend: what no host matches belongs to namespace shop, which claimed it first", r.Refused[0].String())
		require.Equal(t, "Ingress aaa/acme: spec.rules[0].host: what no host matches belongs to namespace shop, which claimed it first", r.Refused[1].String())
		w.restart(t, deployed)
	}
}

// TestHostsChangeHandsWithoutReload: who has a host is in maps alone.
func TestHostsChangeHandsWithoutReload(t *testing.T) {
	shop := by("shop", 1, ingress("any", rule("", path(prefix, "/any", "a")), rule("x.test", path(prefix, "/", "a"))))
	evil := by("aaa", 2, ingress("any", rule("", path(prefix, "/any", "a")), rule("x.test", path(prefix, "/", "a"))))
	w := newTenants(shop, evil, by("shop", 1, ingress("own", rule("s.test", path(prefix, "/", "a")))), by("aaa", 1, ingress("own", rule("e.test", path(prefix, "/", "a")))))
	layout := dataplane.Layout{Base: t.TempDir()}
	before := renderRoutes(t, layout, w.build(t))
	w.ingresses = w.ingresses[1:]
	r := w.build(t)
	require.Equal(t, "aaa", lines(r)["*/any/"])
	plan, err := dataplane.Diff(before, renderRoutes(t, layout, r))
	require.NoError(t, err)
	require.Equal(t, dataplane.ImpactRuntime, plan.Impact(), "%s", plan)
}

// TestCertificatesOfAnotherNamespace: a certificate is used for hosts of its
// namespace, and where the Ingress names none for those that nobody has.
func TestCertificatesOfAnotherNamespace(t *testing.T) {
	crt, key := rsaPair(t, 2048) // good.test
	w := newTenants(by("shop", 9, ingress("web", rule("good.test", path(prefix, "/", "a")))))
	w.build(t)
	own := by("evil", 1, withTLS(withTLS(ingress("tls"), "good.test", "own"), "free.test", "own"))
	names := by("evil", 2, ingress("names"))
	names.Spec.TLS = []networkingv1.IngressTLS{{SecretName: "own"}}
	w.ingresses = append(w.ingresses, own, names)
	w.secrets["evil/own"] = secret("own", crt, key)
	r := w.build(t)
	require.Equal(t, []string{"free.test"}, r.Certificates[0].Hosts)
	require.Equal(t, "Ingress evil/tls: spec.tls[0].hosts: good.test belongs to namespace shop, which claimed it first", r.Refused[1].String())
	require.Equal(t, "Ingress evil/names: spec.tls[0].hosts: good.test belongs to namespace shop, which claimed it first", r.Refused[0].String())

	w.ingresses = []*networkingv1.Ingress{names}
	require.Equal(t, []string{"good.test"}, w.build(t).Certificates[0].Hosts, "it is free")
	w.ingresses = append(w.ingresses, by("shop", 9, ingress("web", rule("good.test", path(prefix, "/", "a")))))
	require.Empty(t, w.build(t).Certificates, "names in a certificate claim nothing")
}

// TestSharedHosts: all namespaces use them, and each path stays with whoever has it.
func TestSharedHosts(t *testing.T) {
	w := newTenants(by("shop", 100, ingress("web", rule("x.test", path(prefix, "/", "a")), rule("a.y.test", path(prefix, "/", "a")))))
	w.hosts.Shared = []string{"x.test", "*.y.test"}
	deployed := w.build(t)
	evil := by("aaa", 1, ingress("web", rule("x.test", path(prefix, "/", "b"), path(exact, "/b", "b")), rule("a.y.test", path(specific, "/", "b")), rule("b.y.test", path(prefix, "/", "b"))))
	w.ingresses = append(w.ingresses, evil)
	for range 2 {
		r := w.build(t)
		require.Equal(t, map[string]string{"x.test/": "shop", "=x.test/b": "aaa", "a.y.test/": "shop", "b.y.test/": "aaa"}, lines(r))
		require.Equal(t, []Host{{Name: "a.y.test", Namespace: "*"}, {Name: "b.y.test", Namespace: "*"}, {Name: "x.test", Namespace: "*"}}, values(r.Hosts.Slice()))
		require.Equal(t, "Ingress aaa/web: spec.rules[0].http.paths[0].path: Prefix path x.test/ belongs to namespace shop, which claimed it first", r.Refused[0].String())
		require.Len(t, r.Refused, 2)
		w.restart(t, deployed)
	}
	w.hosts = Hosts{Shared: []string{"*"}}
	w.ingresses = append(w.ingresses, by("shop", 1, ingress("any", rule("", path(prefix, "/s", "a")))), by("aaa", 1, ingress("any", rule("", path(prefix, "/a", "a")))))
	all := lines(w.build(t))
	require.Equal(t, "shop", all["*/s/"])
	require.Equal(t, "aaa", all["*/a/"])
}

// TestHostsInAnyOrder: who asks first has it, whatever else is asked in between.
func TestHostsInAnyOrder(t *testing.T) {
	names := []string{"x.test", "a.x.test", "*.x.test", "b.a.x.test", "*.a.x.test", "*.test", ""}
	var all []*networkingv1.Ingress
	for _, ns := range []string{"shop", "evil", "aaa"} {
		for i, host := range names {
			all = append(all, by(ns, int64(i), ingress("i"+string(rune('a'+i)), rule(host, path(prefix, "/", "a")))))
		}
	}
	w := newTenants()
	for step := range 400 {
		before := have(&w.hosts)
		i := (step*step*7 + step*13) % len(all)
		if at := slices.Index(w.ingresses, all[i]); at >= 0 {
			w.ingresses = slices.Delete(w.ingresses, at, at+1)
		} else {
			w.ingresses = append(w.ingresses, all[i])
		}
		r := w.build(t)
		claims, now := map[Host]bool{}, have(&w.hosts)
		for _, ing := range w.ingresses {
			claims[Host{Name: cmpHost(ing), Namespace: ing.Namespace}] = true
		}
		for host, ns := range before {
			if claims[Host{Name: host, Namespace: ns}] {
				require.Equal(t, ns, now[host], "step %d: %s", step, host)
			}
		}
		for host, ns := range now {
			require.True(t, claims[Host{Name: host, Namespace: ns}], "step %d: %s has %s and does not claim it", step, ns, host)
		}
		for host, ns := range now {
			for wildcard, owner := range before { // that has it still, with nobody below it but above the host
				if strings.HasPrefix(wildcard, "*.") && strings.HasSuffix(host, wildcard[1:]) && host != wildcard && before[host] != ns && claims[Host{Name: wildcard, Namespace: owner}] && owner != ns {
					below := slices.ContainsFunc(slices.Collect(maps.Keys(before)), func(h string) bool {
						return strings.HasPrefix(h, "*.") && h != host && strings.HasSuffix(host, h[1:]) && len(h) > len(wildcard)
					})
					require.True(t, below, "step %d: %s gets %s below %s of %s", step, ns, host, wildcard, owner)
				}
			}
		}
		for line, ns := range lines(r) {
			require.Equal(t, now[strings.TrimSuffix(line, "/")], ns)
		}
		if step%10 == 0 {
			w.restart(t, r)
		}
	}
}

// have says which namespace has which host.
func have(h *Hosts) map[string]string {
	if h.model != nil {
		return maps.Collect(h.model.hosts.Owners.All())
	}
	if h.previous == nil {
		return map[string]string{}
	}
	return readEarlier(h.previous).owners
}

func cmpHost(ing *networkingv1.Ingress) string {
	if host := ing.Spec.Rules[0].Host; host != "" {
		return host
	}
	return claims.AnyHost
}
