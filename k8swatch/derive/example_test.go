package derive_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hapticsdk/haptic/k8swatch/derive"
)

// pod is an input of the examples.
type pod struct{ name, node string }

func byName(a, b pod) int { return cmp.Compare(a.name, b.name) }

// nodeOf adds a pod to the group of its node.
func nodeOf(_ string, p pod, add func(string, pod)) { add(p.node, p) }

// names is the text of a node.
func names(_ *derive.Reads, node string, all []pod, _ string) (string, bool) {
	var list []string
	for _, p := range all {
		list = append(list, p.name)
	}
	return node + ": " + strings.Join(list, " "), true
}

func run(g *derive.Graph) {
	if err := errors.Join(g.Run(context.Background()), g.Commit()); err != nil {
		fmt.Println(err)
	}
}

func Example() {
	g := derive.New()
	pods := derive.NewInput[string, pod](g, "pods")
	byNode := derive.GroupBy("by node", pods.Collection, nodeOf, byName)
	texts := derive.Each("texts", byNode, names)
	all := derive.Sorted("all texts", texts, cmp.Compare[string])

	pods.Set("web", pod{"web", "n1"})
	pods.Set("db", pod{"db", "n2"})
	run(g)
	fmt.Println(all.Get(nil))

	pods.Set("cache", pod{"cache", "n1"}) // computes n1 alone, its text and the list
	run(g)
	fmt.Println(all.Get(nil), g.Computed(), "items")
	// Output:
	// [n1: web n2: db]
	// [n1: cache web n2: db] 3 items
}

func ExampleNew() {
	g := derive.New()
	in := derive.NewInput[string, int](g, "numbers")
	in.Set("one", 1)
	run(g)
	fmt.Println(in.Len())
	// Output: 1
}

func ExampleNewInput() {
	g := derive.New()
	in := derive.NewInput[string, int](g, "numbers")
	in.Set("one", 1)
	fmt.Println(in.Get(nil, "one"))
	// Output: 1 true
}

func ExampleInput_Set() {
	g := derive.New()
	in := derive.NewInput[string, int](g, "numbers")
	in.Set("one", 1)
	g.Rollback()
	fmt.Println(in.Get(nil, "one"))
	// Output: 0 false
}

func ExampleInput_Delete() {
	g := derive.New()
	in := derive.NewInput[string, int](g, "numbers")
	in.Set("one", 1)
	run(g)
	in.Delete("one")
	run(g)
	fmt.Println(in.Len())
	// Output: 0
}

func ExampleEach() {
	g := derive.New()
	in := derive.NewInput[string, int](g, "numbers")
	factor := derive.NewInput[string, int](g, "factors")
	times := derive.Each("products", in.Collection, func(at *derive.Reads, key string, n, _ int) (int, bool) {
		by, ok := factor.Get(at, key) // noted: another factor computes this item again
		return n * by, ok
	})
	in.Set("a", 2)
	in.Set("b", 3)
	factor.Set("a", 10)
	run(g)
	fmt.Println(maps.Collect(times.All()))
	// Output: map[a:20]
}

func ExampleBatch() {
	g := derive.New()
	in := derive.NewInput[string, int](g, "numbers")
	calls := 0
	squares := derive.Batch("squares", in.Collection, func(string) any { return "all" }, func(_ *derive.Reads, keys []string) (all []int) {
		calls++
		for _, key := range keys {
			n, _ := in.Get(nil, key)
			all = append(all, n*n)
		}
		return all
	})
	in.Set("a", 2)
	in.Set("b", 3)
	run(g)
	fmt.Println(maps.Collect(squares.All()), calls, "call")
	// Output: map[a:4 b:9] 1 call
}

func ExampleMerge() {
	g := derive.New()
	given := derive.NewInput[string, int](g, "given")
	usual := derive.NewInput[string, int](g, "usual")
	all := derive.Merge("all", given.Collection, usual.Collection)
	usual.Set("a", 1)
	usual.Set("b", 1)
	given.Set("a", 7)
	run(g)
	fmt.Println(maps.Collect(all.All()))
	// Output: map[a:7 b:1]
}

func ExampleOne() {
	g := derive.New()
	in := derive.NewInput[string, int](g, "numbers")
	twice := derive.One(g, "twice", func(at *derive.Reads, _ int) int {
		n, _ := in.Get(at, "n")
		return 2 * n
	})
	in.Set("n", 21)
	run(g)
	fmt.Println(twice.Get(nil))
	// Output: 42
}

func ExampleValue_Get() {
	g := derive.New()
	five := derive.One(g, "five", func(*derive.Reads, int) int { return 5 })
	run(g)
	fmt.Println(five.Get(nil))
	// Output: 5
}

func ExampleValue_Equal() {
	g := derive.New()
	in := derive.NewInput[string, int](g, "numbers")
	list := derive.One(g, "list", func(at *derive.Reads, _ []int) []int { n, _ := in.Get(at, "n"); return []int{n % 2} }).Equal(slices.Equal)
	text := derive.One(g, "text", func(at *derive.Reads, _ string) string { return fmt.Sprint(list.Get(at)) })
	run(g)
	in.Set("n", 2)
	run(g) // the list is equal, so the text is not computed
	fmt.Println(text.Get(nil), g.Computed())
	// Output: [0] 1
}

func ExampleGroupBy() {
	g := derive.New()
	pods := derive.NewInput[string, pod](g, "pods")
	byNode := derive.GroupBy("by node", pods.Collection, nodeOf, byName)
	pods.Set("b", pod{"b", "n1"})
	pods.Set("a", pod{"a", "n1"})
	run(g)
	fmt.Println(byNode.Get(nil, "n1"))
	// Output: [{a n1} {b n1}] true
}

func ExampleSorted() {
	g := derive.New()
	in := derive.NewInput[string, int](g, "numbers")
	list := derive.Sorted("list", in.Collection, cmp.Compare[int])
	in.Set("two", 2)
	in.Set("one", 1)
	run(g)
	fmt.Println(list.Get(nil))
	// Output: [1 2]
}

func ExampleSortBy() {
	g := derive.New()
	pods := derive.NewInput[string, pod](g, "pods")
	byNode := derive.SortBy("by node", pods.Collection, nodeOf, byName)
	pods.Set("b", pod{"b", "n1"})
	pods.Set("a", pod{"a", "n1"})
	run(g)
	all, _ := byNode.Get(nil, "n1")
	fmt.Println(all)
	// Output: [{a n1} {b n1}]
}

func ExampleOrderedOf() {
	list := derive.OrderedOf([]string{"a", "b"})
	for text := range list.All() {
		fmt.Println(text)
	}
	fmt.Println(list.Len(), len(list.Chunks()), list.Whole())
	// Output:
	// a
	// b
	// 2 1 [a b]
}

func ExampleList_Get() {
	g := derive.New()
	in := derive.NewInput[string, int](g, "numbers")
	list := derive.Sorted("list", in.Collection, cmp.Compare[int])
	count := derive.One(g, "count", func(at *derive.Reads, _ int) int { return list.Get(at).Len() })
	in.Set("two", 2)
	run(g)
	fmt.Println(count.Get(nil))
	// Output: 1
}

func ExampleSum() {
	g := derive.New()
	pods := derive.NewInput[string, pod](g, "pods")
	count := derive.Sum("pods of a node", pods.Collection, func(_ string, p pod, add func(string, int)) { add(p.node, 1) })
	pods.Set("a", pod{"a", "n1"})
	pods.Set("b", pod{"b", "n1"})
	run(g)
	fmt.Println(count.Get(nil, "n1"))
	// Output: 2 true
}

func ExampleReports() {
	g := derive.New()
	in := derive.NewInput[string, int](g, "numbers")
	derive.Each("checked", in.Collection, func(at *derive.Reads, key string, n, _ int) (int, bool) {
		if n < 0 {
			derive.Report(at, key+" is below zero")
		}
		return n, n >= 0
	})
	all := derive.Reports(g, "reports", func(string) string { return "all" }, cmp.Compare[string])
	in.Set("a", -1)
	run(g)
	fmt.Println(all.Get(nil, "all"))
	in.Set("a", 1)
	run(g)
	fmt.Println(all.Get(nil, "all"))
	// Output:
	// [a is below zero] true
	// [] false
}

func ExampleReport() {
	g := derive.New()
	derive.One(g, "one", func(at *derive.Reads, _ int) int { derive.Report(at, "a warning"); return 1 })
	all := derive.Reports(g, "reports", func(string) int { return 0 }, cmp.Compare[string])
	run(g)
	fmt.Println(all.Get(nil, 0))
	// Output: [a warning] true
}

func ExampleGraph_Run() {
	g := derive.New()
	in := derive.NewInput[string, int](g, "numbers")
	derive.Each("inverse", in.Collection, func(_ *derive.Reads, _ string, n, _ int) (int, bool) { return 100 / n, true })
	in.Set("a", 0)
	err := g.Run(context.Background())
	fmt.Println(err)
	in.Set("a", 5)
	fmt.Println(g.Run(context.Background()))
	// Output:
	// inverse a: panic: runtime error: integer divide by zero
	// <nil>
}

func ExampleGraph_RunAll() {
	g := derive.New()
	in := derive.NewInput[string, int](g, "numbers")
	derive.Each("copies", in.Collection, func(_ *derive.Reads, _ string, n, _ int) (int, bool) { return n, true })
	in.Set("a", 1)
	in.Set("b", 1)
	run(g)
	in.Set("b", 2)
	fmt.Println(g.RunAll(context.Background()), g.Computed())
	// Output: <nil> 2
}

func ExampleGraph_Commit() {
	g := derive.New()
	in := derive.NewInput[string, int](g, "numbers")
	derive.Each("copies", in.Collection, func(_ *derive.Reads, _ string, n, _ int) (int, bool) { return n, true })
	in.Set("a", 1)
	fmt.Println(g.Commit())
	// Output: derive: the transaction is not computed: call Run without an error before Commit, or Rollback
}

func ExampleGraph_Rollback() {
	g := derive.New()
	pods := derive.NewInput[string, pod](g, "pods")
	nodes := derive.GroupBy("by node", pods.Collection, nodeOf, byName)
	pods.Set("a", pod{"a", "n1"})
	run(g)
	pods.Set("b", pod{"b", "n1"})
	_ = g.Run(context.Background())
	g.Rollback() // the configuration was not valid
	fmt.Println(nodes.Get(nil, "n1"))
	// Output: [{a n1}] true
}

func ExampleGraph_Open() {
	g := derive.New()
	in := derive.NewInput[string, int](g, "numbers")
	in.Set("a", 1)
	fmt.Println(g.Open())
	run(g)
	fmt.Println(g.Open())
	// Output:
	// true
	// false
}

func ExampleGraph_Computed() {
	g := derive.New()
	in := derive.NewInput[string, int](g, "numbers")
	derive.Each("copies", in.Collection, func(_ *derive.Reads, _ string, n, _ int) (int, bool) { return n, true })
	in.Set("a", 1)
	in.Set("b", 2)
	run(g)
	fmt.Println(g.Computed())
	// Output: 2
}

func ExampleGraph_Next() {
	g := derive.New()
	derive.One(g, "day", func(at *derive.Reads, _ string) string {
		at.Again(at.Now().Add(time.Hour))
		return at.Now().Format(time.DateOnly)
	})
	fmt.Println(g.Next().IsZero())
	run(g)
	fmt.Println(time.Until(g.Next()).Round(time.Hour))
	// Output:
	// true
	// 1h0m0s
}

func ExampleReads_Again() { ExampleGraph_Next() }

func ExampleReads_Now() { ExampleGraph_Next() }

func ExampleReads_Fail() {
	g := derive.New()
	derive.One(g, "text", func(at *derive.Reads, _ string) string { at.Fail(errors.New("no template")); return "" })
	fmt.Println(g.Run(context.Background()))
	// Output: text {}: no template
}

func ExampleReads_Context() {
	g := derive.New()
	derive.One(g, "ended", func(at *derive.Reads, _ error) error { return at.Context().Err() })
	fmt.Println(g.Run(context.Background()))
	// Output: <nil>
}

func ExampleCollection_Get() {
	g := derive.New()
	in := derive.NewInput[string, int](g, "numbers")
	in.Set("a", 1)
	run(g)
	fmt.Println(in.Get(nil, "a"))
	fmt.Println(in.Get(nil, "b"))
	// Output:
	// 1 true
	// 0 false
}

func ExampleCollection_HasReaders() {
	g := derive.New()
	in := derive.NewInput[string, int](g, "numbers")
	derive.One(g, "twice", func(at *derive.Reads, _ int) int {
		n, _ := in.Get(at, "a")
		return 2 * n
	})
	run(g)
	fmt.Println(in.HasReaders("a"), in.HasReaders("b"))
	// Output: true false
}

func ExampleCollection_Was() {
	g := derive.New()
	in := derive.NewInput[string, int](g, "numbers")
	in.Set("a", 1)
	run(g)
	in.Set("a", 2)
	fmt.Println(in.Was("a"))
	// Output: 1 true
}

func ExampleCollection_Changed() {
	g := derive.New()
	in := derive.NewInput[string, int](g, "numbers")
	in.Set("a", 1)
	in.Set("b", 1)
	run(g)
	in.Set("a", 1)
	in.Set("b", 2)
	fmt.Println(slices.Collect(in.Changed()))
	// Output: [b]
}

func ExampleCollection_All() {
	g := derive.New()
	in := derive.NewInput[string, int](g, "numbers")
	in.Set("a", 1)
	fmt.Println(maps.Collect(in.All()))
	// Output: map[a:1]
}

func ExampleCollection_Equal() {
	g := derive.New()
	in := derive.NewInput[string, []string](g, "lists")
	in.Equal(slices.Equal)
	lens := derive.Each("lengths", in.Collection, func(_ *derive.Reads, _ string, l []string, _ int) (int, bool) { return len(l), true })
	in.Set("a", []string{"x"})
	run(g)
	in.Set("a", []string{"x"})
	run(g)
	fmt.Println(lens.Len(), g.Computed())
	// Output: 1 0
}

func ExampleCollection_Explain() {
	g := derive.New()
	services := derive.NewInput[string, int](g, "services")
	routes := derive.NewInput[string, string](g, "routes")
	ports := derive.Each("ports", routes.Collection, func(at *derive.Reads, _, service string, _ int) (int, bool) {
		return services.Get(at, service)
	})
	routes.Set("shop", "web")
	services.Set("web", 80)
	run(g)
	services.Set("web", 8080)
	run(g)
	e, _ := ports.Explain("shop")
	fmt.Println(e.Item, "read", e.Reads, "in transaction", e.Transaction, "as", e.Why)
	// Output: ports shop read [services web] in transaction 2 as services web changed
}

func ExampleCollection_Name() {
	fmt.Println(derive.NewInput[string, int](derive.New(), "numbers").Name())
	// Output: numbers
}

func ExampleCollection_Len() {
	in := derive.NewInput[string, int](derive.New(), "numbers")
	in.Set("a", 1)
	fmt.Println(in.Len())
	// Output: 1
}
