package status

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
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
		for _, at := range addressesOf(&corev1.Service{Spec: c.spec, Status: c.status}) {
			all = append(all, at.Hostname+at.IP)
		}
		require.Equal(t, c.want, strings.Join(all, " "), name)
	}
}

// TestStatusOfNoService: a Service that is gone, or has no address any more, changes
// nothing and is told.
func TestStatusOfNoService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, s, _ := startStatus(t)
		a.put("shop/web", "shop/late")
		s.found(nil)
		s.deploy("one", a.routes("shop/web"))
		time.Sleep(5 * time.Second)
		require.ErrorContains(t, s.Check(), "publish-service: the Service is not found")
		s.found(&corev1.Service{Spec: corev1.ServiceSpec{ClusterIPs: []string{"10.0.0.1"}}})
		time.Sleep(5 * time.Second)
		require.Equal(t, "10.0.0.1", a.addresses("shop/web"))
		require.NoError(t, s.Check())
		s.found(&corev1.Service{Spec: corev1.ServiceSpec{Type: "LoadBalancer"}})
		time.Sleep(5 * time.Second)
		require.Equal(t, "10.0.0.1", a.addresses("shop/web"))
		require.ErrorContains(t, s.Check(), "has no address yet")
		s.deploy("two", a.routes("shop/web", "shop/late"))
		time.Sleep(5 * time.Second)
		require.Empty(t, a.addresses("shop/late"), "nobody knows whether the address of before still leads here")
		s.found(&corev1.Service{Spec: corev1.ServiceSpec{ClusterIPs: []string{"10.0.0.2"}}})
		time.Sleep(5 * time.Second)
		require.Equal(t, "10.0.0.2", a.addresses("shop/late"))
	})
}

// TestParse: what the API server refuses is refused before.
func TestParse(t *testing.T) {
	for _, text := range []string{"192.0.2.1", "2001:db8::1", "lb.example.com"} {
		one, err := Parse(text)
		require.NoError(t, err, text)
		require.Equal(t, text, one.IP+one.Hostname)
	}
	for _, text := range []string{"", "fe80::1%eth0", "::ffff:192.0.2.1", "LB.example.com", "192.0.2.1:80", "*.example.com"} {
		_, err := Parse(text)
		require.ErrorContains(t, err, "want an address such as 192.0.2.1", text)
	}
}
