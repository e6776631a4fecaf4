package k8swatch

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

func item(namespace, name string, uid, version int, hosts ...string) *networkingv1.Ingress {
	i := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID(fmt.Sprint(uid)), ResourceVersion: fmt.Sprint(version),
	}}
	for _, h := range hosts {
		i.Spec.Rules = append(i.Spec.Rules, networkingv1.IngressRule{Host: h})
	}
	return i
}

// testIntake is a store of ingresses with its intake and without a watcher.
func testIntake(t testing.TB, indexBy ...string) (*intake, *Changes) {
	t.Helper()
	var total Changes
	in := testIntakeOf(t, networkingv1.SchemeGroupVersion.WithResource("ingresses"), indexBy...)
	in.committed = func(c Changes, _ bool) { total = total.and(c) }
	return in, &total
}

func testIntakeOf(t testing.TB, gvr schema.GroupVersionResource, indexBy ...string) *intake {
	t.Helper()
	opts := &Options{IndexBy: indexBy}
	paths, err := opts.compile(TypeOf(gvr))
	if err != nil {
		t.Fatal(err)
	}
	in := newIntake(newStore(newMeta(gvr, paths)), paths, logger(nil), func(Changes, bool) {})
	in.replaced = func() {}
	return in
}

// TestStoreModel drives the store with random creates, updates, key changes,
// deletes and relists. After each step it equals a plain map: order, every key
// and prefix, and the counts. Snapshots from before stay as they were.
func TestStoreModel(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { modelRun(t, rand.New(rand.NewPCG(seed, 1))) })
	}
}

func modelRun(t *testing.T, r *rand.Rand) {
	in, total := testIntake(t, "metadata.namespace", "spec.rules[*].host")
	model := map[string]*networkingv1.Ingress{}
	hosts := []string{"", "a", "b", "a\x00", "a\x00b", "ab"}
	version := 0
	type kept struct {
		snap *Snapshot
		text string
	}
	var snapshots []kept
	random := func() *networkingv1.Ingress {
		version++
		obj := item(fmt.Sprint("ns", r.IntN(3)), fmt.Sprint("n", r.IntN(5)), version, version)
		for range r.IntN(4) {
			obj.Spec.Rules = append(obj.Spec.Rules, networkingv1.IngressRule{Host: hosts[r.IntN(len(hosts))]})
		}
		return obj
	}
	for range 200 {
		want, before := Changes{}, in.store.take()
		*total = Changes{}
		note := func(obj *networkingv1.Ingress) {
			old := model[obj.Namespace+"/"+obj.Name]
			switch {
			case old == nil:
				want.Created++
			case old.UID != obj.UID:
				want.Created++
				want.Deleted++
			case old.ResourceVersion != obj.ResourceVersion:
				want.Modified++
			}
		}
		switch r.IntN(4) {
		case 0: // create, or update of what is there
			obj := random()
			if old := model[obj.Namespace+"/"+obj.Name]; old != nil && r.IntN(2) == 0 {
				obj.UID = old.UID
			}
			note(obj)
			model[obj.Namespace+"/"+obj.Name] = obj
			_ = in.Update(obj)
		case 1: // delete
			obj := random()
			if model[obj.Namespace+"/"+obj.Name] != nil {
				want.Deleted++
				delete(model, obj.Namespace+"/"+obj.Name)
			}
			_ = in.Delete(obj)
		case 2: // the same again
			for _, obj := range model {
				_ = in.Add(obj.DeepCopy())
			}
		case 3: // a relist: some gone, some new, some the same
			next := map[string]*networkingv1.Ingress{}
			for k, obj := range model {
				if r.IntN(3) > 0 {
					next[k] = obj
				}
			}
			for range r.IntN(3) {
				obj := random()
				next[obj.Namespace+"/"+obj.Name] = obj
			}
			var list []any
			for k, obj := range next {
				note(obj)
				list = append(list, obj.DeepCopy())
				delete(model, k)
			}
			want.Deleted += len(model)
			model = next
			_ = in.Replace(list, "")
		}
		if got := [3]int{total.Created, total.Modified, total.Deleted}; got != [3]int{want.Created, want.Modified, want.Deleted} {
			t.Fatalf("counted %v, want %+v", got, want)
		}
		snap := in.store.take()
		if (want.Total() == 0) != (snap == before) {
			t.Fatalf("%d changes: revision %d -> %d", want.Total(), before.Revision(), snap.Revision())
		}
		compareWithModel(t, snap, model, hosts)
		snapshots = append(snapshots, kept{snap, dump(snap)})
	}
	for _, k := range snapshots {
		if dump(k.snap) != k.text {
			t.Fatalf("the snapshot at %d changed", k.snap.Revision())
		}
	}
}

func dump(s *Snapshot) string {
	var b strings.Builder
	for o := range s.All() {
		fmt.Fprintf(&b, "%s/%s@%s ", o.GetNamespace(), o.GetName(), o.GetResourceVersion())
	}
	for _, o := range s.Get() {
		fmt.Fprintf(&b, "%s/%s ", o.GetNamespace(), o.GetName())
	}
	return b.String()
}

// compareWithModel asks for every key and compares with a scan of the model.
func compareWithModel(t *testing.T, s *Snapshot, model map[string]*networkingv1.Ingress, hosts []string) {
	t.Helper()
	var all []string
	for o := range s.All() {
		all = append(all, o.GetNamespace()+"/"+o.GetName())
	}
	if want := slices.Sorted(maps.Keys(model)); !slices.Equal(all, want) || s.Len() != len(want) {
		t.Fatalf("holds %v, want %v", all, want)
	}
	for ns := range 3 {
		namespace := fmt.Sprint("ns", ns)
		inNamespace := 0
		for _, host := range append(hosts, "missing") {
			var want []string
			for k, obj := range model {
				matches := host == "" && len(obj.Spec.Rules) == 0
				for _, rule := range obj.Spec.Rules {
					matches = matches || rule.Host == host
				}
				if matches && obj.Namespace == namespace {
					want = append(want, k)
				}
			}
			slices.Sort(want)
			var got []string
			for _, o := range s.Get(namespace, host) {
				got = append(got, o.GetNamespace()+"/"+o.GetName())
			}
			if !slices.Equal(got, want) {
				t.Fatalf("Get(%q, %q) = %v, want %v", namespace, host, got, want)
			}
			if (s.GetSingle(namespace, host) == nil) != (len(want) == 0) {
				t.Fatalf("GetSingle(%q, %q) does not agree with Get", namespace, host)
			}
		}
		for _, obj := range model {
			if obj.Namespace == namespace {
				inNamespace++
			}
		}
		if got := len(s.Get(namespace)); got != inNamespace {
			t.Fatalf("Get(%q) = %d objects, want %d", namespace, got, inNamespace)
		}
	}
	// No key is left behind by an object that moved or went.
	filed, many := 0, 0
	for _, obj := range model {
		distinct := map[string]bool{}
		for _, rule := range obj.Spec.Rules {
			distinct[rule.Host] = true
		}
		filed += max(1, len(distinct))
		if len(distinct) > 1 {
			many++
		}
	}
	if s.index.Len() != filed || s.many != many {
		t.Fatalf("%d keys are filed and %d objects have many, want %d and %d", s.index.Len(), s.many, filed, many)
	}
}

func TestReadPanicsOnTheWrongType(t *testing.T) {
	in, _ := testIntake(t)
	defer func() {
		if p := recover(); p == nil || !strings.Contains(fmt.Sprint(p), "*v1.Ingress, not *v1.NetworkPolicy") {
			t.Errorf("got %v", p)
		}
	}()
	Read[*networkingv1.NetworkPolicy](in.store.take())
}
