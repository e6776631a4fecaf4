package k8swatch

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hapticsdk/haptic/k8swatch/internal/memapi"
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
	in.committed = func(b batch) { total = total.And(b.Changes) }
	return in, &total
}

func testIntakeOf(t testing.TB, gvr schema.GroupVersionResource, indexBy ...string) *intake {
	t.Helper()
	in, err := newIntake(gvr, memapi.KindFor(gvr), &Options{IndexBy: indexBy})
	require.NoError(t, err)
	return in
}

func (in *intake) now() *Snapshot { return in.snapshot(in.store.Snapshot()) }

// modelStore is a store under test and how its index is computed by hand.
type modelStore struct {
	name    string
	in      *intake
	total   *Changes
	wire    func(*networkingv1.Ingress) Object // what the source sends
	indexBy []string
	keys    func(*networkingv1.Ingress) [][]string
}

func modelStores(t *testing.T) []*modelStore {
	namespace := func(i *networkingv1.Ingress) string { return i.Namespace }
	byHost := func(parts ...func(*networkingv1.Ingress) string) func(i *networkingv1.Ingress) [][]string {
		return func(i *networkingv1.Ingress) (keys [][]string) {
			for _, rule := range append(i.Spec.Rules, networkingv1.IngressRule{})[:max(1, len(i.Spec.Rules))] {
				var key []string
				for _, p := range parts {
					key = append(key, p(i))
				}
				keys = append(keys, append(key, rule.Host))
			}
			return keys
		}
	}
	typed := func(i *networkingv1.Ingress) Object { return i.DeepCopy() }
	untyped := func(i *networkingv1.Ingress) Object {
		i = i.DeepCopy()
		i.APIVersion, i.Kind = "example.com/v1", "Route"
		u := unstructuredOf(i)
		for n, rule := range i.Spec.Rules { // JSON of the typed object leaves an empty host out
			u.Object["spec"].(map[string]any)["rules"].([]any)[n].(map[string]any)["host"] = rule.Host
		}
		return u
	}
	stores := []*modelStore{
		{name: "by name", wire: typed, keys: func(i *networkingv1.Ingress) [][]string { return [][]string{{i.Namespace, i.Name}} }},
		{name: "by host", wire: typed, indexBy: []string{"metadata.namespace", "spec.rules[*].host"}, keys: byHost(namespace)},
		{name: "by host of many", wire: typed, indexBy: []string{"spec.rules[*].host"}, keys: byHost()},
		{name: "custom resources", wire: untyped, indexBy: []string{"metadata.namespace", "spec.rules[*].host"}, keys: byHost(namespace)},
	}
	for _, m := range stores {
		gvr := ingressResource
		if m.name == "custom resources" {
			gvr = routeResource
		}
		m.in, m.total = testIntakeOf(t, gvr, m.indexBy...), new(Changes)
		m.in.committed = func(b batch) { *m.total = m.total.And(b.Changes) }
	}
	return stores
}

// storeSeeds is how often TestStoreModel drives each store.
var storeSeeds = flag.Uint64("seeds", 2, "random runs of each store")

// TestStoreModel drives stores with random creates, updates, key changes,
// deletes and relists. After each step they equal a plain map: order, every key
// and prefix, and the counts. Snapshots from before stay as they were.
func TestStoreModel(t *testing.T) {
	for seed := range *storeSeeds {
		for _, m := range modelStores(t) {
			t.Run(fmt.Sprint(m.name, "/", seed), func(t *testing.T) { m.run(t, rand.New(rand.NewPCG(seed, 1))) })
		}
	}
}

func (m *modelStore) run(t *testing.T, r *rand.Rand) {
	in, total := m.in, m.total
	model := map[string]*networkingv1.Ingress{}
	hosts := []string{"", "a", "b", "a\x00", "a\x00b", "ab", "a\x00\x01b"}
	version := 0
	type kept struct {
		snap *Snapshot
		text string
	}
	var snapshots []kept
	random := func() *networkingv1.Ingress {
		version++
		obj := item(fmt.Sprint("ns", r.IntN(3)), fmt.Sprint("n", r.IntN(5)), version, version)
		obj.Annotations = map[string]string{"content": fmt.Sprint(version)}
		for range r.IntN(4) {
			obj.Spec.Rules = append(obj.Spec.Rules, networkingv1.IngressRule{Host: hosts[r.IntN(len(hosts))]})
		}
		return obj
	}
	for range 150 {
		want, before := Changes{}, in.now()
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
		switch r.IntN(5) {
		case 0: // create, or update of what is there
			obj := random()
			if old := model[obj.Namespace+"/"+obj.Name]; old != nil && r.IntN(2) == 0 {
				obj.UID = old.UID
			}
			note(obj)
			model[obj.Namespace+"/"+obj.Name] = obj
			_ = in.Update(m.wire(obj))
		case 1: // delete
			obj := random()
			if model[obj.Namespace+"/"+obj.Name] != nil {
				want.Deleted++
				delete(model, obj.Namespace+"/"+obj.Name)
			}
			_ = in.Delete(m.wire(obj))
		case 2: // the same again
			for _, obj := range model {
				_ = in.Add(m.wire(obj))
			}
		case 4: // a new version without a new content
			for _, obj := range model {
				version++
				again := m.wire(obj)
				again.SetResourceVersion(fmt.Sprint(version))
				_ = in.Add(again)
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
				list = append(list, m.wire(obj))
				delete(model, k)
			}
			want.Deleted += len(model)
			model = next
			_ = in.Replace(list, "")
		}
		require.Equal(t, [3]int{want.Created, want.Modified, want.Deleted}, [3]int{total.Created, total.Modified, total.Deleted}, "counted")
		snap := in.now()
		require.Equal(t, (snap.Revision() == before.Revision()), (want.Total() == 0))
		m.compare(t, snap, model, hosts)
		if len(snapshots) > 0 {
			m.compareChanged(t, snapshots[r.IntN(len(snapshots))].snap, snap, hosts)
			m.compareChanged(t, snap, before, hosts)
		}
		snapshots = append(snapshots, kept{snap, m.dump(snap, hosts)})
	}
	for _, k := range snapshots {
		require.Equal(t, k.text, m.dump(k.snap, hosts), "the snapshot at %d changed", k.snap.Revision())
	}
}

// asks are all keys and prefixes that an object can have, and some that none has.
func (m *modelStore) asks(hosts []string) [][]string {
	firsts := []string{"ns0", "ns1", "ns2", "missing", ""}
	seconds := append([]string{"missing", "n0", "n1", "n2", "n3", "n4", "\x00", "a\x00\xff"}, hosts...)
	all := [][]string{nil}
	for _, first := range append(firsts, seconds...) {
		all = append(all, []string{first})
		for _, second := range seconds {
			all = append(all, []string{first, second}, []string{first, second, second})
		}
	}
	return all
}

func id(o Object) string {
	return fmt.Sprintf("%s/%s@%s", o.GetNamespace(), o.GetName(), o.GetResourceVersion())
}

// dump is everything that can be read from a snapshot, with what is in the objects.
func (m *modelStore) dump(s *Snapshot, hosts []string) string {
	text, err := json.Marshal(s.List())
	if err != nil {
		panic(err)
	}
	b := strings.Builder{}
	b.Write(text)
	for _, keys := range m.asks(hosts) {
		for _, o := range s.Get(keys...) {
			b.WriteString(id(o) + " ")
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// compare asks for every key and prefix, and compares with a sorted slice.
func (m *modelStore) compare(t *testing.T, s *Snapshot, model map[string]*networkingv1.Ingress, hosts []string) {
	t.Helper()
	type filed struct {
		keys []string
		obj  *networkingv1.Ingress
	}
	var index []filed
	var all []string
	for _, k := range slices.Sorted(maps.Keys(model)) {
		all = append(all, id(model[k]))
		for _, keys := range m.keys(model[k]) {
			index = append(index, filed{keys, model[k]})
		}
	}
	slices.SortStableFunc(index, func(a, b filed) int { return slices.Compare(a.keys, b.keys) })
	for _, keys := range m.asks(hosts) {
		var want []string
		for _, f := range index {
			if len(f.keys) >= len(keys) && slices.Equal(f.keys[:len(keys)], keys) && !slices.Contains(want, id(f.obj)) {
				want = append(want, id(f.obj))
			}
		}
		got := ids(s.Get(keys...))
		require.True(t, slices.Equal(got, want), "Get(%q) = %q, want %q", keys, got, want)
		first := s.GetSingle(keys...)
		require.Equal(t, (len(want) == 0), (first == nil), "GetSingle(%q)", keys)
		require.False(t, first != nil && id(first) != want[0], "GetSingle(%q) = %v, want the first of %q", keys, first, want)
		if s.typ == reflect.TypeFor[*networkingv1.Ingress]() {
			r := Read[*networkingv1.Ingress](s)
			if got := ids(r.Get(keys...)); !slices.Equal(got, want) {
				t.Fatalf("Read.Get(%q) = %q, want %q", keys, got, want)
			}
			require.Equal(t, (len(want) == 0), (r.GetSingle(keys...) == nil), "Read.GetSingle(%q) does not agree with Get", keys)
		}
	}
	if got := ids(s.List()); !slices.Equal(got, all) || s.Len() != len(all) {
		t.Fatalf("holds %v, want %v", got, all)
	}
	for k, obj := range model {
		if o := s.ByName(obj.Namespace, obj.Name); o == nil || id(o) != id(obj) {
			t.Fatalf("ByName(%s) = %v", k, o)
		}
	}
	require.Nil(t, s.ByName("ns0", "missing"), "ByName finds what is not there")
}

// compareChanged asks for every key and prefix: those that ChangedSince does not tell have the
// same objects.
func (m *modelStore) compareChanged(t *testing.T, before, now *Snapshot, hosts []string) {
	t.Helper()
	changed, known := now.ChangedSince(before)
	require.True(t, known, "not known from %d to %d", before.Revision(), now.Revision())
	for _, keys := range m.asks(hosts) {
		told := slices.ContainsFunc(changed, func(key []string) bool { return len(key) >= len(keys) && slices.Equal(key[:len(keys)], keys) })
		if was, is := ids(before.Get(keys...)), ids(now.Get(keys...)); !told && !slices.Equal(was, is) {
			t.Fatalf("Get(%q) = %q after %q, but only %q changed", keys, is, was, changed)
		}
	}
}

func ids[T Object](objs []T) (all []string) {
	for _, o := range objs {
		all = append(all, id(o))
	}
	return all
}

func TestReadPanicsOnTheWrongType(t *testing.T) {
	in, _ := testIntake(t)
	defer func() {
		if p := recover(); p == nil || !strings.Contains(fmt.Sprint(p), "*v1.Ingress, not *v1.NetworkPolicy") {
			t.Errorf("got %v", p)
		}
	}()
	Read[*networkingv1.NetworkPolicy](in.now())
}
