package limits_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/k8swatch/derive"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/limits"
)

func service(namespace, name string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// refusalsOf are what items with these reports say.
func refusalsOf(tell func(at *derive.Reads)) []reconcile.Refusal {
	g := derive.New()
	derive.One(g, "item", func(at *derive.Reads, _ int) int { tell(at); return 0 })
	all := limits.Refusals(g)
	if err := g.Run(context.Background()); err != nil {
		panic(err)
	}
	return all.Get(nil)
}

func ExampleRefuse() {
	fmt.Println(refusalsOf(func(at *derive.Reads) {
		limits.Refuse(at, "Service", service("shop", "web"), reconcile.Refusal{Field: "spec.ports", Reason: "there is none"})
	})[0])
	// Output: Service shop/web: spec.ports: there is none
}

func ExampleRefuseOnce() {
	for _, r := range refusalsOf(func(at *derive.Reads) {
		for i := range 3 {
			limits.RefuseOnce(at, "Service", service("shop", "web"), reconcile.Refusal{Field: fmt.Sprintf("spec.ports[%d]", i), Reason: "it is not served"})
		}
	}) {
		fmt.Println(r)
	}
	// Output: Service shop/web: spec.ports[0]: it is not served
}

func ExampleRefusals() {
	for _, r := range refusalsOf(func(at *derive.Reads) {
		limits.Refuse(at, "Service", service("shop", "b"), reconcile.Refusal{Reason: "second"})
		limits.Refuse(at, "Service", service("shop", "a"), reconcile.Refusal{Reason: "first"})
		limits.Refuse(at, "Service", service("shop", "a"), reconcile.Refusal{Reason: "first"})
	}) {
		fmt.Println(r)
	}
	// Output:
	// Service shop/a: first
	// Service shop/b: second
}

// TestManyRefusals: a resource, and a namespace, with many problems names some and counts the
// others. It takes no room from another namespace.
func TestManyRefusals(t *testing.T) {
	const resources, problems = limits.MaxResources + 5, reconcile.MaxRefusals + 3
	all := refusalsOf(func(at *derive.Reads) {
		for i := range resources {
			for j := range problems {
				limits.Refuse(at, "Service", service("evil", fmt.Sprintf("%04d", i)), reconcile.Refusal{Field: fmt.Sprintf("f[%04d]", j), Reason: "wrong"})
			}
		}
		limits.Refuse(at, "Service", service("shop", "web"), reconcile.Refusal{Reason: "wrong"})
		limits.Refuse(at, "Node", service("", "one"), reconcile.Refusal{Reason: "wrong"})
	})
	require.Len(t, all, limits.MaxResources*reconcile.MaxRefusals+2)
	require.Equal(t, "Node one", all[0].Resource)
	require.Equal(t, "Service shop/web", all[len(all)-1].Resource)
	count := 0
	for _, r := range all {
		count += 1 + r.More
	}
	require.Equal(t, resources*problems+2, count)
}
