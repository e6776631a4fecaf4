package settings

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"github.com/hapticsdk/haptic/internal/strictyaml"
	"github.com/hapticsdk/haptic/reconcile"
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
	schema = append(schema, typeSchema(reflect.TypeFor[Settings](), strictyaml.Field{})...)
	text, err := json.MarshalIndent(schema, "", "  ")
	if err != nil { // not of these types
		panic(err)
	}
	return append(text, '\n')
}

// typeSchema describes a type; f is the field that has it.
func typeSchema(t reflect.Type, f strictyaml.Field) orderedObject {
	switch {
	case t == reflect.TypeFor[Intervals]():
		return intervalsSchema()
	case t == reflect.TypeFor[cases.Case]():
		return orderedObject{{"type", "object"}}
	case t.Kind() == reflect.Struct:
		return structSchema(t)
	case t.Kind() == reflect.Map:
		return orderedObject{{"type", "object"}, {"additionalProperties", typeSchema(t.Elem(), strictyaml.Field{})}}
	case t.Kind() == reflect.Slice:
		return orderedObject{{"type", "array"}, {"items", typeSchema(t.Elem(), strictyaml.Field{})}}
	case t.Kind() == reflect.Bool:
		return orderedObject{{"type", "boolean"}}
	case t.Kind() == reflect.Int:
		schema := orderedObject{{"type", "integer"}}
		for _, bound := range [][2]string{{"minimum", f.Min}, {"maximum", f.Max}} {
			if n, err := strconv.Atoi(bound[1]); err == nil {
				schema = append(schema, member{bound[0], n})
			}
		}
		return schema
	}
	schema := orderedObject{{"type", "string"}}
	if f.Enum != "" {
		schema = append(schema, member{"enum", strings.Split(f.Enum, ",")})
	}
	return schema
}

// intervalsSchema describes the rows of the table of intervals.
func intervalsSchema() orderedObject {
	properties := orderedObject{}
	for _, row := range new(reconcile.Options).Intervals() {
		if row.Name != "" {
			properties = append(properties, member{row.Name, orderedObject{{"description", row.Doc}, {"type", "string"}, {"pattern", durationPattern}}})
		}
	}
	return orderedObject{{"type", "object"}, {"properties", properties}, {"additionalProperties", false}}
}

func structSchema(t reflect.Type) orderedObject {
	properties, required := orderedObject{}, []string{}
	for _, f := range strictyaml.Fields(t) {
		schema := typeSchema(f.Type, f)
		if f.Doc != "" {
			schema = append(orderedObject{{"description", f.Doc}}, schema...)
		}
		properties = append(properties, member{f.Name, schema})
		if f.Required != "" {
			required = append(required, f.Name)
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
