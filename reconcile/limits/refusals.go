package limits

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/k8swatch/derive"
	"github.com/hapticsdk/haptic/reconcile"
)

// MaxResources bounds the resources of one namespace that are reported; the others are
// counted. A page shows one fewer, and then says that there are more.
const MaxResources = 10*reconcile.MaxRefusals + 1

// report is a refusal or a warning of one item.
type report struct {
	reconcile.Refusal
	once bool // the same reason for several fields of a resource is reported for the first
}

// Refuse reports a refusal or a warning to the object whose owner can fix it. kind is that of
// the object. The same report counts once, however many items make it. See [Refusals].
func Refuse(at *derive.Reads, kind string, o metav1.Object, r reconcile.Refusal) {
	derive.Report(at, report{Refusal: about(kind, o, r)})
}

// RefuseOnce is [Refuse] for a problem that several fields of the object share: the first is
// reported.
func RefuseOnce(at *derive.Reads, kind string, o metav1.Object, r reconcile.Refusal) {
	derive.Report(at, report{about(kind, o, r), true})
}

func about(kind string, o metav1.Object, r reconcile.Refusal) reconcile.Refusal {
	r.Object, _ = reconcile.ResourceOf(o)
	r.Source = r.Object.Source
	r.Resource = kind + " " + o.GetName()
	if ns := o.GetNamespace(); ns != "" {
		r.Resource = kind + " " + ns + "/" + o.GetName()
	}
	return r
}

// Refusals collects what the collections made before it report, sorted. A resource has at most
// [reconcile.MaxRefusals], and a namespace [MaxResources] resources. The last one counts more.
func Refusals(g *derive.Graph) derive.Value[[]reconcile.Refusal] {
	byResource := derive.Reports(g, "reports", func(r report) string { return r.Resource }, report.compare)
	bounded := derive.Each("reports on a resource", byResource, ofResource).Equal((*refusals).equal)
	bySpace := derive.GroupBy("reports by namespace", bounded, func(_ string, r *refusals, add func(string, *refusals)) {
		add(r.namespace, r)
	}, (*refusals).compare)
	spaces := derive.Sorted("reports of all", derive.Each("reports on a namespace", bySpace, ofSpace).Equal((*refusals).equal), (*refusals).compare)
	return derive.One(g, "refused", func(at *derive.Reads, _ []reconcile.Refusal) (all []reconcile.Refusal) {
		for space := range spaces.Get(at).All() {
			all = append(all, space.list...)
		}
		slices.SortFunc(all, compareRefused)
		return all
	})
}

func (r report) compare(other report) int {
	return cmp.Or(compareRefused(r.Refusal, other.Refusal), cmp.Compare(r.Detail, other.Detail), cmp.Compare(r.Source, other.Source),
		cmp.Compare(r.Object.UID, other.Object.UID), cmp.Compare(r.Object.Version, other.Object.Version), cmp.Compare(r.More, other.More))
}

func compareRefused(x, y reconcile.Refusal) int {
	return cmp.Or(cmp.Compare(x.Resource, y.Resource), cmp.Compare(x.Field, y.Field), cmp.Compare(x.Reason, y.Reason))
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
		if i < MaxResources {
			r.list = append(r.list, one.list...)
			continue
		}
		for _, more := range one.list {
			r.list[len(r.list)-1].More += 1 + more.More
		}
	}
	return r, true
}
