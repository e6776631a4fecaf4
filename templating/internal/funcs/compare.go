package funcs

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/hapticsdk/haptic/templating/internal/place"
)

// Kinds of values that can be compared with each other.
const (
	missingKey = "nothing"
	numberKey  = "a number"
	textKey    = "a text"
	boolKey    = "true or false"
	timeKey    = "a time"
)

// key is a value that compares with others of its kind.
type key struct {
	kind string
	num  number // of a boolean 0 or 1
	text string
	time time.Time
}

func keyOf(v reflect.Value) (key, error) {
	if !v.IsValid() {
		return key{kind: missingKey}, nil
	}
	if x, ok := numberOf(v); ok {
		return key{kind: numberKey, num: x}, nil
	}
	if v.Kind() == reflect.Bool {
		k := key{kind: boolKey}
		if v.Bool() {
			k.num.f = 1
		}
		return k, nil
	}
	if t, ok := timeOf(v); ok {
		return key{kind: timeKey, time: t}, nil
	}
	text, err := place.Text(v.Interface())
	return key{kind: textKey, text: text}, err
}

// timeOf finds a time.Time, also as the only, embedded field of a struct, as in
// metav1.Time.
func timeOf(v reflect.Value) (time.Time, bool) {
	if v.Kind() == reflect.Struct && v.NumField() == 1 && v.Type().Field(0).Anonymous && v.Type().Field(0).IsExported() {
		v = v.Field(0)
	}
	t, ok := v.Interface().(time.Time)
	return t, ok
}

func (a key) compare(b key) int {
	return cmp.Or(cmp.Compare(a.num.f, b.num.f), cmp.Compare(a.num.n, b.num.n), strings.Compare(a.text, b.text), a.time.Compare(b.time))
}

// tests are the comparing tests of selectattr, with the results of compare that pass.
var tests = map[string][]int{ // constant in effect
	"eq": {0}, "==": {0}, "lt": {-1}, "<": {-1}, "le": {-1, 0}, "<=": {-1, 0}, "gt": {1}, ">": {1}, "ge": {0, 1}, ">=": {0, 1},
}

// passes runs a test of selectattr by its name.
func passes(ctx context.Context, op string, v, with reflect.Value) (bool, error) {
	going(ctx)
	switch op {
	case "in":
		return isIn(ctx, v, with)
	case "contains":
		return isIn(ctx, with, v)
	case "ne", "!=":
		ok, err := passes(ctx, "eq", v, with)
		return !ok, err
	}
	want, ok := tests[op]
	if !ok {
		return false, fmt.Errorf("no test %s: use eq, ne, lt, le, gt, ge, in or contains", place.Shorten(op))
	}
	a, err := keyOf(v)
	if err != nil {
		return false, err
	}
	b, err := keyOf(with)
	equal := len(want) == 1 && want[0] == 0
	switch {
	case err != nil:
		return false, err
	case !equal && a.kind == missingKey, equal && a.kind != b.kind: // values of different kinds are not equal
		return false, nil
	case a.kind != b.kind:
		return false, fmt.Errorf("%s cannot be compared with %s", a.kind, b.kind)
	}
	return slices.Contains(want, a.compare(b)), nil
}

// isIn reports whether a value is an element of a list, a key of a map or a
// part of a text.
func isIn(ctx context.Context, v, in reflect.Value) (bool, error) {
	text := v.Kind() == reflect.String
	switch in.Kind() {
	case reflect.Invalid:
		return false, nil
	case reflect.Slice, reflect.Array:
		for i := range in.Len() {
			if ok, err := passes(ctx, "eq", v, deref(in.Index(i))); ok || err != nil {
				return ok, err
			}
		}
		return false, nil
	case reflect.Map:
		if text && in.Type().Key().Kind() == reflect.String {
			return in.MapIndex(v.Convert(in.Type().Key())).IsValid(), nil
		}
	case reflect.String:
		if text || !v.IsValid() {
			return text && strings.Contains(in.String(), v.String()), nil
		}
	}
	return false, fmt.Errorf("a list, a map or a text wanted, not a %s", in.Type())
}

// isEmpty reports whether a value is missing, zero, empty or false.
func isEmpty(v reflect.Value) bool {
	return !v.IsValid() || v.IsZero() || (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0
}
