package endpoints_test

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hapticsdk/haptic/k8swatch/derive"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/endpoints"
	"github.com/hapticsdk/haptic/reconcile/limits"
)

// cluster has backends, each with a Service of its own: "namespace_name".
type cluster struct {
	g        *derive.Graph
	services *derive.Input[string, *corev1.Service]
	slices   *derive.Input[types.NamespacedName, *discoveryv1.EndpointSlice]
	servers  *derive.Collection[string, endpoints.Served]
	refused  derive.Value[[]reconcile.Refusal]
}

func nameOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

func newCluster(opts endpoints.Options) *cluster {
	g := derive.New()
	c := &cluster{g: g, services: derive.NewInput[string, *corev1.Service](g, "Service")}
	c.slices = derive.NewInput[types.NamespacedName, *discoveryv1.EndpointSlice](g, "EndpointSlice")
	judge := endpoints.Judges(g, derive.NewInput[struct{}, *endpoints.Addresses](g, "addresses").Collection)
	order := limits.OrderOf("order", c.services.Collection, func(backend string, s *corev1.Service) (string, string) {
		return s.Namespace, backend
	}, strings.Compare, cmp.Compare[string])
	backends := endpoints.NewBackends(c.services.Collection, func(_ *derive.Reads, s *corev1.Service) endpoints.Port {
		port, _ := endpoints.FindPort(s, "http", 0, 10)
		return endpoints.Port{Of: nameOf(s), Service: s, Port: port}
	}, c.slices.Collection, judge, order, opts)
	serve := func(at *derive.Reads, backend string, _ *corev1.Service, was endpoints.Served) (endpoints.Served, bool) {
		return backends.Serve(at, backend, was.Slots)
	}
	c.servers = derive.Each("servers", c.services.Collection, serve)
	c.refused = limits.Refusals(g)
	return c
}

func service(namespace, name string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}}}
}

// set gives a Service these endpoints.
func (c *cluster) set(namespace, name string, addresses ...string) {
	svc := service(namespace, name)
	if old, ok := c.services.Get(nil, namespace+"_"+name); !ok || old == nil {
		c.services.Set(namespace+"_"+name, svc)
	}
	s := slice(addresses...)
	s.Namespace, s.Name, s.Labels = namespace, name, map[string]string{discoveryv1.LabelServiceName: name}
	c.slices.Set(nameOf(s), s)
}

// accept computes the servers of a backend, and accepts them.
func (c *cluster) accept(backend string) (all []string) {
	if err := c.g.Run(context.Background()); err != nil {
		panic(err)
	}
	if err := c.g.Commit(); err != nil {
		panic(err)
	}
	served, _ := c.servers.Get(nil, backend)
	for _, s := range served.Servers {
		all = append(all, s.Name+"="+s.Address)
	}
	return all
}

func ExampleNewBackends() {
	c := newCluster(endpoints.Options{PerBackend: 2, PerNamespace: 100})
	c.set("shop", "web", "192.0.2.1", "192.0.2.2", "192.0.2.3")
	fmt.Println(c.accept("shop_web"))
	fmt.Println(c.refused.Get(nil)[0])
	// Output:
	// [s1=192.0.2.1:8080 s2=192.0.2.2:8080]
	// Service shop/web: it has 3 endpoints on port 80, more than the 2 servers of a backend (servers-per-backend): 2 serve
}

func ExampleBackends_Serve() {
	c := newCluster(endpoints.Options{PerBackend: 100, PerNamespace: 100})
	c.set("shop", "web", "192.0.2.1", "192.0.2.2")
	fmt.Println(c.accept("shop_web"))
	c.set("shop", "web", "192.0.2.2", "192.0.2.3")
	fmt.Println(c.accept("shop_web"))
	// Output:
	// [s1=192.0.2.1:8080 s2=192.0.2.2:8080]
	// [s1=192.0.2.3:8080 s2=192.0.2.2:8080]
}

func ExampleJudges() {
	g := derive.New()
	rules := derive.NewInput[struct{}, *endpoints.Addresses](g, "rules")
	judge := endpoints.Judges(g, rules.Collection)
	fmt.Println(g.Run(context.Background()))
	found := endpoints.Find(judge.Get(nil), []*discoveryv1.EndpointSlice{slice("127.0.0.1")}, "http", 10)
	fmt.Println(found.Refused[0].Reason)
	// Output:
	// <nil>
	// 127.0.0.1:8080 is a loopback address: -allow-endpoint 127.0.0.0/8 would allow it
}

func ExampleFindPort() {
	svc := service("shop", "web")
	port, _ := endpoints.FindPort(svc, "", 80, 100)
	fmt.Println(port.Name)
	_, problem := endpoints.FindPort(svc, "grpc", 0, 100)
	fmt.Println(problem)
	// Output:
	// http
	// Service shop/web has no port grpc; it has http (80)
}

// TestEarlierServers: the first transaction goes on with the slots of an earlier process.
func TestEarlierServers(t *testing.T) {
	c := newCluster(endpoints.Options{PerBackend: 100, PerNamespace: 100, Spare: 4, Earlier: func(backend string) endpoints.Slots {
		require.Equal(t, "shop_web", backend)
		return endpoints.Slots{"192.0.2.9:8080", "192.0.2.1:8080"}
	}})
	c.set("shop", "web", "192.0.2.1")
	const spare = "=" + endpoints.SpareAddress
	require.Equal(t, []string{"s1" + spare, "s2=192.0.2.1:8080", "s3" + spare, "s4" + spare}, c.accept("shop_web"))
}

// TestNamespaceIsFull: the first backends of a namespace get its servers, and another
// namespace has its own.
func TestNamespaceIsFull(t *testing.T) {
	c := newCluster(endpoints.Options{PerBackend: 100, PerNamespace: 3})
	c.set("evil", "a", "192.0.2.1", "192.0.2.2")
	c.set("evil", "b", "192.0.2.3", "192.0.2.4")
	c.set("shop", "web", "192.0.2.5")
	require.Len(t, c.accept("evil_a"), 2)
	require.Len(t, c.accept("evil_b"), 1)
	require.Len(t, c.accept("shop_web"), 1)
	require.Len(t, c.refused.Get(nil), 1)
	require.Contains(t, c.refused.Get(nil)[0].String(), "Service evil/b: it has 2 endpoints on port 80, of which 1 serve: namespace evil has more than the 3 servers of one namespace (servers-per-namespace)")
}

// TestNoServers: a Service without endpoints, without the port, or with a name has a backend.
func TestNoServers(t *testing.T) {
	c := newCluster(endpoints.Options{PerBackend: 100, PerNamespace: 100})
	c.set("shop", "web")
	c.slices.Delete(types.NamespacedName{Namespace: "shop", Name: "web"})
	require.Empty(t, c.accept("shop_web"))
	require.Contains(t, c.refused.Get(nil)[0].String(), "Service shop/web: no EndpointSlice has the label kubernetes.io/service-name=web, requests get 503")
	c.services.Set("shop_name", &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "name"},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "Other.test.", Ports: []corev1.ServicePort{{Name: "http", Port: 80}}}})
	require.Equal(t, []string{"s1=other.test:80"}, c.accept("shop_name"))
	c.services.Set("shop_none", &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "none"}})
	require.Empty(t, c.accept("shop_none"))
	_, problem := endpoints.FindPort(&corev1.Service{}, "", 0, 1)
	require.Contains(t, problem, "no port is named")
	_, problem = endpoints.FindPort(&corev1.Service{Spec: corev1.ServiceSpec{Ports: make([]corev1.ServicePort, 9)}}, "x", 0, 3)
	require.Contains(t, problem, "has 9 ports, more than the 3 that can be used (ports-per-service)")
}
