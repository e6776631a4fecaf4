package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	netv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// attack is what one tenant does to all others, round by round.
type attack struct {
	name    string
	long    bool     // too slow for the short form
	flags   []string // of the controller
	prepare func(h *hostile)
	pace    time.Duration // between two rounds
	round   func(ctx context.Context, h *hostile, i int) error
	after   func(h *hostile)
}

var attacks = []attack{
	{name: "nothing"},
	{name: "200 Ingresses turn bad together", long: true, prepare: manySites(200), pace: 20 * time.Second, round: turn(200, 200)},
	{name: "20 of 200 Ingresses flip each 100 ms", prepare: manySites(200), pace: 100 * time.Millisecond, round: turn(200, 20)},
	{name: "200 Ingresses flip each 10 s", long: true, prepare: manySites(200), pace: 10 * time.Second, round: turn(200, 200)},
	{name: "200 Ingresses claim the good host", long: true, pace: 100 * time.Millisecond, round: claimHost},
	{name: "1,000 ports x 20 endpoints change", long: true, prepare: manyPorts(1000), pace: 200 * time.Millisecond, round: changePorts},
	{name: "3,000 ports x 20 endpoints change", long: true, prepare: manyPorts(3000), pace: 200 * time.Millisecond, round: changePorts},
	{name: "400 ports x 900 endpoints", long: true, prepare: manyServers, pace: time.Second, round: nextServers},
	{name: "a reload and a slow upload each second", pace: time.Second, round: reloadBomb, prepare: ownSite, after: fewProcesses},
	{name: "3,000 paths change", long: true, prepare: manyPaths(3000), pace: 200 * time.Millisecond, round: changePaths},
	{name: "a certificate changes each 100 ms", prepare: ownSite, pace: 100 * time.Millisecond, round: changeCertificate},
	{name: "an endpoint that is HAProxy itself", long: true, prepare: ownSite, pace: 50 * time.Millisecond, round: askForLoop},
}

// ownSite gives the attacker a site, evil.test, and a certificate for it.
func ownSite(h *hostile) {
	h.evil.service("evil", backendPort, host("60"))
	h.evil.secret("evil", h.certs.issue("evil.test"))
	h.evil.ingress("evil", site("evil.test", "evil"), withTLS("evil", "evil.test"))
	eventually(h.t, "the attacker's site is served", h.v.expectStatus("evil.test", "/", 200))
}

// manySites gives the attacker n sites of one Service.
func manySites(n int) func(h *hostile) {
	return func(h *hostile) {
		h.evil.service("evil", backendPort, host("60"))
		inParallel(h.t, n, func(ctx context.Context, i int) error {
			name := fmt.Sprintf("e%04d", i)
			return h.evil.createIngress(ctx, name, site(name+".test", "evil"))
		})
		eventually(h.t, "the attacker's sites are served", h.v.expectStatus(fmt.Sprintf("e%04d.test", n-1), "/", 200))
	}
}

// turn makes a batch of n Ingresses bad, or good again: HAProxy refuses a line
// that an annotation brings into the configuration.
func turn(n, batch int) func(context.Context, *hostile, int) error {
	return func(ctx context.Context, h *hostile, round int) error {
		first := round * batch % n
		snippet := `"http-request deny deny_status never"`
		if round*batch/n%2 == 1 {
			snippet = "null"
		}
		for i := range batch {
			if err := h.evil.patch(ctx, "ingresses", fmt.Sprintf("e%04d", first+i), `{"metadata":{"annotations":{"snippet":`+snippet+`}}}`); err != nil {
				return err
			}
		}
		return nil
	}
}

// claimHost asks for paths of the good tenant's host, and for its certificate.
func claimHost(ctx context.Context, h *hostile, i int) error {
	if i >= 200 {
		return h.evil.patch(ctx, "ingresses", fmt.Sprintf("claim-%d", i%200), fmt.Sprintf(`{"metadata":{"annotations":{"round":"%d"}}}`, i))
	}
	return h.evil.createIngress(ctx, fmt.Sprintf("claim-%d", i), route("shop.test", netv1.PathTypeExact, "/", "evil"),
		route("shop.test", netv1.PathTypePrefix, fmt.Sprintf("/p%d", i), "evil"), withTLS("evil", "shop.test"))
}

// manyPorts gives the attacker a Service with n ports and 20 endpoints, and
// Ingresses that name all ports.
func manyPorts(n int) func(h *hostile) {
	return func(h *hostile) {
		svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "wide"}, Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}}
		for p := range int32(n) {
			svc.Spec.Ports = append(svc.Spec.Ports, corev1.ServicePort{Name: fmt.Sprintf("p%d", p), Port: p + 1})
		}
		_, err := env.cluster.client.CoreV1().Services(h.evil.ns).Create(h.t.Context(), svc, metav1.CreateOptions{})
		h.evil.must(err)
		const each = 100 // ports of a slice, and paths of an Ingress
		inParallel(h.t, n/each, func(ctx context.Context, i int) error {
			slice := h.wideSlice(i, each, 20, 0)
			if _, err := env.cluster.client.DiscoveryV1().EndpointSlices(h.evil.ns).Create(ctx, slice, metav1.CreateOptions{}); err != nil {
				return err
			}
			return h.evil.createIngress(ctx, fmt.Sprintf("wide-%d", i), wideRoutes(i*each, each))
		})
		eventuallyWithin(h.t, hostilePatience, "the attacker's ports are served", h.v.expectStatus("wide.test", "/p0", 200))
	}
}

// wideSlice is slice i of the Service "wide": some ports of some endpoints.
func (h *hostile) wideSlice(i, ports, endpoints, round int) *discoveryv1.EndpointSlice {
	slice := h.evil.slice("wide", backendPort, nil)
	slice.Name, slice.Ports = fmt.Sprintf("wide-%d", i), nil
	for p := range ports {
		name, number := fmt.Sprintf("p%d", i*ports+p), int32(backendPort)
		slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: &name, Port: &number})
	}
	for e := range endpoints {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{host(fmt.Sprint(100 + (e+round)%100))}})
	}
	return slice
}

// wideRoutes sends a path to each of some ports of the Service "wide".
func wideRoutes(first, n int) edit {
	return func(ing *netv1.Ingress) {
		typ := netv1.PathTypeExact
		http := &netv1.HTTPIngressRuleValue{}
		for p := first; p < first+n; p++ {
			http.Paths = append(http.Paths, netv1.HTTPIngressPath{Path: fmt.Sprintf("/p%d", p), PathType: &typ,
				Backend: netv1.IngressBackend{Service: &netv1.IngressServiceBackend{Name: "wide", Port: netv1.ServiceBackendPort{Name: fmt.Sprintf("p%d", p)}}}})
		}
		ing.Spec.Rules = []netv1.IngressRule{{Host: "wide.test", IngressRuleValue: netv1.IngressRuleValue{HTTP: http}}}
	}
}

// changePorts moves the endpoints of 100 ports.
func changePorts(ctx context.Context, h *hostile, i int) error {
	_, err := env.cluster.client.DiscoveryV1().EndpointSlices(h.evil.ns).Update(ctx, h.wideSlice(0, 100, 20, i+1), metav1.UpdateOptions{})
	return err
}

// manyServers gives the attacker 400 ports of 900 endpoints: 360,000 servers.
func manyServers(h *hostile) {
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "wide"}, Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}}
	for p := range int32(400) {
		svc.Spec.Ports = append(svc.Spec.Ports, corev1.ServicePort{Name: fmt.Sprintf("p%d", p), Port: p + 1})
	}
	_, err := env.cluster.client.CoreV1().Services(h.evil.ns).Create(h.t.Context(), svc, metav1.CreateOptions{})
	h.evil.must(err)
	for i := range 4 {
		h.evil.ingress(fmt.Sprintf("wide-%d", i), wideRoutes(i*100, 100))
	}
}

// nextServers adds a slice of 100 ports and 900 endpoints, four times, and
// changes them then.
func nextServers(ctx context.Context, h *hostile, i int) error {
	slices := env.cluster.client.DiscoveryV1().EndpointSlices(h.evil.ns)
	slice := h.wideSlice(i%4, 100, 0, i)
	for e := range 900 {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("203.0.%d.%d", 100+e/200, 1+(e+i/4)%200)}})
	}
	if i < 4 {
		_, err := slices.Create(ctx, slice, metav1.CreateOptions{})
		return err
	}
	_, err := slices.Update(ctx, slice, metav1.UpdateOptions{})
	return err
}

// reloadBomb needs a reload, and keeps the worker of before alive.
func reloadBomb(ctx context.Context, h *hostile, i int) error {
	if err := h.upload(ctx, "evil.test"); err != nil {
		return err
	}
	name := fmt.Sprintf("bomb-%d", i)
	if err := h.evil.createService(ctx, name, backendPort, host("60")); err != nil {
		return err
	}
	return h.evil.createIngress(ctx, name, site(name+".test", name))
}

// fewProcesses: a master, a worker, and the old ones that a reload may leave.
func fewProcesses(h *hostile) {
	if most := 2 + 8 + 1; h.processes > most { // and one that is just being loaded
		h.t.Errorf("there were %d processes of HAProxy, more than %d", h.processes, most)
	}
}

// manyPaths gives the attacker n paths in Ingresses of 1,000.
func manyPaths(n int) func(h *hostile) {
	return func(h *hostile) {
		ownSite(h)
		for i := range n / 1000 {
			h.evil.ingress(fmt.Sprintf("paths-%d", i), pathsOf(i, 0))
		}
		eventually(h.t, "the attacker's paths are served", h.v.expectStatus("evil.test", "/0/0/0", 200))
	}
}

func pathsOf(i, round int) edit {
	return func(ing *netv1.Ingress) {
		typ := netv1.PathTypePrefix
		http := &netv1.HTTPIngressRuleValue{}
		for p := range 1000 {
			path := fmt.Sprintf("/%d/%d/%d", i, p, round)
			http.Paths = append(http.Paths, netv1.HTTPIngressPath{Path: path, PathType: &typ, Backend: backendOf("evil")})
		}
		ing.Spec.Rules = []netv1.IngressRule{{Host: "evil.test", IngressRuleValue: netv1.IngressRuleValue{HTTP: http}}}
	}
}

// changePaths replaces 1,000 paths.
func changePaths(ctx context.Context, h *hostile, i int) error {
	class := className
	ing := &netv1.Ingress{ObjectMeta: metav1.ObjectMeta{Name: "paths-0"}, Spec: netv1.IngressSpec{IngressClassName: &class}}
	pathsOf(0, i+1)(ing)
	_, err := env.cluster.client.NetworkingV1().Ingresses(h.evil.ns).Update(ctx, ing, metav1.UpdateOptions{})
	return err
}

// changeCertificate renews the attacker's certificate.
func changeCertificate(ctx context.Context, h *hostile, i int) error {
	pair, err := h.certs.ca.issue("evil.test")
	if err != nil {
		return err
	}
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "evil"}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: pair.cert, corev1.TLSPrivateKeyKey: pair.key}}
	_, err = env.cluster.client.CoreV1().Secrets(h.evil.ns).Update(ctx, s, metav1.UpdateOptions{})
	return err
}

// askForLoop has HAProxy for an endpoint, and asks for it.
func askForLoop(ctx context.Context, h *hostile, i int) error {
	if i == 0 {
		addr, _, _ := strings.Cut(h.c.http, ":")
		_, err := env.cluster.client.DiscoveryV1().EndpointSlices(h.evil.ns).
			Update(ctx, h.evil.slice("evil", 8080, []string{addr}), metav1.UpdateOptions{})
		return err
	}
	_, err := h.v.get("evil.test", "/")
	return err
}
