package reconcile

import (
	"reflect"
	"slices"
)

// forgetShared forgets what entries that share values rendered, unless all of
// them would render the same again. A value that one of them computed was made
// of what that one read, and is gone with the render: where one is rendered
// anew, so are the others, with all of their items.
func (t *Templates) forgetShared(in *Input) {
	var sharing []string
	same := true
	for _, entry := range t.Engine.Entries() {
		if t.Engine.Shares(entry) {
			sharing = append(sharing, entry)
			same = same && t.sameShared(entry, in)
		}
	}
	if same {
		return
	}
	for _, entry := range sharing {
		delete(t.remembered, entry)
	}
}

// sameShared reports whether an entry is given what it was given before. What
// it would ask its host is not known beforehand.
func (t *Templates) sameShared(entry string, in *Input) bool {
	before, ok := t.remembered[entry]
	if !ok || t.usesHost(entry, in) {
		return false
	}
	each, forItems := in.Each[entry]
	vars := map[string]any{}
	for _, name := range t.Engine.Uses(entry) {
		if !forItems || name != each.Var {
			vars[name] = in.Vars[name]
		}
	}
	if !sameVars(before.vars, vars) || forItems != (before.items != nil) {
		return false
	}
	return slices.EqualFunc(before.order, each.Items, sameItem)
}

// sameItem compares two items, of which the second one may not be comparable.
func sameItem(before, now any) bool { return reflect.ValueOf(now).Comparable() && before == now }
