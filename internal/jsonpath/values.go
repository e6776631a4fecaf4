package jsonpath

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// Values appends the values that the path selects in obj to dst: one string per scalar, in
// the order of the object (map values by key). Missing fields, nulls, lists and objects
// select nothing. Numbers and booleans read as in JSON; []byte is base64. Values fails if a
// filter cannot compare, or beyond the bounds of [Path.Find].
//
// obj has the type of [Path.Bind]: a pointer to the struct, or the map[string]any of an
// unstructured object.
func (b *Bound) Values(dst []string, obj any) ([]string, error) {
	at := 0
	m, ok := obj.(map[string]any)
	for ; ok && at < len(b.path.steps) && b.path.steps[at].isKey(); at++ { // most of it without reflection
		obj = m[b.path.steps[at].name]
		m, ok = obj.(map[string]any)
	}
	if b.path.steps != nil {
		return b.values(dst, reflect.ValueOf(obj), at), nil
	}
	data, ok := obj.(map[string]any)
	if !ok {
		var err error
		if data, err = runtime.DefaultUnstructuredConverter.ToUnstructured(obj); err != nil {
			return dst, err
		}
	}
	found, err := b.path.Find(data, true)
	for _, v := range found {
		dst = appendScalar(dst, reflect.ValueOf(v))
	}
	return dst, err
}

func (b *Bound) values(dst []string, v reflect.Value, at int) []string {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if at == len(b.fields) {
		return appendScalar(dst, v)
	}
	s := b.path.steps[at]
	switch v.Kind() {
	case reflect.Struct:
		if f, err := v.FieldByIndexErr(b.fields[at]); err == nil { // no inlined nil pointer
			return b.values(dst, f, at+1)
		}
	case reflect.Map:
		if s.all {
			for _, k := range sortedKeys(v) {
				dst = b.values(dst, v.MapIndex(k), at+1)
			}
		} else if s.isKey() {
			return b.values(dst, entry(v, s.name), at+1)
		}
	case reflect.Slice:
		for i := range v.Len() {
			if s.all || s.pos == i {
				dst = b.values(dst, v.Index(i), at+1)
			}
		}
	}
	return dst
}

// entry returns the value of a key. It makes no copy for the most frequent types of maps.
func entry(v reflect.Value, key string) reflect.Value {
	switch m := v.Interface().(type) {
	case map[string]any:
		return reflect.ValueOf(m[key])
	case map[string]string:
		if text, ok := m[key]; ok {
			return reflect.ValueOf(text)
		}
		return reflect.Value{}
	}
	return v.MapIndex(reflect.ValueOf(key).Convert(v.Type().Key()))
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
		if s.all && last {
			v.SetZero()
			return
		}
		for i := range v.Len() {
			switch {
			case !s.all && s.pos != i:
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
		case !s.all && !(s.isKey() && k.String() == s.name):
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
