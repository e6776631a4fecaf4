package certs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/reconcile/certs"
)

func ExampleLine_Add() {
	var line certs.Line
	fmt.Printf("%q\n", line.Add("a.test", 1))
	fmt.Println(line.Add("b.test", 1))
	fmt.Println(line.Hosts)
	// Output:
	// ""
	// used for 1 TLS hosts, the most that one can have (hosts-per-secret)
	// [a.test]
}

func ExampleExcept() {
	fmt.Println(certs.Except([]string{"b.shop.test", "a.shop.test"}))
	// Output: [a.shop.test b.shop.test]
}

// TestLineFits: whatever the hosts, a line has room in a runtime command, beside its exceptions.
func TestLineFits(t *testing.T) {
	for _, length := range []int{1, 10, 100, 253} {
		var line certs.Line
		for line.Add(strings.Repeat("a", length), 1_000_000) == "" {
		}
		var below []string
		for i := range 5000 {
			below = append(below, fmt.Sprintf("%04d%s", i, strings.Repeat("a", length)))
		}
		words := append(line.Hosts, certs.Except(below)...)
		require.Less(t, len(strings.Join(words, " !")), 16_384-600)
		require.LessOrEqual(t, len(words), 2000)
		require.Greater(t, len(words), 40)
	}
}
