package jsonpath

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Find returns the values that the path selects in data, in the order of the data; values
// of maps by key. data has the types of [Decode]. A missing field or position selects
// nothing. Errors contain no values of the data.
func (p *Path) Find(data any) ([]any, error) {
	found, err := (&walk{steps: p.steps}).find(reflect.ValueOf(data))
	if err != nil {
		return nil, fmt.Errorf("jsonpath %q: %w", p.expr, err)
	}
	return found, nil
}

// Single reports whether the path names one value: it has no [*] and no filter.
func (p *Path) Single() bool {
	return !slices.ContainsFunc(p.steps, func(s step) bool { return s.kind == all || s.kind == where })
}

// Decode reads JSON for [Path.Find]. Whole numbers are int64: a filter can compare them
// with its numbers.
func Decode(text []byte) (data any, err error) {
	err = utiljson.Unmarshal(text, &data)
	return data, err
}

// Values appends the values that the path selects in obj to dst: one string per scalar, in
// the order of the object (map values by key). Missing fields, nulls, lists and objects
// select nothing. Numbers and booleans read as in JSON; []byte is base64. Values fails if a
// filter cannot compare.
//
// obj has the type of [Path.Bind]: a pointer to the struct, or the map[string]any of an
// unstructured object.
func (b *Bound) Values(dst []string, obj any) ([]string, error) {
	at, w := 0, walk{steps: b.path.steps, fields: b.fields}
	m, ok := obj.(map[string]any)
	if !ok && b.path.filters {
		data, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			return dst, err
		}
		obj, m, ok = data, data, true
	}
	for ; ok && at < len(w.steps) && w.steps[at].kind == key; at++ { // most of it without reflection
		obj = m[w.steps[at].name]
		m, ok = obj.(map[string]any)
	}
	w.yield = func(v reflect.Value) { dst = appendScalar(dst, v) }
	if err := w.from(reflect.ValueOf(obj), at); err != nil {
		return dst, fmt.Errorf("jsonpath %q: %w", b.path.expr, err)
	}
	return dst, nil
}

// walk follows the steps of a path. It does not use client-go's evaluator. That one loses
// the values of other lists behind an empty or shorter list. Its errors print the data,
// which may be a Secret. It also visits each byte of a text.
type walk struct {
	steps  []step
	fields [][]int // as in [Bound]; nil for nested maps
	yield  func(reflect.Value)
}

func (w *walk) find(v reflect.Value) (found []any, err error) {
	found = []any{}
	w.yield = func(v reflect.Value) {
		if !v.IsValid() { // a null
			found = append(found, nil)
			return
		}
		found = append(found, v.Interface())
	}
	return found, w.from(v, 0)
}

func (w *walk) from(v reflect.Value, at int) error {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if at == len(w.steps) {
		w.yield(v)
		return nil
	}
	s := w.steps[at]
	switch v.Kind() {
	case reflect.Struct:
		if f, err := v.FieldByIndexErr(w.fields[at]); err == nil { // no inlined nil pointer
			return w.from(f, at+1)
		}
	case reflect.Map:
		return w.ofMap(v, at)
	case reflect.Slice:
		return w.ofList(v, at)
	}
	if s.kind == where && v.IsValid() {
		return fmt.Errorf("a filter is applied to a %s: apply it to a list", v.Type())
	}
	return nil
}

func (w *walk) ofMap(v reflect.Value, at int) error {
	switch s := w.steps[at]; s.kind {
	case key:
		if value, ok := entry(v, s.name); ok {
			return w.from(value, at+1)
		}
	case all:
		for _, k := range sortedKeys(v) {
			if err := w.from(v.MapIndex(k), at+1); err != nil {
				return err
			}
		}
	case where:
		return errors.New("a filter is applied to a map: apply it to a list")
	}
	return nil
}

func (w *walk) ofList(v reflect.Value, at int) error {
	s := w.steps[at]
	if s.kind == position {
		if i := s.at(v.Len()); i >= 0 && i < v.Len() {
			return w.from(v.Index(i), at+1)
		}
		return nil
	}
	for i := range v.Len() {
		pass, err := s.kind == all, error(nil)
		if s.kind == where {
			pass, err = s.test.passes(v.Index(i))
		}
		if pass && err == nil {
			err = w.from(v.Index(i), at+1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// entry returns the value of a key. It makes no copy for the most frequent types of maps.
func entry(v reflect.Value, name string) (value reflect.Value, ok bool) {
	switch m := v.Interface().(type) {
	case map[string]any:
		part, ok := m[name]
		return reflect.ValueOf(part), ok
	case map[string]string:
		text, ok := m[name]
		return reflect.ValueOf(text), ok
	}
	value = v.MapIndex(reflect.ValueOf(name).Convert(v.Type().Key()))
	return value, value.IsValid()
}

func sortedKeys(v reflect.Value) []reflect.Value {
	return slices.SortedFunc(slices.Values(v.MapKeys()), func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
}

func appendScalar(dst []string, v reflect.Value) []string {
	switch {
	case v.Kind() == reflect.String:
		return append(dst, v.String())
	case v.Kind() == reflect.Bool:
		return append(dst, strconv.FormatBool(v.Bool()))
	case v.CanInt():
		return append(dst, strconv.FormatInt(v.Int(), 10))
	case v.CanUint():
		return append(dst, strconv.FormatUint(v.Uint(), 10))
	case v.CanFloat():
		return append(dst, strconv.FormatFloat(v.Float(), 'f', -1, 64))
	case v.IsValid() && opaque(v.Type()):
		var scalar any
		if text, err := json.Marshal(v.Interface()); err == nil && json.Unmarshal(text, &scalar) == nil {
			return appendScalar(dst, reflect.ValueOf(scalar))
		}
	}
	return dst
}

// Delete removes the values that the path selects from obj, in place: map keys and list
// elements go, fields of structs become zero. It ignores missing values. obj is as for
// [Bound.Values].
func (b *Bound) Delete(obj any) { b.delete(reflect.ValueOf(obj), 0) }

func (b *Bound) delete(v reflect.Value, at int) {
	s, last := b.path.steps[at], at == len(b.fields)-1
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			b.delete(v.Elem(), at)
		}
	case reflect.Interface:
		if !v.IsNil() {
			v.Set(b.without(v.Elem(), at))
		}
	case reflect.Struct:
		if f, err := v.FieldByIndexErr(b.fields[at]); err != nil {
			return
		} else if last {
			f.SetZero()
		} else {
			b.delete(f, at+1)
		}
	case reflect.Map:
		b.deleteKeys(v, s, at)
	case reflect.Slice:
		if s.kind == all && last {
			v.SetZero()
			return
		}
		for i := range v.Len() {
			switch {
			case s.kind == key || s.kind == position && s.at(v.Len()) != i:
			case last:
				// A new slice: another object may share the array of this one.
				v.Set(reflect.AppendSlice(reflect.AppendSlice(reflect.Zero(v.Type()), v.Slice(0, i)), v.Slice(i+1, v.Len())))
				return
			default:
				b.delete(v.Index(i), at+1)
			}
		}
	}
}

func (b *Bound) deleteKeys(v reflect.Value, s step, at int) {
	for _, k := range v.MapKeys() {
		switch {
		case s.kind == position || s.kind == key && k.String() != s.name:
		case at == len(b.fields)-1:
			v.SetMapIndex(k, reflect.Value{})
		default:
			v.SetMapIndex(k, b.without(v.MapIndex(k), at+1))
		}
	}
}

// without returns a copy of a value without the values that the rest of the path selects.
// It is for values that cannot change in place.
func (b *Bound) without(v reflect.Value, at int) reflect.Value {
	changed := reflect.New(v.Type()).Elem()
	changed.Set(v)
	b.delete(changed, at)
	return changed
}
