package templating

import (
	"reflect"
)

// coalesce returns the first argument that is neither nil nor the zero value
// of its type, with pointers followed; nil if there is none.
func coalesce(values ...any) any {
	for _, v := range values {
		if !isEmpty(deref(reflect.ValueOf(v))) {
			return v
		}
	}
	return nil
}

// keys returns the keys of a map in order.
func keys(m any) []string { return keysOf("keys", m) }

// sortedKeys is the older name of keys.
func sortedKeys(m any) []string { return keysOf("sortedKeys", m) }

func keysOf(name string, m any) []string {
	v := deref(reflect.ValueOf(m))
	switch {
	case !v.IsValid():
		return nil
	case v.Kind() != reflect.Map || v.Type().Key().Kind() != reflect.String:
		failf("%s: a map with string keys wanted, not a %T", name, m)
	}
	return stringKeys(v)
}

// merge returns a new map with the entries of all; of equal keys the last one's.
// Maps in them are not merged.
func merge(maps ...any) map[string]any {
	out := map[string]any{}
	for i, m := range maps {
		v := deref(reflect.ValueOf(m))
		if !v.IsValid() {
			continue
		}
		entries, ok := anyMap(v)
		if !ok {
			failf("merge: argument %d: a map with string keys wanted, not a %T", i+1, m)
		}
		for k, v := range entries {
			out[k] = v
		}
	}
	return out
}
