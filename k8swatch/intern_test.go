package k8swatch

import (
	"fmt"
	"math/rand"
	"reflect"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// TestInternChangesNothing: any object of any kind of the scheme is the same
// after it, and marshals to the same bytes.
func TestInternChangesNothing(t *testing.T) {
	fill := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(1), scheme.Codecs)
	in := newInterner()
	kinds := 0
	for gvk, typ := range scheme.Scheme.AllKnownTypes() {
		obj, ok := reflect.New(typ).Interface().(Object)
		if !ok || gvk.Version == runtime.APIVersionInternal {
			continue
		}
		kinds++
		fill.Fill(obj)
		want := obj.DeepCopyObject()
		in.object(obj)
		if !reflect.DeepEqual(want, obj) {
			t.Errorf("%s changed (-want +got)\n%s", gvk, cmp.Diff(want, obj))
		}
	}
	if kinds < 50 {
		t.Errorf("only %d kinds", kinds)
	}
}

func TestInternShares(t *testing.T) {
	in := newInterner()
	a, b := decodedIngress(t, 1), decodedIngress(t, 1)
	b.Spec.Rules = append(make([]networkingv1.IngressRule, 0, 9), b.Spec.Rules...)
	in.object(a)
	in.object(b)
	same := func(what, x, y string) {
		t.Helper()
		if x == "" || x != y || unsafe.StringData(x) != unsafe.StringData(y) {
			t.Errorf("%s: %q and %q are not one string", what, x, y)
		}
	}
	same("namespace", a.Namespace, b.Namespace)
	same("label", a.Labels["team"], b.Labels["team"])
	same("annotation", a.Annotations["haproxy.org/load-balance"], b.Annotations["haproxy.org/load-balance"])
	same("class", *a.Spec.IngressClassName, *b.Spec.IngressClassName)
	same("path", a.Spec.Rules[0].HTTP.Paths[1].Path, b.Spec.Rules[0].HTTP.Paths[1].Path)
	if unsafe.StringData(a.Name) == unsafe.StringData(b.Name) {
		t.Error("names are unique and should not take room in the table")
	}
	if cap(b.Spec.Rules) != len(b.Spec.Rules) {
		t.Errorf("%d rules have room for %d", len(b.Spec.Rules), cap(b.Spec.Rules))
	}
}

// TestInternForgets: the table has a bound, and what is used often stays in it.
func TestInternForgets(t *testing.T) {
	in := newInterner()
	often := in.text(string([]byte("often")))
	for i := range 5 * generation {
		in.text(fmt.Sprint("text", i))
		if i%100 == 0 {
			if got := in.text(string([]byte("often"))); unsafe.StringData(got) != unsafe.StringData(often) {
				t.Fatalf("forgotten after %d others", i)
			}
		}
	}
	if len(in.young) > generation || len(in.old) > generation {
		t.Errorf("%d and %d strings", len(in.young), len(in.old))
	}
}

func TestInternSecretData(t *testing.T) {
	in := newInterner()
	s := &corev1.Secret{Data: map[string][]byte{"a": []byte("secret")}, StringData: map[string]string{"b": "c"}}
	want := s.DeepCopy()
	in.object(s)
	if diff := cmp.Diff(want, s); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func BenchmarkIntern(b *testing.B) {
	in := newInterner()
	obj := decodedIngress(b, 1)
	b.ReportAllocs()
	for b.Loop() {
		in.object(obj)
	}
}

// TestInternReuses: maps that are as in the version before are those.
func TestInternReuses(t *testing.T) {
	in := testIntakeOf(t, ingressResource)
	_ = in.Add(decodedIngress(t, 1))
	first := in.store.take().ByName("team-1", "app-1").(*networkingv1.Ingress)
	next := decodedIngress(t, 1)
	next.ResourceVersion = "2"
	next.Annotations["more"] = "1"
	_ = in.Update(next)
	second := in.store.take().ByName("team-1", "app-1").(*networkingv1.Ingress)
	if reflect.ValueOf(first.Labels).Pointer() != reflect.ValueOf(second.Labels).Pointer() {
		t.Error("equal labels are two maps")
	}
	if len(second.Annotations) != len(first.Annotations)+1 || second.Annotations["more"] != "1" {
		t.Errorf("annotations %v, after %v", second.Annotations, first.Annotations)
	}
}
