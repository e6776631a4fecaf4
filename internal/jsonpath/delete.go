package jsonpath

import "reflect"

// Delete removes what the path selects from obj, in place: map keys and list
// elements go, fields of structs become their zero value. What is missing
// already is left alone. obj is as for [Bound.Values].
func (b *Bound) Delete(obj any) {
	if b.typed {
		b.deleteTyped(reflect.ValueOf(obj), 0)
		return
	}
	b.path.deleteMap(obj, 0)
}

func (b *Bound) deleteTyped(v reflect.Value, at int) {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		if v.IsNil() {
			return
		}
		v = v.Elem()
	}
	s, last := b.path.steps[at], at == len(b.path.steps)-1
	switch v.Kind() {
	case reflect.Struct:
		f, err := v.FieldByIndexErr(b.fields[at])
		switch {
		case err != nil:
		case last:
			f.SetZero()
		default:
			b.deleteTyped(f, at+1)
		}
	case reflect.Map:
		b.deleteFromMap(v, at)
	case reflect.Slice:
		switch {
		case s.kind == stepAll && last:
			v.SetZero()
		case s.kind == stepAll:
			for i := range v.Len() {
				b.deleteTyped(v.Index(i), at+1)
			}
		case s.pos >= v.Len():
		case last:
			// A new slice: another object may share the array of this one.
			shorter := reflect.MakeSlice(v.Type(), 0, v.Len()-1)
			shorter = reflect.AppendSlice(shorter, v.Slice(0, s.pos))
			v.Set(reflect.AppendSlice(shorter, v.Slice(s.pos+1, v.Len())))
		default:
			b.deleteTyped(v.Index(s.pos), at+1)
		}
	}
}

func (b *Bound) deleteFromMap(v reflect.Value, at int) {
	s, last := b.path.steps[at], at == len(b.path.steps)-1
	keys := v.MapKeys()
	if s.kind == stepField {
		keys = []reflect.Value{reflect.ValueOf(s.name).Convert(v.Type().Key())}
	}
	for _, k := range keys {
		old := v.MapIndex(k)
		switch {
		case !old.IsValid():
		case last:
			v.SetMapIndex(k, reflect.Value{})
		default: // values of maps cannot be changed in place
			changed := reflect.New(old.Type()).Elem()
			changed.Set(old)
			b.deleteTyped(changed, at+1)
			v.SetMapIndex(k, changed)
		}
	}
}

func (p *Path) deleteMap(v any, at int) any {
	s, last := p.steps[at], at == len(p.steps)-1
	switch v := v.(type) {
	case map[string]any:
		for k, inner := range v {
			switch {
			case s.kind == stepPosition || (s.kind == stepField && k != s.name):
			case last:
				delete(v, k)
			default:
				v[k] = p.deleteMap(inner, at+1)
			}
		}
	case []any:
		switch {
		case s.kind == stepAll && last:
			return []any{}
		case s.kind == stepAll:
			for i, inner := range v {
				v[i] = p.deleteMap(inner, at+1)
			}
		case s.kind != stepPosition || s.pos >= len(v):
		case last:
			return append(append(make([]any, 0, len(v)-1), v[:s.pos]...), v[s.pos+1:]...)
		default:
			v[s.pos] = p.deleteMap(v[s.pos], at+1)
		}
	}
	return v
}
