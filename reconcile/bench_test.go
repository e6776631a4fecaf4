package reconcile

import (
	"context"
	"fmt"
	"testing"

	"github.com/hapticsdk/haptic/dataplane"
)

// BenchmarkLoop is the loop around a render, a validation and a deployment that
// do nothing: its own cost, on the way on which nothing is wrong.
func BenchmarkLoop(b *testing.B) {
	cfg, err := dataplane.NewConfig("global\n")
	if err != nil {
		b.Fatal(err)
	}
	loop, err := New(Options{
		Renderer:  RendererFunc(func(context.Context) (*Rendered, error) { return &Rendered{Config: cfg}, nil }),
		Validator: ValidatorFunc(func(context.Context, *dataplane.Config) error { return nil }),
		Targets:   []Target{idle{}},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := loop.Once(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLoopRefused is the same where resources are refused, as before.
func BenchmarkLoopRefused(b *testing.B) {
	cfg, err := dataplane.NewConfig("global\n")
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range []int{100, 1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var refused []Refusal
			for i := range n {
				refused = append(refused, Refusal{Resource: fmt.Sprintf("Ingress ns-%d/i%d", i%500, i), Field: "spec.rules[0].host", Reason: "it is of another", Object: Resource{Kind: "Ingress", Name: fmt.Sprint("i", i)}})
			}
			loop, err := New(Options{
				Renderer: RendererFunc(func(context.Context) (*Rendered, error) { return &Rendered{Config: cfg, Refused: refused}, nil }),
				Targets:  []Target{idle{}},
			})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := loop.Once(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// idle is a target that has whatever it shall have.
type idle struct{}

func (idle) Name() string { return "idle" }
func (idle) DryRun(context.Context, *dataplane.Config) (*dataplane.Plan, error) {
	return &dataplane.Plan{}, nil
}
func (idle) Sync(context.Context, *dataplane.Config, ...dataplane.SyncOption) (*dataplane.Result, error) {
	return &dataplane.Result{Plan: &dataplane.Plan{}}, nil
}
