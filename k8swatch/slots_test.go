package k8swatch

import (
	"math/rand/v2"
	"testing"
)

// TestSlots sets slots at random, on all levels, beside a plain slice; what was
// taken before stays as it was.
func TestSlots(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var s slots
	var model []*entry
	type kept struct {
		s     slots
		model []*entry
	}
	var before []kept
	o := new(owner)
	for n := range 5000 {
		slot := len(model)
		if n%3 == 0 && slot > 0 {
			slot = r.IntN(slot)
		} else {
			model = append(model, nil)
		}
		e := &entry{}
		s.set(o, slot, e)
		model[slot] = e
		if r.IntN(100) == 0 {
			before = append(before, kept{s, append([]*entry(nil), model...)})
			o = new(owner)
		}
	}
	for _, k := range append(before, kept{s, model}) {
		for slot, e := range k.model {
			if k.s.get(slot) != e {
				t.Fatalf("slot %d of %d is not what was set", slot, len(k.model))
			}
		}
	}
}
