package jsonpath

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// TypeError says that a path cannot be read from a Go type.
type TypeError struct {
	Path   string
	Type   reflect.Type // where the path stops
	Reason string
}

// Error implements error.
func (e *TypeError) Error() string {
	return fmt.Sprintf("jsonpath %q: %s", e.Path, e.Reason)
}

// Bound is a path that is ready to be read from one kind of object. It is
// immutable and safe for concurrent use.
type Bound struct {
	path *Path
	// fields holds the index of the struct field per step; nil for steps that
	// are map keys, positions and wildcards. Nil altogether for unstructured.
	fields [][]int
	typed  bool
}

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// opaque types print as one JSON value: intstr.IntOrString, metav1.Time,
// resource.Quantity. A path cannot go into them.
func opaque(t reflect.Type) bool {
	if t.Kind() == reflect.Interface {
		return false
	}
	p := reflect.PointerTo(t)
	return p.Implements(jsonMarshaler) || p.Implements(textMarshaler)
}

// Bind prepares the path for objects of type t, a struct or a pointer to one.
// With a nil t the objects are the nested map[string]any of unstructured ones.
// A field that the type does not have is a [*TypeError].
func (p *Path) Bind(t reflect.Type) (*Bound, error) {
	b := &Bound{path: p}
	if t == nil {
		return b, nil
	}
	b.typed, b.fields = true, make([][]int, len(p.steps))
	for i, s := range p.steps {
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

// into follows one step from type t.
func into(t reflect.Type, s step) (next reflect.Type, index []int, reason string) {
	if opaque(t) || (t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8) {
		return nil, nil, fmt.Sprintf("%s has no parts", t)
	}
	switch t.Kind() {
	case reflect.Struct:
		if s.kind != stepField {
			return nil, nil, fmt.Sprintf("%s is not a list or map", t)
		}
		f, ok := fieldByTag(t, s.name)
		if !ok {
			return nil, nil, fmt.Sprintf("%s has no field %q", t, s.name)
		}
		return f.Type, f.Index, ""
	case reflect.Map:
		if s.kind == stepPosition || t.Key().Kind() != reflect.String {
			return nil, nil, fmt.Sprintf("%s has no positions", t)
		}
		return t.Elem(), nil, ""
	case reflect.Slice, reflect.Array:
		if s.kind == stepField {
			return nil, nil, fmt.Sprintf("%s is a list: [*] or a position must come before %q", t, s.name)
		}
		return t.Elem(), nil, ""
	}
	return nil, nil, fmt.Sprintf("%s has no parts", t)
}

// fieldByTag finds a field by its JSON name, through inlined structs.
func fieldByTag(t reflect.Type, name string) (reflect.StructField, bool) {
	for f := range fields(t) {
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if tag == name && tag != "" && tag != "-" {
			return f, true
		}
		inline := f.Anonymous && tag == ""
		if inner := f.Type; inline {
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			if inner.Kind() != reflect.Struct {
				continue
			}
			if g, ok := fieldByTag(inner, name); ok {
				g.Index = append(append([]int{}, f.Index...), g.Index...)
				return g, true
			}
		}
	}
	return reflect.StructField{}, false
}

func fields(t reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() && !yield(f) {
				return
			}
		}
	}
}

// String returns the expression as it was given to [Compile].
func (b *Bound) String() string { return b.path.expr }
