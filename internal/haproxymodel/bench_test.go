package haproxymodel

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

func backends(n, port int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "backend b%d\n  mode http\n  balance roundrobin\n  option httpchk GET /health\n  timeout server 30s\n  http-request set-header X-Backend b%d\n", i, i)
		for s := range 3 {
			fmt.Fprintf(&b, "  server s%d 10.0.%d.%d:%d check inter 2s weight 10\n", s, i/250, i%250, port)
		}
	}
	return b.String()
}

func inputsOf(text string) []Input {
	var inputs []Input
	for _, s := range haproxycfg.Split(text) {
		inputs = append(inputs, Input{Section: s})
	}
	return inputs
}

func BenchmarkParse(b *testing.B) {
	for _, n := range []int{1, 100} {
		inputs := inputsOf(backends(n, 8080))
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				Parse(inputs)
			}
		})
	}
}

func BenchmarkDiff(b *testing.B) {
	for _, n := range []int{1, 100} {
		old, new := Parse(inputsOf(backends(n, 8080))), Parse(inputsOf(backends(n, 8081)))
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				for i := range old {
					Diff(old[i], new[i])
				}
			}
		})
	}
}

// BenchmarkAll is what a plan needs: both sides parsed and compared, lines too.
func BenchmarkAll(b *testing.B) {
	for _, n := range []int{1, 100} {
		before, after := inputsOf(backends(n, 8080)), inputsOf(backends(n, 8081))
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				old, new := Parse(before), Parse(after)
				for i := range old {
					Diff(old[i], new[i])
					DiffLines(old[i], new[i])
				}
			}
		})
	}
}
