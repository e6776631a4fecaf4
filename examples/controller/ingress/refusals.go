package ingress

import (
	"cmp"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/examples/controller/annotation"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/derive"
	"github.com/hapticsdk/haptic/reconcile"
)

// toldResources bounds the resources of one namespace that are reported; the others are
// counted. The page shows one fewer, and then says that there are more.
const toldResources = 10*reconcile.MaxRefusals + 1

// report is a refusal or a warning of one item.
type report struct {
	reconcile.Refusal
	once bool // the same reason for several fields of a resource is reported for the first
}

func compareReports(x, y report) int {
	return cmp.Or(compareRefused(x.Refusal, y.Refusal), cmp.Compare(x.Detail, y.Detail), cmp.Compare(x.Source, y.Source),
		cmp.Compare(x.Object.UID, y.Object.UID), cmp.Compare(x.Object.Version, y.Object.Version), cmp.Compare(x.More, y.More))
}

func compareRefused(x, y reconcile.Refusal) int {
	return cmp.Or(cmp.Compare(x.Resource, y.Resource), cmp.Compare(x.Field, y.Field), cmp.Compare(x.Reason, y.Reason))
}

// refuse reports that a part of an Ingress is refused.
func refuse(at *derive.Reads, ing *networkingv1.Ingress, field fieldPath, reason string) {
	tell(at, "Ingress", ing, reconcile.Refusal{Field: field.String(), Reason: reason})
}

// warn reports a part of an Ingress that its author should check.
func warn(at *derive.Reads, ing *networkingv1.Ingress, field fieldPath, reason string) {
	tell(at, "Ingress", ing, reconcile.Refusal{Field: field.String(), Reason: reason, Warning: true})
}

// tell reports a problem to the object whose owner can fix it. The same problem counts once,
// however many items report it.
func tell(at *derive.Reads, kind string, o metav1.Object, r reconcile.Refusal) {
	derive.Report(at, report{Refusal: about(kind, o, r)})
}

// tellOnce is tell for a problem that several fields of the object share.
func tellOnce(at *derive.Reads, kind string, o metav1.Object, r reconcile.Refusal) {
	derive.Report(at, report{about(kind, o, r), true})
}

func tellAnnotations(at *derive.Reads, kind string, o metav1.Object, problems []annotation.Problem) {
	for _, p := range problems {
		tell(at, kind, o, reconcile.Refusal{Field: p.Field(), Reason: p.Reason, Warning: p.Warning})
	}
}

func about(kind string, o metav1.Object, r reconcile.Refusal) reconcile.Refusal {
	r.Resource = resourceName(kind, o)
	r.Object, _ = reconcile.ResourceOf(o)
	r.Source = o.GetAnnotations()[k8swatch.SourceAnnotation]
	return r
}

func resourceName(kind string, o metav1.Object) string {
	if ns := o.GetNamespace(); ns != "" {
		return kind + " " + ns + "/" + o.GetName()
	}
	return kind + " " + o.GetName()
}

// refusals are the reports on one resource, or on all of a namespace.
type refusals struct {
	resource, namespace string
	list                []reconcile.Refusal
}

func (r *refusals) compare(other *refusals) int { return cmp.Compare(r.resource, other.resource) }

func (r *refusals) equal(other *refusals) bool { return slices.Equal(r.list, other.list) }

// ofResource bounds the reports on a resource; the last one counts the others.
func ofResource(_ *derive.Reads, resource string, all []report, _ *refusals) (*refusals, bool) {
	r := &refusals{resource: resource, namespace: all[0].Object.Namespace}
	if _, name, _ := strings.Cut(resource, " "); r.namespace == "" {
		if ns, _, has := strings.Cut(name, "/"); has {
			r.namespace = ns
		}
	}
	said := map[string]bool{}
	for i, one := range all {
		if i > 0 && compareRefused(one.Refusal, all[i-1].Refusal) == 0 || one.once && said[one.Reason] {
			continue
		}
		said[one.Reason] = true
		if n := len(r.list); n < reconcile.MaxRefusals {
			r.list = append(r.list, one.Refusal)
		} else {
			r.list[n-1].More += 1 + one.More
		}
	}
	return r, true
}

// ofSpace bounds the resources of a namespace with reports; the last report counts those on
// the others.
func ofSpace(_ *derive.Reads, namespace string, all []*refusals, _ *refusals) (*refusals, bool) {
	r := &refusals{resource: namespace, namespace: namespace}
	for i, one := range all {
		if i < toldResources {
			r.list = append(r.list, one.list...)
			continue
		}
		for _, more := range one.list {
			r.list[len(r.list)-1].More += 1 + more.More
		}
	}
	return r, true
}

// refused are all reports.
func (m *Model) refused(at *derive.Reads, _ []reconcile.Refusal) (all []reconcile.Refusal) {
	for _, space := range m.spaces.Get(at) {
		all = append(all, space.list...)
	}
	slices.SortFunc(all, compareRefused)
	return all
}
