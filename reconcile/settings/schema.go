package settings

import (
	"bytes"
	"cmp"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/reconcile/cases"
)

// durationPattern is what time.ParseDuration takes, without a sign.
const durationPattern = `^(0|([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h))+$`

// Schema returns the JSON schema of [Settings] (draft 2020-12), for
// editors and pipelines. It says what [Parse] does of keys, types and
// words; whether selectors, JSONPath and templates are right it cannot say.
func Schema() []byte {
	schema := orderedObject{
		{"$schema", "https://json-schema.org/draft/2020-12/schema"},
		{"title", "Settings of a haptic controller"},
	}
	schema = append(schema, typeSchema(reflect.TypeFor[Settings](), settingsField{})...)
	text, err := json.MarshalIndent(schema, "", "  ")
	if err != nil { // not of these types
		panic(err)
	}
	return append(text, '\n')
}

// typeSchema describes a type; f is the field that has it.
func typeSchema(t reflect.Type, f settingsField) orderedObject {
	switch {
	case t == reflect.TypeFor[metav1.Duration]():
		return orderedObject{{"type", "string"}, {"pattern", durationPattern}}
	case t == reflect.TypeFor[cases.Case]():
		return orderedObject{{"type", "object"}}
	case t.Kind() == reflect.Struct:
		return structSchema(t)
	case t.Kind() == reflect.Map:
		return orderedObject{{"type", "object"}, {"additionalProperties", typeSchema(t.Elem(), settingsField{})}}
	case t.Kind() == reflect.Slice:
		return orderedObject{{"type", "array"}, {"items", typeSchema(t.Elem(), settingsField{})}}
	case t.Kind() == reflect.Bool:
		return orderedObject{{"type", "boolean"}}
	case t.Kind() == reflect.Int:
		schema := orderedObject{{"type", "integer"}}
		for _, bound := range [][2]string{{"minimum", f.min}, {"maximum", f.max}} {
			if n, err := strconv.Atoi(bound[1]); err == nil {
				schema = append(schema, member{bound[0], n})
			}
		}
		return schema
	}
	schema := orderedObject{{"type", "string"}}
	if f.enum != "" {
		schema = append(schema, member{"enum", strings.Split(f.enum, ",")})
	}
	return schema
}

func structSchema(t reflect.Type) orderedObject {
	properties, required := orderedObject{}, []string{}
	for _, f := range settingsFields(t) {
		schema := typeSchema(f.typ, f)
		if f.doc != "" {
			schema = append(orderedObject{{"description", f.doc}}, schema...)
		}
		properties = append(properties, member{f.name, schema})
		if f.required {
			required = append(required, f.name)
		}
	}
	schema := orderedObject{{"type", "object"}, {"properties", properties}, {"additionalProperties", false}}
	if len(required) > 0 {
		schema = append(schema, member{"required", required})
	}
	return schema
}

// orderedObject is a JSON object whose members keep the order of the Go type.
type orderedObject []member

type member struct {
	name  string
	value any
}

// MarshalJSON implements json.Marshaler.
func (o orderedObject) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(m.name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(m.value)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// settingsField is what the tags of a field of the settings say.
type settingsField struct {
	name, doc, enum string
	min, max        string
	required        bool
	index           []int
	typ             reflect.Type
}

// settingsFields lists the fields of a struct of the settings, in the order in
// which they are declared.
func settingsFields(t reflect.Type) []settingsField {
	var fields []settingsField
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(cmp.Or(f.Tag.Get("yaml"), f.Tag.Get("json")), ",")
		if !f.IsExported() || name == "" || name == "-" {
			continue
		}
		fields = append(fields, settingsField{
			name: name, doc: f.Tag.Get("doc"), enum: f.Tag.Get("enum"), min: f.Tag.Get("min"), max: f.Tag.Get("max"),
			required: f.Tag.Get("required") != "", index: f.Index, typ: f.Type,
		})
	}
	return fields
}

// nearest finds the name that was meant: at most two letters off, and fewer than
// half of them.
func nearest(word string, names []string) string {
	best, least := "", 3
	for _, name := range names {
		d := editDistance(strings.ToLower(word), strings.ToLower(name), least)
		if d < least && 2*d < len(name) {
			best, least = name, d
		}
	}
	return best
}

// editDistance counts the bytes to insert, delete or replace, and stops counting
// at most.
func editDistance(a, b string, most int) int {
	if len(a)-len(b) >= most || len(b)-len(a) >= most {
		return most
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
	return min(row[len(b)], most)
}
