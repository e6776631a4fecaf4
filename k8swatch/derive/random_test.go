package derive_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hapticsdk/haptic/k8swatch/derive"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// object is an input of the model below: it claims hosts, and names a service.
type object struct {
	name, space, service string
	age                  int
	hosts                [2]string
}

type claim struct {
	host, space, name string
	age               int
}

func compareClaims(a, b claim) int {
	return cmp.Or(cmp.Compare(a.age, b.age), cmp.Compare(a.name, b.name), cmp.Compare(a.host, b.host))
}

// model has every kind of collection, with history: the owner of a host keeps it.
type model struct {
	g        *derive.Graph
	objects  *derive.Input[string, object]
	services *derive.Input[string, int]
	limit    *derive.Input[string, int]
	owners   *derive.Collection[string, string]
	routes   *derive.Collection[string, string]
	sizes    *derive.Collection[string, int]
	crowded  *derive.Collection[string, bool]
	list     derive.List[string]
	text     derive.Value[string]
	reports  *derive.Collection[string, []string]
	lines    *derive.Collection[string, string] // made in batches
}

func newModel() *model {
	m := newRoutes()
	m.lines = derive.Batch("lines", m.routes, func(key string) any { return key[len(key)-1]%3 == 0 }, func(at *derive.Reads, keys []string) (all []string) {
		limit, _ := m.limit.Get(at, "objects")
		for _, key := range keys {
			route, _ := m.routes.Get(nil, key)
			all = append(all, fmt.Sprint(route, " of ", limit))
		}
		return all
	})
	m.text = derive.One(m.g, "text", func(at *derive.Reads, _ string) string { return strings.Join(m.list.Get(at).Slice(), "\n") })
	m.reports = derive.Reports(m.g, "reports", func(r string) string { s, _, _ := strings.Cut(r, ":"); return s }, cmp.Compare[string])
	return m
}

// newRoutes is the model without its text and its reports.
func newRoutes() *model {
	m := &model{g: derive.New()}
	m.objects = derive.NewInput[string, object](m.g, "objects")
	m.services = derive.NewInput[string, int](m.g, "services")
	m.limit = derive.NewInput[string, int](m.g, "limit")
	m.sizes = derive.Sum("sizes", m.objects.Collection, func(_ string, o object, add func(string, int)) { add(o.space, 1) })
	m.crowded = derive.Each("crowded", m.sizes, func(at *derive.Reads, _ string, n int, _ bool) (bool, bool) {
		limit, _ := m.limit.Get(at, "objects")
		return n > limit, true
	})
	claims := derive.GroupBy("claims", m.objects.Collection, func(_ string, o object, add func(string, claim)) {
		for i, h := range o.hosts {
			if h != "" && (i == 0 || h != o.hosts[0]) {
				add(h, claim{h, o.space, o.name, o.age})
			}
		}
	}, compareClaims)
	m.owners = derive.Each("owners", claims, func(_ *derive.Reads, _ string, all []claim, was string) (string, bool) {
		for _, c := range all {
			if c.space == was {
				return was, true
			}
		}
		return all[0].space, true
	})
	m.routes = derive.Each("routes", m.objects.Collection, func(at *derive.Reads, _ string, o object, _ string) (string, bool) {
		port, ok := m.services.Get(at, o.service)
		if crowded, _ := m.crowded.Get(at, o.space); crowded {
			derive.Report(at, o.space+": crowded")
			return "", false
		}
		var mine []string
		for _, h := range o.hosts {
			if owner, _ := m.owners.Get(at, h); owner == o.space {
				mine = append(mine, h)
			} else if h != "" {
				derive.Report(at, o.space+": "+o.name+" lacks "+h)
			}
		}
		return fmt.Sprintf("%s %v %d %v", o.name, mine, port, ok), true
	})
	m.list = derive.Sorted("list", m.routes, cmp.Compare[string])
	return m
}

// dump prints all that a model computed.
func (m *model) dump() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v\n%v\n%v\n%v\n%v\n", maps.Collect(m.owners.All()), maps.Collect(m.routes.All()), maps.Collect(m.sizes.All()), maps.Collect(m.crowded.All()), maps.Collect(m.reports.All()))
	fmt.Fprintf(&b, "%v\n", maps.Collect(m.lines.All()))
	fmt.Fprintf(&b, "%d %d\n%s", m.owners.Len(), m.routes.Len(), m.text.Get(nil))
	return b.String()
}

// fromNothing builds a model with the inputs of another. Its owners are those of the other,
// by an object that is in the first of two transactions alone.
func (m *model) fromNothing(t *testing.T, owners map[string]string) *model {
	t.Helper()
	now := newModel()
	now.limit.Set("objects", 1<<30)
	for host, space := range owners {
		now.objects.Set("owner of "+host, object{name: "owner of " + host, space: space, hosts: [2]string{host}})
	}
	commit(t, now.g)
	for k := range maps.Collect(now.objects.All()) {
		now.objects.Delete(k)
	}
	for k, v := range m.objects.All() {
		now.objects.Set(k, v)
	}
	for k, v := range m.services.All() {
		now.services.Set(k, v)
	}
	now.limit.Delete("objects")
	for k, v := range m.limit.All() {
		now.limit.Set(k, v)
	}
	commit(t, now.g)
	return now
}

func commit(t *testing.T, g *derive.Graph) {
	t.Helper()
	require.NoError(t, g.Run(context.Background()))
	require.NoError(t, g.Commit())
}

func (m *model) change(r *rand.Rand) {
	name := fmt.Sprint("o", r.IntN(30))
	switch r.IntN(8) {
	case 0:
		m.objects.Delete(name)
	case 1:
		m.services.Set(fmt.Sprint("s", r.IntN(5)), r.IntN(3))
	case 2:
		m.services.Delete(fmt.Sprint("s", r.IntN(5)))
	case 3:
		m.limit.Set("objects", r.IntN(12))
	default:
		o := object{name: name, space: fmt.Sprint("n", r.IntN(3)), service: fmt.Sprint("s", r.IntN(5)), age: r.IntN(4)}
		for i := range o.hosts {
			if h := r.IntN(12); h > 0 {
				o.hosts[i] = fmt.Sprint("h", h)
			}
		}
		m.objects.Set(name, o)
	}
}

// TestRandomChanges compares each collection with a build from nothing, after random
// transactions that are kept, rolled back, and computed in several runs.
func TestRandomChanges(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		m := newModel()
		before := m.dump()
		for range 40 {
			owners := maps.Collect(m.owners.All())
			for range 1 + r.IntN(2) {
				for range r.IntN(6) {
					m.change(r)
				}
				require.NoError(t, m.g.Run(context.Background()))
			}
			if now := m.dump(); r.IntN(4) == 0 {
				require.NoError(t, m.g.RunAll(context.Background()))
				if all := m.dump(); all != now {
					t.Fatalf("seed %d: all computed again:\n%s\nbefore:\n%s", seed, all, now)
				}
			}
			if r.IntN(3) == 0 {
				m.g.Rollback()
				if now := m.dump(); now != before {
					t.Fatalf("seed %d: after a rollback:\n%s\nbefore:\n%s", seed, now, before)
				}
				continue
			}
			require.NoError(t, m.g.Commit())
			before = m.dump()
			if want := m.fromNothing(t, owners).dump(); before != want {
				t.Fatalf("seed %d: after a commit:\n%s\nfrom nothing:\n%s\nowners before %v objects %v", seed, before, want, owners, maps.Collect(m.objects.All()))
			}
		}
		for _, all := range [][]string{slices.Collect(maps.Keys(maps.Collect(m.objects.All())))} {
			for _, k := range all {
				m.objects.Delete(k)
			}
		}
		commit(t, m.g)
		if n := m.owners.Len() + m.routes.Len() + m.sizes.Len() + m.reports.Len(); n > 0 {
			t.Fatalf("seed %d: %d items without an object", seed, n)
		}
	}
}
