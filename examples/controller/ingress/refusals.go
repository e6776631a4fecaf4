package ingress

import (
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/examples/controller/annotation"
	"github.com/hapticsdk/haptic/k8swatch/derive"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/limits"
)

// refuse reports that a part of an Ingress is refused.
func refuse(at *derive.Reads, ing *networkingv1.Ingress, field fieldPath, reason string) {
	limits.Refuse(at, "Ingress", ing, reconcile.Refusal{Field: field.String(), Reason: reason})
}

// warn reports a part of an Ingress that its author should check.
func warn(at *derive.Reads, ing *networkingv1.Ingress, field fieldPath, reason string) {
	limits.Refuse(at, "Ingress", ing, reconcile.Refusal{Field: field.String(), Reason: reason, Warning: true})
}

func warnOfAnnotations(at *derive.Reads, kind string, o metav1.Object, problems []annotation.Problem) {
	for _, p := range problems {
		limits.Refuse(at, kind, o, reconcile.Refusal{Field: p.Field(), Reason: p.Reason, Warning: p.Warning})
	}
}
