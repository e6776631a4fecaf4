package settings

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/internal/strictyaml"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/cases"
)

// durationPattern matches the texts of time.ParseDuration, without a sign.
const durationPattern = `^(0|([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h))+$`

// object is a JSON object; its members are written in the order of their names.
type object map[string]any

// Schema returns the JSON schema of [Settings] (draft 2020-12), for editors and pipelines. It
// has the rules of [Parse] for keys, types and fixed words. It cannot check selectors,
// JSONPath and templates.
func Schema() []byte {
	schema := typeSchema(reflect.TypeFor[Settings](), strictyaml.Field{})
	schema["$schema"], schema["title"] = "https://json-schema.org/draft/2020-12/schema", "Settings of a haptic controller"
	text, err := json.MarshalIndent(schema, "", "  ")
	if err != nil { // cannot happen with these types
		panic(err)
	}
	return append(text, '\n')
}

// typeSchema returns the schema of a type; f is the field with that type.
func typeSchema(t reflect.Type, f strictyaml.Field) object {
	switch {
	case t == reflect.TypeFor[Intervals]():
		return intervalsSchema()
	case t == reflect.TypeFor[metav1.Duration]():
		return object{"type": "string", "pattern": durationPattern}
	case t == reflect.TypeFor[cases.Case]():
		return object{"type": "object"}
	case t.Kind() == reflect.Struct:
		return structSchema(t)
	case t.Kind() == reflect.Map:
		return object{"type": "object", "additionalProperties": typeSchema(t.Elem(), strictyaml.Field{})}
	case t.Kind() == reflect.Slice:
		return object{"type": "array", "items": typeSchema(t.Elem(), strictyaml.Field{})}
	case t.Kind() == reflect.Bool:
		return object{"type": "boolean"}
	case t.Kind() == reflect.Int:
		schema := object{"type": "integer"}
		for name, bound := range map[string]string{"minimum": f.Min, "maximum": f.Max} {
			if n, err := strconv.Atoi(bound); err == nil {
				schema[name] = n
			}
		}
		return schema
	}
	schema := object{"type": "string"}
	if f.Enum != "" {
		schema["enum"] = strings.Split(f.Enum, ",")
	}
	return schema
}

// intervalsSchema returns the schema of the table of intervals.
func intervalsSchema() object {
	properties := object{}
	for _, row := range new(reconcile.Options).Intervals() {
		if row.Name != "" {
			properties[row.Name] = object{"description": row.Doc + " Empty: " + row.Default.String() + ".", "type": "string", "pattern": durationPattern}
		}
	}
	return object{"type": "object", "properties": properties, "additionalProperties": false}
}

func structSchema(t reflect.Type) object {
	properties, required := object{}, []string{}
	for _, f := range strictyaml.Fields(t) {
		schema := typeSchema(f.Type, f)
		if f.Doc != "" {
			schema["description"] = f.Doc
		}
		properties[f.Name] = schema
		if f.Required != "" {
			required = append(required, f.Name)
		}
	}
	schema := object{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema
}
