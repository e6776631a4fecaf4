package reconcile

import "reflect"

// sameVars reports whether all variables are the same values.
func sameVars(a, b map[string]any) bool {
	if len(a) != len(b) {
		return false
	}
	for name, v := range a {
		w, ok := b[name]
		if !ok || !sameValue(v, w) {
			return false
		}
	}
	return true
}

// sameValue reports whether two values are the same without looking at what
// they point to: slices and maps are the same if they are stored in the same
// place. What cannot be told apart that way is not the same.
func sameValue(a, b any) bool {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	if !x.IsValid() || !y.IsValid() || x.Type() != y.Type() {
		return !x.IsValid() && !y.IsValid()
	}
	switch x.Kind() {
	case reflect.Slice:
		return x.Len() == y.Len() && x.UnsafePointer() == y.UnsafePointer()
	case reflect.Map:
		return x.UnsafePointer() == y.UnsafePointer()
	}
	return x.Comparable() && y.Comparable() && a == b
}
