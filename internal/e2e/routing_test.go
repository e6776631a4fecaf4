package e2e

import (
	"context"
	"testing"

	netv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// host is an address of the subnet with a meaning in a test.
func host(n string) string { return subnet + n }

// testRouting checks a controller that start starts while the Ingresses are there, and
// leaves both. TestConformance has the rules one by one.
func testRouting(t *testing.T, k *kube, start func() *controller) {
	services := map[string]string{"root": host("10"), "exact": host("11"), "api": host("12"), "wild": host("13"), "fallback": host("14")}
	for name, addr := range services {
		k.service(name, backendPort, addr)
	}
	const exact, prefix = netv1.PathTypeExact, netv1.PathTypePrefix
	k.ingress("shop",
		route("shop.test", prefix, "/", "root"),
		route("shop.test", prefix, "/api", "api"),
		route("shop.test", exact, "/api/exact", "exact"))
	k.ingress("wild", site("*.wild.test", "wild"))
	k.ingress("partial", route("partial.test", prefix, "/v1", "api"))
	k.ingress("default", otherwise("fallback"))
	otherClass(t)
	k.ingress("foreign", ofClass("e2e-other"), site("foreign.test", "root"))
	k.ingress("classless", ofClass(""), site("classless.test", "root"))

	v := start().visit()
	for _, tt := range []struct{ host, path, service string }{
		{"shop.test", "/apiary", "root"},
		{"shop.test", "/api/v1", "api"},
		{"shop.test", "/api/exact", "exact"},
		{"a.wild.test", "/", "wild"},
		{"partial.test", "/v2", "fallback"},
		{"unknown.test", "/", "fallback"},
		{"foreign.test", "/", "fallback"},
		{"classless.test", "/", "fallback"},
	} {
		// It is ready: the first answer counts.
		if err := v.expect(tt.host, tt.path, endpoint(services[tt.service], backendPort))(); err != nil {
			t.Errorf("wanted service %s: %v", tt.service, err)
		}
	}
}

// otherClass is a class that another controller serves.
func otherClass(t *testing.T) {
	t.Helper()
	classes := env.cluster.client.NetworkingV1().IngressClasses()
	class := &netv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: "e2e-other"},
		Spec: netv1.IngressClassSpec{Controller: "example.com/other"}}
	if _, err := classes.Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := classes.Delete(context.Background(), class.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}
