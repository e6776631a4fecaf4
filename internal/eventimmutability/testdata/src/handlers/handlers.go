// Package handlers has subscribers that behave and subscribers that do not.
package handlers

import (
	"context"
	"maps"
	"slices"
	"sort"

	"github.com/hapticsdk/haptic/eventbus"
)

//eventbus:immutable for the sake of the test: only writes are reported
type event struct { // want event:"immutable"
	N      int
	Items  []string
	ByName map[string]int
	Next   *event
	Parts  []*part
	Array  [2]int
}

//eventbus:immutable as event
type part struct{ Size int } // want part:"immutable"

func (p *part) grow() {
	p.Size++ // want `writes to p.Size`
}

func (p part) grown() part { p.Size++; return p }

func bad(b *eventbus.Bus) {
	eventbus.Subscribe(b, eventbus.Policy{}, func(_ context.Context, d eventbus.Delivery[event]) {
		d.Event.Items[0] = "x"                     // want `writes to d.Event.Items\[0\]: it belongs to an event that others see as well`
		d.Event.ByName["a"]++                      // want `writes to d.Event.ByName\["a"\]`
		d.Event.Next.N = 1                         // want `writes to d.Event.Next.N`
		*d.Event.Next = event{}                    // want `writes to \*d.Event.Next`
		d.Event.Next.Array[1] = 2                  // want `writes to d.Event.Next.Array\[1\]`
		_ = append(d.Event.Items, "y")             // want `append may write behind d.Event.Items`
		delete(d.Event.ByName, "a")                // want `delete changes d.Event.ByName`
		clear(d.Event.Items)                       // want `clear changes d.Event.Items`
		copy(d.Event.Items[1:], []string{"a"})     // want `copy changes d.Event.Items\[1:\]`
		slices.Sort(d.Event.Items)                 // want `slices.Sort changes d.Event.Items`
		sort.Sort(sort.StringSlice(d.Event.Items)) // want `sort.Sort changes`
		maps.Copy(d.Event.ByName, d.Event.ByName)  // want `maps.Copy changes d.Event.ByName`
		d.Event.Parts[0].grow()

		e := d.Event
		e.Items[1] = "x" // want `writes to e.Items\[1\]`
		items := e.Items[:1]
		items[0] = "x" // want `writes to items\[0\]`
		p := &d.Event
		p.Items[0] = "x" // want `writes to p.Items\[0\]`
		for i, part := range d.Event.Parts {
			part.Size = i // want `writes to part.Size`
		}
		var next = d.Event.Next
		next.N, _ = 1, 2            // want `writes to next.N`
		func() { items[0] = "y" }() // want `writes to items\[0\]`
		helper(1, d.Event)
	})
	eventbus.Subscribe(b, eventbus.Policy{}, named)
	eventbus.Subscribe(b, eventbus.Policy{}, func(_ context.Context, d eventbus.Delivery[any]) {
		switch e := d.Event.(type) {
		case *event:
			e.N = 1 // want `writes to e.N`
		case event:
			e.N = 1
			e.ByName["a"] = 1 // want `writes to e.ByName\["a"\]`
		}
		if e, ok := d.Event.(*event); ok {
			e.N++ // want `writes to e.N`
		}
	})
	eventbus.Answer(b, "mine", func(_ context.Context, q event) (bool, error) {
		q.Items[0] = "x" // want `writes to q.Items\[0\]`
		return true, nil
	})
	eventbus.Answer(b, "other", responder{}.answer)
}

type responder struct{}

func (responder) answer(_ context.Context, q *event) (bool, error) {
	q.N = 1 // want `writes to q.N`
	return true, nil
}

func named(_ context.Context, d eventbus.Delivery[*event]) {
	d.Event.N = 1 // want `writes to d.Event.N`
}

func helper(_ int, e event) {
	deeper(e.ByName)
}

func deeper(m map[string]int) {
	m["a"] = 1 // want `writes to m\["a"\]`
}

func good(b *eventbus.Bus) {
	eventbus.Subscribe(b, eventbus.Policy{}, func(_ context.Context, d eventbus.Delivery[event]) {
		d.Event.N = 1 // its own copy
		d.Event.Array[0] = 1
		d.Event.Items = nil
		e := &d.Event
		e.N++
		e.Array[1]--
		items := slices.Clone(d.Event.Items)
		items[0] = "x"
		slices.Sort(items)
		all := append([]string(nil), d.Event.Items...)
		all[0] = "x"
		_ = append(d.Event.Items[:1:1], "y")
		d.Event.ByName = maps.Clone(d.Event.ByName)
		d.Event.ByName["a"] = 1
		reused := d.Event.Items
		reused = []string{"mine"}
		reused[0] = "x"
		for i, s := range d.Event.Items {
			s += "x"
			i++
			_ = s
		}
		n := d.Event.N
		n++
		_ = d.Event.Parts[0].grown()
		local := map[string]event{}
		local["a"] = d.Event
		read(d.Event)
	})
	mine := event{Items: []string{"a"}}
	mine.Items[0] = "b" // not published yet
	eventbus.Publish(b, mine)
}

func read(e event) int { return len(e.Items) }
