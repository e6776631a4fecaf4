package k8swatch

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// size is the number of objects of the benchmarks. CI runs each of them once, with
// -short.
func size() int {
	if testing.Short() {
		return 1000
	}
	return 50_000
}

var (
	ingressResource = networkingv1.SchemeGroupVersion.WithResource("ingresses")
	sliceResource   = discoveryv1.SchemeGroupVersion.WithResource("endpointslices")
	routeResource   = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "routes"}
)

// bigIngress is like those of a cluster that is run with a GitOps tool: 3.9 KB
// of JSON, of which a good half is managedFields and the last-applied annotation.
func bigIngress(i int) *networkingv1.Ingress {
	class, prefix := "haproxy", networkingv1.PathTypePrefix
	app, host := fmt.Sprint("app-", i), fmt.Sprintf("app-%d.team-%d.example.com", i, i%200)
	backend := func(port int32) networkingv1.IngressBackend {
		return networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: app, Port: networkingv1.ServiceBackendPort{Number: port}}}
	}
	path := func(p string, port int32) networkingv1.HTTPIngressPath {
		return networkingv1.HTTPIngressPath{Path: p, PathType: &prefix, Backend: backend(port)}
	}
	obj := &networkingv1.Ingress{
		TypeMeta: metav1.TypeMeta{Kind: "Ingress", APIVersion: "networking.k8s.io/v1"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: fmt.Sprint("team-", i%200), Name: app,
			Labels: map[string]string{
				"app.kubernetes.io/name": app, "app.kubernetes.io/instance": app, "app.kubernetes.io/managed-by": "Helm",
				"app.kubernetes.io/part-of": "shop", "helm.sh/chart": "web-4.7.2", "team": fmt.Sprint("team-", i%200),
			},
			Annotations: map[string]string{
				"cert-manager.io/cluster-issuer": "letsencrypt-production", "haproxy.org/ssl-redirect": "true",
				"haproxy.org/timeout-server":      "60s",
				"haproxy.org/response-set-header": fmt.Sprintf("Content-Security-Policy \"frame-ancestors 'self' https://%s https://www.%s\"", host, host), "haproxy.org/load-balance": "leastconn",
				"meta.helm.sh/release-name": app, "meta.helm.sh/release-namespace": fmt.Sprint("team-", i%200),
			},
		},
		Spec: networkingv1.IngressSpec{
			IngressClassName: &class,
			TLS:              []networkingv1.IngressTLS{{Hosts: []string{host, "www." + host}, SecretName: app + "-tls"}},
		},
	}
	for _, h := range []string{host, "www." + host} {
		obj.Spec.Rules = append(obj.Spec.Rules, networkingv1.IngressRule{Host: h, IngressRuleValue: networkingv1.IngressRuleValue{
			HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{path("/", 8080), path("/api", 8081)}},
		}})
	}
	manifest, err := json.Marshal(obj)
	if err != nil {
		panic(err)
	}
	obj.Annotations[lastApplied] = string(manifest)
	obj.UID = types.UID(fmt.Sprintf("%08x-5717-4562-b3fc-2c963f66afa6", i))
	obj.ResourceVersion = fmt.Sprint(1_000_000 + i)
	obj.Generation = 1
	obj.CreationTimestamp = metav1.NewTime(time.Unix(1_700_000_000+int64(i), 0))
	at := obj.CreationTimestamp
	for _, manager := range []string{"helm", "kube-controller-manager"} {
		obj.ManagedFields = append(obj.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: manager, Operation: "Update", APIVersion: "networking.k8s.io/v1", Time: &at, FieldsType: "FieldsV1",
			FieldsV1: &metav1.FieldsV1{Raw: []byte(managedFields[manager])},
		})
	}
	obj.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: "192.0.2.10"}}
	return obj
}

var managedFields = map[string]string{
	"helm": `{"f:metadata":{"f:annotations":{".":{},"f:cert-manager.io/cluster-issuer":{},"f:haproxy.org/load-balance":{},` +
		`"f:haproxy.org/ssl-redirect":{},"f:haproxy.org/timeout-server":{},"f:meta.helm.sh/release-name":{},` +
		`"f:meta.helm.sh/release-namespace":{}},"f:labels":{".":{},"f:app.kubernetes.io/instance":{},` +
		`"f:app.kubernetes.io/managed-by":{},"f:app.kubernetes.io/name":{},"f:helm.sh/chart":{},"f:team":{}}},` +
		`"f:spec":{"f:ingressClassName":{},"f:rules":{},"f:tls":{}}}`,
	"kube-controller-manager": `{"f:status":{"f:loadBalancer":{"f:ingress":{}}}}`,
}

// slicesPerService is how many endpoint slices each service of bigSlice has.
const slicesPerService = 4

func bigSlice(i int) *discoveryv1.EndpointSlice {
	service, yes, name := serviceOf(i), true, "http"
	port, tcp := int32(8080), "TCP"
	obj := &discoveryv1.EndpointSlice{
		TypeMeta: metav1.TypeMeta{Kind: "EndpointSlice", APIVersion: "discovery.k8s.io/v1"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespaceOf(i), Name: fmt.Sprintf("%s-%05d", service, i),
			UID: types.UID(fmt.Sprintf("%08x-5717-4562-b3fc-2c963f66afa6", i)), ResourceVersion: fmt.Sprint(1_000_000 + i),
			Labels: map[string]string{
				"kubernetes.io/service-name": service, "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
				"app": service,
			},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Service", Name: service, UID: types.UID(service), Controller: &yes}},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &name, Port: &port, Protocol: (*corev1.Protocol)(&tcp)}},
	}
	for n := range 4 {
		node := fmt.Sprint("node-", n)
		obj.Endpoints = append(obj.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, (i+n)&255)}, NodeName: &node,
			Conditions: discoveryv1.EndpointConditions{Ready: &yes, Serving: &yes},
		})
	}
	return obj
}

func namespaceOf(i int) string { return fmt.Sprint("team-", i/slicesPerService%200) }
func serviceOf(i int) string   { return fmt.Sprint("web-", i/slicesPerService) }

// bigRoute is bigIngress as a custom resource, as it is decoded from JSON.
func bigRoute(i int) *unstructured.Unstructured {
	obj := bigIngress(i)
	obj.APIVersion, obj.Kind = "example.com/v1", "Route"
	return unstructuredOf(obj)
}

// unstructuredOf is what the JSON of an object, which has a kind, decodes to.
func unstructuredOf(obj any) *unstructured.Unstructured {
	text, err := json.Marshal(obj)
	if err != nil {
		panic(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(text); err != nil {
		panic(err)
	}
	return u
}
