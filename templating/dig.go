package templating

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/hapticsdk/haptic/templating/internal/place"
)

// content is implemented by *unstructured.Unstructured.
type content interface{ UnstructuredContent() map[string]any }

// lookup follows a path such as "spec.rules[0].host" or
// "metadata.annotations['a.b/c']" through maps, lists and structs. missing is
// the part of the path that is not there.
func lookup(obj any, path string) (v any, missing string, err error) {
	steps, err := parsePath(path)
	if err != nil {
		return nil, "", err
	}
	return follow(obj, steps)
}

func follow(obj any, steps []string) (v any, missing string, err error) {
	v = obj
	for i, step := range steps {
		next, problem, err := child(v, step)
		switch {
		case err != nil:
			return nil, "", fmt.Errorf("%s: %w", strings.Join(steps[:i+1], "."), err)
		case problem != "":
			return nil, strings.Join(steps[:i+1], ".") + ": " + problem, nil
		}
		v = next
	}
	return v, "", nil
}

// child returns what one step of a path leads to.
func child(v any, step string) (next any, missing string, err error) {
	switch at := v.(type) {
	case map[string]any:
		return entryOf(at, step)
	case map[string]string:
		return entryOf(at, step)
	case content:
		if rv := reflect.ValueOf(v); rv.Kind() == reflect.Pointer && rv.IsNil() {
			return nil, "nothing there", nil
		}
		return entryOf(at.UnstructuredContent(), step)
	}
	rv := deref(reflect.ValueOf(v))
	switch rv.Kind() {
	case reflect.Invalid:
		return nil, "nothing there", nil
	case reflect.Map:
		return keyOf(rv, step)
	case reflect.Slice, reflect.Array:
		n, err := strconv.Atoi(step)
		switch {
		case err != nil:
			return nil, "", fmt.Errorf("a list has no field %q", step)
		case n < 0:
			return nil, "", fmt.Errorf("%d: the elements of a list are counted from 0", n)
		case n >= rv.Len():
			return nil, fmt.Sprintf("the list has %d elements", rv.Len()), nil
		}
		return rv.Index(n).Interface(), "", nil
	case reflect.Struct:
		field, ok := fieldOf(rv, step)
		switch {
		case !ok: // the type never has it: a mistake of the template
			return nil, "", fmt.Errorf("%s has no field %q, only %s", rv.Type(), step, some(fieldNames(rv.Type())))
		case !field.IsValid():
			return nil, "nothing there", nil
		}
		return field.Interface(), "", nil
	}
	return nil, "", fmt.Errorf("cannot look into a %T", v)
}

func entryOf[V any](m map[string]V, step string) (any, string, error) {
	if next, ok := m[step]; ok {
		return next, "", nil
	}
	return nil, fmt.Sprintf("no field %q, there is %s", step, some(slices.Sorted(maps.Keys(m)))), nil
}

func keyOf(m reflect.Value, step string) (any, string, error) {
	if m.Type().Key().Kind() != reflect.String {
		return nil, "", fmt.Errorf("cannot look into a %s: its keys are no strings", m.Type())
	}
	next := m.MapIndex(reflect.ValueOf(step).Convert(m.Type().Key()))
	if !next.IsValid() {
		return nil, fmt.Sprintf("no field %q, there is %s", step, some(stringKeys(m))), nil
	}
	return next.Interface(), "", nil
}

func stringKeys(m reflect.Value) []string {
	keys := make([]string, 0, m.Len())
	for _, k := range m.MapKeys() {
		keys = append(keys, k.String())
	}
	slices.Sort(keys)
	return keys
}

// deref follows pointers and interfaces; the zero Value is for nil.
func deref(v reflect.Value) reflect.Value {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	return v
}

// fieldOf finds a field by its name in Go or in JSON, also in structs that are
// written in line. The field is invalid when a nil pointer is on the way.
func fieldOf(v reflect.Value, name string) (field reflect.Value, ok bool) {
	typ := v.Type()
	for i := range typ.NumField() {
		if f := typ.Field(i); f.IsExported() && (f.Name == name || jsonName(f) == name) {
			return v.Field(i), true
		}
	}
	for i := range typ.NumField() {
		f := typ.Field(i)
		if !f.Anonymous || !f.IsExported() {
			continue
		}
		if f.Type.Kind() == reflect.Pointer && v.Field(i).IsNil() {
			if f.Type.Elem().Kind() == reflect.Struct {
				if _, ok := fieldOf(reflect.Zero(f.Type.Elem()), name); ok {
					return reflect.Value{}, true
				}
			}
			continue
		}
		if in := deref(v.Field(i)); in.Kind() == reflect.Struct {
			if field, ok := fieldOf(in, name); ok {
				return field, true
			}
		}
	}
	return reflect.Value{}, false
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

func fieldNames(typ reflect.Type) (names []string) {
	for i := range typ.NumField() {
		f := typ.Field(i)
		switch name := jsonName(f); {
		case !f.IsExported() || name == "-":
		case name != "":
			names = append(names, name)
		case !f.Anonymous:
			names = append(names, f.Name)
		}
	}
	slices.Sort(names)
	return names
}

// some lists names for an error message.
func some(names []string) string {
	const most = 8
	switch {
	case len(names) == 0:
		return "none"
	case len(names) > most:
		return strings.Join(names[:most], ", ") + ", ..."
	}
	return strings.Join(names, ", ")
}

// parsePath cuts a path into its steps. It may begin as a JSONPath does: "$.".
func parsePath(path string) ([]string, error) {
	var steps []string
	bad := func(why string) ([]string, error) { return nil, fmt.Errorf("path %q: %s", path, why) }
	rest := path
	if strings.HasPrefix(rest, "$.") || strings.HasPrefix(rest, "$[") {
		rest = rest[1:]
	}
	rest = strings.TrimPrefix(rest, ".")
	for rest != "" {
		if rest[0] == '[' {
			step, after, problem := bracket(rest)
			if problem != "" {
				return bad(problem)
			}
			steps, rest = append(steps, step), after
		} else {
			end := strings.IndexAny(rest, ".[")
			if end < 0 {
				end = len(rest)
			}
			if end == 0 {
				return bad("an element is empty")
			}
			steps, rest = append(steps, rest[:end]), rest[end:]
		}
		after, dot := strings.CutPrefix(rest, ".")
		switch {
		case dot && after == "":
			return bad("it ends in a dot")
		case dot:
			rest = after
		case rest != "" && rest[0] != '[':
			return bad("a dot is missing behind a bracket")
		}
	}
	if len(steps) == 0 {
		return bad("it is empty")
	}
	return steps, nil
}

// bracket reads a step in brackets: "[0]", "['a.b']" or `["a.b"]`.
func bracket(s string) (step, rest, problem string) {
	if len(s) > 1 && (s[1] == '\'' || s[1] == '"') {
		end := strings.Index(s[2:], s[1:2]+"]")
		if end < 0 {
			return "", "", "a bracket is not closed"
		}
		return s[2 : 2+end], s[2+end+2:], ""
	}
	end := strings.IndexByte(s, ']')
	switch {
	case end < 0:
		return "", "", "a bracket is not closed"
	case end == 1:
		return "", "", "an element is empty"
	}
	return s[1:end], s[end+1:], ""
}

// dig returns what is at the path. Where nothing is, it returns the default,
// and fails when there is none.
func dig(obj any, path string, otherwise ...any) any {
	v, missing, err := lookup(obj, path)
	switch {
	case len(otherwise) > 1:
		failf("dig: one default wanted, not %d", len(otherwise))
	case err != nil:
		failf("dig: %w", err)
	case len(otherwise) == 1 && (missing != "" || isNilValue(v)):
		return otherwise[0]
	case missing != "":
		failf("dig: %s", missing)
	}
	return v
}

func isNilValue(v any) bool {
	rv := reflect.ValueOf(v)
	return !rv.IsValid() || nilable(rv.Type()) && rv.IsNil()
}

// has reports whether there is something at the path that is not null. It
// fails on a path that cannot be, such as a misspelt field of a struct.
func has(obj any, path string) bool {
	if _, err := parsePath(path); err != nil {
		failf("has: %w", err)
	}
	v, missing, err := lookup(obj, path)
	return err == nil && missing == "" && !isNilValue(v)
}

// optional returns what is at the path with pointers followed; it is invalid
// when nothing or null is there.
func optional(name string, obj any, path string) reflect.Value {
	v, missing, err := lookup(obj, path)
	if err != nil {
		failf("%s: %w", name, err)
	}
	if missing != "" {
		return reflect.Value{}
	}
	return deref(reflect.ValueOf(v))
}

func digString(obj any, path string) string {
	v := optional("digString", obj, path)
	switch v.Kind() {
	case reflect.Invalid:
		return ""
	case reflect.String:
		return v.String()
	}
	failf("digString: %s is a %s, not a string", path, v.Type())
	return ""
}

func digBool(obj any, path string) bool {
	v := optional("digBool", obj, path)
	switch v.Kind() {
	case reflect.Invalid:
		return false
	case reflect.Bool:
		return v.Bool()
	}
	failf("digBool: %s is a %s, not a bool", path, v.Type())
	return false
}

func digInt(obj any, path string) int {
	v := optional("digInt", obj, path)
	if !v.IsValid() {
		return 0
	}
	if !isNumber(v) {
		failf("digInt: %s is a %s, not a number", path, v.Type())
	}
	n, err := wholeNumber(v)
	if err != nil {
		failf("digInt: %s is %w", path, err)
	}
	return n
}

func digFloat(obj any, path string) float64 {
	v := optional("digFloat", obj, path)
	if !v.IsValid() {
		return 0
	}
	if !isNumber(v) {
		failf("digFloat: %s is a %s, not a number", path, v.Type())
	}
	f, err := floatNumber(v)
	if err != nil {
		failf("digFloat: %s is %w", path, err)
	}
	return f
}

func digList(obj any, path string) []any {
	v := optional("digList", obj, path)
	if !v.IsValid() {
		return nil
	}
	if v.Kind() != reflect.Slice && v.Kind() != reflect.Array {
		failf("digList: %s is a %s, not a list", path, v.Type())
	}
	return elements(v)
}

func digMap(obj any, path string) map[string]any {
	v := optional("digMap", obj, path)
	if !v.IsValid() {
		return nil
	}
	m, ok := anyMap(v)
	if !ok {
		failf("digMap: %s is a %s, not a map", path, v.Type())
	}
	return m
}

// elements returns the elements of a slice or an array, not copied where they
// are of type any.
func elements(v reflect.Value) []any {
	if list, ok := v.Interface().([]any); ok {
		return list
	}
	list := make([]any, v.Len())
	for i := range list {
		list[i] = v.Index(i).Interface()
	}
	return list
}

// anyMap returns a map with keys of a kind of string as a map[string]any.
func anyMap(v reflect.Value) (map[string]any, bool) {
	if v.Kind() != reflect.Map || v.Type().Key().Kind() != reflect.String {
		return nil, false
	}
	if m, ok := v.Interface().(map[string]any); ok {
		return m, true
	}
	m := make(map[string]any, v.Len())
	for _, k := range v.MapKeys() {
		m[k.String()] = v.MapIndex(k).Interface()
	}
	return m, true
}

var jsonNumber = reflect.TypeFor[json.Number]()

func isNumber(v reflect.Value) bool {
	return v.CanInt() || v.CanUint() || v.CanFloat() || v.IsValid() && v.Type() == jsonNumber
}

// wholeNumber returns a number as an int. A fraction, or what an int cannot
// hold, is an error.
func wholeNumber(v reflect.Value) (int, error) {
	switch {
	case v.CanInt():
		if n := v.Int(); int64(int(n)) == n {
			return int(n), nil
		}
	case v.CanUint():
		if n := v.Uint(); n <= math.MaxInt {
			return int(n), nil
		}
	case v.CanFloat():
		// 2^63 is the first float64 that an int64 cannot hold.
		if f := v.Float(); f == math.Trunc(f) && f >= math.MinInt && f < -math.MinInt {
			return int(f), nil
		} else if f != math.Trunc(f) {
			return 0, fmt.Errorf("%v, not a whole number", f)
		}
	default:
		if n, err := strconv.Atoi(v.String()); err == nil {
			return n, nil
		}
		f, err := strconv.ParseFloat(v.String(), 64)
		if err != nil {
			return 0, fmt.Errorf("%s, not a number", place.Shorten(v.String()))
		}
		return wholeNumber(reflect.ValueOf(f))
	}
	return 0, fmt.Errorf("%v, too large", v)
}

func floatNumber(v reflect.Value) (float64, error) {
	switch {
	case v.CanInt():
		return float64(v.Int()), nil
	case v.CanUint():
		return float64(v.Uint()), nil
	case v.CanFloat():
		return v.Float(), nil
	}
	f, err := strconv.ParseFloat(v.String(), 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return 0, fmt.Errorf("%s, not a number", place.Shorten(v.String()))
	}
	return f, nil
}
