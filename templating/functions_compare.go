package templating

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/hapticsdk/haptic/templating/internal/place"
)

// keyKind is what kind of value a key to sort by is.
type keyKind string

const (
	missingKey keyKind = "nothing"
	numberKey  keyKind = "a number"
	textKey    keyKind = "a text"
	boolKey    keyKind = "true or false"
	timeKey    keyKind = "a time"
)

// sortKey is a value that can be compared with others of its kind.
type sortKey struct {
	kind keyKind
	num  float64
	n    int64 // of whole numbers, which a float64 would round
	text string
	time time.Time
}

func sortKeyOf(v reflect.Value) (sortKey, error) {
	switch {
	case !v.IsValid():
		return sortKey{kind: missingKey}, nil
	case isNumber(v):
		f, err := floatNumber(v)
		if err != nil {
			return sortKey{}, err
		}
		key := sortKey{kind: numberKey, num: f}
		if n, err := wholeNumber(v); err == nil {
			key.n = int64(n)
		}
		return key, nil
	case v.Kind() == reflect.Bool:
		key := sortKey{kind: boolKey}
		if v.Bool() {
			key.num = 1
		}
		return key, nil
	}
	if t, ok := timeOf(v); ok {
		return sortKey{kind: timeKey, time: t}, nil
	}
	text, err := place.Text(v.Interface())
	return sortKey{kind: textKey, text: text}, err
}

// timeOf finds a time.Time, also as the only embedded field of a struct, as in
// metav1.Time.
func timeOf(v reflect.Value) (time.Time, bool) {
	if t, ok := v.Interface().(time.Time); ok {
		return t, true
	}
	if v.Kind() == reflect.Struct && v.NumField() == 1 && v.Type().Field(0).Anonymous {
		t, ok := v.Field(0).Interface().(time.Time)
		return t, ok
	}
	return time.Time{}, false
}

func (a sortKey) compare(b sortKey, desc bool) int {
	if a.kind == missingKey || b.kind == missingKey { // last, whatever the direction
		return cmp.Compare(boolInt(a.kind == missingKey), boolInt(b.kind == missingKey))
	}
	n := cmp.Or(cmp.Compare(a.num, b.num), cmp.Compare(a.n, b.n), strings.Compare(a.text, b.text), a.time.Compare(b.time))
	if desc {
		return -n
	}
	return n
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// compareWith is the test of selectattr by its name.
func compareWith(op string, v, with reflect.Value) (bool, error) {
	switch op {
	case "in":
		return isIn(v, with)
	case "contains":
		return isIn(with, v)
	case "eq", "==":
		return equalKeys(v, with)
	case "ne", "!=":
		ok, err := equalKeys(v, with)
		return !ok, err
	}
	want, ok := map[string][]int{"lt": {-1}, "<": {-1}, "le": {-1, 0}, "<=": {-1, 0}, "gt": {1}, ">": {1}, "ge": {0, 1}, ">=": {0, 1}}[op]
	if !ok {
		return false, fmt.Errorf("no test %s, there is eq, ne, lt, le, gt, ge, in and contains", place.Shorten(op))
	}
	a, err := sortKeyOf(v)
	if err != nil {
		return false, err
	}
	b, err := sortKeyOf(with)
	if err != nil {
		return false, err
	}
	if a.kind == missingKey {
		return false, nil
	}
	if a.kind != b.kind {
		return false, fmt.Errorf("%s cannot be compared with %s", a.kind, b.kind)
	}
	n := a.compare(b, false)
	for _, w := range want {
		if n == w {
			return true, nil
		}
	}
	return false, nil
}

// equalKeys compares two values; those of different kinds are not the same.
func equalKeys(a, b reflect.Value) (bool, error) {
	x, err := sortKeyOf(a)
	if err != nil {
		return false, err
	}
	y, err := sortKeyOf(b)
	if err != nil {
		return false, err
	}
	return x.kind == y.kind && x.compare(y, false) == 0, nil
}

// isIn reports whether a value is an element of a list, a key of a map or a
// part of a text.
func isIn(v, in reflect.Value) (bool, error) {
	switch in.Kind() {
	case reflect.Invalid:
		return false, nil
	case reflect.Slice, reflect.Array:
		for _, e := range elements(in) {
			if ok, err := equalKeys(v, deref(reflect.ValueOf(e))); ok || err != nil {
				return ok, err
			}
		}
		return false, nil
	case reflect.Map:
		if v.Kind() == reflect.String && in.Type().Key().Kind() == reflect.String {
			return in.MapIndex(v.Convert(in.Type().Key())).IsValid(), nil
		}
	case reflect.String:
		if !v.IsValid() {
			return false, nil
		}
		if v.Kind() == reflect.String {
			return strings.Contains(in.String(), v.String()), nil
		}
	}
	return false, fmt.Errorf("a list, a map or a text wanted, not a %s", in.Type())
}

// isEmpty reports whether there is nothing, or a zero, empty or false value.
func isEmpty(v reflect.Value) bool {
	return !v.IsValid() || v.IsZero() || hasLen(v) && v.Len() == 0
}

func hasLen(v reflect.Value) bool { return v.Kind() == reflect.Slice || v.Kind() == reflect.Map }
