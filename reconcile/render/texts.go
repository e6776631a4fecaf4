package render

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/k8swatch/derive"
	"github.com/hapticsdk/haptic/templating"
)

// text is what an entry rendered for an item. Renders share it, so it never changes.
type text struct {
	string
	files []dataplane.File // that its template registered
	asked []any            // the answers that it got from the input
	lead  int              // see part

	end, ended string // argument and result of the last call of part
}

// textOf names a text by its entry and its item. The item of an entry that is rendered once
// is nil.
type textOf struct {
	entry string
	item  any
}

// texts are the texts of one engine, as items of a graph. The graph notes the variables that
// an entry uses, and the answers of the host that a text got. A render makes a text again only
// if one of them changed.
type texts struct {
	engine *templating.Engine
	post   *postProcessing
	graph  *derive.Graph
	vars   *derive.Input[string, any]       // without those of the host
	asked  [sources]*derive.Input[any, any] // the answers of the host, by key
	loops  *derive.Input[string, string]    // by entry: the variable of its items; "" without items
	items  *derive.Input[textOf, struct{}]  // of all entries
	uses   *derive.Collection[string, *int] // another pointer when a variable of the entry changed
	made   *derive.Collection[textOf, *text]
	listed map[string][][]any // by entry: the items that are set
	twice  map[textOf]int     // items that stand several times in their entry: how often more
	pieces map[string]piece   // of the last render without an error
	run    *run               // under way
	state  any                // of the input, to which its answers belong; see Reads.State
	needed int                // answers of the input that texts needed when all were asked last

	mu   sync.Mutex
	at   *derive.Reads // of the text that is rendered now; nil: there is none
	asks *run          // that renders it
	got  []any         // the answers that the text got from the input
}

func newTexts(engine *templating.Engine, post *postProcessing) *texts {
	g := derive.New()
	t := &texts{engine: engine, post: post, graph: g, listed: map[string][][]any{}, twice: map[textOf]int{}, pieces: map[string]piece{}}
	t.vars = derive.NewInput[string, any](g, "variables")
	t.vars.Equal(sameValue)
	for of, name := range []string{ofInput: "answers of the input", ofCurrent: "answers of currentConfig", ofHTTP: "fetched contents"} {
		t.asked[of] = derive.NewInput[any, any](g, name)
		t.asked[of].Equal(func(a, b any) bool { return a == b })
	}
	t.loops = derive.NewInput[string, string](g, "entries")
	t.items = derive.NewInput[textOf, struct{}](g, "items")
	t.uses = derive.Each("variables of an entry", t.loops.Collection, t.variables)
	t.made = derive.Batch("texts", t.items.Collection, t.batch, t.render)
	return t
}

// variables notes the variables that an entry uses, without its item.
func (t *texts) variables(at *derive.Reads, entry, item string, _ *int) (*int, bool) {
	for _, name := range t.engine.Uses(entry) {
		if name != item {
			t.vars.Get(at, name)
		}
	}
	return new(int), true
}

// batch says which texts are rendered together. A text that asks the host is rendered alone:
// its answers are its own.
func (t *texts) batch(of textOf) any {
	if t.run.asksHost(of.entry) {
		return of
	}
	return of.entry
}

// render renders the texts of a batch.
func (t *texts) render(at *derive.Reads, all []textOf) (made []*text) {
	entry := all[0].entry
	t.uses.Get(at, entry)
	t.begin(t.run, at)
	defer t.begin(nil, nil)
	items := make([]any, len(all))
	for i, of := range all {
		items[i] = of.item
	}
	made, err := t.run.render(at.Context(), entry, items)
	if err != nil {
		at.Fail(err)
	} else if len(made) == 1 {
		made[0].asked = t.got
	}
	return made
}

// update sets the inputs to those of a render, and makes the texts again that they change.
func (t *texts) update(ctx context.Context, r *run, entries []string) error {
	t.run = r
	for name, v := range r.in.Vars {
		switch {
		case isCurrent(v): // its answers are noted; whether there is one counts here
			t.vars.Set(name, r.current != nil)
		case !r.fromHost(name):
			t.vars.Set(name, v)
		}
	}
	t.ask(r)
	for _, entry := range entries {
		each, items := r.itemsOf(entry)
		if item := ""; each != nil {
			item = each.Var
			t.loops.Set(entry, item)
		} else {
			t.loops.Set(entry, "")
		}
		if err := t.list(entry, items); err != nil {
			return err
		}
	}
	return t.graph.Run(ctx)
}

// list sets the items of an entry.
func (t *texts) list(entry string, parts [][]any) error {
	gone, come := partsChanged(t.listed[entry], parts)
	for _, item := range come {
		if checkItem(entry, 0, item) != nil {
			return checkItems(entry, slices.Concat(parts...)) // with its number
		}
	}
	left := map[any]int{}
	for _, item := range gone {
		left[item]++
	}
	for _, item := range come {
		if left[item] > 0 {
			left[item]-- // it stays, in another part
		} else {
			t.comes(textOf{entry, item})
		}
	}
	for item, n := range left {
		for range n {
			t.goes(textOf{entry, item})
		}
	}
	t.listed[entry] = parts
	return nil
}

func (t *texts) comes(of textOf) {
	if _, stands := t.items.Get(nil, of); stands {
		t.twice[of]++
	} else {
		t.items.Set(of, struct{}{})
	}
}

func (t *texts) goes(of textOf) {
	switch t.twice[of] {
	case 0:
		t.items.Delete(of)
	case 1:
		delete(t.twice, of)
	default:
		t.twice[of]--
	}
}

func isCurrent(v any) bool { _, is := v.(*CurrentConfig); return is }

// checkItems returns the first error about items.
func checkItems(entry string, items []any) error {
	for i, item := range items {
		if err := checkItem(entry, i, item); err != nil {
			return err
		}
	}
	return nil
}

func checkItem(entry string, i int, item any) error {
	if item == nil || reflect.ValueOf(item).Comparable() {
		return nil
	}
	return fmt.Errorf("template %s: item %d is a %T, which cannot be compared: give a pointer to it", entry, i, item)
}

// accept makes the texts of a render those that the next one begins with, and returns them as
// pieces.
func (t *texts) accept(r *run, entries []string) ([]piece, error) {
	changed := map[string][]any{}
	for of := range t.made.Changed() {
		changed[of.entry] = append(changed[of.entry], of.item)
	}
	pieces := make([]piece, len(entries))
	for i, entry := range entries {
		pieces[i] = t.piece(entry, r, changed[entry])
	}
	if err := t.graph.Commit(); err != nil {
		return nil, err
	}
	for _, p := range pieces {
		t.pieces[p.entry] = p
	}
	return pieces, nil
}

// sameValue reports whether two values are the same without looking at what they point to.
// Slices and maps are the same if they are stored in the same place, and structs if their
// fields are the same. Values that it cannot compare that way are not the same.
func sameValue(a, b any) bool { return same(reflect.ValueOf(a), reflect.ValueOf(b)) }

func same(x, y reflect.Value) bool {
	if !x.IsValid() || !y.IsValid() || x.Type() != y.Type() {
		return !x.IsValid() && !y.IsValid()
	}
	switch x.Kind() {
	case reflect.Slice:
		return x.Len() == y.Len() && x.UnsafePointer() == y.UnsafePointer()
	case reflect.Map:
		return x.UnsafePointer() == y.UnsafePointer()
	case reflect.Interface:
		return same(x.Elem(), y.Elem())
	case reflect.Struct:
		for i := range x.NumField() {
			if !same(x.Field(i), y.Field(i)) {
				return false
			}
		}
		return true
	}
	return x.Comparable() && y.Comparable() && x.Equal(y)
}
