package haproxymodel

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// walker compares two values of one type field by field.
type walker struct {
	kind   *Kind
	child  *Child
	fields []Field

	secretHeader bool // the struct is about a header that holds secrets
}

// fieldsOf returns the fields in which two models differ. An invalid value
// stands for a model that is not there.
func fieldsOf(k *Kind, c *Child, old, new reflect.Value) []Field {
	w := walker{kind: k, child: c}
	w.walk("", old, new)
	return w.fields
}

func (w *walker) add(name, old, new string) {
	w.fields = append(w.fields, Field{Name: name, Old: old, New: new, Secret: w.secret(name, old, new)})
}

func (w *walker) walk(name string, old, new reflect.Value) {
	old, new = follow(old), follow(new)
	if !old.IsValid() && !new.IsValid() {
		return
	}
	kind := reflect.Invalid
	for _, v := range []reflect.Value{old, new} {
		if v.IsValid() {
			kind = v.Kind()
		}
	}
	switch kind {
	case reflect.Struct:
		w.walkStruct(name, old, new)
	case reflect.Slice:
		for i := range max(length(old), length(new)) {
			w.walk(join(name, strconv.Itoa(i)), at(old, i), at(new, i))
		}
	case reflect.Map:
		w.walkMap(name, old, new)
	default:
		if a, b := text(old), text(new); !sameText(a, b) || old.IsValid() != new.IsValid() {
			w.add(name, a, b)
		}
	}
}

// walkStruct compares structs. One that is there and says nothing differs from
// one that is not there.
func (w *walker) walkStruct(name string, old, new reflect.Value) {
	before := len(w.fields)
	outer := w.secretHeader
	w.secretHeader = secretHeader(old) || secretHeader(new)
	defer func() { w.secretHeader = outer }()
	t := old
	if !t.IsValid() {
		t = new
	}
	for _, f := range structFields(t.Type()) {
		if name == "" && w.child == nil && f.collection(w.kind) {
			continue
		}
		a, b := field(old, f.index), field(new, f.index)
		if absent(a) && absent(b) && a.IsValid() == b.IsValid() {
			continue // as most are
		}
		w.walk(join(name, f.name), value(a, f.keepZero), value(b, f.keepZero))
	}
	if name != "" && old.IsValid() != new.IsValid() && len(w.fields) == before {
		w.add(name, presence(old), presence(new))
	}
}

func (w *walker) walkMap(name string, old, new reflect.Value) {
	keys := map[string]reflect.Value{}
	for _, m := range []reflect.Value{old, new} {
		if m.IsValid() {
			for _, k := range m.MapKeys() {
				keys[fmt.Sprint(k.Interface())] = k
			}
		}
	}
	names := make([]string, 0, len(keys))
	for k := range keys {
		names = append(names, k)
	}
	slices.Sort(names)
	for _, k := range names {
		w.walk(join(name, k), entry(old, keys[k]), entry(new, keys[k]))
	}
}

func presence(v reflect.Value) string {
	if v.IsValid() {
		return "{}"
	}
	return ""
}

// follow follows pointers; nil is no value.
func follow(v reflect.Value) reflect.Value {
	for v.IsValid() && (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) {
		v = v.Elem()
	}
	return v
}

func absent(v reflect.Value) bool { return !v.IsValid() || v.IsZero() }

// value leaves out the zero value of a field that is no pointer: it is absent.
func value(v reflect.Value, keepZero bool) reflect.Value {
	if v.IsValid() && !keepZero && v.IsZero() {
		return reflect.Value{}
	}
	return v
}

func field(v reflect.Value, index []int) reflect.Value {
	if !v.IsValid() {
		return v
	}
	return v.FieldByIndex(index)
}

func length(v reflect.Value) int {
	if !v.IsValid() {
		return 0
	}
	return v.Len()
}

func at(v reflect.Value, i int) reflect.Value {
	if i >= length(v) {
		return reflect.Value{}
	}
	return v.Index(i)
}

func entry(v, key reflect.Value) reflect.Value {
	if !v.IsValid() {
		return v
	}
	return v.MapIndex(key)
}

func join(prefix, name string) string {
	if prefix == "" {
		return name
	}
	return prefix + "." + name
}

// text is a value as people write it.
func text(v reflect.Value) string {
	if !v.IsValid() {
		return ""
	}
	switch v.Kind() {
	case reflect.String:
		return v.String()
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.FormatInt(v.Int(), 10)
	case reflect.Bool:
		return strconv.FormatBool(v.Bool())
	}
	return fmt.Sprint(v.Interface())
}

// structField is a field of a model, those of embedded structs included.
type structField struct {
	goName   string
	name     string // in JSON
	index    []int
	keepZero bool
}

// collection reports fields that hold children of a section.
func (f structField) collection(k *Kind) bool {
	_, ok := k.byName[f.goName]
	return ok
}

// structFieldsOf remembers the fields of each type; what it holds never changes.
var structFieldsOf sync.Map

func structFields(t reflect.Type) []structField {
	if known, ok := structFieldsOf.Load(t); ok {
		return known.([]structField)
	}
	var fields []structField
	for _, f := range reflect.VisibleFields(t) {
		if f.Anonymous || !f.IsExported() || f.Name == "Metadata" {
			continue
		}
		name := jsonName(f)
		if name == "" {
			name = f.Name
		}
		_, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		pointer := f.Type.Kind() == reflect.Pointer
		fields = append(fields, structField{f.Name, name, f.Index, pointer || !strings.Contains(options, "omitempty") && f.Type.Kind() != reflect.Slice && f.Type.Kind() != reflect.Map && f.Type.Kind() != reflect.String})
	}
	structFieldsOf.Store(t, fields)
	return fields
}
