package k8swatch_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
)

// The Secrets of Ingresses: two are named, and one of them is too large.
func ExampleWithheld() {
	source := k8swatchtest.NewSource(k8swatchtest.Objects(`
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {namespace: shop, name: web}
spec: {tls: [{secretName: huge}, {secretName: tls}]}
---
apiVersion: v1
kind: Secret
metadata: {namespace: shop, name: huge}
stringData: {tls.crt: "a text of more than 64 bytes, where a namespace can have 64 bytes and the 1 KiB of an object"}
---
apiVersion: v1
kind: Secret
metadata: {namespace: shop, name: other}
---
apiVersion: v1
kind: Secret
metadata: {namespace: shop, name: tls}
`)...)
	secrets, err1 := k8swatch.New(source, corev1.SchemeGroupVersion.WithResource("secrets"), &k8swatch.Options{
		OnlyNamed: &k8swatch.OnlyNamed{BytesPerNamespace: 1<<10 + 64},
	})
	ingresses, err2 := k8swatch.New(source, networkingv1.SchemeGroupVersion.WithResource("ingresses"), &k8swatch.Options{
		Names: func(o k8swatch.Object, name func(*k8swatch.Watcher, types.NamespacedName)) {
			for _, tls := range o.(*networkingv1.Ingress).Spec.TLS {
				name(secrets, types.NamespacedName{Namespace: o.GetNamespace(), Name: tls.SecretName})
			}
		},
	})
	group := k8swatch.NewGroup(nil)
	err3 := group.Add(ingresses, secrets)
	if err1 != nil || err2 != nil || err3 != nil {
		panic("an option is wrong")
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- group.Run(ctx) }()
	if _, err := group.WaitForSync(ctx); err != nil {
		panic(err)
	}
	for _, s := range k8swatch.Read[*corev1.Secret](group.Snapshot().Of(secrets)).List() {
		fmt.Println(s.Name, k8swatch.Withheld(s) == "")
	}
	stop()
	<-done
	// Output:
	// huge false
	// tls true
}
