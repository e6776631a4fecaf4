package ingress

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/hapticsdk/haptic/examples/controller/annotation"
	"github.com/hapticsdk/haptic/k8swatch/derive"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/limits"
)

// ControllerName is spec.controller of our IngressClasses.
const ControllerName = "haptic.hapticsdk.dev/ingress"

// classAnnotation named the class before spec.ingressClassName existed.
const classAnnotation = "kubernetes.io/ingress.class"

// classes are the IngressClasses of a cluster.
type classes struct {
	ours     map[string]bool // whether a class that exists is ours
	names    []string        // names of our classes
	defaults map[bool]bool   // whether one of ours (true) or of others (false) is the default
}

// Ours returns a function that reports whether an Ingress has a class of this
// controller. all are all classes of the cluster.
func Ours(all []*networkingv1.IngressClass) func(*networkingv1.Ingress) bool {
	c := newClasses(all)
	return func(ing *networkingv1.Ingress) bool {
		ours, _, _ := c.judge(ing)
		return ours
	}
}

func newClasses(all []*networkingv1.IngressClass) *classes {
	c := &classes{ours: map[string]bool{}, defaults: map[bool]bool{}}
	for _, class := range all {
		ours := class.Spec.Controller == ControllerName
		c.ours[class.Name] = ours
		if class.Annotations[networkingv1.AnnotationIsDefaultIngressClass] == "true" {
			c.defaults[ours] = true
		}
		if ours {
			c.names = append(c.names, class.Name)
		}
	}
	slices.Sort(c.names)
	return c
}

func (c *classes) equal(other *classes) bool {
	return maps.Equal(c.ours, other.ours) && maps.Equal(c.defaults, other.defaults)
}

// readClasses also warns of a class whose controller is a misspelling of ours.
func (m *Model) readClasses(at *derive.Reads, _ *classes) *classes {
	all := m.sortedClasses.Get(at).Slice()
	for _, class := range all {
		if name := class.Spec.Controller; name != ControllerName && annotation.Near(name, ControllerName) {
			limits.Refuse(at, "IngressClass", class, reconcile.Refusal{Field: "spec.controller", Warning: true,
				Reason: fmt.Sprintf("%q is not this controller, so that no Ingress of the class is served: write %q", name, ControllerName)})
		}
	}
	return newClasses(all)
}

// isOurs keeps the Ingresses of our classes. It warns of one that no controller serves, but
// not of one for another controller.
func (m *Model) isOurs(at *derive.Reads, _ Name, ing, _ *networkingv1.Ingress) (*networkingv1.Ingress, bool) {
	ours, field, problem := m.classes.Get(at).judge(ing)
	if problem != "" {
		limits.Refuse(at, "Ingress", ing, reconcile.Refusal{Field: field, Reason: problem, Warning: true})
	}
	return ing, ours
}

// judge applies the rules of IngressClass: by name, by the older annotation, and by default.
// If the cluster has no classes at all, every Ingress is ours.
func (c *classes) judge(ing *networkingv1.Ingress) (ours bool, field, problem string) {
	old, spec := ing.Annotations[classAnnotation], ""
	if ing.Spec.IngressClassName != nil {
		spec = *ing.Spec.IngressClassName
	}
	const bySpec, byAnnotation = "spec.ingressClassName", "metadata.annotations[" + classAnnotation + "]"
	name := spec
	if ing.Spec.IngressClassName == nil {
		name = old
	}
	ours, exists := c.ours[name]
	switch {
	case name == "" && len(c.ours) == 0, name == "" && c.defaults[true]:
		return true, "", ""
	case name == "" && !c.defaults[false]:
		return ours, bySpec, "it is missing, and no IngressClass is the default, so that the Ingress is not served here: " + c.advice("")
	case exists && spec != "" && old != "" && old != spec && (ours || c.ours[old]):
		whose := ""
		if !ours {
			whose = ", which is another controller's"
		}
		return ours, byAnnotation, fmt.Sprintf("%q is ignored, as spec.ingressClassName is %q%s: remove one of them", short(old), short(spec), whose)
	case exists || name == "":
	case spec != "":
		return ours, bySpec, fmt.Sprintf("there is no IngressClass %q, so that the Ingress is not served here: %s", short(spec), c.advice(spec))
	case slices.ContainsFunc(c.names, func(our string) bool { return annotation.Near(old, our) }): // otherwise another controller's, which needs no IngressClass
		return ours, byAnnotation, fmt.Sprintf("there is no IngressClass %q, so that the Ingress is not served here: %s", old, c.advice(old))
	}
	return ours, "", ""
}

// advice says which class to write.
func (c *classes) advice(wrong string) string {
	if len(c.names) == 0 {
		return fmt.Sprintf("make an IngressClass with spec.controller %q", ControllerName)
	}
	for _, our := range c.names {
		if annotation.Near(wrong, our) {
			return fmt.Sprintf("write %q", our)
		}
	}
	return "the classes of this controller are " + strings.Join(c.names[:min(len(c.names), maxNames)], ", ")
}
