package limits_test

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/k8swatch/derive"
	"github.com/hapticsdk/haptic/reconcile/limits"
)

// ask is what an object of a namespace asks for.
type ask struct {
	namespace string
	age, n    int
}

func amount(_ string, a ask) (string, int) { return a.namespace, a.n }

func byAge(asks *derive.Collection[string, ask]) limits.Order[string] {
	return limits.OrderOf("by age", asks, func(_ string, a ask) (string, int) { return a.namespace, -a.age }, cmp.Compare[int], cmp.Compare[string])
}

func ExampleOrderOf() {
	g := derive.New()
	asks := derive.NewInput[string, ask](g, "asks")
	order := byAge(asks.Collection)
	first := derive.One(g, "order", func(at *derive.Reads, _ []string) []string { return slices.Collect(order(at, "shop")) })
	asks.Set("young", ask{"shop", 1, 1})
	asks.Set("old", ask{"shop", 9, 1})
	fmt.Println(g.Run(context.Background()), first.Get(nil))
	// Output: <nil> [old young]
}

func ExampleNewBudget() {
	g := derive.New()
	asks := derive.NewInput[string, ask](g, "asks")
	budget := limits.NewBudget("servers", asks.Collection, amount, byAge(asks.Collection), limits.Bound{Name: "servers", Namespace: 100}, limits.Part)
	asks.Set("old", ask{"shop", 9, 80})
	asks.Set("young", ask{"shop", 1, 50})
	fmt.Println(g.Run(context.Background()), budget.Share(nil, "shop", "old"), budget.Share(nil, "shop", "young"))
	// Output: <nil> 80 20
}

func ExampleBudget_Share() {
	g := derive.New()
	asks := derive.NewInput[string, ask](g, "asks")
	budget := limits.NewBudget("servers", asks.Collection, amount, byAge(asks.Collection), limits.Bound{Name: "servers", Namespace: 100}, limits.Whole)
	asks.Set("old", ask{"shop", 9, 80})
	asks.Set("young", ask{"shop", 1, 50})
	fmt.Println(g.Run(context.Background()), budget.Share(nil, "shop", "old"), budget.Share(nil, "shop", "young"))
	// Output: <nil> 80 0
}

// TestBudget: a smaller ask fits after one that does not, other namespaces have a budget of
// their own, and all get what they ask for once that fits.
func TestBudget(t *testing.T) {
	g := derive.New()
	asks := derive.NewInput[string, ask](g, "asks")
	whole := limits.NewBudget("whole", asks.Collection, amount, byAge(asks.Collection), limits.Bound{Name: "servers", Namespace: 100}, limits.Whole)
	part := limits.NewBudget("part", asks.Collection, amount, byAge(asks.Collection), limits.Bound{Name: "servers", Namespace: 100}, limits.Part)
	for i, n := range []int{80, 50, 20, 1} {
		asks.Set(fmt.Sprint(i), ask{"shop", -i, n})
	}
	asks.Set("other", ask{"aaa", 0, 100})
	shares := func(b *limits.Budget[string]) (all []int) {
		for i := range 4 {
			all = append(all, b.Share(nil, "shop", fmt.Sprint(i)))
		}
		return all
	}
	require.NoError(t, g.Run(t.Context()))
	require.Equal(t, []int{80, 0, 20, 0}, shares(whole))
	require.Equal(t, []int{80, 20, 0, 0}, shares(part))
	require.Equal(t, math.MaxInt, whole.Share(nil, "aaa", "other"))
	require.Zero(t, whole.Share(nil, "shop", "none"))
	asks.Delete("0")
	require.NoError(t, g.Run(t.Context()))
	require.Equal(t, math.MaxInt, whole.Share(nil, "shop", "1"))
}

func ExampleNewQuota() {
	g := derive.New()
	asks := derive.NewInput[string, ask](g, "asks")
	sums := derive.Sum("sums", asks.Collection, func(k string, a ask, add func(string, int)) { add(amount(k, a)) })
	quota := limits.NewQuota("servers", sums, limits.Bound{Name: "servers", Namespace: 100, All: 150})
	asks.Set("one", ask{"big", 1, 500})
	asks.Set("two", ask{"huge", 1, 900})
	asks.Set("three", ask{"small", 1, 10})
	fmt.Println(g.Run(context.Background()), quota.Most(nil, "big"))
	// Output: <nil> 70
}

func ExampleQuota_Most() {
	g := derive.New()
	sums := derive.NewInput[string, int](g, "sums")
	quota := limits.NewQuota("servers", sums.Collection, limits.Bound{Name: "servers", Namespace: 100, All: 100})
	sums.Set("big", 90)
	sums.Set("small", 20)
	fmt.Println(g.Run(context.Background()), quota.Most(nil, "big"))
	// Output: <nil> 80
}

func ExampleQuota_Over() {
	g := derive.New()
	sums := derive.NewInput[string, int](g, "sums")
	quota := limits.NewQuota("servers", sums.Collection, limits.Bound{Name: "servers", Namespace: 1000, All: 1500})
	sums.Set("big", 9000)
	fmt.Println(g.Run(context.Background()), quota.Over(nil, "big", "endpoints"))
	sums.Set("other", 9000)
	fmt.Println(g.Run(context.Background()), quota.Over(nil, "big", "endpoints"))
	// Output:
	// <nil> more than the 1,000 endpoints of one namespace (servers-per-namespace)
	// <nil> more than 750 endpoints, its share of the 1,500 of all namespaces (servers-of-all)
}

// TestQuota: all together never get more than there is; who asks for less than an equal part
// gets it, and nobody gets less than that for others.
func TestQuota(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		g := derive.New()
		sums := derive.NewInput[string, int](g, "sums")
		bound := limits.Bound{Namespace: 1 + random.IntN(100), All: 1 + random.IntN(300), Item: 1 + random.IntN(9)}
		quota := limits.NewQuota("servers", sums.Collection, bound)
		asked := map[string]int{}
		for range 1 + random.IntN(20) { // changes
			name := fmt.Sprint(random.IntN(9))
			asked[name] = 1 + random.IntN(200)
			sums.Set(name, asked[name])
			if random.IntN(3) == 0 {
				sums.Delete(name)
				delete(asked, name)
			}
			require.NoError(t, g.Run(t.Context()))
			got, wanted := 0, 0
			for namespace, n := range asked {
				most := quota.Most(nil, namespace)
				got += min(n, most)
				wanted += min(n, bound.Namespace)
				require.LessOrEqual(t, most, bound.Namespace)
				equal := min(bound.Namespace, bound.All/len(asked))
				if equal >= bound.Item || n <= equal {
					require.GreaterOrEqual(t, min(n, most), min(n, equal), "an equal part: %v, %+v", asked, bound)
				}
			}
			require.LessOrEqual(t, got, bound.All, "%v", asked)
			require.Greater(t, got+max(len(asked), bound.Item), min(wanted, bound.All), "nothing is left over: %v, %+v", asked, bound)
		}
	}
}

// TestItemsAreWhole: where an equal part is less than an item, those that had one keep it.
func TestItemsAreWhole(t *testing.T) {
	g := derive.New()
	asks := derive.NewInput[string, ask](g, "asks")
	bound := limits.Bound{Namespace: 100, All: 35, Item: 10}
	budget := limits.NewBudget("rates", asks.Collection, amount, byAge(asks.Collection), bound, limits.Whole)
	got := func() (all []string) {
		require.NoError(t, g.Run(t.Context()))
		require.NoError(t, g.Commit())
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			if n, _ := asks.Get(nil, name); n.n > 0 && budget.Share(nil, name, name) >= n.n {
				all = append(all, name)
			}
		}
		return all
	}
	for _, name := range []string{"b", "c", "d"} {
		asks.Set(name, ask{name, 0, 10})
	}
	require.Equal(t, []string{"b", "c", "d"}, got())
	asks.Set("a", ask{"a", 0, 10})
	require.Equal(t, []string{"b", "c", "d"}, got(), "it comes later")
	asks.Set("a", ask{"a", 0, 5})
	require.Equal(t, []string{"a", "b", "c", "d"}, got(), "it asks for less than an equal part")
	asks.Set("e", ask{"e", 0, 100})
	require.Equal(t, []string{"a", "b", "c", "d"}, got())
	asks.Delete("c")
	asks.Set("e", ask{"e", 0, 10})
	require.Equal(t, []string{"a", "b", "d", "e"}, got())
}
