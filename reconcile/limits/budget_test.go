package limits_test

import (
	"cmp"
	"context"
	"fmt"
	"math"
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
	budget := limits.NewBudget("servers", asks.Collection, amount, byAge(asks.Collection), 100, limits.Part)
	asks.Set("old", ask{"shop", 9, 80})
	asks.Set("young", ask{"shop", 1, 50})
	fmt.Println(g.Run(context.Background()), budget.Share(nil, "shop", "old"), budget.Share(nil, "shop", "young"))
	// Output: <nil> 80 20
}

func ExampleBudget_Share() {
	g := derive.New()
	asks := derive.NewInput[string, ask](g, "asks")
	budget := limits.NewBudget("servers", asks.Collection, amount, byAge(asks.Collection), 100, limits.Whole)
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
	whole := limits.NewBudget("whole", asks.Collection, amount, byAge(asks.Collection), 100, limits.Whole)
	part := limits.NewBudget("part", asks.Collection, amount, byAge(asks.Collection), 100, limits.Part)
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
