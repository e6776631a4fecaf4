package ingress

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/limits"
)

// wrong is a cluster of n Ingresses, all with a mistake.
func wrong(n int) map[string]*world {
	class, missing, idle, same := manyIngresses(n), manyIngresses(n), manyIngresses(n), manyIngresses(n)
	for _, ing := range same.ingresses {
		ing.Spec.Rules[0].HTTP.Paths[0].Backend.Service.Name = "nope"
	}
	class.classes = []*networkingv1.IngressClass{{ObjectMeta: metav1.ObjectMeta{Name: "haptic"}, Spec: networkingv1.IngressClassSpec{Controller: ControllerName}}}
	for i, ing := range class.ingresses {
		name := fmt.Sprintf("hapti%c", 'd'+i%20)
		ing.Spec.IngressClassName = &name
	}
	for _, ing := range missing.ingresses {
		ing.Spec.Rules[0].HTTP.Paths[0].Backend.Service.Name += "x"
	}
	for _, s := range idle.slices {
		s[0].Endpoints[0].Conditions.Ready = new(bool)
	}
	return map[string]*world{"class": class, "missing": missing, "idle": idle, "same": same}
}

// TestManyMistakes: of a namespace with many mistakes some resources are named, and the
// others counted.
func TestManyMistakes(t *testing.T) {
	for name, w := range wrong(5000) {
		t.Run(name, func(t *testing.T) {
			r := w.build()
			require.Len(t, r.Refused, limits.MaxResources)
			count, reasons := 0, map[string]bool{}
			for _, refusal := range r.Refused {
				count += 1 + refusal.More
				reasons[refusal.Reason] = true
			}
			require.Equal(t, 5000, count)
			require.Equal(t, limits.MaxResources, 10*reconcile.MaxRefusals+1)
			if name == "idle" || name == "same" {
				require.Len(t, reasons, 1, "one cause, one text")
			}
		})
	}
}

// BenchmarkManyMistakes is what mistakes add to each render.
func BenchmarkManyMistakes(b *testing.B) {
	worlds := wrong(brief(10_000))
	worlds["none"] = manyIngresses(brief(10_000))
	for name, w := range worlds {
		b.Run(name, func(b *testing.B) {
			slots, cluster := &Slots{}, w.cluster()
			for b.Loop() {
				Build(cluster, slots)
			}
		})
	}
}
