package e2e

import (
	"context"
	"testing"

	netv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// host is an address of the subnet with a meaning in a test.
func host(n string) string { return subnet + n }

// The rules are those of the Ingress documentation: Exact before Prefix, the
// longest Prefix first, by path elements; a wildcard is one label; what no rule
// names goes to the default backend.
// https://kubernetes.io/docs/concepts/services-networking/ingress/#path-types
func TestRouting(t *testing.T) {
	startBackends(t, backendPort)
	testRouting(t, newKube(t), func() *controller { return startController(t, options{}) })
}

// testRouting checks a controller that start starts, and leaves it running.
func testRouting(t *testing.T, k *kube, start func() *controller) {
	services := map[string]string{
		"root": host("10"), "exact": host("11"), "api": host("12"), "api2": host("13"), "impl": host("14"),
		"slash": host("15"), "wild": host("16"), "named": host("17"), "fallback": host("18"), "other": host("19"),
	}
	for name, addr := range services {
		k.service(name, backendPort, addr)
	}
	const exact, prefix, impl = netv1.PathTypeExact, netv1.PathTypePrefix, netv1.PathTypeImplementationSpecific
	k.ingress("shop",
		route("shop.test", prefix, "/", "root"),
		route("shop.test", prefix, "/api", "api"),
		route("shop.test", prefix, "/api/v2", "api2"),
		route("shop.test", exact, "/exact", "exact"),
		route("shop.test", prefix, "/both", "root"),
		route("shop.test", exact, "/both", "exact"),
		route("shop.test", prefix, "/slash/", "slash"),
		route("shop.test", impl, "/impl", "impl"))
	k.ingress("wild", site("*.wild.test", "wild"), site("named.wild.test", "named"))
	k.ingress("partial", route("partial.test", prefix, "/v1", "api"))
	k.ingress("default", otherwise("fallback"))
	otherClass(t)
	k.ingress("foreign", ofClass("e2e-other"), site("foreign.test", "other"))
	k.ingress("classless", ofClass(""), site("classless.test", "other"))

	v := start().visit()
	for _, tt := range []struct{ host, path, service string }{
		{"shop.test", "/", "root"},
		{"shop.test", "/anything", "root"},
		{"shop.test", "/api", "api"},
		{"shop.test", "/api/", "api"},
		{"shop.test", "/api/v1", "api"},
		{"shop.test", "/api?q=/api/v2", "api"},
		{"shop.test", "/apiary", "root"},
		{"shop.test", "/api/v2", "api2"},
		{"shop.test", "/api/v2/x", "api2"},
		{"shop.test", "/api/v20", "api"},
		{"shop.test", "/API", "root"},
		{"shop.test", "/exact", "exact"},
		{"shop.test", "/exact?q=1", "exact"},
		{"shop.test", "/exact/", "root"},
		{"shop.test", "/exact/x", "root"},
		{"shop.test", "/both", "exact"},
		{"shop.test", "/both/x", "root"},
		{"shop.test", "/slash", "slash"},
		{"shop.test", "/slash/x", "slash"},
		{"shop.test", "/impl", "impl"},
		{"shop.test", "/impl/x", "impl"},
		{"SHOP.test", "/exact", "exact"},
		{"shop.test:8080", "/exact", "exact"},
		{"a.wild.test", "/", "wild"},
		{"named.wild.test", "/", "named"},
		{"a.b.wild.test", "/", "fallback"},
		{"wild.test", "/", "fallback"},
		{"partial.test", "/v1/x", "api"},
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
