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
	Vars  map[string]any   // the variables that the templates were compiled with
	Each  map[string]Each  // entries that are rendered for each of several items
	Files []dataplane.File // made without a template, such as certificates out of Secrets

	// Owners are the objects that each of Files was made of, the most important
	// last, by kind and name of the file; so an error in one can name them.
	Owners map[dataplane.Position][]any

	Refused   []reconcile.Refusal
	Resources map[string]int // resources read, by kind

	// Accepted is that of [reconcile.Rendered]; nil: it is not told.
	Accepted func()

	// Reads follows variables that templates read by calls; nil: there are none.
	Reads *Reads
}

// Reads follows variables that answer calls, such as the stores of watched
// resources, so that [Templates.Pure] knows when what an entry read has changed. Each
// Input needs its own. Methods may be called from any goroutine.
type Reads struct {
	Vars []string // their names: their values are not compared

	// Same reports whether a call that was noted with that key would now be noted
	// with that revision.
	Same func(key, revision any) bool

	mu   sync.Mutex
	note func(key, revision any) // nil: nothing is rendered
}

// Note says that a template made a call: key tells calls apart, revision is another
// one whenever the answer is another one. Keys are comparable.
func (r *Reads) Note(key, revision any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.note != nil {
		r.note(key, revision)
	}
}

func (r *Reads) follow(note func(key, revision any)) {
	if r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.note = note
	}
}

// Each says that an entry is rendered once for each item, one after the other,
// with the variable Var set to it. In a configuration, a map and a crt-list each
// item begins on a line of its own. The other entries need the variable, too, as
// they are rendered with the same [Input.Vars]: put a zero value there, such as
// a nil pointer. Where that is a map[string]any, an unstructured object is seen as
// the map inside of it.
type Each struct {
	Var   string
	Items []any // comparable: pointers, strings, ...
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
