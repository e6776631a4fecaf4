package jsonpath

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// TypeError says why a path does not fit a Go type.
type TypeError struct {
	Path   string
	Type   reflect.Type // the type at which the path stops
	Reason string
}

func (e *TypeError) Error() string { return fmt.Sprintf("jsonpath %q: %s", e.Path, e.Reason) }

// Bound is a path that is ready to read from one kind of object. It is immutable and safe
// for concurrent use.
type Bound struct {
	path   *Path
	fields [][]int // by step: the index of the field of a struct
}

// String returns the expression of [Compile].
func (b *Bound) String() string { return b.path.expr }

// Bind prepares the path for objects of type t, a struct or a pointer to one. With a nil t
// the objects are the nested map[string]any of unstructured ones. A field that the type
// does not have is a [*TypeError]. Bind does not check the path behind a filter.
func (p *Path) Bind(t reflect.Type) (*Bound, error) {
	b := &Bound{path: p, fields: make([][]int, len(p.steps))}
	for i, s := range p.steps {
		if t == nil || s.kind == where {
			break
		}
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		next, index, reason := into(t, s)
		if reason != "" {
			return nil, &TypeError{Path: p.expr, Type: t, Reason: reason}
		}
		t, b.fields[i] = next, index
	}
	return b, nil
}

// opaque types print as one JSON value: intstr.IntOrString, metav1.Time,
// resource.Quantity, []byte. A path cannot go into them.
func opaque(t reflect.Type) bool {
	if t.Kind() == reflect.Interface {
		return false
	}
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Marshaler]()) || p.Implements(reflect.TypeFor[encoding.TextMarshaler]()) ||
		t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8
}

// into follows one step from type t.
func into(t reflect.Type, s step) (next reflect.Type, index []int, reason string) {
	switch kind := t.Kind(); {
	case opaque(t):
	case kind == reflect.Struct && s.kind != key:
		return nil, nil, fmt.Sprintf("%s is not a list or map", t)
	case kind == reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			if f.IsExported() && jsonName(f) == s.name && s.name != "" && inlined(t, f.Index) {
				return f.Type, f.Index, ""
			}
		}
		return nil, nil, fmt.Sprintf("%s has no field %q", t, s.name)
	case kind == reflect.Map && (s.kind == position || t.Key().Kind() != reflect.String):
		return nil, nil, fmt.Sprintf("%s has no positions", t)
	case kind == reflect.Slice && s.kind == key:
		return nil, nil, fmt.Sprintf("%s is a list: [*] or a position must come before %q", t, s.name)
	case kind == reflect.Map || kind == reflect.Slice:
		return t.Elem(), nil, ""
	}
	return nil, nil, fmt.Sprintf("%s has no parts", t)
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// inlined reports whether a field stands in the object of t itself.
func inlined(t reflect.Type, index []int) bool {
	for n := 1; n < len(index); n++ {
		if jsonName(t.FieldByIndex(index[:n])) != "" {
			return false
		}
	}
	return true
}
