// Package jsonpath is the one path language of haptic.
//
// A [Path] names fields of Kubernetes objects, for index keys and ignored fields:
//
//	metadata.namespace
//	metadata.labels['kubernetes.io/service-name']
//	{.spec.rules[*].host}
//
// It has fields, quoted keys, list positions and the wildcard. [Compile] and
// [Path.Bind] refuse everything else and misspelt fields, so a mistake shows when
// a watcher is made and not as an index that stays empty.
//
// A [Query] is the whole of kubectl's JSONPath, with filters. It reads an object
// 10 to 20 times as slowly: too slow for the keys of each change.
package jsonpath

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// SyntaxError says what [Compile] cannot accept, and where.
type SyntaxError struct {
	Path   string // the expression as given
	Offset int    // position in Path, in bytes
}

// Error implements error.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("jsonpath %q: wrong at offset %d: use .field, ['key'], [3] or [*]", e.Path, e.Offset)
}

// step is one part of a path: a field or key, a position, or all.
type step struct {
	name string
	pos  int // -1 for a field or key
	all  bool
}

func (s step) isKey() bool { return s.pos < 0 && !s.all }

// Path is a compiled field path. It is immutable and safe for concurrent use.
type Path struct {
	expr  string
	steps []step
}

// part matches one step: a quoted key, a position or a field in which, as in
// kubectl, a backslash quotes the character that follows.
var part = regexp.MustCompile(`^(?:\.?\[(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|([0-9]{1,9})|(\*))\]|\.(?:((?:[^][{}()'"*?@,:\s$\\.]|\\[^\n])+)|(\*)))`)

var escaped = regexp.MustCompile(`\\(.)`)

// Compile parses a field path. The braces of kubectl, a leading "$" and a leading
// dot may be left out: "{.spec.host}", "$.spec.host" and "spec.host" are the same
// path. The error is a [*SyntaxError].
func Compile(expr string) (*Path, error) {
	rest, at := expr, 0
	if inside, ok := strings.CutPrefix(expr, "{"); ok {
		if rest, ok = strings.CutSuffix(inside, "}"); !ok {
			return nil, &SyntaxError{expr, len(expr)}
		}
		at = 1
	}
	if after, ok := strings.CutPrefix(rest, "$"); ok {
		rest, at = after, at+1
	} else if !strings.HasPrefix(rest, ".") && !strings.HasPrefix(rest, "[") {
		rest, at = "."+rest, at-1
	}
	p := &Path{expr: expr}
	for rest != "" || len(p.steps) == 0 {
		m := part.FindStringSubmatch(rest)
		if m == nil {
			return nil, &SyntaxError{expr, max(at, 0)}
		}
		s := step{name: escaped.ReplaceAllString(m[1]+m[2]+m[5], "$1"), pos: -1, all: m[4]+m[6] != ""}
		if m[3] != "" {
			s.pos, _ = strconv.Atoi(m[3])
		}
		p.steps = append(p.steps, s)
		rest, at = rest[len(m[0]):], at+len(m[0])
	}
	return p, nil
}

// TypeError says that a path cannot be read from a Go type.
type TypeError struct {
	Path   string
	Type   reflect.Type // where the path stops
	Reason string
}

// Error implements error.
func (e *TypeError) Error() string { return fmt.Sprintf("jsonpath %q: %s", e.Path, e.Reason) }

// Bound is a path that is ready to be read from one kind of object. It is
// immutable and safe for concurrent use.
type Bound struct {
	path   *Path
	fields [][]int // by step: the index of the field of a struct
}

// String returns the expression as it was given to [Compile].
func (b *Bound) String() string { return b.path.expr }

// Bind prepares the path for objects of type t, a struct or a pointer to one.
// With a nil t the objects are the nested map[string]any of unstructured ones.
// A field that the type does not have is a [*TypeError].
func (p *Path) Bind(t reflect.Type) (*Bound, error) {
	b := &Bound{path: p, fields: make([][]int, len(p.steps))}
	for i, s := range p.steps {
		if t == nil {
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
	case kind == reflect.Struct && !s.isKey():
		return nil, nil, fmt.Sprintf("%s is not a list or map", t)
	case kind == reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			if f.IsExported() && jsonName(f) == s.name && s.name != "" && inlined(t, f.Index) {
				return f.Type, f.Index, ""
			}
		}
		return nil, nil, fmt.Sprintf("%s has no field %q", t, s.name)
	case kind == reflect.Map && (s.pos >= 0 || t.Key().Kind() != reflect.String):
		return nil, nil, fmt.Sprintf("%s has no positions", t)
	case kind == reflect.Slice && s.isKey():
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
