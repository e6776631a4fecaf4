package limits_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hapticsdk/haptic/reconcile/limits"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func Example() {
	var routes, servers int
	table := limits.Table{
		{Name: "routes-per-namespace", Value: &routes, Usual: 100, What: "routes of a namespace"},
		{Name: "servers-per-route", Value: &servers, Usual: 20, What: "servers of a route"},
	}
	if err := table.Set("servers-per-route=5"); err != nil {
		fmt.Println(err)
	}
	table.UseDefaults()
	fmt.Println(routes, servers, table.InForce())
	fmt.Print(table.Usage())
	// Output:
	// 100 5 map[routes-per-namespace:100 servers-per-route:5]
	// routes-per-namespace=100	routes of a namespace
	// servers-per-route=20	servers of a route
}

func ExampleTable_Set() {
	var routes int
	table := limits.Table{{Name: "routes", Value: &routes, Usual: 1}}
	fmt.Println(table.Set("route=7"))
	// Output: there is no limit "route": did you mean routes? -h lists all
}

func ExampleTable_UseDefaults() {
	var routes int
	limits.Table{{Name: "routes", Value: &routes, Usual: 9}}.UseDefaults()
	fmt.Println(routes)
	// Output: 9
}

func ExampleFigure() {
	fmt.Println(limits.Figure(1234567))
	// Output: 1,234,567
}

func TestSet(t *testing.T) {
	var n int
	table := limits.Table{{Name: "routes", Value: &n, Usual: 9}}
	for text, want := range map[string]string{
		"routes=0": `routes: "0" is not a number above 0`, "routes": `routes: "" is not a number above 0`, "routes=x": "is not a number",
		"else=1": `there is no limit "else": want name=number; -h lists all`, "": `there is no limit ""`,
	} {
		require.ErrorContains(t, table.Set(text), want, text)
		require.Zero(t, n)
	}
}

func ExampleShort() {
	fmt.Println(limits.Short("a word"), len(limits.Short(strings.Repeat("x", 1000))))
	// Output: a word 83
}
