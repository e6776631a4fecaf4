package ingress

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
)

// toldResources is how many resources of one namespace a build speaks of; the others
// are counted. It is one more than the page shows, which then says that there are more.
const toldResources = 10*reconcile.MaxRefusals + 1

// told is what was said of a resource or of a namespace: how often, and where last.
type told struct{ count, last int }

// refuse says of the Ingress that is read that a part of it is left out.
func (b *builder) refuse(field fieldPath, reason string) {
	b.fast.isOdd(b.ing)
	b.say(field, reconcile.Refusal{Reason: reason})
}

// warn says of the Ingress that is read that somebody should look at a part of it.
func (b *builder) warn(field fieldPath, reason string) {
	b.say(field, reconcile.Refusal{Reason: reason, Warning: true})
}

// sayOnce says of the Ingress that is read what is wrong with several of its parts.
func (b *builder) sayOnce(field fieldPath, r reconcile.Refusal) {
	key := saying{b.ing.Namespace + "/" + b.ing.Name, "", r.Reason}
	if !b.said[key] {
		b.said[key] = true
		b.say(field, r)
	}
}

func (b *builder) say(field fieldPath, r reconcile.Refusal) {
	if b.named != b.ing {
		b.named, b.name = b.ing, resourceName("Ingress", b.ing)
	}
	if r.Resource = b.name; b.hears(r.Resource, b.ing.Namespace) {
		r.Field = field.String()
		b.add(b.ing, r)
	}
}

// tell says what is wrong with an object: the one whose owner can mend it. The same
// is said once, however many Ingresses lead there.
func (b *builder) tell(kind string, o metav1.Object, r reconcile.Refusal) {
	if r.Resource = resourceName(kind, o); b.hears(r.Resource, o.GetNamespace()) {
		b.add(o, r)
	}
}

func resourceName(kind string, o metav1.Object) string {
	if ns := o.GetNamespace(); ns != "" {
		return kind + " " + ns + "/" + o.GetName()
	}
	return kind + " " + o.GetName()
}

// hears counts what is beyond a bound, and then is not said.
func (b *builder) hears(resource, namespace string) bool {
	of, space := b.told[resource], b.told[namespace]
	switch {
	case b.fast.mute:
	case of.count >= reconcile.MaxRefusals:
		b.routes.Refused[of.last].More++
	case of.count == 0 && space.count >= toldResources:
		b.routes.Refused[space.last].More++
	default:
		return true
	}
	return false
}

func (b *builder) add(o metav1.Object, r reconcile.Refusal) {
	key := saying{r.Resource, r.Field, r.Reason}
	if b.said[key] {
		return
	}
	b.said[key] = true
	at, of := len(b.routes.Refused), b.told[r.Resource].count
	if of == 0 {
		b.told[o.GetNamespace()] = told{b.told[o.GetNamespace()].count + 1, at}
	}
	b.told[r.Resource] = told{of + 1, at}
	r.Object, _ = reconcile.ResourceOf(o)
	r.Source = o.GetAnnotations()[k8swatch.SourceAnnotation]
	b.routes.Refused = append(b.routes.Refused, r)
}

func compareRefused(x, y reconcile.Refusal) int {
	return cmp.Or(cmp.Compare(x.Resource, y.Resource), cmp.Compare(x.Field, y.Field), cmp.Compare(x.Reason, y.Reason))
}

// saying is what a refusal says.
type saying struct{ resource, field, reason string }
