package ingress

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	encpem "encoding/pem"
	"math/big"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/k8swatch"
)

// world is a cluster written down as maps.
type world struct {
	ingresses []*networkingv1.Ingress
	classes   []*networkingv1.IngressClass
	services  map[string]*corev1.Service
	secrets   map[string]*corev1.Secret
	slices    map[string][]*discoveryv1.EndpointSlice
}

func (w *world) cluster() *Cluster { return &Cluster{world: w} }

func (w *world) build() *Routes { return Build(w.cluster(), &Slots{}) }

// newWorld has Services "a" and "b" in the namespace "ns", port 80 "http",
// with one endpoint each.
func newWorld(ingresses ...*networkingv1.Ingress) *world {
	w := &world{
		ingresses: ingresses,
		services:  map[string]*corev1.Service{},
		secrets:   map[string]*corev1.Secret{},
		slices:    map[string][]*discoveryv1.EndpointSlice{},
	}
	for i, name := range []string{"a", "b"} {
		w.services["ns/"+name] = &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
		}
		w.slices["ns/"+name] = []*discoveryv1.EndpointSlice{slice("http", 8080, "192.0.2."+string(rune('1'+i)))}
	}
	return w
}

func slice(port string, number int32, addresses ...string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "ns", Name: "slice"},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &port, Port: &number}},
	}
	for _, a := range addresses {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{a}})
	}
	return s
}

func ingress(name string, rules ...networkingv1.IngressRule) *networkingv1.Ingress {
	return &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
		Spec:       networkingv1.IngressSpec{Rules: rules},
	}
}

func rule(host string, paths ...networkingv1.HTTPIngressPath) networkingv1.IngressRule {
	return networkingv1.IngressRule{
		Host:             host,
		IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{Paths: paths}},
	}
}

func path(kind networkingv1.PathType, p, service string) networkingv1.HTTPIngressPath {
	return networkingv1.HTTPIngressPath{Path: p, PathType: &kind, Backend: backendOf(service)}
}

func backendOf(service string) networkingv1.IngressBackend {
	return networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
		Name: service, Port: networkingv1.ServiceBackendPort{Number: 80}}}
}

const (
	exact    = networkingv1.PathTypeExact
	prefix   = networkingv1.PathTypePrefix
	specific = networkingv1.PathTypeImplementationSpecific
)

// bare, owned and unsigned take away whose something is.
func bare(paths []*Path) (out []Path) {
	for _, p := range paths {
		out = append(out, Path{Key: p.Key, Backend: p.Backend})
	}
	return out
}

func owned(backends []*Backend) (out []*Backend) {
	for _, b := range backends {
		out = append(out, &Backend{Name: b.Name, Servers: b.Servers})
	}
	return out
}

func unsigned(certificates []*TLSCertificate) (out []TLSCertificate) {
	for _, c := range certificates {
		out = append(out, TLSCertificate{File: c.File, Hosts: c.Hosts})
	}
	return out
}

func TestPathTypes(t *testing.T) {
	r := newWorld(ingress("web", rule("x.test",
		path(prefix, "/", "a"), path(prefix, "/foo", "b"), path(prefix, "/bar/", "b"),
		path(exact, "/foo", "a"), path(specific, "/im", "b")), rule("", path(prefix, "/any", "a")))).build()
	require.Empty(t, r.Refused)
	require.Equal(t, []Host{{Name: "*", Namespace: "ns"}, {Name: "x.test", Namespace: "ns"}}, values(r.Hosts.Slice()))
	require.Equal(t, []Path{{Key: "x.test/foo", Backend: "ns_a_80"}}, bare(r.Exact.Slice()))
	require.Equal(t, []Path{
		{Key: "*/any/", Backend: "ns_a_80"}, {Key: "x.test/", Backend: "ns_a_80"}, {Key: "x.test/bar/", Backend: "ns_b_80"}, {Key: "x.test/foo/", Backend: "ns_b_80"}, {Key: "x.test/im", Backend: "ns_b_80"},
	}, bare(r.Prefix.Slice()))
	require.Equal(t, []*Backend{
		{Name: "ns_a_80", Servers: []Server{{Name: "s1", Address: "192.0.2.1:8080"}}},
		{Name: "ns_b_80", Servers: []Server{{Name: "s1", Address: "192.0.2.2:8080"}}},
	}, owned(r.Backends.Slice()))
}

func TestBadPartsAreRefusedAndTheRestServed(t *testing.T) {
	for _, c := range []struct {
		name  string
		bad   *networkingv1.Ingress
		field string
		why   string
	}{
		{"newline in a path", ingress("bad", rule("x.test", path(prefix, "/a\nevil.test/ ns_b_80", "a"))), "spec.rules[0].http.paths[0].path", `holds '\n'`},
		{"space in a path", ingress("bad", rule("x.test", path(prefix, "/a b", "a"))), "spec.rules[0].http.paths[0].path", "holds ' '"},
		{"relative path", ingress("bad", rule("x.test", path(exact, "a", "a"))), "spec.rules[0].http.paths[0].path", "slash"},
		{"quote in a host", ingress("bad", rule(`x".test`, path(prefix, "/", "a"))), "spec.rules[0].host", "not a host name"},
		{"# in a host", ingress("bad", rule(`x#.test`, path(prefix, "/", "a"))), "spec.rules[0].host", "not a host name"},
		{"% in a host", ingress("bad", rule(`%[src].test`, path(prefix, "/", "a"))), "spec.rules[0].host", "not a host name"},
		{"wildcard in the middle", ingress("bad", rule(`a.*.test`, path(prefix, "/", "a"))), "spec.rules[0].host", "not a host name"},
		{"taken path", ingress("zbad", rule("good.test", path(prefix, "/good/", "b"))), "spec.rules[0].http.paths[0].path", "belongs to Ingress ns/good"},
		{"the same key by another type", ingress("zbad", rule("good.test", path(specific, "/good/", "b"))), "spec.rules[0].http.paths[0].path", "belongs to Ingress ns/good"},
		{"no such Secret", withTLS(ingress("bad"), "x.test", "nope"), "spec.tls[0].secretName", "there is no Secret ns/nope of type kubernetes.io/tls"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(ingress("good", rule("good.test", path(prefix, "/good", "a"))), c.bad)
			c.bad.Annotations = map[string]string{k8swatch.SourceAnnotation: "bad.yaml:3"}
			r := w.build()
			require.Len(t, r.Refused, 1)
			require.Equal(t, "Ingress ns/"+c.bad.Name, r.Refused[0].Resource)
			require.Equal(t, "bad.yaml:3", r.Refused[0].Source)
			require.Equal(t, c.field, r.Refused[0].Field)
			require.Contains(t, r.Refused[0].Reason, c.why)
			require.Equal(t, []Path{{Key: "good.test/good/", Backend: "ns_a_80"}}, bare(r.Prefix.Slice()))
			require.Contains(t, values(r.Hosts.Slice()), Host{Name: "good.test", Namespace: "ns"})
			require.Subset(t, []Host{{Name: "good.test", Namespace: "ns"}, {Name: "x.test", Namespace: "ns"}}, values(r.Hosts.Slice()), "a host is claimed also where its paths are refused")
			require.Empty(t, r.Exact.Slice())
		})
	}
}

func TestAPathGivenTwice(t *testing.T) {
	r := newWorld(ingress("web", rule("x.test", path(prefix, "/p", "a"), path(prefix, "/p/", "b")))).build()
	require.Equal(t, []Path{{Key: "x.test/p/", Backend: "ns_a_80"}}, bare(r.Prefix.Slice()))
	require.Equal(t, "Ingress ns/web: spec.rules[0].http.paths[1].path: Prefix path x.test/p/ is given twice", r.Refused[0].String())
}

func TestTheOlderIngressKeepsItsPath(t *testing.T) {
	young, old := ingress("a", rule("x.test", path(prefix, "/", "a"))), ingress("z", rule("x.test", path(prefix, "/", "b")))
	young.CreationTimestamp = metav1.Unix(200, 0)
	old.CreationTimestamp = metav1.Unix(100, 0)
	r := newWorld(young, old).build()
	require.Equal(t, []Path{{Key: "x.test/", Backend: "ns_b_80"}}, bare(r.Prefix.Slice()))
	require.Equal(t, "Ingress ns/a", r.Refused[0].Resource)
}

func TestDefaultBackendAndClasses(t *testing.T) {
	with := func(name string, class *string, annotation string) *networkingv1.Ingress {
		ing := ingress(name, rule(name+".test", path(prefix, "/", "a")))
		ing.Spec.IngressClassName = class
		if annotation != "" {
			ing.Annotations = map[string]string{"kubernetes.io/ingress.class": annotation}
		}
		return ing
	}
	ours, theirs := "haptic", "nginx"
	w := newWorld(with("ours", &ours, ""), with("theirs", &theirs, ""), with("old-style", nil, "haptic"), with("none", nil, ""))
	class := func(name, controller string) *networkingv1.IngressClass {
		return &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: networkingv1.IngressClassSpec{Controller: controller}}
	}
	w.classes = []*networkingv1.IngressClass{class("haptic", ControllerName), class("nginx", "k8s.io/ingress-nginx")}
	require.Equal(t, []Host{{Name: "old-style.test", Namespace: "ns"}, {Name: "ours.test", Namespace: "ns"}}, values(w.build().Hosts.Slice()))
	w.classes[0].Annotations = map[string]string{networkingv1.AnnotationIsDefaultIngressClass: "true"}
	require.Equal(t, []Host{{Name: "none.test", Namespace: "ns"}, {Name: "old-style.test", Namespace: "ns"}, {Name: "ours.test", Namespace: "ns"}}, values(w.build().Hosts.Slice()))

	def := ingress("default")
	b := backendOf("b")
	def.Spec.DefaultBackend = &b
	require.Equal(t, "ns_b_80", newWorld(def).build().Default)
}

// TestServed: an Ingress of which something is served is, by a path or as the default
// backend, and one that is refused as a whole is not. Ours goes by the class alone.
func TestServed(t *testing.T) {
	class, other := "mine", "other"
	plain := ingress("plain", rule("a.test", path(networkingv1.PathTypePrefix, "/", "a")))
	exact := ingress("exact", rule("b.test", path(networkingv1.PathTypeExact, "/x", "b")))
	fallback := ingress("fallback")
	backend := backendOf("a")
	fallback.Spec.DefaultBackend = &backend
	refused := ingress("refused", rule("a b", path(networkingv1.PathTypePrefix, "/", "a")))
	foreign := ingress("foreign", rule("c.test", path(networkingv1.PathTypePrefix, "/", "a")))
	regex := ingress("regex", rule("d.test", path(networkingv1.PathTypeImplementationSpecific, "/x[0-9]", "a")))
	regex.Annotations = map[string]string{"nginx.ingress.kubernetes.io/use-regex": "true"}
	canary := ingress("canary", rule("a.test", path(networkingv1.PathTypePrefix, "/", "b")))
	canary.Annotations = map[string]string{"nginx.ingress.kubernetes.io/canary": "true", "nginx.ingress.kubernetes.io/canary-weight": "10"}
	w := newWorld(plain, exact, fallback, refused, foreign, regex, canary)
	w.classes = []*networkingv1.IngressClass{
		{ObjectMeta: metav1.ObjectMeta{Name: class}, Spec: networkingv1.IngressClassSpec{Controller: ControllerName}},
		{ObjectMeta: metav1.ObjectMeta{Name: other}, Spec: networkingv1.IngressClassSpec{Controller: "example.com/other"}},
	}
	ours, served := Ours(w.classes), map[string]bool{}
	for _, ing := range w.ingresses {
		ing.Spec.IngressClassName = &class
		if ing == foreign {
			ing.Spec.IngressClassName = &other
		}
		require.Equal(t, ing != foreign, ours(ing), ing.Name)
	}
	for ing := range w.build().Served() {
		served[ing.Name] = true
	}
	require.Equal(t, map[string]bool{"plain": true, "exact": true, "fallback": true, "regex": true, "canary": true}, served)
}

// TestClassesAreCut: an annotation has up to 256 KB, and a message about it some words.
func TestClassesAreCut(t *testing.T) {
	long, class := strings.Repeat("\x00", 200_000), "haptic"
	ing := ingress("web", rule("x.test", path(prefix, "/", "a")))
	ing.Annotations = map[string]string{classAnnotation: long}
	ing.Spec.IngressClassName = &class
	w := newWorld(ing)
	w.classes = []*networkingv1.IngressClass{{ObjectMeta: metav1.ObjectMeta{Name: class}, Spec: networkingv1.IngressClassSpec{Controller: ControllerName}}}
	for range 2 {
		r := w.build()
		require.Len(t, r.Refused, 1)
		require.Less(t, len(r.Refused[0].Reason), 1000)
		ing.Spec.IngressClassName = &long // of a manifest
	}
}

func TestNoEndpoints(t *testing.T) {
	w := newWorld(ingress("web", rule("x.test", path(prefix, "/", "a"))))
	w.slices = nil
	r := w.build()
	require.Equal(t, "Service ns/a: no EndpointSlice has the label kubernetes.io/service-name=a, requests get 503: the Service has no selector, so that the cluster makes none", r.Refused[0].String())
	require.Len(t, r.Refused, 1)
	require.Equal(t, []*Backend{{Name: "ns_a_80"}}, owned(r.Backends.Slice()))
}

func TestWhatDoesNotExistAnswers503(t *testing.T) {
	noPort := path(prefix, "/port", "a")
	noPort.Backend.Service.Port = networkingv1.ServiceBackendPort{Name: "grpc"}
	r := newWorld(ingress("web", rule("x.test", path(prefix, "/", "a"), path(prefix, "/gone", "nope"), noPort))).build()
	require.Equal(t, []Path{{Key: "x.test/", Backend: "ns_a_80"}, {Key: "x.test/gone/", Backend: "ns_nope_80"}, {Key: "x.test/port/", Backend: "ns_a_grpc"}}, bare(r.Prefix.Slice()),
		"its requests do not fall to the shorter path")
	require.Equal(t, []*Backend{
		{Name: "ns_a_80", Servers: []Server{{Name: "s1", Address: "192.0.2.1:8080"}}}, {Name: "ns_a_grpc"}, {Name: "ns_nope_80"},
	}, owned(r.Backends.Slice()))
	require.Len(t, r.Refused, 2)
	require.Equal(t, "Ingress ns/web: spec.rules[0].http.paths[1].backend.service.name: answers 503: Service ns/nope does not exist; it is served as soon as that is there", r.Refused[0].String())
	require.Contains(t, r.Refused[1].Reason, "Service ns/a has no port grpc")
}

func TestCertificates(t *testing.T) {
	crt, key := certificate(t)
	w := newWorld(withTLS(ingress("one"), "x.test", "cert.one"), withTLS(ingress("two"), "*.y.test", "cert.one"))
	w.secrets["ns/cert.one"] = secret("cert.one", append([]byte("\n\n"), crt...), key)
	r := w.build()
	require.Equal(t, []TLSCertificate{{File: "ns_cert_one.pem", Hosts: []string{"*.y.test", "x.test"}}}, unsigned(r.Certificates))
	require.Len(t, r.Files, 1)
	require.NotContains(t, string(r.Files[0].Content), "\n\n")
}

func withTLS(ing *networkingv1.Ingress, host, secretName string) *networkingv1.Ingress {
	ing.Spec.TLS = append(ing.Spec.TLS, networkingv1.IngressTLS{Hosts: []string{host}, SecretName: secretName})
	return ing
}

func secret(name string, crt, key []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
		Data:       map[string][]byte{corev1.TLSCertKey: crt, corev1.TLSPrivateKeyKey: key},
	}
}

func certificate(t *testing.T) (crt, key []byte) {
	t.Helper()
	priv, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "x.test"}, DNSNames: []string{"x.test", "*.test", "*.x.test", "*.y.test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(30 * 24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &priv.PublicKey, priv)
	require.NoError(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(priv)
	require.NoError(t, err)
	return encpem.EncodeToMemory(&encpem.Block{Type: "CERTIFICATE", Bytes: der}),
		encpem.EncodeToMemory(&encpem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}

func TestWhatDidNotChangeIsTheSame(t *testing.T) {
	w, slots := newWorld(ingress("web", rule("x.test", path(prefix, "/", "a"), path(exact, "/e", "b")))), &Slots{}
	first := Build(w.cluster(), slots)
	w.slices["ns/a"] = []*discoveryv1.EndpointSlice{slice("http", 8080, "192.0.2.77")}
	second := Build(w.cluster(), slots)
	require.NotSame(t, first.Backends.Slice()[0], second.Backends.Slice()[0])
	require.Same(t, first.Backends.Slice()[1], second.Backends.Slice()[1])
	require.Same(t, &first.Hosts.Chunks()[0][0], &second.Hosts.Chunks()[0][0])
	require.Same(t, &first.Prefix.Chunks()[0][0], &second.Prefix.Chunks()[0][0])

	w.ingresses = append(w.ingresses, ingress("more", rule("y.test", path(prefix, "/", "a"))))
	third := Build(w.cluster(), slots)
	require.NotSame(t, &second.Hosts.Chunks()[0][0], &third.Hosts.Chunks()[0][0])
	require.Same(t, &second.Exact.Chunks()[0][0], &third.Exact.Chunks()[0][0])
}

// TestWeakSignatures: HAProxy refuses a whole configuration for a certificate
// that a CA signed with SHA-1 (crypto/x509 makes no such certificates any more).
func TestWeakSignatures(t *testing.T) {
	for file, want := range map[string]string{
		"testdata/sha1-by-ca.pem":     "certificate 1 of the chain: signed with SHA1-RSA, which is too weak",
		"testdata/sha1-by-itself.pem": "",
	} {
		both, err := os.ReadFile(file)
		require.NoError(t, err)
		w := newWorld(withTLS(ingress("web", rule("x.test", path(prefix, "/", "a"))), "x.test", "old"))
		w.secrets["ns/old"] = secret("old", both, both)
		r := w.build()
		require.Len(t, r.Prefix.Slice(), 1, "it is served, without TLS")
		if want == "" {
			require.Equal(t, "the certificate is for self, and not for x.test, for which Ingresses name it: clients refuse it there", r.Refused[0].Reason)
			require.True(t, r.Refused[0].Warning)
			require.Len(t, r.Refused, 1)
			require.Len(t, r.Certificates, 1)
			continue
		}
		require.Empty(t, r.Certificates)
		require.Contains(t, r.Refused[0].String(), "Secret ns/old: "+want)
	}
}
