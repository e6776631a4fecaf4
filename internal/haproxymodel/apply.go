package haproxymodel

import (
	"encoding/json"
	"fmt"
	"reflect"
)

// Apply makes the differences that [Diff] returned for s and another section,
// in their order, in a copy of the model of s, which it then takes. An error
// says which difference does not fit; s is as it was then. What the lines of s
// say stays as it is.
func (s *Section) Apply(differences []Difference) error {
	if s.err != nil {
		return s.err
	}
	model := reflect.New(s.Kind.model).Elem()
	model.Set(reflect.ValueOf(s.model).Elem())
	own := map[*Child]bool{} // collections that are a copy already
	for i, d := range differences {
		if d.Child == nil {
			applyOwn(s.Kind, model, d)
			continue
		}
		collection := model.FieldByIndex(d.Child.index)
		if !own[d.Child] {
			own[d.Child] = true
			collection.Set(copyOf(collection))
		}
		if err := applyChild(d, collection); err != nil {
			return fmt.Errorf("difference %d: %s %s %q: %w", i, d.Action, d.Child.Kind, d.Name, err)
		}
	}
	s.model = model.Addr().Interface()
	s.held, s.changed = nil, true
	return nil
}

// applyOwn takes the section's own fields over, without its collections.
func applyOwn(k *Kind, model reflect.Value, d Difference) {
	from := reflect.ValueOf(d.New).Elem()
	for _, f := range structFields(k.model) {
		if !f.collection(k) {
			model.FieldByIndex(f.index).Set(from.FieldByIndex(f.index))
		}
	}
}

func copyOf(v reflect.Value) reflect.Value {
	if v.Kind() == reflect.Map {
		m := reflect.MakeMap(v.Type())
		for _, key := range v.MapKeys() {
			m.SetMapIndex(key, v.MapIndex(key))
		}
		return m
	}
	return reflect.AppendSlice(reflect.MakeSlice(v.Type(), 0, v.Len()), v)
}

func applyChild(d Difference, to reflect.Value) error {
	if !d.Child.slice {
		return applyNamed(d, to)
	}
	index := d.OldIndex
	switch d.Action {
	case Create:
		index = d.NewIndex
		if d.Child.ByName() {
			index = to.Len()
		}
		if index < 0 || index > to.Len() {
			return fmt.Errorf("there is no index %d among %d", index, to.Len())
		}
		grown := reflect.Append(to, reflect.ValueOf(d.New))
		reflect.Copy(grown.Slice(index+1, grown.Len()), copyOf(grown.Slice(index, grown.Len()-1)))
		grown.Index(index).Set(reflect.ValueOf(d.New))
		to.Set(grown)
		return nil
	}
	if index < 0 || index >= to.Len() {
		return fmt.Errorf("there is no index %d among %d", index, to.Len())
	}
	if d.Action == Update {
		to.Index(index).Set(reflect.ValueOf(d.New))
		return nil
	}
	to.Set(reflect.AppendSlice(copyOf(to.Slice(0, index)), to.Slice(index+1, to.Len())))
	return nil
}

func applyNamed(d Difference, to reflect.Value) error {
	key := reflect.ValueOf(d.Name)
	exists := to.MapIndex(key).IsValid()
	switch {
	case exists && d.Action == Create:
		return fmt.Errorf("it exists")
	case !exists && d.Action != Create:
		return fmt.Errorf("it does not exist")
	case d.Action == Delete:
		to.SetMapIndex(key, reflect.Value{})
	default:
		to.SetMapIndex(key, reflect.ValueOf(d.New).Elem())
	}
	return nil
}

// SectionBody returns the section's own fields and its inline children in the
// JSON of the Dataplane API v3, as POST and PUT of the section take it.
func (s *Section) SectionBody() ([]byte, error) {
	if s.err != nil {
		return nil, s.err
	}
	return sectionBody(s.Kind, s.model)
}

func sectionBody(k *Kind, model any) ([]byte, error) {
	copied := reflect.New(k.model)
	copied.Elem().Set(reflect.ValueOf(model).Elem())
	for i := range k.Children {
		if c := &k.Children[i]; !c.Inline() {
			copied.Elem().FieldByIndex(c.index).SetZero()
		}
	}
	return json.Marshal(copied.Interface())
}

// FullBody returns the whole section with its children in the JSON of the
// Dataplane API v3, as it is taken with full_section=true.
func (s *Section) FullBody() ([]byte, error) {
	if s.err != nil {
		return nil, s.err
	}
	return json.Marshal(s.model)
}

// Body returns the new model of a child in the JSON of the Dataplane API v3, the
// old one for Delete. It is for a difference of a child that is not inline; for
// all others the section is written as a whole, see [Section.SectionBody].
func (d *Difference) Body() ([]byte, error) {
	if d.Child == nil || d.Child.Inline() {
		return nil, fmt.Errorf("the API takes this only with the fields of its section")
	}
	if d.New == nil {
		return json.Marshal(d.Old)
	}
	return json.Marshal(d.New)
}
