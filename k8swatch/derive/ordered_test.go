package derive_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/k8swatch/derive"
)

// TestOrdered: a sorted list of any length is that of a new sort, also with values that compare
// as equal, and a change leaves most chunks where they are.
func TestOrdered(t *testing.T) {
	type value struct{ number, key int }
	byNumber := func(a, b value) int { return cmp.Compare(a.number, b.number) }
	byBoth := func(a, b value) int { return cmp.Or(byNumber(a, b), cmp.Compare(a.key, b.key)) }
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 1))
		g := derive.New()
		in := derive.NewInput[int, value](g, "values")
		list := derive.Sorted("sorted", in.Collection, byBoth)
		counts := derive.SortBy("numbers", in.Collection, func(_ int, v value, add func(struct{}, int)) { add(struct{}{}, v.number) }, cmp.Compare[int])
		for step := range 60 {
			n := []int{1, 3, 40, 2000}[r.IntN(4)]
			for range n {
				key := r.IntN(5000)
				if step%10 > 6 || r.IntN(3) == 0 {
					in.Delete(key)
				} else {
					in.Set(key, value{r.IntN(int(10 + seed*100)), key})
				}
			}
			before := list.Get(nil)
			require.NoError(t, g.Run(context.Background()))
			var want []value
			for _, v := range in.All() {
				want = append(want, v)
			}
			slices.SortFunc(want, byBoth)
			var numbers []int
			for _, v := range want {
				numbers = append(numbers, v.number)
			}
			now := list.Get(nil)
			all, _ := counts.Get(nil, struct{}{})
			require.Equal(t, want, now.Slice(), "seed %d, step %d", seed, step)
			require.Equal(t, numbers, all.Slice(), "seed %d, step %d", seed, step)
			require.Equal(t, len(want), now.Len())
			require.Equal(t, want, slices.Collect(now.All()))
			if n == 1 {
				require.GreaterOrEqual(t, shared(before, now), len(before.Chunks())-3, "seed %d, step %d", seed, step)
			}
			if r.IntN(4) == 0 {
				g.Rollback()
				require.Equal(t, before.Slice(), list.Get(nil).Slice(), "seed %d, step %d", seed, step)
			} else {
				require.NoError(t, g.Commit())
			}
		}
	}
}

// shared counts the chunks of one list that stand in another.
func shared[V any](a, b derive.Ordered[V]) (n int) {
	at := map[*V]bool{}
	for _, chunk := range a.Chunks() {
		at[&chunk[0]] = true
	}
	for _, chunk := range b.Chunks() {
		if at[&chunk[0]] {
			n++
		}
	}
	return n
}

// BenchmarkSorted is a list in which one value of many changes.
func BenchmarkSorted(b *testing.B) {
	for _, n := range []int{1000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			g := derive.New()
			in := derive.NewInput[int, int](g, "numbers")
			list := derive.Sorted("sorted", in.Collection, cmp.Compare[int])
			for i := range n {
				in.Set(i, 2*i)
			}
			require.NoError(b, g.Run(b.Context()))
			require.NoError(b, g.Commit())
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				in.Set(n/2, n+i%2)
				require.NoError(b, g.Run(b.Context()))
				require.NoError(b, g.Commit())
			}
			require.Equal(b, n, list.Get(nil).Len())
		})
	}
}
