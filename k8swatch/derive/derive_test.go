package derive_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/k8swatch/derive"
)

func number(_ *derive.Reads, _ string, n, _ int) (int, bool) { return n, true }

// TestStopsWhereEqual: an item whose value is as before computes nothing after it.
func TestStopsWhereEqual(t *testing.T) {
	g := derive.New()
	in := derive.NewInput[string, int](g, "in")
	odd := derive.Each("odd", in.Collection, func(_ *derive.Reads, _ string, n int, _ bool) (bool, bool) { return n%2 == 1, true })
	derive.Each("after", odd, func(_ *derive.Reads, _ string, is bool, _ string) (string, bool) { return fmt.Sprint(is), true })
	in.Set("a", 1)
	commit(t, g)
	in.Set("a", 3)
	if commit(t, g); g.Computed() != 1 {
		t.Errorf("%d items computed, want 1", g.Computed())
	}
}

// TestLastValueIsAccepted: a function gets the value of the last commit, also in the second
// run of a transaction.
func TestLastValueIsAccepted(t *testing.T) {
	g := derive.New()
	in := derive.NewInput[string, int](g, "in")
	last := map[int]int{}
	derive.Each("out", in.Collection, func(_ *derive.Reads, _ string, n, was int) (int, bool) { last[n] = was; return n, true })
	for n := 1; n <= 3; n++ {
		in.Set("a", n)
		require.NoError(t, g.Run(t.Context()))
	}
	commit(t, g)
	in.Set("a", 4)
	commit(t, g)
	require.Equal(t, "map[1:0 2:0 3:0 4:3]", fmt.Sprint(last))
}

func TestItemErrors(t *testing.T) {
	g := derive.New()
	in := derive.NewInput[string, int](g, "objects")
	other := derive.NewInput[string, int](g, "others")
	bad := errors.New("no good")
	out := derive.Each("items", in.Collection, func(at *derive.Reads, _ string, n, _ int) (int, bool) {
		other.Get(at, "x")
		switch n {
		case 1:
			at.Fail(bad)
		case 2:
			panic("oops")
		}
		return n, true
	})
	later := 0
	derive.Each("later", out, func(_ *derive.Reads, _ string, n, _ int) (int, bool) { later++; return n, true })
	for i, k := range []string{"a", "b", "c"} {
		in.Set(k, i)
	}
	err := g.Run(t.Context())
	if !errors.Is(err, bad) || !strings.Contains(err.Error(), "items b: no good") || !strings.Contains(err.Error(), "items c: panic: oops") {
		t.Errorf("error %v", err)
	}
	var item *derive.ItemError
	require.ErrorAs(t, err, &item)
	require.Equal(t, "[others x]", fmt.Sprint(item.Reads))
	require.LessOrEqual(t, later, 0, "a collection after the failed one was computed")
	require.Error(t, g.Commit(), "a failed transaction was committed")
	in.Set("b", 5)
	in.Delete("c")
	commit(t, g)
	if n, _ := out.Get(nil, "b"); n != 5 || out.Len() != 2 {
		t.Errorf("%d of %d after the mistakes were corrected", n, out.Len())
	}
}

// TestPanicInASplit: only a rollback helps, and it restores everything.
func TestPanicInASplit(t *testing.T) {
	g := derive.New()
	in := derive.NewInput[string, int](g, "in")
	groups := derive.GroupBy("groups", in.Collection, func(_ string, n int, add func(int, int)) {
		add(n%2, n)
		if n == 13 {
			panic("no 13")
		}
	}, cmp.Compare[int])
	in.Set("a", 1)
	commit(t, g)
	in.Set("b", 13)
	require.ErrorContains(t, g.Run(t.Context()), "no 13")
	g.Rollback()
	in.Set("b", 15)
	commit(t, g)
	if list, _ := groups.Get(nil, 1); !slices.Equal(list, []int{1, 15}) {
		t.Error(list)
	}
}

// TestOrder: a collection reads only those before it, and all are made before the first
// transaction.
func TestOrder(t *testing.T) {
	g := derive.New()
	in := derive.NewInput[string, int](g, "in")
	var after *derive.Collection[string, int]
	derive.Each("before", in.Collection, func(at *derive.Reads, key string, _, _ int) (int, bool) { return after.Get(at, key) })
	after = derive.Each("after", in.Collection, number)
	in.Set("a", 1)
	require.ErrorContains(t, g.Run(t.Context()), "before reads after, which is made after it")
	defer func() {
		if p := recover(); !strings.Contains(fmt.Sprint(p), "after the first transaction") {
			t.Errorf("panic %v", p)
		}
	}()
	derive.Each("late", in.Collection, number)
}

// TestReportsComeLast: an item of a collection made after that of the reports cannot report.
func TestReportsComeLast(t *testing.T) {
	g := derive.New()
	derive.Reports(g, "reports", func(string) int { return 0 }, cmp.Compare[string])
	derive.One(g, "late", func(at *derive.Reads, _ int) int { derive.Report(at, "x"); return 1 })
	require.ErrorContains(t, g.Run(t.Context()), "reports to reports, which is made before it")
}

// TestDeadlines: an item is computed at its time, and a rollback does not lose the time.
func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, start := derive.New(), time.Now()
		in := derive.NewInput[string, time.Duration](g, "in")
		out := derive.Each("over", in.Collection, func(at *derive.Reads, _ string, after time.Duration, _ bool) (bool, bool) {
			at.Again(start.Add(after))
			return !at.Now().Before(start.Add(after)), true
		})
		in.Set("a", time.Hour)
		in.Set("b", 2*time.Hour)
		commit(t, g)
		require.Equal(t, time.Hour, g.Next().Sub(start), "next after")
		time.Sleep(time.Hour)
		require.NoError(t, g.Run(t.Context()))
		g.Rollback()
		if over, _ := out.Get(nil, "a"); over || g.Next().Sub(start) != time.Hour {
			t.Fatalf("over %v, next %v after a rollback", over, g.Next().Sub(start))
		}
		commit(t, g)
		a, _ := out.Get(nil, "a")
		if b, _ := out.Get(nil, "b"); !a || b || g.Computed() != 1 || g.Next().Sub(start) != 2*time.Hour {
			t.Errorf("a %v, b %v, %d computed, next %v", a, b, g.Computed(), g.Next().Sub(start))
		}
		in.Delete("b")
		if commit(t, g); !g.Next().IsZero() {
			t.Error("a deleted item still has a time")
		}
	})
}

func TestContextEnds(t *testing.T) {
	g := derive.New()
	in := derive.NewInput[string, int](g, "in")
	ctx, cancel := context.WithCancel(t.Context())
	out := derive.Each("out", in.Collection, func(_ *derive.Reads, _ string, n, _ int) (int, bool) { cancel(); return n, true })
	in.Set("a", 1)
	in.Set("b", 2)
	require.ErrorIs(t, g.Run(ctx), context.Canceled)
	require.Equal(t, 1, out.Len())
	if commit(t, g); out.Len() != 2 {
		t.Errorf("%d items after another run", out.Len())
	}
}

// routesOf is the model of the random test with n objects.
func routesOf(n int) *model {
	m := newRoutes()
	m.limit.Set("objects", n+1)
	for i := range n {
		k := fmt.Sprint("o", i)
		m.objects.Set(k, object{name: k, space: fmt.Sprint("n", i%100), service: k, age: i, hosts: [2]string{"h" + k}})
	}
	return m
}

// BenchmarkChange changes one of n objects of the model of the random test.
func BenchmarkChange(b *testing.B) {
	for _, n := range []int{2000, 10_000, 50_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			m := routesOf(n)
			for i := 0; b.Loop(); i++ {
				m.services.Set("o7", i)
				if err := errors.Join(m.g.Run(b.Context()), m.g.Commit()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkFirst builds the model from nothing.
func BenchmarkFirst(b *testing.B) {
	for _, n := range []int{1000, 10_000, 50_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				m := routesOf(n)
				if err := errors.Join(m.g.Run(b.Context()), m.g.Commit()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
