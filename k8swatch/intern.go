package k8swatch

import (
	"maps"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// interner makes the typed objects of a watcher share their equal strings and
// gives back the spare room that decoding leaves in slices and maps: a quarter
// of the memory of typical objects. It is not safe for concurrent use.
type interner struct {
	// Strings that came lately, in two generations: when the young one is full
	// it replaces the old one. What is in use by many comes again and survives;
	// what was deleted is forgotten.
	young, old map[string]string
	plans      map[reflect.Type]plan
	// The labels and annotations of the version before: most of them stay the same.
	before [2]map[string]string
}

const (
	generation  = 1 << 13
	maxInterned = 256
)

func newInterner() *interner {
	return &interner{young: map[string]string{}, plans: map[reflect.Type]plan{}}
}

func (in *interner) text(s string) string {
	if s == "" || len(s) > maxInterned {
		return s
	}
	if known, ok := in.young[s]; ok {
		return known
	}
	if known, ok := in.old[s]; ok {
		s = known
	}
	if len(in.young) >= generation {
		in.old, in.young = in.young, make(map[string]string, generation)
	}
	in.young[s] = s
	return s
}

// plan does one kind of value; nil where there is nothing to share in it.
type plan func(reflect.Value)

// reuse tells of the version before of the object that comes next.
func (in *interner) reuse(old Object) {
	in.before = [...]map[string]string{old.GetLabels(), old.GetAnnotations()}
}

// object shares what is in an object, a pointer to a struct of the API.
func (in *interner) object(obj any) {
	defer clear(in.before[:])
	v := reflect.ValueOf(obj).Elem()
	if p := in.plan(v.Type()); p != nil {
		p(v)
	}
}

// unique are strings that no other object has.
var unique = map[string]bool{"Name": true, "UID": true, "ResourceVersion": true, "GenerateName": true}

func (in *interner) plan(t reflect.Type) plan {
	if p, ok := in.plans[t]; ok {
		return p
	}
	in.plans[t] = nil // of a type within itself; those of the API have no depth
	p := in.newPlan(t)
	in.plans[t] = p
	return p
}

func (in *interner) newPlan(t reflect.Type) plan {
	switch t.Kind() {
	case reflect.String:
		return func(v reflect.Value) { v.SetString(in.text(v.String())) }
	case reflect.Struct:
		return in.structPlan(t)
	case reflect.Pointer:
		inner := in.plan(t.Elem())
		if inner == nil {
			return nil
		}
		return func(v reflect.Value) {
			if !v.IsNil() {
				inner(v.Elem())
			}
		}
	case reflect.Slice:
		return in.slicePlan(t)
	case reflect.Map:
		if t == reflect.TypeFor[map[string]string]() {
			return in.texts
		}
	}
	return nil
}

func (in *interner) structPlan(t reflect.Type) plan {
	type field struct {
		at int
		do plan
	}
	var fields []field
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() || (t == reflect.TypeFor[metav1.ObjectMeta]() && unique[f.Name]) {
			continue
		}
		if do := in.plan(f.Type); do != nil {
			fields = append(fields, field{i, do})
		}
	}
	if len(fields) == 0 {
		return nil
	}
	return func(v reflect.Value) {
		for _, f := range fields {
			f.do(v.Field(f.at))
		}
	}
}

func (in *interner) slicePlan(t reflect.Type) plan {
	if t.Elem().Kind() == reflect.Uint8 {
		return nil
	}
	inner := in.plan(t.Elem())
	return func(v reflect.Value) {
		n := v.Len()
		if v.Cap() > n && n > 0 {
			exact := reflect.MakeSlice(t, n, n)
			reflect.Copy(exact, v)
			v.Set(exact)
		}
		if inner == nil {
			return
		}
		for i := range n {
			inner(v.Index(i))
		}
	}
}

// texts does labels and annotations. The map is made anew: one that grew while
// it was decoded is larger than it needs to be.
func (in *interner) texts(v reflect.Value) {
	old, ok := v.Interface().(map[string]string)
	if !ok || len(old) == 0 {
		return
	}
	for _, before := range in.before {
		if maps.Equal(before, old) {
			v.Set(reflect.ValueOf(before))
			return
		}
	}
	exact := make(map[string]string, len(old))
	for k, text := range old {
		exact[in.text(k)] = in.text(text)
	}
	v.Set(reflect.ValueOf(exact))
}
