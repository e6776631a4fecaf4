package reconcile

import (
	"context"
	"fmt"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// BenchmarkExcluded asks about each of many objects whether it is in quarantine, where one is.
func BenchmarkExcluded(b *testing.B) {
	for _, n := range []int{100, 1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var objects []*networkingv1.Ingress
			for i := range n {
				objects = append(objects, &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint("i", i)}})
			}
			bad, _ := ResourceOf(objects[7])
			b.ReportAllocs()
			for b.Loop() {
				excluded, out := newExcluded([]Resource{bad}), 0
				for _, ing := range objects {
					if _, ok := ToRender(excluded, ing); !ok {
						out++
					}
				}
				if out != 1 {
					b.Fatal(out)
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
