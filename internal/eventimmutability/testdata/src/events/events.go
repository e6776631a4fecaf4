// Package events has events that are fine and events that are not.
package events

import (
	"context"
	"time"

	"imported"

	"github.com/hapticsdk/haptic/eventbus"
)

type fine struct {
	Name    string
	At      time.Time
	Err     error
	Done    func()
	Ended   chan struct{}
	Nested  struct{ N [3]int }
	Opaque  *opaque
	Context context.Context
	hidden  []string
}

type opaque struct{ n map[string]int }

type withSlice struct {
	Items []string // want `event withSlice: everyone who gets it can write to Items \(\[\]string\)`
}

type withMap struct {
	Deep struct {
		ByName map[string]int // want `event withMap: everyone who gets it can write to Deep.ByName \(map\[string\]int\)`
	}
}

type withPointer struct {
	Next  *withPointer // want `can write to Next \(\*withPointer\)`
	Count *int         // want `can write to Count \(\*int\)`
	Array [2]*open     // want `can write to Array \(\*open\)`
}

type open struct{ N int }

type embeds struct {
	Shared
}

type Shared struct {
	Tags []string // want `event embeds: everyone who gets it can write to Shared.Tags`
}

type generic[T any] struct{ Value T }

type question struct {
	Candidates []string // want `event question: everyone who gets it can write to Candidates`
}

type partly struct {
	Kept  []string //eventbus:immutable nobody writes to it // want Kept:"immutable"
	Other []string // want `event partly: everyone who gets it can write to Other`
}

//eventbus:immutable made once and never changed
type marked struct{ Items []string } // want marked:"immutable"

type unreasoned struct {
	//eventbus:immutable // want `//eventbus:immutable needs a reason`
	Items []string // want Items:"immutable"
}

type unpublished struct{ Items []string }

func publish(b *eventbus.Bus) {
	eventbus.Publish(b, fine{})
	eventbus.Publish(b, withSlice{})
	eventbus.Publish(b, withSlice{}) // reported once
	eventbus.Publish(b, embeds{})
	eventbus.Publish(b, partly{})
	eventbus.Publish(b, marked{})
	eventbus.Publish(b, &marked{})
	eventbus.Publish(b, unreasoned{})
	eventbus.Publish(b, &opaque{})
	eventbus.Publish(b, "text")
	eventbus.Publish(b, generic[string]{})
	eventbus.Publish[any](b, &open{})        // want `event \*open can be written to by everyone who gets it: publish a struct`
	eventbus.Publish(b, []string{})          // want `event \[\]string can be written to`
	eventbus.Publish(b, imported.Rendered{}) // want `event imported.Rendered: everyone who gets it can write to Plan \(\*imported.Plan\)`
	eventbus.Publish[int](b, 1)
	_ = unpublished{}
}

func subscribe(b *eventbus.Bus) {
	eventbus.Subscribe(b, eventbus.Policy{}, func(context.Context, eventbus.Delivery[withMap]) {})
	eventbus.Subscribe[withPointer](b, eventbus.Latest(func(withPointer) int { return 1 }), nil)
	eventbus.Subscribe(b, eventbus.Policy{}, func(context.Context, eventbus.Delivery[any]) {})
}

func ask(ctx context.Context, b *eventbus.Bus) {
	_, _ = eventbus.Ask[bool](ctx, b, question{})
	eventbus.Answer(b, "mine", func(ctx context.Context, q question) (bool, error) { return true, nil })
}

func forward[E any](b *eventbus.Bus, e E) { eventbus.Publish(b, e) }
