package templating_test

import (
	"fmt"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/templating"
)

// BenchmarkFunctions renders what 1,000 objects make of a function, and of a
// snippet against a macro.
func BenchmarkFunctions(b *testing.B) {
	var list []*networkingv1.Ingress
	for i := range 1000 {
		list = append(list, &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i*7919%1000), Namespace: fmt.Sprint("s", i%10)}})
	}
	for name, text := range map[string]string{
		"dig":      "{% for _, x := range list %}{{ dig(x, `metadata.name`) }}\n{% end %}",
		"field":    "{% for _, x := range list %}{{ x.Name }}\n{% end %}",
		"sort_by":  "{{ len(sort_by(list, `metadata.namespace`, `metadata.name:desc`)) }}",
		"group_by": "{{ len(group_by(list, `metadata.namespace`)) }}",
		"include":  "{% for _, x := range list %}{{ include(`s`, x.Name) }}{% end %}",
		"macro":    "{% macro M(data any) %}{{ data }}\n{% end %}{% for _, x := range list %}{{ M(x.Name) }}{% end %}",
	} {
		b.Run(name, func(b *testing.B) {
			e, err := templating.Compile(files("a.http", text, "snippets/s.http", "{{ data }}\n"), &templating.Options{Vars: map[string]any{"list": list}})
			if err != nil {
				b.Fatal(err)
			}
			vars := map[string]any{"list": list}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := e.Render(b.Context(), "a.http", vars); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
