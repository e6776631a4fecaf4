package templating_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/templating"
)

// The name of a file says what HAProxy reads it for.
func ExampleKindOf() {
	fmt.Println(templating.KindOf("paths_reg.map") == templating.RegMap, templating.KindOf("503.http") == templating.Plain)
	// Output: true true
}

// A value belongs to the objects in its exported fields.
func ExampleOwnersOf() {
	type backend struct {
		Name    string
		Service *corev1.Service
	}
	b := backend{"web", &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"}}}
	fmt.Println(templating.OwnersOf(b)[0] == any(b.Service))
	// Output: true
}

// An editor finds the code of a template.
func ExampleCode() {
	text := "backend {{ name }} {# not this #}"
	for from, to := range templating.Code(text) {
		fmt.Printf("%q\n", text[from:to])
	}
	// Output: " name "
}
