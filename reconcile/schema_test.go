package reconcile

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// TestSchemaFile keeps the published file what the Go type says: UPDATE=1 writes
// it anew.
func TestSchemaFile(t *testing.T) {
	const file = "settings.schema.json"
	if os.Getenv("UPDATE") != "" {
		require.NoError(t, os.WriteFile(file, SettingsSchema(), 0o644))
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(text), string(SettingsSchema()))
}

// TestSchemaAgreesWithParser: where the parser finds nothing wrong, the schema
// does not either; and every structural mistake is one to both.
func TestSchemaAgreesWithParser(t *testing.T) {
	var schema map[string]any
	require.NoError(t, json.Unmarshal(SettingsSchema(), &schema))
	examples := map[string]string{}
	scripts, err := filepath.Glob("testdata/settings/*.txtar")
	require.NoError(t, err)
	for _, script := range scripts {
		archive, err := txtar.ParseFile(script)
		require.NoError(t, err)
		examples[filepath.Base(script)] = string(archive.Files[0].Data)
	}
	text, err := os.ReadFile("../examples/settings/testdata/settings.yaml")
	require.NoError(t, err)
	examples["examples"] = string(text)
	const good = "haproxyConfig: {template: x}\n"
	valid := []string{"reconcile: {debounceInterval: 1m30.5s}", "dataplane: {port: 80, keepFiles: true, podSelector: {matchLabels: {a: b}}}", "maps: {a.map: {template: ''}}"}
	for _, line := range valid {
		examples[line] = good + line
	}
	for name, text := range examples {
		s, errs := readSettings("s.yaml", []byte(text))
		var doc any
		if s == nil || yaml.UnmarshalStrict([]byte(text), &doc) != nil {
			continue
		}
		wrong := schemaErrors(schema, doc, "")
		if len(errs) == 0 && len(wrong) > 0 {
			t.Errorf("%s: the schema refuses what the parser takes: %v", name, wrong)
		}
	}
	for _, line := range []string{
		"map: {}", "maps: []", "maps: {a.map: {}}", "maps: {a.map: x}", "maps: {a.map: {template: 1}}", "maps:", "logging: {level: loud}",
		"reconcile: {debounceInterval: 1}", "reconcile: {debounceInterval: -1s}", "reconcile: {debounceInterval: fast}",
		"dataplane: {port: '1'}", "dataplane: {port: 70000}", "dataplane: {port: 1.5}", "dataplane: {keepFiles: 'yes'}",
		"watchedResources: {a: {apiVersion: v1}}", "watchedResources: {a: {apiVersion: v1, resources: pods, indexBy: x}}",
		"watchedResources: {a: {apiVersion: v1, resources: pods, store: none}}", "watchedResourcesIgnoreFields: [1]",
		"credentialsSecretRef: {}", "files: {x.http: {template: x, postProcessing: [{type: other}]}}",
	} {
		text := good + line + "\n"
		_, err := ParseSettings("s.yaml", []byte(text))
		var doc any
		require.NoError(t, yaml.Unmarshal([]byte(text), &doc), line)
		if wrong := schemaErrors(schema, doc, ""); err == nil || len(wrong) == 0 {
			t.Errorf("%s: the parser says %v, the schema %v", line, err, wrong)
		}
	}
}

// schemaErrors validates with the part of JSON schema that SettingsSchema uses,
// and fails on any other keyword.
func schemaErrors(schema map[string]any, doc any, at string) (wrong []string) {
	fail := func(format string, args ...any) { wrong = append(wrong, at+": "+fmt.Sprintf(format, args...)) }
	for keyword, v := range schema {
		switch keyword {
		case "$schema", "title", "description", "properties":
		case "type":
			if is := schemaType(doc); is != v && !(is == "integer" && v == "number") {
				fail("%s, not %s", is, v)
			}
		case "enum":
			if !slices.Contains(v.([]any), doc) {
				fail("not one of %v", v)
			}
		case "pattern":
			if s, ok := doc.(string); ok && !regexp.MustCompile(v.(string)).MatchString(s) {
				fail("does not match")
			}
		case "minimum", "maximum":
			if n, ok := doc.(float64); ok && (keyword == "minimum" && n < v.(float64) || keyword == "maximum" && n > v.(float64)) {
				fail("%s", keyword)
			}
		case "required":
			if m, ok := doc.(map[string]any); ok {
				for _, name := range v.([]any) {
					if _, ok := m[name.(string)]; !ok {
						fail("%s is missing", name)
					}
				}
			}
		case "items":
			if list, ok := doc.([]any); ok {
				for i, item := range list {
					wrong = append(wrong, schemaErrors(v.(map[string]any), item, fmt.Sprintf("%s[%d]", at, i))...)
				}
			}
		case "additionalProperties":
			properties, _ := schema["properties"].(map[string]any)
			if m, ok := doc.(map[string]any); ok {
				for name, item := range m {
					sub, known := properties[name].(map[string]any)
					if rest, ok := v.(map[string]any); !known && ok {
						sub, known = rest, true
					}
					if !known {
						fail("%s is not known", name)
						continue
					}
					wrong = append(wrong, schemaErrors(sub, item, at+"."+name)...)
				}
			}
		default:
			fail("the keyword %s is not tested", keyword)
		}
	}
	return wrong
}

func schemaType(doc any) string {
	switch doc := doc.(type) {
	case map[string]any:
		return "object"
	case []any:
		return "array"
	case string:
		return "string"
	case bool:
		return "boolean"
	case float64:
		if doc == float64(int(doc)) {
			return "integer"
		}
		return "number"
	}
	return "null"
}
