package origin

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/hapticsdk/haptic/templating/internal/place"
)

// object has the methods of every Kubernetes object, typed or not.
type object interface {
	GetNamespace() string
	GetName() string
}

// held is one step in the stack of owners. Steps never change: a step is also a copy of the
// whole stack.
type held struct {
	outer   *held
	level   int   // of its block: how many loops are around it
	element bool  // of a loop; not by a call of owner
	objects []any // of one owner
}

// list returns the owners of a stack without repetition, the innermost last.
func (h *held) list() []any {
	var out []any
	for ; h != nil; h = h.outer {
		for _, obj := range slices.Backward(h.objects) {
			if !slices.ContainsFunc(out, func(o any) bool { return sameObject(o, obj) }) {
				out = append(out, obj)
			}
		}
	}
	slices.Reverse(out)
	return out
}

// last returns the innermost object of a stack, nil if there is none.
func (h *held) last() any {
	for ; h != nil; h = h.outer {
		if n := len(h.objects); n > 0 {
			return h.objects[n-1]
		}
	}
	return nil
}

// sameObject reports whether two values are one object, or copies of one.
func sameObject(a, b any) bool {
	va, vb := reflect.ValueOf(a), reflect.ValueOf(b)
	if !va.IsValid() || !vb.IsValid() || va.Type() != vb.Type() {
		return false
	}
	if va.Kind() == reflect.Map && va.Pointer() == vb.Pointer() || va.Comparable() && va.Equal(vb) {
		return true
	}
	_, named := a.(object)
	return (named || va.Kind() == reflect.Map) && Describe(a) == Describe(b)
}

// owned is a value that names its own owners.
type owned interface{ Owners() []any }

// ObjectsOf returns the Kubernetes objects of a value: the value itself, its Owners, or the
// objects in the exported fields of a struct, in their order. It returns none if a method
// of the value panics, for example on a nil pointer: that is not the template's fault.
func ObjectsOf(v any) (objects []any) {
	defer func() {
		if recover() != nil {
			objects = nil
		}
	}()
	rv := reflect.ValueOf(v)
	switch rv.Kind() {
	case reflect.Invalid:
		return nil
	case reflect.Pointer:
		if rv.IsNil() {
			return nil
		}
	case reflect.Map:
		if m, ok := v.(map[string]any); ok && isManifest(m) {
			return []any{v}
		}
	case reflect.Struct: // methods of its pointer count
		ptr := reflect.New(rv.Type())
		ptr.Elem().Set(rv)
		v = ptr.Interface()
	}
	if owned, ok := v.(owned); ok {
		return owned.Owners()
	}
	if o, ok := v.(object); ok && o.GetName() != "" {
		return []any{v}
	}
	return fieldsOf(reflect.Indirect(reflect.ValueOf(v)))
}

// fieldsOf returns the objects in the exported fields of a struct.
func fieldsOf(v reflect.Value) (objects []any) {
	if v.Kind() != reflect.Struct {
		return nil
	}
	for i := range v.NumField() {
		f := v.Field(i)
		if k := f.Kind(); !v.Type().Field(i).IsExported() || k != reflect.Pointer && k != reflect.Interface && k != reflect.Map || f.IsNil() {
			continue
		}
		m, manifest := f.Interface().(map[string]any)
		o, ok := f.Interface().(object)
		if manifest && isManifest(m) || ok && o.GetName() != "" {
			objects = append(objects, f.Interface())
		}
	}
	return objects
}

// isManifest reports whether a map is an object as Kubernetes writes it.
func isManifest(m map[string]any) bool {
	kind, _ := m["kind"].(string)
	_, ok := m["metadata"].(map[string]any)
	return ok && kind != ""
}

// drop removes the owners of ended blocks: of this level and of deeper ones.
func (r *Recorder) drop(level int) {
	for r.owners != r.top.base && r.owners.level >= level {
		r.owners = r.owners.outer
	}
}

func (r *Recorder) hold(level int, element bool, objects []any) {
	if len(objects) > 0 {
		r.owners = &held{outer: r.owners, level: level, element: element, objects: objects}
	}
}

// Own sets the owner of the text behind it. It is the function owner of a traced template.
func (r *Recorder) Own(v any) {
	objects := ObjectsOf(v)
	if objects == nil && v != nil {
		objects = []any{v}
	}
	level := r.spot().Level
	r.drop(level + 1)
	if h := r.owners; h != r.top.base && h.level == level && !h.element {
		r.owners = h.outer
	}
	r.hold(level, false, objects)
}

// element notes the owners of a turn of a loop, and reports whether to skip the turn. Each
// turn calls it with its variable.
func (r *Recorder) element(v any) bool {
	objects := ObjectsOf(v)
	if n := len(objects); n > 0 && len(r.left) > 0 && r.left[Describe(objects[n-1])] {
		return true
	}
	if n := len(objects); n > 0 {
		r.turns[Describe(objects[n-1])] = true
	}
	r.hold(r.spot().Level, true, objects)
	return false
}

// namespaceOf returns the namespace of an object, "" if it has none.
func namespaceOf(v any) (namespace string) {
	defer func() {
		if recover() != nil {
			namespace = ""
		}
	}()
	if m, ok := v.(map[string]any); ok {
		meta, _ := m["metadata"].(map[string]any)
		namespace, _ = meta["namespace"].(string)
	} else if o, ok := v.(object); ok {
		namespace = o.GetNamespace()
	}
	return namespace
}

// Describe names an owner as people do: "Ingress shop/web".
func Describe(v any) (name string) {
	defer func() {
		if recover() != nil {
			name = fmt.Sprintf("%T", v)
		}
	}()
	kind := ""
	if m, ok := v.(map[string]any); ok {
		kind, _ = m["kind"].(string)
		meta, _ := m["metadata"].(map[string]any)
		namespace, _ := meta["namespace"].(string)
		name, _ = meta["name"].(string)
		return ownerText(kind, namespace, name)
	}
	o, ok := v.(object)
	if !ok {
		if s, ok := v.(fmt.Stringer); ok {
			return plainly(s.String())
		}
		if s, ok := v.(string); ok {
			return plainly(s)
		}
		return fmt.Sprintf("%T", v)
	}
	if k, ok := v.(interface{ GetKind() string }); ok { // unstructured objects
		kind = k.GetKind()
	} else {
		kind = reflect.Indirect(reflect.ValueOf(v)).Type().Name()
	}
	return ownerText(kind, o.GetNamespace(), o.GetName())
}

func ownerText(kind, namespace, name string) string {
	if namespace != "" {
		name = namespace + "/" + name
	}
	if kind != "" {
		name = kind + " " + name
	}
	return plainly(name)
}

// plainly returns a name as it is, but shortened and quoted if it is too long or has
// control characters.
func plainly(s string) string {
	const most = 200
	for _, r := range s {
		if r < ' ' || r == 0x7f || r == '\ufffd' {
			return place.Shorten(s)
		}
	}
	if len(s) > most {
		return place.Shorten(s)
	}
	return s
}
