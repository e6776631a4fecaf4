package status_test

import (
	"context"
	"fmt"
	"iter"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/reconciletest"
	"github.com/hapticsdk/haptic/reconcile/status"
)

var classes = schema.GroupVersionResource{Group: "gateway.networking.k8s.io", Version: "v1", Resource: "gatewayclasses"}

// A GatewayClass is accepted once HAProxy has its configuration.
func ExampleWriter() {
	class := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass",
		"metadata": map[string]any{"name": "haproxy", "uid": "1"}}}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{classes: "GatewayClassList"}, class)
	written, err := client.Resource(classes).Watch(context.Background(), metav1.ListOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	var loop *reconcile.Loop
	writer, err := status.New(status.Options{Client: client, Term: func() uint64 { return loop.Term() }})
	if err != nil {
		fmt.Println(err)
		return
	}
	renderer := reconcile.RendererFunc(func(context.Context) (*reconcile.Rendered, error) {
		cfg, err := dataplane.NewConfig("frontend web\n    bind :80\n")
		return &reconcile.Rendered{Config: cfg}, err
	})
	items := func() iter.Seq[status.Item] {
		return slices.Values([]status.Item{{Resource: classes, Name: "haproxy", UID: "1",
			Status: map[string]any{"conditions": []metav1.Condition{{Type: "Accepted", Status: metav1.ConditionTrue}}}}})
	}
	loop, err = reconcile.New(reconcile.Options{Renderer: writer.Renderer(renderer, items), Targets: []reconcile.Target{reconciletest.NewTarget("a")}})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { _ = writer.Run(ctx) }()
	if _, err := loop.Once(ctx); err != nil {
		fmt.Println(err)
	}
	writer.Refresh() // as if the items had changed without a render
	now := (<-written.ResultChan()).Object.(*unstructured.Unstructured)
	conditions, _, err := unstructured.NestedSlice(now.Object, "status", "conditions")
	fmt.Println(conditions[0].(map[string]any)["type"], err, writer.Check())
	// Output: Accepted <nil> <nil>
}

// The addresses are those of the Service before HAProxy.
func ExampleService() {
	front := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "haptic", Name: "front"},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}}
	source, changed := k8swatchtest.NewSource(front), make(chan struct{})
	service, err := status.NewService(source, "haptic", "front", nil, func() { close(changed) })
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { _ = service.Run(ctx) }()
	fmt.Println(service.Addresses())
	front.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
	source.Apply(front)
	<-changed
	fmt.Println(service.Addresses(), service.Check())
	// Output:
	// []
	// [192.0.2.1] <nil>
}

func ExampleAddressesOf() {
	fmt.Println(status.AddressesOf(&corev1.Service{Spec: corev1.ServiceSpec{ClusterIPs: []string{"10.0.0.1"}, ExternalIPs: []string{"192.0.2.9"}}}))
	// Output: [192.0.2.9]
}

func ExampleParseAddress() {
	for _, text := range []string{"2001:db8:0::1", "lb.example.com", "192.0.2.1:80"} {
		fmt.Println(status.ParseAddress(text))
	}
	// Output:
	// 2001:db8::1 <nil>
	// lb.example.com <nil>
	//  want an address such as 192.0.2.1 or 2001:db8::1, or a host name in lower case
}
