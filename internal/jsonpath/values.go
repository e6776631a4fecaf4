package jsonpath

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"reflect"
	"sort"
	"strconv"
)

// Values appends what the path selects in obj to dst: one string per scalar, in
// the order of the object (map values by key). Missing fields, nulls, lists and
// objects select nothing. Numbers and booleans read as in JSON; []byte is base64.
//
// obj is what the path was bound for: a pointer to the struct, or the
// map[string]any of an unstructured object.
func (b *Bound) Values(dst []string, obj any) []string {
	if b.typed {
		return b.typedValues(dst, reflect.ValueOf(obj), 0)
	}
	return b.path.mapValues(dst, obj, 0)
}

func (b *Bound) typedValues(dst []string, v reflect.Value, at int) []string {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		if v.IsNil() {
			return dst
		}
		v = v.Elem()
	}
	if !v.IsValid() {
		return dst
	}
	if at == len(b.path.steps) {
		return appendScalar(dst, v)
	}
	s := b.path.steps[at]
	switch v.Kind() {
	case reflect.Struct:
		f, err := v.FieldByIndexErr(b.fields[at])
		if err != nil { // an inlined nil pointer
			return dst
		}
		return b.typedValues(dst, f, at+1)
	case reflect.Map:
		if s.kind == stepField {
			return b.typedValues(dst, v.MapIndex(reflect.ValueOf(s.name).Convert(v.Type().Key())), at+1)
		}
		for _, k := range sortedKeys(v) {
			dst = b.typedValues(dst, v.MapIndex(k), at+1)
		}
	case reflect.Slice, reflect.Array:
		if s.kind == stepPosition {
			if s.pos < v.Len() {
				return b.typedValues(dst, v.Index(s.pos), at+1)
			}
			return dst
		}
		for i := range v.Len() {
			dst = b.typedValues(dst, v.Index(i), at+1)
		}
	}
	return dst
}

func sortedKeys(v reflect.Value) []reflect.Value {
	keys := v.MapKeys()
	sort.Slice(keys, func(i, j int) bool { return keys[i].String() < keys[j].String() })
	return keys
}

func appendScalar(dst []string, v reflect.Value) []string {
	if opaque(v.Type()) {
		text, err := json.Marshal(v.Interface())
		if err != nil {
			return dst
		}
		var scalar any
		if json.Unmarshal(text, &scalar) != nil {
			return dst
		}
		return appendAny(dst, scalar)
	}
	switch v.Kind() {
	case reflect.String:
		return append(dst, v.String())
	case reflect.Bool:
		return append(dst, strconv.FormatBool(v.Bool()))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return append(dst, strconv.FormatInt(v.Int(), 10))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return append(dst, strconv.FormatUint(v.Uint(), 10))
	case reflect.Float32, reflect.Float64:
		return appendAny(dst, v.Float())
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return append(dst, base64.StdEncoding.EncodeToString(v.Bytes()))
		}
	}
	return dst
}

func appendAny(dst []string, v any) []string {
	switch v := v.(type) {
	case string:
		return append(dst, v)
	case bool:
		return append(dst, strconv.FormatBool(v))
	case int:
		return append(dst, strconv.Itoa(v))
	case int64:
		return append(dst, strconv.FormatInt(v, 10))
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return append(dst, strconv.FormatInt(int64(v), 10))
		}
		return append(dst, strconv.FormatFloat(v, 'g', -1, 64))
	case json.Number:
		return append(dst, v.String())
	}
	return dst
}

func (p *Path) mapValues(dst []string, v any, at int) []string {
	if at == len(p.steps) {
		return appendAny(dst, v)
	}
	s := p.steps[at]
	switch v := v.(type) {
	case map[string]any:
		switch s.kind {
		case stepField:
			if inner, ok := v[s.name]; ok {
				return p.mapValues(dst, inner, at+1)
			}
		case stepAll:
			keys := make([]string, 0, len(v))
			for k := range v {
				keys = append(keys, k)
			}
			sort.Strings(keys)
			for _, k := range keys {
				dst = p.mapValues(dst, v[k], at+1)
			}
		}
	case []any:
		switch {
		case s.kind == stepPosition && s.pos < len(v):
			return p.mapValues(dst, v[s.pos], at+1)
		case s.kind == stepAll:
			for _, inner := range v {
				dst = p.mapValues(dst, inner, at+1)
			}
		}
	}
	return dst
}
