package ingress

import (
	"testing"

	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/dataplane"
)

// to gives an Ingress one thing, and says what serves it.
var to = map[string]func(ing *networkingv1.Ingress, service string) *networkingv1.Ingress{
	"a path": func(ing *networkingv1.Ingress, service string) *networkingv1.Ingress {
		ing.Spec.Rules = append(ing.Spec.Rules, rule("x.test", path(prefix, "/", service)))
		return ing
	},
	"an exact path": func(ing *networkingv1.Ingress, service string) *networkingv1.Ingress {
		ing.Spec.Rules = append(ing.Spec.Rules, rule("x.test", path(exact, "/p", service)))
		return ing
	},
	"a wildcard": func(ing *networkingv1.Ingress, service string) *networkingv1.Ingress {
		ing.Spec.Rules = append(ing.Spec.Rules, rule("*.x.test", path(prefix, "/", service)))
		return ing
	},
	"no host": func(ing *networkingv1.Ingress, service string) *networkingv1.Ingress {
		ing.Spec.Rules = append(ing.Spec.Rules, rule("", path(prefix, "/", service)))
		return ing
	},
	"the default backend": func(ing *networkingv1.Ingress, service string) *networkingv1.Ingress {
		b := backendOf(service)
		ing.Spec.DefaultBackend = &b
		return ing
	},
	"a certificate": func(ing *networkingv1.Ingress, service string) *networkingv1.Ingress {
		return withTLS(ing, "x.test", service)
	},
}

// TestWhoHasItKeepsIt: a new file, or an older Ingress that asks for more, takes nothing
// from another Ingress of its namespace that serves; in the same process and after a
// restart, also while the owner is in quarantine and when it changes what serves.
func TestWhoHasItKeepsIt(t *testing.T) {
	for name, give := range to {
		t.Run(name, func(t *testing.T) {
			of := func(name, service string) *networkingv1.Ingress {
				ing := give(by("shop", 0, ingress(name)), service)
				ing.CreationTimestamp = metav1.Time{} // as in a folder
				return ing
			}
			w := newTenants(of("web", "a"))
			crt, key := certificate(t)
			for _, s := range []string{"a", "b", "c"} {
				w.secrets["shop/"+s] = secret(s, crt, key)
				w.secrets["shop/"+s].Namespace = "shop"
			}
			deployed := w.build(t)
			live := serves(t, deployed)
			w.ingresses = append(w.ingresses, of("aaa", "b"))
			for range 2 {
				for range 2 {
					r := w.build(t)
					require.Equal(t, live, serves(t, r))
					require.Len(t, r.Refused, 1)
					require.Contains(t, r.Refused[0].String(), "Ingress shop/aaa: ")
					require.Regexp(t, "which (has|serves) it already", r.Refused[0].Reason)
				}
				w.build(t, w.ingresses[0]) // in quarantine
				require.Equal(t, live, serves(t, w.build(t)))
				w.restart(t, deployed)
			}
			w.build(t)
			w.ingresses[0] = of("web", "c")
			require.Contains(t, []string{"shop_c_80", "shop_c.pem"}, serves(t, w.build(t)))
			w.ingresses = w.ingresses[1:]
			require.Contains(t, []string{"shop_b_80", "shop_b.pem"}, serves(t, w.build(t)), "it is free")
			require.Empty(t, w.build(t).Refused)
		})
	}
}

// serves is the one thing that serves.
func serves(t *testing.T, r *Routes) string {
	t.Helper()
	var all []string
	for _, p := range append(r.Exact.Slice(), r.Prefix.Slice()...) {
		all = append(all, p.Backend)
	}
	for _, c := range r.Certificates {
		all = append(all, c.File)
	}
	if r.Default != "" {
		all = append(all, r.Default)
	}
	require.Len(t, all, 1)
	return all[0]
}

// TestAnotherSecretThatIsNotThere: a host stays with the Secret that serves it until the
// one that its Ingress names now can be used, also after a restart; never with that of
// another namespace, nor with one that is gone.
func TestAnotherSecretThatIsNotThere(t *testing.T) {
	crt, key := certificate(t)
	w := newTenants(by("shop", 1, withTLS(ingress("web"), "x.test", "old.one")))
	add := func(ns, name string) {
		w.secrets[ns+"/"+name] = secret(name, crt, key)
		w.secrets[ns+"/"+name].Namespace = ns
	}
	add("shop", "old.one")
	deployed := w.build(t)
	require.Equal(t, "shop_old_one.pem", serves(t, deployed))
	w.ingresses[0] = by("shop", 1, withTLS(ingress("web"), "x.test", "new"))
	for range 2 {
		for range 2 {
			r := w.build(t)
			require.Equal(t, "shop_old_one.pem", serves(t, r))
			require.Len(t, r.Refused, 2)
			require.Contains(t, r.Refused[0].String(), "spec.tls[0].secretName: there is no Secret shop/new")
			require.Contains(t, r.Refused[1].String(), "spec.tls[0].secretName: until Secret shop/new can be used, Secret shop/old.one serves x.test")
			require.True(t, r.Refused[1].Warning)
		}
		w.restart(t, deployed)
	}
	add("shop", "new")
	require.Equal(t, "shop_new.pem", serves(t, w.build(t)))
	require.Empty(t, w.build(t).Refused)

	w.ingresses[0] = by("shop", 1, withTLS(ingress("web"), "x.test", "newer"))
	delete(w.secrets, "shop/new")
	require.Empty(t, w.build(t).Certificates, "it is gone")

	w.restart(t, deployed)
	w.ingresses = []*networkingv1.Ingress{by("evil", 1, withTLS(ingress("web"), "x.test", "none"))}
	require.Empty(t, w.build(t).Certificates)
}

// TestWhoHasItKeepsItDuringAQuarantine: what was known of the configuration before a
// restart counts as long as nobody has what it says, and no longer.
func TestWhoHasItKeepsItDuringAQuarantine(t *testing.T) {
	for name, give := range to {
		t.Run(name, func(t *testing.T) {
			of := func(name, service string) *networkingv1.Ingress {
				return give(by("shop", 0, ingress(name)), service)
			}
			quarantined := by("evil", 0, ingress("q"))
			w := newTenants(of("web", "a"), quarantined)
			crt, key := certificate(t)
			for _, s := range []string{"a", "b"} {
				w.secrets["shop/"+s] = secret(s, crt, key)
				w.secrets["shop/"+s].Namespace = "shop"
			}
			w.restart(t, w.build(t))
			w.build(t, quarantined)
			w.ingresses[0] = of("web", "b")
			live := serves(t, w.build(t, quarantined))
			require.Contains(t, []string{"shop_b_80", "shop_b.pem"}, live)
			w.ingresses = append(w.ingresses, of("aaa", "a"))
			require.Equal(t, live, serves(t, w.build(t, quarantined)))
		})
	}
}

// TestOptionsAreNoHosts: a crt-list from templates of the user's own may have options,
// which an Ingress cannot have as its TLS hosts.
func TestOptionsAreNoHosts(t *testing.T) {
	crt, key := certificate(t)
	w := newTenants(by("shop", 1, withTLS(ingress("web"), "[alpn", "new")))
	w.secrets["shop/old"] = secret("old", crt, key)
	w.secrets["shop/old"].Namespace = "shop"
	cfg, err := dataplane.NewConfig("global\n", dataplane.File{Kind: dataplane.Map, Name: "hosts.map"},
		dataplane.File{Kind: dataplane.CRTList, Name: "certificates.txt", Content: []byte("/ssl/shop_old.pem [alpn h2] x.test\n")})
	require.NoError(t, err)
	w.hosts.Remember(cfg)
	r := w.build(t)
	require.Empty(t, r.Certificates)
	require.Len(t, r.Refused, 1)
}
