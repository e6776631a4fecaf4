package status

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
	"github.com/hapticsdk/haptic/reconcile"
)

// TestAddressesOfService: those from outside go before those from inside, and a load
// balancer that has none yet is waited for.
func TestAddressesOfService(t *testing.T) {
	lb := func(all ...corev1.LoadBalancerIngress) corev1.ServiceStatus {
		return corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: all}}
	}
	for name, c := range map[string]struct {
		spec   corev1.ServiceSpec
		status corev1.ServiceStatus
		want   string
	}{
		"load balancer": {corev1.ServiceSpec{Type: "LoadBalancer", ClusterIPs: []string{"10.0.0.1"}, ExternalIPs: []string{"192.0.2.9", "192.0.2.1"}},
			lb(corev1.LoadBalancerIngress{Hostname: "lb.example.com"}, corev1.LoadBalancerIngress{IP: "192.0.2.1"}), "lb.example.com 192.0.2.1 192.0.2.9"},
		"load balancer that waits": {corev1.ServiceSpec{Type: "LoadBalancer", ClusterIPs: []string{"10.0.0.1"}}, lb(), ""},
		"external addresses":       {corev1.ServiceSpec{Type: "NodePort", ClusterIPs: []string{"10.0.0.1"}, ExternalIPs: []string{"192.0.2.9"}}, lb(), "192.0.2.9"},
		"cluster addresses":        {corev1.ServiceSpec{Type: "NodePort", ClusterIPs: []string{"10.0.0.1", "fd00::1"}}, lb(), "10.0.0.1 fd00::1"},
		"headless":                 {corev1.ServiceSpec{ClusterIPs: []string{"None"}}, lb(), ""},
		"name":                     {corev1.ServiceSpec{Type: "ExternalName", ExternalName: "lb.example.com"}, lb(), "lb.example.com"},
	} {
		var all []string
		for _, at := range AddressesOf(&corev1.Service{Spec: c.spec, Status: c.status}) {
			all = append(all, at.String())
		}
		require.Equal(t, c.want, strings.Join(all, " "), name)
	}
}

// TestStatusOfNoService: a Service that is gone, or has no address any more, changes
// nothing and is told.
func TestStatusOfNoService(t *testing.T) {
	service := func(typ corev1.ServiceType, ips ...string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "haptic", Name: "front"}, Spec: corev1.ServiceSpec{Type: typ, ClusterIPs: ips}}
	}
	synctest.Test(t, func(t *testing.T) {
		a, source := newAPI(), k8swatchtest.NewSource()
		w := start(t, a)
		s, err := NewService(source, "haptic", "front", nil, w.Refresh)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.Run(ctx) }()
		defer func() { cancel(); require.NoError(t, <-ended) }()
		a.put("shop/web", "shop/late")
		deploy := func(keys ...string) {
			rendered := &reconcile.Rendered{}
			w.follow(rendered, func(yield func(Item) bool) {
				var now []string
				for _, at := range s.Addresses() {
					now = append(now, at.String())
				}
				for _, item := range items(now, keys...) {
					if !yield(item) {
						return
					}
				}
			})
			rendered.Deployed(1)
			time.Sleep(soon)
		}
		deploy("shop/web")
		require.EqualError(t, s.Check(), "Service haptic/front is not found, so that no status changes: create it, or give the right name")
		require.True(t, a.idle())
		source.Apply(service("ClusterIP", "10.0.0.1"))
		time.Sleep(soon)
		require.Equal(t, "10.0.0.1", a.addresses("shop/web"))
		require.NoError(t, s.Check())
		source.Apply(service("LoadBalancer", "10.0.0.1"))
		time.Sleep(soon)
		require.Equal(t, "10.0.0.1", a.addresses("shop/web"))
		require.ErrorContains(t, s.Check(), "has no address yet")
		deploy("shop/web", "shop/late")
		require.Empty(t, a.addresses("shop/late"), "the address of before may lead elsewhere now")
		source.Apply(service("ClusterIP", "10.0.0.2"))
		time.Sleep(soon)
		require.Equal(t, "10.0.0.2", a.addresses("shop/late"))
		require.Equal(t, "10.0.0.2", a.addresses("shop/web"))
	})
}

// TestParseAddress: what the API server refuses is refused before.
func TestParseAddress(t *testing.T) {
	for _, text := range []string{"192.0.2.1", "2001:db8::1", "lb.example.com"} {
		one, err := ParseAddress(text)
		require.NoError(t, err, text)
		require.Equal(t, text, one.String())
	}
	for _, text := range []string{"", "fe80::1%eth0", "::ffff:192.0.2.1", "LB.example.com", "192.0.2.1:80", "*.example.com"} {
		_, err := ParseAddress(text)
		require.ErrorContains(t, err, "want an address such as 192.0.2.1", text)
	}
}
