package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	netv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// kube writes the objects of one test, in a namespace of its own.
type kube struct {
	t  testing.TB
	ns string
}

// newKube makes a namespace; what the test puts in it goes when the test ends,
// so that the next one starts with an empty cluster.
func newKube(t testing.TB) *kube {
	t.Helper()
	ns, err := env.cluster.client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}}, metav1.CreateOptions{})
	must(t, err)
	k := &kube{t: t, ns: ns.Name}
	t.Cleanup(func() {
		if err := k.deleteAll(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return k
}

// newSite is a namespace with the site web.test, of one endpoint.
func newSite(t testing.TB) *kube {
	t.Helper()
	startBackends(t, backendPort)
	k := newKube(t)
	k.service("web", backendPort, host("10"))
	k.ingress("web", site("web.test", "web"))
	return k
}

// startSite starts a controller, and waits until the site of newSite answers.
func startSite(t *testing.T, o options) (*controller, *visitor) {
	t.Helper()
	c := startController(t, o)
	v := c.visit()
	eventually(t, "the site answers", v.expect("web.test", "/", endpoint(host("10"), backendPort)))
	return c, v
}

// must ends a test that cannot go on.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// deleteAll deletes all objects of the namespace.
func (k *kube) deleteAll(ctx context.Context) error {
	if err := k.deleteIngresses(ctx); err != nil {
		return err
	}
	client := env.cluster.client
	if err := client.DiscoveryV1().EndpointSlices(k.ns).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return err
	}
	if err := client.CoreV1().Secrets(k.ns).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return err
	}
	// The typed client has no DeleteCollection for Services, the API server has.
	return client.CoreV1().RESTClient().Delete().Namespace(k.ns).Resource("services").Do(ctx).Error()
}

func (k *kube) deleteIngresses(ctx context.Context) error {
	return env.cluster.client.NetworkingV1().Ingresses(k.ns).
		DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
}

func (k *kube) must(err error) {
	k.t.Helper()
	if err != nil {
		k.t.Fatal(err)
	}
}

// servicePort is the port of every Service; its endpoints have others.
const servicePort = 80

// service creates a Service with one EndpointSlice. No addresses is a Service
// that nothing stands behind.
func (k *kube) service(name string, port int32, addrs ...string) {
	k.t.Helper()
	k.must(k.createService(k.t.Context(), name, port, addrs...))
}

func (k *kube) createService(ctx context.Context, name string, port int32, addrs ...string) error {
	svc := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone,
			Ports:     []corev1.ServicePort{{Port: servicePort, TargetPort: intstr.FromInt32(port)}},
		},
	}
	if _, err := env.cluster.client.CoreV1().Services(k.ns).Create(ctx, svc, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err := env.cluster.client.DiscoveryV1().EndpointSlices(k.ns).
		Create(ctx, k.slice(name, port, addrs), metav1.CreateOptions{})
	return err
}

func (k *kube) slice(service string, port int32, addrs []string) *discoveryv1.EndpointSlice {
	ready := true
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name:   service + "-1",
			Labels: map[string]string{discoveryv1.LabelServiceName: service},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new(string), Port: &port}},
	}
	for i, a := range addrs {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses:  []string{a},
			Conditions: discoveryv1.EndpointConditions{Ready: &ready},
			TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: k.ns, Name: fmt.Sprintf("%s-%d", service, i)},
		})
	}
	return slice
}

// endpoints puts other endpoints behind a Service.
func (k *kube) endpoints(service string, port int32, addrs ...string) {
	k.t.Helper()
	k.must(k.updateEndpoints(k.t.Context(), service, port, addrs...))
}

func (k *kube) updateEndpoints(ctx context.Context, service string, port int32, addrs ...string) error {
	_, err := env.cluster.client.DiscoveryV1().EndpointSlices(k.ns).
		Update(ctx, k.slice(service, port, addrs), metav1.UpdateOptions{})
	return err
}

// secret creates or replaces a TLS Secret.
func (k *kube) secret(name string, pair keyPair) {
	k.t.Helper()
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: pair.cert, corev1.TLSPrivateKeyKey: pair.key},
	}
	secrets := env.cluster.client.CoreV1().Secrets(k.ns)
	_, err := secrets.Create(k.t.Context(), s, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = secrets.Update(k.t.Context(), s, metav1.UpdateOptions{})
	}
	k.must(err)
}

// edit says something about an Ingress.
type edit func(*netv1.Ingress)

// ingress creates an Ingress of the class of the controller.
func (k *kube) ingress(name string, edits ...edit) {
	k.t.Helper()
	k.must(k.createIngress(k.t.Context(), name, edits...))
}

func (k *kube) createIngress(ctx context.Context, name string, edits ...edit) error {
	class := className
	ing := &netv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       netv1.IngressSpec{IngressClassName: &class},
	}
	for _, e := range edits {
		e(ing)
	}
	_, err := env.cluster.client.NetworkingV1().Ingresses(k.ns).Create(ctx, ing, metav1.CreateOptions{})
	return err
}

func backendOf(service string) netv1.IngressBackend {
	return netv1.IngressBackend{Service: &netv1.IngressServiceBackend{
		Name: service, Port: netv1.ServiceBackendPort{Number: servicePort}}}
}

// route sends a path of a host to a Service.
func route(host string, typ netv1.PathType, path, service string) edit {
	return func(ing *netv1.Ingress) {
		ing.Spec.Rules = append(ing.Spec.Rules, netv1.IngressRule{
			Host: host,
			IngressRuleValue: netv1.IngressRuleValue{HTTP: &netv1.HTTPIngressRuleValue{
				Paths: []netv1.HTTPIngressPath{{Path: path, PathType: &typ, Backend: backendOf(service)}},
			}},
		})
	}
}

// site sends a whole host to a Service.
func site(host, service string) edit { return route(host, netv1.PathTypePrefix, "/", service) }

// otherwise is the default backend.
func otherwise(service string) edit {
	return func(ing *netv1.Ingress) {
		b := backendOf(service)
		ing.Spec.DefaultBackend = &b
	}
}

// withTLS serves the hosts with the certificate of a Secret.
func withTLS(secret string, hosts ...string) edit {
	return func(ing *netv1.Ingress) {
		ing.Spec.TLS = append(ing.Spec.TLS, netv1.IngressTLS{Hosts: hosts, SecretName: secret})
	}
}

// ofClass puts the Ingress in another class; "" is none.
func ofClass(name string) edit {
	return func(ing *netv1.Ingress) {
		ing.Spec.IngressClassName = &name
		if name == "" {
			ing.Spec.IngressClassName = nil
		}
	}
}

// certificates signs for a test.
type certificates struct {
	t  testing.TB
	ca *authority
}

func newCertificates(t testing.TB) *certificates {
	t.Helper()
	ca, err := newAuthority()
	must(t, err)
	return &certificates{t: t, ca: ca}
}

func (c *certificates) issue(names ...string) keyPair {
	c.t.Helper()
	pair, err := c.ca.issue(names...)
	if err != nil {
		c.t.Fatal(err)
	}
	return pair
}

func (c *certificates) client(host string) *tls.Config {
	return &tls.Config{RootCAs: c.ca.pool(), ServerName: host, MinVersion: tls.VersionTLS12}
}
