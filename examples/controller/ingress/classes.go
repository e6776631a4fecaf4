package ingress

import (
	"fmt"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/hapticsdk/haptic/reconcile"
)

// ControllerName is what spec.controller of our IngressClasses says.
const ControllerName = "haptic.hapticsdk.dev/ingress"

// classAnnotation named the class before spec.ingressClassName did.
const classAnnotation = "kubernetes.io/ingress.class"

// classes are the IngressClasses of a cluster.
type classes struct {
	ours     map[string]bool // whether a class that exists is ours
	names    []string        // of ours
	defaults map[bool]bool   // whether one that is ours, or another's, is the default
}

// readClasses speaks of a class that is nobody's because its controller is misspelled.
func (b *builder) readClasses() *classes {
	c := &classes{ours: map[string]bool{}, defaults: map[bool]bool{}}
	for _, class := range b.cluster.Classes {
		ours := class.Spec.Controller == ControllerName
		c.ours[class.Name] = ours
		if class.Annotations[networkingv1.AnnotationIsDefaultIngressClass] == "true" {
			c.defaults[ours] = true
		}
		if ours {
			c.names = append(c.names, class.Name)
		} else if near(class.Spec.Controller, ControllerName) {
			b.tell("IngressClass", class, reconcile.Refusal{Field: "spec.controller", Warning: true,
				Reason: fmt.Sprintf("%q is not this controller, so that no Ingress of the class is served: write %q", class.Spec.Controller, ControllerName)})
		}
	}
	slices.Sort(c.names)
	return c
}

// isOurs applies the rules of IngressClass: by name, by the older annotation, by
// default, and where the cluster has no classes at all, every Ingress. It speaks of an
// Ingress that no controller serves, and not of one that is another controller's.
func (b *builder) isOurs(ing *networkingv1.Ingress, c *classes) bool {
	annotation, spec := ing.Annotations[classAnnotation], ""
	if ing.Spec.IngressClassName != nil {
		spec = *ing.Spec.IngressClassName
	}
	warn := func(field, reason string) {
		b.tell("Ingress", ing, reconcile.Refusal{Field: field, Reason: reason, Warning: true})
	}
	const bySpec, byAnnotation = "spec.ingressClassName", "metadata.annotations[" + classAnnotation + "]"
	name := spec
	if ing.Spec.IngressClassName == nil {
		name = annotation
	}
	ours, exists := c.ours[name]
	switch {
	case name == "" && len(c.ours) == 0, name == "" && c.defaults[true]:
		return true
	case name == "" && !c.defaults[false]:
		warn(bySpec, "it is missing, and no IngressClass is the default, so that the Ingress is not served here: "+c.advice(""))
	case exists && spec != "" && annotation != "" && annotation != spec && (ours || c.ours[annotation]):
		whose := ""
		if !ours {
			whose = ", which is another controller's"
		}
		warn(byAnnotation, fmt.Sprintf("%q is ignored, as spec.ingressClassName is %q%s: remove one of them", short(annotation), short(spec), whose))
	case exists || name == "":
	case spec != "":
		warn(bySpec, fmt.Sprintf("there is no IngressClass %q, so that the Ingress is not served here: %s", short(spec), c.advice(spec)))
	case slices.ContainsFunc(c.names, func(our string) bool { return near(annotation, our) }): // else another's, which needs no IngressClass
		warn(byAnnotation, fmt.Sprintf("there is no IngressClass %q, so that the Ingress is not served here: %s", annotation, c.advice(annotation)))
	}
	return ours
}

// advice says which class to name.
func (c *classes) advice(wrong string) string {
	if len(c.names) == 0 {
		return fmt.Sprintf("make an IngressClass with spec.controller %q", ControllerName)
	}
	for _, our := range c.names {
		if near(wrong, our) {
			return fmt.Sprintf("write %q", our)
		}
	}
	return "the classes of this controller are " + strings.Join(c.names[:min(len(c.names), maxNames)], ", ")
}

// near reports whether one word may be the other, misspelled: at most two letters are
// off, and no more than half.
func near(a, b string) bool {
	a, b = strings.ToLower(a), strings.ToLower(b)
	if max(len(a)-len(b), len(b)-len(a)) > 2 || len(b) > 253 {
		return false
	}
	last := make([]int, len(b)+1) // for the bytes of a before this one
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		diagonal := last[0]
		last[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = last[j+1]
			last[j+1] = min(change, last[j]+1, diagonal+1)
		}
	}
	return last[len(b)] <= 2 && 2*last[len(b)] <= len(b)
}
