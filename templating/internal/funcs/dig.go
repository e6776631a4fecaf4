package funcs

import (
	"context"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/open2b/scriggo/native"
)

func objectFunctions() native.Declarations {
	return native.Declarations{
		"dig": dig, "has": has, "coalesce": coalesce,
		"merge":      func(env native.Env, maps ...any) map[string]any { return merge(env.Context(), maps...) },
		"keys":       func(m any) []string { return keys("keys", m) },
		"sortedKeys": func(m any) []string { return keys("sortedKeys", m) },
		"digString":  typed("digString", "a string", aString),
		"digInt":     digInt,
		"digBool":    typed("digBool", "a bool", aBool),
		"digList":    typed("digList", "a list", aList),
		"digMap":     typed("digMap", "a map", anyMap),
	}
}

// step matches one step of a path: ".name", "[0]", "['a.b']" or `["a.b"]`. Constant in
// effect.
var step = regexp.MustCompile(`^(?s:\.((?:[^.\[\\]|\\.)+)|\[(?:'(.*?)'|"(.*?)"|([^\]'"]+))\])`)

// many matches a step of a JSONPath that selects several values. Constant in effect.
var many = regexp.MustCompile(`^(?:\.\*|\[[^\]'"]*[*?:,])`)

// parsePath cuts a path into its steps. A path is a JSONPath that selects one value: "a.b",
// "{.a.b}" or "$.a.b".
func parsePath(path string) (steps []string, err error) {
	if len(path) > maxPattern {
		return nil, fmt.Errorf("path: it has %d bytes, at most %d are allowed", len(path), maxPattern)
	}
	rest := path
	if inside, ok := strings.CutPrefix(rest, "{"); ok && strings.HasSuffix(rest, "}") {
		rest = inside[:len(inside)-1]
	}
	rest = strings.TrimPrefix(rest, "$")
	if !strings.HasPrefix(rest, ".") && !strings.HasPrefix(rest, "[") {
		rest = "." + rest
	}
	for rest != "" {
		m := step.FindStringSubmatch(rest)
		switch {
		case many.MatchString(rest):
			return nil, fmt.Errorf("path %q: %s can select many values, a path of a template selects one: use a loop or selectattr", path, rest)
		case m == nil && rest[0] == '[':
			return nil, fmt.Errorf("path %q: a bracket is empty or not closed", path)
		case m == nil:
			return nil, fmt.Errorf("path %q: an element is empty", path)
		}
		steps, rest = append(steps, strings.ReplaceAll(m[1]+m[2]+m[3]+m[4], `\.`, ".")), rest[len(m[0]):]
	}
	if len(steps) == 0 {
		return nil, fmt.Errorf("path %q: it is empty", path)
	}
	return steps, nil
}

// follow follows a path through maps, lists and structs. missing is a message about the
// first missing step, "" for none.
func follow(obj any, steps []string) (v reflect.Value, missing string, err error) {
	v = reflect.ValueOf(obj)
	for i, step := range steps {
		next, problem, err := child(v, step)
		switch {
		case err != nil:
			return v, "", fmt.Errorf("%s: %w", strings.Join(steps[:i+1], "."), err)
		case problem != "":
			return v, strings.Join(steps[:i+1], ".") + ": " + problem, nil
		}
		v = next
	}
	return v, "", nil
}

// content is implemented by *unstructured.Unstructured.
type content interface{ UnstructuredContent() map[string]any }

// child follows one step of a path.
func child(at reflect.Value, step string) (next reflect.Value, missing string, err error) {
	v := deref(at)
	if !v.IsValid() {
		return v, "nothing there", nil
	}
	if c, ok := at.Interface().(content); ok {
		v = reflect.ValueOf(c.UnstructuredContent())
	}
	switch v.Kind() {
	case reflect.Map:
		if v.Type().Key().Kind() != reflect.String {
			return v, "", fmt.Errorf("cannot look into a %s: its keys are no strings", v.Type())
		}
		next = v.MapIndex(reflect.ValueOf(step).Convert(v.Type().Key()))
		if !next.IsValid() {
			missing = fmt.Sprintf("no field %q, there is %s", step, Some(stringKeys(v)))
		}
		return next, missing, nil
	case reflect.Slice, reflect.Array:
		n, err := strconv.Atoi(step)
		switch {
		case err != nil:
			return v, "", fmt.Errorf("a list has no field %q", step)
		case n >= v.Len() || n < -v.Len():
			return v, fmt.Sprintf("the list has %d elements", v.Len()), nil
		case n < 0: // from the end
			n += v.Len()
		}
		return v.Index(n), "", nil
	case reflect.Struct:
		field, ok := fieldOf(v, step)
		switch {
		case !ok: // the type never has it: a mistake of the template
			return v, "", fmt.Errorf("%s has no field %q, only %s", v.Type(), step, Some(fieldNames(v.Type())))
		case !field.IsValid():
			missing = "nothing there"
		}
		return field, missing, nil
	}
	return v, "", fmt.Errorf("cannot look into a %s", v.Type())
}

func stringKeys(m reflect.Value) []string {
	keys := make([]string, 0, m.Len())
	for _, k := range m.MapKeys() {
		keys = append(keys, k.String())
	}
	slices.Sort(keys)
	return keys
}

// fieldOf finds a field by its name in Go or in JSON, also in embedded structs. The field
// is invalid if a nil pointer is on the way.
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
		in := deref(v.Field(i))
		if empty := !in.IsValid() && f.Type.Kind() == reflect.Pointer; empty {
			in = reflect.Zero(f.Type.Elem())
			if in.Kind() == reflect.Struct {
				if _, ok := fieldOf(in, name); ok {
					return reflect.Value{}, true
				}
			}
		} else if in.Kind() == reflect.Struct {
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

// Some lists names for an error message.
func Some(names []string) string {
	const most = 8
	switch {
	case len(names) == 0:
		return "none"
	case len(names) > most:
		return strings.Join(names[:most], ", ") + ", ..."
	}
	return strings.Join(names, ", ")
}

// dig returns the value at the path. If there is none, it returns the default, or fails
// without one.
func dig(obj any, path string, otherwise ...any) any {
	if len(otherwise) > 1 {
		Failf("dig: one default wanted, not %d", len(otherwise))
	}
	v, missing := at("dig", obj, path)
	switch {
	case len(otherwise) == 1 && (missing != "" || isNil(v)):
		return otherwise[0]
	case missing != "":
		Failf("dig: %s", missing)
	case !v.IsValid():
		return nil
	}
	return v.Interface()
}

// at follows a path for a function.
func at(name string, obj any, path string) (v reflect.Value, missing string) {
	steps, err := parsePath(path)
	if err == nil {
		v, missing, err = follow(obj, steps)
	}
	if err != nil {
		Failf("%s: %w", name, err)
	}
	return v, missing
}

func isNil(v reflect.Value) bool {
	for v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Func, reflect.Chan:
		return v.IsNil()
	}
	return false
}

// has reports whether there is a value at the path that is not null.
func has(obj any, path string) bool {
	steps, err := parsePath(path)
	if err != nil {
		Failf("has: %w", err)
	}
	v, missing, err := follow(obj, steps)
	return err == nil && missing == "" && !isNil(v)
}

// typed makes a function that returns the value at a path, converted by read. For a missing
// value or null it returns the zero value.
func typed[T any](name, want string, read func(v reflect.Value) (T, bool)) func(obj any, path string) T {
	return func(obj any, path string) (result T) {
		v, missing := at(name, obj, path)
		v = deref(v)
		if missing != "" || !v.IsValid() {
			return result
		}
		result, ok := read(v)
		if !ok {
			Failf("%s: %s is a %s, not %s", name, path, v.Type(), want)
		}
		return result
	}
}

func aString(v reflect.Value) (string, bool) { return v.String(), v.Kind() == reflect.String }

func aBool(v reflect.Value) (is, ok bool) {
	ok = v.Kind() == reflect.Bool
	return ok && v.Bool(), ok
}

func aList(v reflect.Value) ([]any, bool) {
	if v.Kind() != reflect.Slice && v.Kind() != reflect.Array {
		return nil, false
	}
	return elements(v), true
}

// digInt is like typed, and says why a number is no int.
func digInt(obj any, path string) int {
	n, err := typed("digInt", "a number", numberOf)(obj, path).int()
	if err != nil {
		Failf("digInt: %s is %w", path, err)
	}
	return n
}

// elements returns the elements of a slice or an array. It returns a []any as it is,
// without a copy.
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

// anyMap returns a map whose keys are strings as a map[string]any.
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

// keys returns the keys of a map in order.
func keys(name string, m any) []string {
	v := deref(reflect.ValueOf(m))
	switch {
	case !v.IsValid():
		return nil
	case v.Kind() != reflect.Map || v.Type().Key().Kind() != reflect.String:
		Failf("%s: a map with string keys wanted, not a %T", name, m)
	}
	return stringKeys(v)
}

// merge returns a new map with the entries of all maps. If several have a key, the last one
// counts. merge does not merge nested maps.
func merge(ctx context.Context, maps ...any) map[string]any {
	out := map[string]any{}
	for i, m := range maps {
		v := deref(reflect.ValueOf(m))
		if !v.IsValid() {
			continue
		}
		entries, ok := anyMap(v)
		if !ok {
			Failf("merge: argument %d: a map with string keys wanted, not a %T", i+1, m)
		}
		going(ctx)
		for k, v := range entries {
			out[k] = v
		}
	}
	return out
}

// coalesce follows pointers, and returns the first argument that is neither nil nor empty
// nor the zero value of its type. It returns nil if there is none.
func coalesce(values ...any) any {
	for _, v := range values {
		if !isEmpty(deref(reflect.ValueOf(v))) {
			return v
		}
	}
	return nil
}
