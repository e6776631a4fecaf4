package ingress

import (
	"cmp"
	"iter"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/derive"
	"github.com/hapticsdk/haptic/reconcile/claims"
)

// deriveHosts finds the owners of hosts. A quarantined Ingress still claims its hosts.
func (m *Model) deriveHosts() {
	out := derive.Each("ours quarantined", m.Out.Collection, m.oursOut)
	renamed := derive.GroupBy("quarantined by name", out, func(o Out, ing *networkingv1.Ingress, add func(Name, *networkingv1.Ingress)) { add(o.Of, ing) }, byAge)
	claimants := derive.Merge("claimants", m.mine, derive.Each("quarantined claimants", renamed, first[Name, *networkingv1.Ingress]))
	m.hosts = claims.NewHosts(m.graph, claimants, func(_ Name, ing *networkingv1.Ingress) (claims.Claimant, iter.Seq[string]) {
		return claimantOf(ing), hostsOf(ing)
	}, claims.HostOptions{Shared: m.Shared, Grace: m.HostGrace, Earlier: func(host string) string { return m.earlier.owners[host] }})
}

// oursOut keeps the quarantined Ingresses of our classes.
func (m *Model) oursOut(at *derive.Reads, _ Out, o k8swatch.Object, _ *networkingv1.Ingress) (*networkingv1.Ingress, bool) {
	ing, ok := o.(*networkingv1.Ingress)
	if !ok {
		return nil, false
	}
	ours, _, _ := m.classes.Get(at).judge(ing)
	return ing, ours
}

func claimantOf(ing *networkingv1.Ingress) claims.Claimant { return claims.By("Ingress", ing) }

// hostsOf yields the hosts that an Ingress claims.
func hostsOf(ing *networkingv1.Ingress) iter.Seq[string] {
	return func(yield func(string) bool) {
		if ing.Spec.DefaultBackend != nil && !yield(claims.AnyHost) {
			return
		}
		for i := range ing.Spec.Rules {
			host := ing.Spec.Rules[i].Host
			if host != claims.AnyHost && !yield(cmp.Or(host, claims.AnyHost)) {
				return
			}
		}
		for i := range ing.Spec.TLS {
			for _, host := range ing.Spec.TLS[i].Hosts {
				if host != "" && host != claims.AnyHost && !yield(host) {
					return
				}
			}
		}
	}
}
