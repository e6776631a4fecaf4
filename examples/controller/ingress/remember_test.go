package ingress

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile"
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
	after.Keep(before)
	require.Empty(t, after.Certificates[0].Except)
}

// TestQuarantineKeepsNoMemory: while something is in quarantine, backends and
// certificates that are gone do not stay in memory.
func TestQuarantineKeepsNoMemory(t *testing.T) {
	bad := by("evil", 1, ingress("bad"))
	w := newTenants(bad)
	slots := &Slots{}
	r, _ := reconcile.ResourceOf(bad)
	for i := range 200 {
		churn := by("evil", 2, ingress("churn"))
		for j := range 50 {
			churn.Spec.Rules = append(churn.Spec.Rules, rule("x.test", path(exact, fmt.Sprintf("/%d", j), fmt.Sprintf("s%d-%d", i, j))))
		}
		w.ingresses = []*networkingv1.Ingress{bad, churn}
		c := w.cluster()
		c.Hosts = &w.hosts
		c.Excluded = reconcile.Excluding(reconcile.WithExcluded(t.Context(), r))
		Build(c, slots)
	}
	require.Less(t, len(slots.held), 5000)
	require.Less(t, len(slots.last), 5000)
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
