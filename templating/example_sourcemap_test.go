package templating_test

import (
	"context"
	"errors"
	"fmt"
	"testing/fstest"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/templating"
)

// A validator complains about line 3 of the output: who is to blame?
func ExampleEngine_RenderTraced() {
	engine, err := templating.Compile(fstest.MapFS{
		"haproxy.cfg":  {Data: []byte("# made\n{% for _, ing := range ingresses %}\n{{ render \"_backend.cfg\" }}\n{% end %}\n")},
		"_backend.cfg": {Data: []byte("backend all\n  balance nonsense\n")},
	}, &templating.Options{Vars: map[string]any{"ingresses": []*networkingv1.Ingress(nil)}})
	if err != nil {
		fmt.Println(err)
		return
	}
	shop := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	traced, err := engine.RenderTraced(context.Background(), "haproxy.cfg", map[string]any{"ingresses": []*networkingv1.Ingress{shop}})
	if err != nil {
		fmt.Println(err)
		return
	}
	at := traced.Origin(3)
	fmt.Printf("%s:%d:%d: %s\n", at.File, at.Line, at.Column, at.Text)
	fmt.Println("ingress", at.Owners[0].(*networkingv1.Ingress).Name)
	// Output:
	// _backend.cfg:2:3:   balance nonsense
	// ingress web
}

// One render reports every value that is refused, and whose it is.
func ExampleErrors() {
	engine, err := templating.Compile(fstest.MapFS{
		"hosts.map": {Data: []byte("{% for _, ing := range ingresses %}\n{{ ing.Spec.Rules[0].Host }} {{ ing.Name }}\n{% end %}\n")},
	}, &templating.Options{Vars: map[string]any{"ingresses": []*networkingv1.Ingress(nil)}})
	if err != nil {
		fmt.Println(err)
		return
	}
	var list []*networkingv1.Ingress
	for name, host := range map[string]string{"good": "good.example", "evil": "evil.example b_admin\n#"} {
		list = append(list, &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
			Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{Host: host}}}})
	}
	_, err = engine.Render(context.Background(), "hosts.map", map[string]any{"ingresses": list})
	for _, e := range templating.Errors(err) {
		fmt.Println(e.Line, e.Owners[0].(*networkingv1.Ingress).Name)
	}
	fmt.Println(errors.As(err, new(*templating.Error)))
	// Output:
	// 2 evil
	// true
}
