package endpoints_test

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile/endpoints"
)

// slice has the endpoints of a Service behind its port "http".
func slice(addresses ...string) *discoveryv1.EndpointSlice {
	name, port := "http", int32(8080)
	return &discoveryv1.EndpointSlice{Ports: []discoveryv1.EndpointPort{{Name: &name, Port: &port}}, Endpoints: []discoveryv1.Endpoint{{Addresses: addresses}}}
}

func Example() {
	rules := endpoints.NewJudge(nil)
	found := endpoints.Find(rules, []*discoveryv1.EndpointSlice{slice("192.0.2.1", "192.0.2.2")}, "http", 1000)
	slots := endpoints.Slots(nil).Assign(found.Addresses, 1000)
	found = endpoints.Find(rules, []*discoveryv1.EndpointSlice{slice("192.0.2.2", "192.0.2.3")}, "http", 1000)
	for _, s := range slots.Assign(found.Addresses, 1000).Servers(0) {
		fmt.Println(s.Name, s.Address)
	}
	// Output:
	// s1 192.0.2.3:8080
	// s2 192.0.2.2:8080
}

func ExampleFind() {
	found := endpoints.Find(endpoints.NewJudge(nil), []*discoveryv1.EndpointSlice{slice("127.0.0.1", "192.0.2.1")}, "http", 1000)
	fmt.Println(found.Addresses)
	fmt.Println(found.Refused[0].Field, found.Refused[0].Reason)
	// Output:
	// [192.0.2.1:8080]
	// endpoints[0].addresses[0] 127.0.0.1:8080 is a loopback address: -allow-endpoint 127.0.0.0/8 would allow it
}

func ExampleNewJudge() {
	listeners := endpoints.Listeners{}
	listeners.AddAddr(netip.MustParseAddr("192.0.2.9"), 8443)
	if err := listeners.Add(":8080"); err != nil {
		fmt.Println(err)
	}
	judge := endpoints.NewJudge(&endpoints.Addresses{Listeners: listeners})
	fmt.Println(judge.Problem(netip.MustParseAddr("192.0.2.9"), 8443))
	// Output: is where HAProxy or the controller listens
}

func ExampleListeners_Add() {
	listeners := endpoints.Listeners{}
	fmt.Println(listeners.Add("192.0.2.1:80,[::]:443"), len(listeners))
	fmt.Println(listeners.Add("nonsense"))
	// Output:
	// <nil> 2
	// "nonsense": want address:port
}

func ExampleListeners_AddAddr() {
	listeners := endpoints.Listeners{}
	listeners.AddAddr(netip.MustParseAddr("192.0.2.1"), 80)
	fmt.Println(listeners)
	// Output: map[80:[192.0.2.1]]
}

func ExampleSlots_Servers() {
	for _, s := range (endpoints.Slots{"192.0.2.1:80"}).Servers(2) {
		fmt.Println(s.Name, s.Address, s.Disabled)
	}
	// Output:
	// s1 192.0.2.1:80 false
	// s2 127.0.0.1:9 true
}

func ExampleReadSlots() {
	cfg, err := dataplane.NewConfig("backend web\n    server s2 192.0.2.1:80\n")
	if err != nil {
		fmt.Println(err)
	}
	fmt.Printf("%q\n", endpoints.ReadSlots(cfg))
	// Output: map["web":["" "192.0.2.1:80"]]
}

func ExampleUnusable() {
	svc := &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}}}
	svc.Name = "web"
	_, reason, _ := endpoints.Unusable(svc, &svc.Spec.Ports[0], nil, 0)
	fmt.Println(reason)
	// Output: no EndpointSlice has the label kubernetes.io/service-name=web, requests get 503: the Service has no selector, so that the cluster makes none
}

func ExampleExternalName() {
	fmt.Println(endpoints.ExternalName(&corev1.Service{Spec: corev1.ServiceSpec{ExternalName: "WEB.example.com."}}))
	// Output: web.example.com
}

func ExampleExternalNameProblem() {
	fmt.Println(endpoints.ExternalNameProblem(endpoints.NewJudge(nil), &corev1.Service{Spec: corev1.ServiceSpec{ExternalName: "localhost"}}, 80))
	// Output: spec.externalName "localhost" is this host
}

func ExampleHasName() {
	fmt.Println(endpoints.HasName("web.test:80"), endpoints.HasName("[::1]:80"))
	// Output: true false
}
