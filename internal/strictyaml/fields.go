package strictyaml

import (
	"cmp"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Field has the rules in the tags of a field. Its name comes from yaml:"..." or, without
// one, from json:"...".
type Field struct {
	Name, Doc string // doc:"..."
	Enum      string // enum:"a,b": one of these, or empty
	Min, Max  string // min:"0" max:"65535": the range of a value that is not zero
	Is        string // is:"name": the kind of a text that is not empty
	Required  string // required:"true": present and not empty; required:"key": present
	Index     int
	Type      reflect.Type
}

// Fields lists the fields of a struct that a file may have, in the order of their
// declaration.
func Fields(t reflect.Type) []Field {
	var fields []Field
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(cmp.Or(f.Tag.Get("yaml"), f.Tag.Get("json")), ",")
		if !f.IsExported() || name == "" || name == "-" {
			continue
		}
		fields = append(fields, Field{Name: name, Doc: f.Tag.Get("doc"), Enum: f.Tag.Get("enum"), Min: f.Tag.Get("min"), Max: f.Tag.Get("max"),
			Is: f.Tag.Get("is"), Required: f.Tag.Get("required"), Index: i, Type: f.Type})
	}
	return fields
}

// Check reports all values in v, at path, that break the rules in their tags. kinds has the
// checks for [Field.Is]. It treats values from a file and values made in Go alike.
func (d *Document) Check(path string, v any, kinds map[string]func(string) error) Errors {
	c := &check{doc: d, kinds: kinds}
	c.value(path, reflect.ValueOf(v), Field{})
	return c.errs
}

type check struct {
	doc   *Document
	kinds map[string]func(string) error
	errs  Errors
}

// fail notes a problem, unless reading the path failed.
func (c *check) fail(path, format string, args ...any) {
	if !c.doc.Failed(path) {
		c.errs = append(c.errs, c.doc.Problem(path, format, args...))
	}
}

func (c *check) value(path string, v reflect.Value, f Field) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			c.value(path, v.Elem(), f)
		}
	case reflect.Struct:
		for _, f := range Fields(v.Type()) {
			field := v.Field(f.Index)
			if field.IsZero() && f.Required == "" && field.Kind() == reflect.Struct {
				continue // the whole struct is optional
			}
			c.value(Child(path, f.Name), field, f)
		}
	case reflect.Map:
		for _, key := range slices.SortedFunc(slices.Values(v.MapKeys()), func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) }) {
			c.value(Child(path, key.String()), v.MapIndex(key), f)
		}
	case reflect.Slice:
		for i := range v.Len() {
			c.value(path+"["+strconv.Itoa(i)+"]", v.Index(i), f)
		}
	case reflect.String:
		c.text(path, v.String(), f)
	case reflect.Int:
		least, err := strconv.ParseInt(f.Min, 10, 64)
		most, err2 := strconv.ParseInt(f.Max, 10, 64)
		if n := v.Int(); n != 0 && (err == nil && n < least || err2 == nil && n > most) {
			c.fail(path, "%d is not between %s and %s", n, f.Min, f.Max)
		}
	}
}

func (c *check) text(path, text string, f Field) {
	switch {
	case text == "" && f.Required == "true":
		c.fail(path, "empty")
	case text == "" || f.Enum == "" && f.Is == "":
	case f.Enum != "" && !slices.Contains(strings.Split(f.Enum, ","), text):
		c.fail(path, "%q is not one of %s", text, strings.ReplaceAll(f.Enum, ",", ", "))
	case f.Is != "":
		if err := c.kinds[f.Is](text); err != nil {
			c.fail(path, "%v", err)
		}
	}
}

// Unknown returns the message for an unknown key, with the nearest of names, or all of
// them.
func Unknown(key string, names []string) string {
	if near := Nearest(key, names); near != "" {
		return "unknown key; did you mean " + near + "?"
	}
	return "unknown key, there is " + strings.Join(names, ", ")
}

// Nearest returns the name nearest to word: at most two letters differ, and fewer than half
// of the name. It returns "" if there is none.
func Nearest(word string, names []string) string {
	plain := func(s string) string { return strings.ReplaceAll(strings.ToLower(s), "_", "") } // index_by is indexBy
	best, least := "", 3
	for _, name := range names {
		if d := distance(plain(word), plain(name)); d < least && 2*d < len(name) {
			best, least = name, d
		}
	}
	return best
}

// distance counts the bytes to insert, delete or replace. If the lengths differ by more
// than 2, it returns 3.
func distance(a, b string) int {
	if len(a)-len(b) > 2 || len(b)-len(a) > 2 {
		return 3
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
