package ingress

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestBuilderAfterPanic: what a panic left behind is not built on.
func TestBuilderAfterPanic(t *testing.T) {
	w := newTwoWays(t, 0)
	put(w, w.services, nil, "shop/s0", &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "s0"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}}})
	w.build("first")
	put(w, w.ingresses, &w.changes.Ingresses, "shop/a", by("shop", 1, ingress("a", rule("a.test", path(exact, "/", "s0")))))
	broken := w.cluster(&w.both[0])
	broken.Service = func(string, string) *corev1.Service { panic("a mistake") }
	require.Panics(t, func() { w.builder.Build(broken, &w.changes) })
	w.changes = Changes{} // as who watches knows only what changed since
	w.build("after the panic")
	require.Len(t, w.last.Exact, 1)
}

// TestBuilderInOrderOfAge: of Ingresses that come at once, the oldest has a backend,
// whatever goes meanwhile.
func TestBuilderInOrderOfAge(t *testing.T) {
	w := newTwoWays(t, 0)
	ing := func(name string, age int64) *networkingv1.Ingress {
		return by("shop", age, ingress(name, rule(name+".test", path(exact, "/", "s0"))))
	}
	put(w, w.ingresses, nil, "shop/gone", by("shop", 1, ingress("gone", rule("gone.test", path(exact, "/", "s1")))))
	w.build("first")
	put(w, w.ingresses, &w.changes.Ingresses, "shop/young", ing("young", 9))
	put(w, w.ingresses, &w.changes.Ingresses, "shop/gone", nil)
	put(w, w.ingresses, &w.changes.Ingresses, "shop/old", ing("old", 2))
	w.build("two come, one goes")
	require.Equal(t, "old", w.last.Backends[0].Ingress.Name)
}

// TestBuilderKeepsTLS: a Secret that cannot be used leaves the host with the one before.
func TestBuilderKeepsTLS(t *testing.T) {
	for _, other := range []string{"good", "first"} {
		w := newTwoWays(t, 0)
		bad := dated(t, "bad", -day, day, "a.test")
		bad.Data[corev1.TLSCertKey] = []byte("no certificate")
		for _, s := range []*corev1.Secret{dated(t, "good", -day, 90*day, "a.test", "b.test"), dated(t, "first", -day, 30*day, "b.test", "c.test"), bad} {
			s.Namespace = "shop"
			put(w, w.secrets, nil, "shop/"+s.Name, s)
		}
		ing := func(host, secret string) *networkingv1.Ingress {
			return withTLS(by("shop", 1, ingress(host, rule(host, path(exact, "/", "s0")))), host, secret)
		}
		put(w, w.ingresses, nil, "shop/a.test", ing("a.test", "good"))
		put(w, w.ingresses, nil, "shop/b.test", ing("b.test", other))
		put(w, w.ingresses, nil, "shop/c.test", ing("c.test", "first"))
		w.build("at first")
		put(w, w.ingresses, &w.changes.Ingresses, "shop/a.test", ing("a.test", "bad"))
		w.build("a bad Secret")
		require.Contains(t, fmt.Sprint(w.last.Refused), "until Secret shop/bad can be used, Secret shop/good serves a.test")
	}
}

// TestBuilderWithAnnotations: endpoints of annotated Ingresses, the Ingresses themselves and
// those beside them change alone, but for what has to do with other objects.
func TestBuilderWithAnnotations(t *testing.T) {
	w := newTwoWays(t, 0)
	add := func(name, allow string) {
		ing := by("shop", 1, ingress(name, rule(name+".test", path(exact, "/", "s0"))))
		if allow != "" {
			ing.Annotations = map[string]string{nginx + "whitelist-source-range": allow}
		}
		put(w, w.ingresses, &w.changes.Ingresses, "shop/"+name, ing)
	}
	endpoint := func(address string) {
		s := slice("http", 8080, address)
		s.Namespace, s.Labels = "shop", map[string]string{discoveryv1.LabelServiceName: "s0"}
		put(w, w.slices, &w.changes.Slices, "shop/s0-1", s)
	}
	put(w, w.services, &w.changes.Services, "shop/s0", &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "s0"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}}})
	add("plain", "")
	add("one", "10.0.0.0/8")
	add("same", "10.0.0.0/8")
	endpoint("192.0.2.1")
	w.build("first")
	require.Len(t, w.last.Backends, 2, "equal options share a backend")
	whole := w.builder.whole
	endpoint("192.0.2.2")
	w.build("endpoints")
	add("young", "")
	w.build("a plain Ingress")
	require.Equal(t, whole, w.builder.whole)
	for _, b := range w.last.Backends {
		require.Equal(t, "192.0.2.2:8080", b.Servers[0].Address)
	}
	add("same", "192.0.2.0/24")
	w.build("an annotation")
	require.Len(t, w.last.Backends, 3)
	add("same", "nonsense")
	w.build("a wrong one")
	require.Contains(t, fmt.Sprint(w.last.Refused), "is not an address")
	add("new", "192.0.2.0/24")
	w.build("one more Ingress")
	add("same", "")
	w.build("no annotation")
	regex := by("shop", 2, ingress("regex", rule("regex.test", path(specific, "/a(/|$)(.*)", "s0"))))
	regex.Annotations = map[string]string{nginx + "rewrite-target": "/$2"}
	put(w, w.ingresses, &w.changes.Ingresses, "shop/regex", regex)
	w.build("a pattern")
	require.Len(t, w.last.Patterns, 1)
	regex = regex.DeepCopy()
	regex.Annotations = map[string]string{nginx + "rewrite-target": "/b/$2"}
	put(w, w.ingresses, &w.changes.Ingresses, "shop/regex", regex)
	w.build("another rewrite")
	put(w, w.ingresses, &w.changes.Ingresses, "shop/regex", nil)
	w.build("no pattern")
	require.Empty(t, w.last.Patterns)
	require.Equal(t, whole, w.builder.whole)
	require.Zero(t, w.builder.last.spaces["shop"].patterns)

	canary := by("shop", 3, ingress("canary", rule("same.test", path(exact, "/", "s0"))))
	canary.Annotations = map[string]string{nginx + "canary": "true"}
	put(w, w.ingresses, &w.changes.Ingresses, "shop/canary", canary)
	w.build("a canary")
	require.Len(t, w.last.Canaries, 1)
	add("same", "10.0.0.0/8")
	w.build("the Ingress of a canary")
	require.Equal(t, whole+2, w.builder.whole)
}

// TestBuilderForgetsOptions: options of before do not pile up.
func TestBuilderForgetsOptions(t *testing.T) {
	w := newTwoWays(t, 0)
	for i := range 1100 {
		ing := by("shop", 1, ingress("a", rule("a.test", path(exact, "/", "s0"))))
		ing.Annotations = map[string]string{nginx + "proxy-read-timeout": fmt.Sprint(1 + i)}
		put(w, w.ingresses, &w.changes.Ingresses, "shop/a", ing)
		w.builder.Build(w.cluster(&w.both[0]), &w.changes).Accepted()
		w.changes = Changes{}
		require.LessOrEqual(t, len(w.builder.last.shared), 1010)
		require.LessOrEqual(t, len(w.builder.last.asked), 1)
	}
	require.Greater(t, w.builder.changed, 990)
}
