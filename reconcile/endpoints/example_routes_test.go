package endpoints_test

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hapticsdk/haptic/k8swatch/derive"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/claims"
	"github.com/hapticsdk/haptic/reconcile/endpoints"
	"github.com/hapticsdk/haptic/reconcile/limits"
)

// Route is a resource of a controller: it leads a host to a Service of its namespace.
type Route struct {
	metav1.ObjectMeta
	Host, Service string
}

// Model computes what a controller serves for Routes. A Feed of k8swatch sets its inputs. Each
// Route has a backend, by whose name it is stored.
type Model struct {
	Graph    *derive.Graph
	Routes   *derive.Input[string, *Route]
	Services *derive.Input[types.NamespacedName, *corev1.Service]
	Slices   *derive.Input[types.NamespacedName, *discoveryv1.EndpointSlice]
	Served   *derive.Collection[string, endpoints.Served] // by backend
	Refused  derive.Value[[]reconcile.Refusal]            // of all rules, for render.Input

	hosts    *claims.Hosts
	backends *endpoints.Backends
}

func NewModel() *Model {
	g := derive.New()
	m := &Model{Graph: g}
	m.Routes = derive.NewInput[string, *Route](g, "Route")
	m.Services = derive.NewInput[types.NamespacedName, *corev1.Service](g, "Service")
	m.Slices = derive.NewInput[types.NamespacedName, *discoveryv1.EndpointSlice](g, "EndpointSlice")
	rules := derive.NewInput[struct{}, *endpoints.Addresses](g, "address rules") // none: the default

	m.hosts = claims.NewHosts(g, m.Routes.Collection, func(_ string, r *Route) (claims.Claimant, iter.Seq[string]) {
		return claims.By("Route", r), slices.Values([]string{r.Host})
	}, claims.HostOptions{})
	byName := limits.OrderOf("order of backends", m.Routes.Collection, func(backend string, r *Route) (namespace, position string) {
		return r.Namespace, backend
	}, strings.Compare, cmp.Compare[string])
	m.backends = endpoints.NewBackends(m.Routes.Collection, m.port, m.Slices.Collection, endpoints.Judges(g, rules.Collection), byName,
		endpoints.Options{PerBackend: 100, PerNamespace: 1000})
	m.Served = derive.Each("served", m.Routes.Collection, m.serve)
	m.Refused = limits.Refusals(g)
	return m
}

// port says which port of a Service a Route leads to.
func (m *Model) port(at *derive.Reads, r *Route) endpoints.Port {
	p := endpoints.Port{Of: types.NamespacedName{Namespace: r.Namespace, Name: r.Service}}
	if p.Service, _ = m.Services.Get(at, p.Of); p.Service != nil {
		p.Port, _ = endpoints.FindPort(p.Service, "http", 0, 10)
	}
	return p
}

// serve gives a Route its servers, if its namespace owns the host.
func (m *Model) serve(at *derive.Reads, backend string, r *Route, was endpoints.Served) (endpoints.Served, bool) {
	if problem := m.hosts.NotOwned(at, r.Host, r.Namespace); problem != "" {
		limits.Refuse(at, "Route", r, reconcile.Refusal{Field: "spec.host", Reason: problem})
		return endpoints.Served{}, false
	}
	return m.backends.Serve(at, backend, was.Slots)
}

// The model of a second controller is a list of functions on the rooms: who owns the host, which
// endpoints serve, what is refused. A change of a pod computes the one backend again.
func Example_routes() {
	m := NewModel()
	web := types.NamespacedName{Namespace: "shop", Name: "web"}
	m.Routes.Set("shop_web", &Route{metav1.ObjectMeta{Namespace: "shop", Name: "web", CreationTimestamp: metav1.Unix(1, 0)}, "shop.test", "web"})
	m.Routes.Set("evil_web", &Route{metav1.ObjectMeta{Namespace: "evil", Name: "web", CreationTimestamp: metav1.Unix(2, 0)}, "shop.test", "web"})
	m.Services.Set(web, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}}})
	for _, address := range []string{"192.0.2.1", "192.0.2.2"} { // a pod is replaced
		name, port := "http", int32(8080)
		m.Slices.Set(web, &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
			Ports:      []discoveryv1.EndpointPort{{Name: &name, Port: &port}},
			Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{address}}}})
		if err := m.Graph.Run(context.Background()); err != nil {
			fmt.Println(err)
		}
		for backend, served := range m.Served.All() {
			fmt.Println(backend, served.Servers)
		}
		if err := m.Graph.Commit(); err != nil { // the configuration is valid
			fmt.Println(err)
		}
	}
	fmt.Println(m.Refused.Get(nil))
	// Output:
	// shop_web [{s1 192.0.2.1:8080 false false}]
	// shop_web [{s1 192.0.2.2:8080 false false}]
	// [Route evil/web: spec.host: shop.test belongs to namespace shop, which claimed it first]
}
