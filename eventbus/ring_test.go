package eventbus_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/eventbus"
)

func FuzzRing(f *testing.F) {
	f.Add(3, 7, 2)
	f.Add(0, 200, 128)
	f.Add(1, 1, -1)
	f.Fuzz(func(t *testing.T, size, adds, last int) {
		adds %= 2000
		if size > 2000 {
			size %= 2000
		}
		r := eventbus.NewRing[int](size)
		var model []int
		for i := range max(0, adds) {
			r.Add(i)
			model = append(model, i)
		}
		if size < 1 {
			size = 128
		}
		model = model[max(0, len(model)-size):]
		if got := r.All(); !slices.Equal(got, model) {
			t.Fatalf("All of size %d: %v, want %v", size, got, model)
		}
		want := model[len(model)-max(0, min(last, len(model))):]
		if got := r.Last(last); !slices.Equal(got, want) {
			t.Fatalf("Last(%d): %v, want %v", last, got, want)
		}
	})
}

func TestRingConcurrently(t *testing.T) {
	var r eventbus.Ring[int]
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 1000 {
				r.Add(i)
				r.Last(3)
			}
		})
	}
	wg.Wait()
	require.Len(t, r.All(), 128)
}
