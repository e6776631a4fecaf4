package render

import (
	"maps"
	"reflect"
	"sync"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile"
)

// Input is what a render reads: one consistent view of the resources.
type Input struct {
	Vars  map[string]any   // the variables that the templates were compiled with; see [Whole]
	Each  map[string]Each  // entries that are rendered for each of several items
	Files []dataplane.File // made without a template, such as certificates out of Secrets

	// Owners has the objects that each of Files was made of, by kind and name of the file,
	// the most important last. An error in a file can then name them.
	Owners map[dataplane.Position][]any

	Refused   []reconcile.Refusal
	Resources map[string]int // resources read, by kind

	// Accepted is that of [reconcile.Rendered]; it may be nil.
	Accepted func()

	// Reads follows variables that answer calls of templates; nil: there are none.
	Reads *Reads
}

// Whole is a variable that templates see as another value, such as a list that is kept in
// parts ([derive.Ordered]) as a slice. Only entries that use the variable pay for it.
type Whole interface {
	Whole() any // always of the same type
}

// Declare returns variables with the values that templates see in place of each [Whole]. The
// templates are compiled with these.
func Declare(vars map[string]any) map[string]any {
	vars = maps.Clone(vars)
	for name, v := range vars {
		if whole, is := v.(Whole); is {
			vars[name] = whole.Whole()
		}
	}
	return vars
}

// Reads follows variables that answer calls, such as the stores of watched resources. It
// tells [Templates.Pure] whether anything that an entry read has changed. Each Input needs
// its own. Any goroutine may call its methods.
type Reads struct {
	Vars []string // their names: their values are not compared

	// Same reports whether a call that was noted with that key would have that revision now.
	Same func(key, revision any) bool

	// Changed returns the keys of the calls that may have another answer than they had with the
	// State of an earlier Input, and whether it knows them. Same is asked about these calls only.
	// Nil, or without a State: it is asked about every call.
	Changed func(before any) (keys []any, known bool)
	State   any // what the calls read, such as a snapshot

	mu   sync.Mutex
	note func(key, revision any) // nil: no render is under way
}

// Note says that a template made a call. key tells calls apart, and revision differs
// whenever the answer does. Keys are comparable.
func (r *Reads) Note(key, revision any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.note != nil {
		r.note(key, revision)
	}
}

func (r *Reads) changed(before any) (keys []any, known bool) {
	if r == nil || r.Changed == nil || before == nil {
		return nil, false
	}
	return r.Changed(before)
}

func (r *Reads) follow(note func(key, revision any)) {
	if r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.note = note
	}
}

// Each renders an entry once for each item, one after the other, with the variable Var set
// to the item. In a configuration, a map and a crt-list each item begins on a line of its
// own. Other entries need the variable, too, because they share [Input.Vars]: put a zero
// value there, such as a nil pointer. If that value is a map[string]any, templates see an
// unstructured object as the map inside of it.
type Each struct {
	Var   string
	Items []any // comparable: pointers, strings, ...

	// Parts are the items instead of Items, for lists of thousands. A part that has the same
	// address as in the last render is not looked at again: do not change it.
	Parts [][]any
}

// value is an item as the template sees it.
func (e Each) value(item any, vars map[string]any) any {
	u, ok := item.(interface{ UnstructuredContent() map[string]any })
	if _, isMap := vars[e.Var].(map[string]any); ok && isMap && !reflect.ValueOf(u).IsNil() {
		return u.UnstructuredContent()
	}
	return item
}

// with returns the variables of a render for one item.
func (e Each) with(vars map[string]any, item any) map[string]any {
	own := maps.Clone(vars)
	own[e.Var] = e.value(item, vars)
	return own
}
